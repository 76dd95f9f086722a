//! Keeps one index going: opens it, or fills it from its table, follows the log with it, and begins again when that ends.
//!
//! | it ended since | then |
//! |---|---|
//! | the device is short of room, the store or the system refuses: it can pass | it is opened again at its last checkpoint, for as long as it takes |
//! | somebody panicked | the same; the next time it is built anew |
//! | the index is damaged, or the log doesn't continue it | it is built anew |
//!
//! Between two attempts is a [pause](super::backoff) that grows. What answers goes on answering meanwhile, unless it is
//! damaged. After [`STRIKES_MAX`] failures that don't pass, it has failed until the process starts again or the index is
//! changed, and holds nothing of the log any more. An index of a design that isn't wanted any more isn't built: another one is.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use souk_index::{Error as IndexError, Index, Opening};
use souk_storage::{Error as StorageError, ErrorKind};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::backoff::Backoff;
use super::follower::Follower;
use super::{Keeping, draft, folder, verify};
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::index_state::{Phase, Serving, Step};

/// Failures that don't pass, after which an index isn't tried again by itself.
const STRIKES_MAX: u32 = 5;
/// What went well for so long makes up for all failures before.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);
/// After each so many failures of the files in a row their checksums are compared: it may be they that are wrong.
const VERIFIED_AFTER: u32 = 4;

/// Why an attempt ended.
#[derive(Debug)]
pub(super) enum Failure {
    /// It may pass by itself.
    Passing(EngineError),
    /// It won't, but another index may do.
    Broken(EngineError),
    /// What the panic said.
    Panicked(String),
}

impl Failure {
    /// What an attempt ended with; `None` when it ended well.
    pub(super) fn of(attempt: impl FnOnce() -> Result<()>) -> Option<Self> {
        match catch_unwind(AssertUnwindSafe(attempt)) {
            Ok(Ok(())) => None,
            Ok(Err(error)) if passes(&error) => Some(Self::Passing(error)),
            Ok(Err(error)) => Some(Self::Broken(error)),
            Err(panic) => Some(Self::Panicked(said(&*panic))),
        }
    }

