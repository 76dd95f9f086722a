//! Streams of answers that have ended, until the next call is sent.
//!
//! Whoever drops the last handle of a stream wakes the task of its connection, which has nothing to do then. The end of an
//! answer is where that is worst: what is to be written next, to the caller, has just become ready on the same thread, and
//! is taken from it by another one that is woken for the second task. After a call was sent the task is awake anyway.

use std::sync::Arc;

use h2::RecvStream;
use parking_lot::Mutex;

/// Most streams that are kept; more are dropped at once.
const KEPT_MAX: usize = 128;

/// Those of one connection. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended(Arc<Mutex<Vec<RecvStream>>>);

impl Ended {
    /// Keeps a stream on which nothing will come any more.
    pub(super) fn keep(&self, stream: RecvStream) {
        let mut kept = self.0.lock();
        if kept.len() < KEPT_MAX {
            kept.push(stream);
        }
    }

    /// Drops them. Right after something was sent.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// How many are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}
