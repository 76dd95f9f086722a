//! The limits of one search while it runs: when to stop, what it may still do, and why it gave up.
//!
//! The search library's traits return its own error type. A part that gives up for a reason of ours leaves the reason
//! here and returns any error; the search then answers with what is here.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tantivy::TantivyError;

use crate::allowance::Allowance;
use crate::cancel::Cancellation;
use crate::error::Error;
use crate::limits::MAX_KEPT_MATCHES_BYTES;

/// Deadline, memory and failure of one search.
#[derive(Default)]
pub(crate) struct Execution {
    cancellation: Cancellation,
    pub(crate) allowance: Allowance,
    /// Values and words that patterns have looked at.
    walked: AtomicU64,
    kept_matches: AtomicUsize,
    planned_nodes: AtomicUsize,
    /// Whether the search tells what its clauses cost.
    pub(crate) measured: bool,
    failure: Mutex<Option<Error>>,
    /// Whether a part has left an error: the others have nothing to go on for.
    left: AtomicBool,
}

impl Execution {
    pub(crate) fn new(cancellation: Cancellation) -> Self {
        Self {
            cancellation,
            ..Self::default()
        }
    }

    /// Fails when the search has to stop.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.cancellation.check().map_err(|error| match error {
            Error::DeadlineExceeded { .. } => Error::DeadlineExceeded {
                walked: self.walked.load(Ordering::Relaxed),
            },
            other => other,
        })
    }

    /// [`Execution::check`] for inside the search library. Fails, too, when a part has left an error.
    pub(crate) fn check_inside(&self) -> tantivy::Result<()> {
        if self.left.load(Ordering::Relaxed) {
            return Err(TantivyError::InternalError("another part has failed".to_owned()));
        }
        self.check().map_err(|error| self.give_up(error))
    }

    /// [`Execution::check_inside`] once in so many steps, of which this is the `nth`.
    pub(crate) fn check_nth(&self, nth: usize, every: usize) -> tantivy::Result<()> {
        match nth.is_multiple_of(every) {
            true => self.check_inside(),
            false => Ok(()),
        }
    }

    pub(crate) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// Accounts for `nodes` of a query tree; how many there are in this search so far.
    pub(crate) fn planned(&self, nodes: usize) -> usize {
        let before = self.planned_nodes.fetch_add(nodes, Ordering::Relaxed);
        before.saturating_add(nodes)
    }

    /// Accounts for so many terms of a dictionary that a pattern looks at, and fails when the search has to stop.
    pub(crate) fn walked(&self, terms: usize) -> tantivy::Result<()> {
        self.walked.fetch_add(terms as u64, Ordering::Relaxed);
        self.check_inside()
    }

    /// Whether so many bytes of what patterns have found may be kept until the search ends.
    pub(crate) fn may_keep_matches(&self, bytes: usize) -> bool {
        let before = self.kept_matches.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= MAX_KEPT_MATCHES_BYTES
    }

    /// Leaves the reason here (the first one counts) and returns an error to unwind with.
    pub(crate) fn give_up(&self, error: Error) -> TantivyError {
        let text = error.to_string();
        self.failure.lock().get_or_insert(error);
        TantivyError::InternalError(text)
    }

    /// Leaves an error where none can be returned; [`Execution::outcome`] tells of it, and the search stops.
    pub(crate) fn leave(&self, doing: &'static str, error: TantivyError) {
        self.left.store(true, Ordering::Relaxed);
        let mut failure = self.failure.lock();
        failure.get_or_insert_with(|| Error::engine(doing, error));
    }

    /// Fails when a part gave up that had no way to say so.
    pub(crate) fn outcome(&self) -> Result<(), Error> {
        self.failure.lock().take().map_or(Ok(()), Err)
    }

    /// The reason why values of documents couldn't be read.
    pub(crate) fn unreadable(&self, source: io::Error) -> Error {
        let failure = self.failure.lock().take();
        failure.unwrap_or_else(|| Error::reading("reading the columns of a segment", source))
    }

    /// The reason of an error from inside.
    pub(crate) fn reason(&self, doing: &'static str, error: TantivyError) -> Error {
        let failure = self.failure.lock().take();
        failure.unwrap_or_else(|| Error::engine(doing, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_SEARCH_BYTES;

    #[test]
    fn a_search_stops_when_a_part_has_left_an_error() {
        let execution = Execution::new(Cancellation::none());
        assert!(execution.check_inside().is_ok());
        let exceeded = execution
            .allowance()
            .take(MAX_SEARCH_BYTES + 1)
            .expect_err("too many");
        execution.leave("testing", exceeded.into());
        assert!(execution.check_inside().is_err());
        assert!(matches!(
            execution.outcome(),
            Err(Error::LimitExceeded {
                limit: "MAX_SEARCH_BYTES",
                ..
            })
        ));
    }
}