    /// What clients are told.
    pub(super) fn why(&self) -> &'static str {
        match self {
            Self::Passing(EngineError::Storage(StorageError::DiskFull { .. })) => {
                "the device has too little room"
            }
            Self::Passing(EngineError::Storage(_)) => "its store refuses",
            Self::Passing(_) => "its files can't be read or written, for want of room maybe",
            Self::Broken(_) => "it doesn't fit the store any more, or is damaged, and is built anew",
            Self::Panicked(_) => "it stumbles over a change",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passing(error) | Self::Broken(error) => error.fmt(out),
            Self::Panicked(said) => write!(out, "a panic: {said}"),
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// Whether the same may go well later.
fn passes(error: &EngineError) -> bool {
    match error {
        EngineError::Storage(error) => error.retryable() || error.kind() == ErrorKind::Io,
        EngineError::Index(error) => matches!(
            error,
            IndexError::Io { .. }
                | IndexError::WriterFailed { .. }
                | IndexError::WriterBusy
                | IndexError::Engine { .. }
        ),
        EngineError::Io { .. } | EngineError::Closing => true,
        _ => false,
    }
}

/// See the module's documentation.
pub(super) struct Supervisor {
    keeping: Arc<Keeping>,
    design: Arc<Design>,
    /// For the first attempt; the others open it.
    opened: Option<Index>,
    /// Whether the next attempt has to begin with nothing.
    anew: bool,
    /// The index that was followed last.
    followed: Option<Opening>,
    /// Since when the attempt follows: a build that took long is nothing that went well for long.
    followed_since: Option<Instant>,
    /// Failures that don't pass, since the index went well.
    strikes: u32,
    /// Failures in a row of which the files may be the reason.
    of_files: u32,
    backoff: Backoff,
}

impl Supervisor {
    pub(super) fn new(keeping: Arc<Keeping>, design: Arc<Design>, opened: Option<Index>) -> Self {
        Self {
            keeping,
            design,
            opened,
            anew: false,
            followed: None,
            followed_since: None,
            strikes: 0,
            of_files: 0,
            backoff: Backoff::default(),
        }
    }

    /// Keeps the index going until it is told to stop, or gives it up.
    pub(super) fn run(mut self, stop: &CancellationToken) {
        let keeping = Arc::clone(&self.keeping);
        let name = keeping.name();
        while !stop.is_cancelled() {
            let Some(failure) = Failure::of(|| self.attempt(stop)) else {
                return;
            };
            if stop.is_cancelled() {
                warn!(index = name, reason = %failure, "the index ended by a failure; it resumes from its last checkpoint");
                return;
            }
            let followed_since = self.followed_since.take();
            if followed_since.is_some_and(|since| since.elapsed() >= FORGIVEN_AFTER) {
                (self.strikes, self.of_files, self.backoff) = (0, 0, Backoff::default());
            }
            let failure = self.looked_into(failure, stop);
            let (why, reason) = (failure.why(), failure.to_string());
            if self.answers() {
                keeping.state().stall(why, &reason);
            }
            keeping.show_waiting(&self.design, Some(why.to_owned()));
            match &failure {
                Failure::Passing(_) => warn!(index = name, reason, "the index doesn't go on; it tries again"),
                Failure::Broken(_) | Failure::Panicked(_) => {
                    error!(
                        index = name,
                        reason,
                        strikes = self.strikes,
                        "the index has failed; it tries again"
                    );
                }
            }
            if self.strikes >= STRIKES_MAX {
                return self.give_up(&reason, stop);
            }
            if !self.backoff.wait(&keeping.runtime, stop) {
                return;
            }
        }
    }

    /// Follows the log with the index, or with a new one where there is none that can be used.
    fn attempt(&mut self, stop: &CancellationToken) -> Result<()> {
        let keeping = Arc::clone(&self.keeping);
        if self.anew {
            folder::remove(&folder::of(&keeping.folder, self.design.fingerprint()))?;
            (self.anew, self.followed) = (false, None);
        } else if let Some(detail) = self.condemned() {
            return Err(EngineError::Index(IndexError::Corrupt { detail, source: None }));
        }
        let index = match self.opened.take() {
            Some(index) => Some(index),
            None => folder::usable(&keeping, &self.design, stop)?,
        };
        let (index, writer) = match index {
            Some(index) => {
                let writer = index.writer()?;
                (index, writer)
            }
            None => {
                if keeping.follows(self.design.fingerprint()) && keeping.state().is_unopened() {
                    // Searches needn't wait for that.
                    keeping.state().set_phase(Phase::Building);
                }
                let mut backoff = Backoff::default();
                while !self.is_wanted() {
                    // Another one is being built, which then ends this.
                    if !backoff.wait(&keeping.runtime, stop) {
                        return Ok(());
                    }
                }
                match draft::fill(&keeping, &self.design, stop)? {
                    Some(filled) => filled,
                    None => return Ok(()),
                }
            }
        };
        keeping.show_waiting(&self.design, None);
        self.followed = Some(index.opening());
        self.followed_since = Some(Instant::now());
        Follower::new(keeping, Arc::clone(&self.design), index, writer).run(stop)
    }

    /// What a failure really is, and what follows from it for the next attempt.
    fn looked_into(&mut self, failure: Failure, stop: &CancellationToken) -> Failure {
        let failure = match failure {
            Failure::Passing(EngineError::Index(error)) => {
                self.of_files += 1;
                match self.damage(stop) {
                    Some(damage) => Failure::Broken(damage),
                    None => Failure::Passing(EngineError::Index(error)),
                }
            }
            other => {
                self.of_files = 0;
                other
            }
        };
        match &failure {
            Failure::Passing(_) => {}
            Failure::Broken(error) => {
                if matches!(error, EngineError::Index(IndexError::Corrupt { .. })) {
                    verify::found(&self.keeping, error);
                    // What is wrong must not answer; another one may, until this one is as far.
                    let state = self.keeping.state();
                    state.stop_serving_design(self.design.fingerprint(), &error.to_string());
                }
                self.strikes += 1;
                self.anew = true;
            }
            Failure::Panicked(_) => {
                self.anew = self.strikes > 0;
                self.strikes += 1;
            }
        }
        failure
    }

    /// How it showed that the index that was followed last is damaged, if its follower ended before it knew.
    fn condemned(&mut self) -> Option<String> {
        let followed = self.followed.take()?;
        self.keeping.state().take_condemned(followed)
    }

    /// The damage of an index that can't be written again and again, though there is room.
    fn damage(&self, stop: &CancellationToken) -> Option<EngineError> {
        if !self.of_files.is_multiple_of(VERIFIED_AFTER) || self.keeping.room.shortage().is_some() {
            return None;
        }
        let index = folder::usable(&self.keeping, &self.design, stop).ok()??;
        match index.verify_until(&|| stop.is_cancelled()) {
            Err(error @ IndexError::Corrupt { .. }) => Some(error.into()),
            Ok(()) | Err(_) => None,
        }
    }

    /// Whether searches are answered by this index, or will be by no other: not while another only has to be open for it.
    fn answers(&self) -> bool {
        self.keeping.follows(self.design.fingerprint()) || !self.keeping.state().answers()
    }

    fn is_wanted(&self) -> bool {
        self.keeping.index.wanted().fingerprint() == self.design.fingerprint()
    }

    /// The index isn't tried again; the log isn't kept for it.
    fn give_up(mut self, reason: &str, stop: &CancellationToken) {
        let keeping = Arc::clone(&self.keeping);
        let name = keeping.name();
        if keeping.builds(&self.design) {
            keeping.state().with_build(|build| {
                build.step = Step::Failed(reason.to_owned());
                build.waiting = None;
            });
        }
        let answers = self.answers();
        let serving = keeping.state().serving();
        let is_own = |serving: &Serving| serving.design.fingerprint() == self.design.fingerprint();
        if answers && serving.as_ref().is_none_or(is_own) {
            keeping.state().set_phase(Phase::Failed(reason.to_owned()));
        }
        drop(serving);
        error!(
            index = name,
            reason,
            "the index has failed for good; it is built again when it is changed, or the process starts again"
        );
        loop {
            let released = Failure::of(|| {
                let feed = folder::feed_name(name, self.design.fingerprint());
                keeping.runtime.block_on(async {
                    if answers {
                        keeping.consumer.clone().remove().await?;
                    }
                    match keeping.database.feed(&feed) {
                        Some(feed) => Ok(feed.remove().await?),
                        None => Ok(()),
                    }
                })
            });
            let held = released.as_ref().map(ToString::to_string);
            keeping.state().set_log_held(held);
            if released.is_none() {
                info!(index = name, "the log isn't kept for the index any more");
                return;
            }
            if !self.backoff.wait(&keeping.runtime, stop) {
                return;
            }
        }
    }
}
