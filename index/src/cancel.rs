//! When a search has to stop: at its deadline, or when its caller has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::error::Error;

/// The end of a search: a deadline, a switch that its caller can throw, or neither.
///
/// Clones share the switch.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    deadline: Option<Instant>,
    cancelled: Arc<AtomicBool>,
}

impl Cancellation {
    /// Never stops by itself.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Stops at `deadline`.
    #[must_use]
    pub fn at(deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            cancelled: Arc::default(),
        }
    }

    /// Stops the search that holds a clone of this.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Fails when it is time to stop.
    ///
    /// # Errors
    /// [`Error::Cancelled`] or [`Error::DeadlineExceeded`].
    pub fn check(&self) -> Result<(), Error> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::DeadlineExceeded { walked: 0 }),
            Some(_) | None => Ok(()),
        }
    }
}
