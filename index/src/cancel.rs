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
    /// How many checks pass before one cancels.
    #[cfg(test)]
    checks: Option<Arc<std::sync::atomic::AtomicIsize>>,
}

impl Cancellation {
    /// Stops at `deadline`.
    pub fn at(deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..Self::default()
        }
    }

    /// Cancels at the check after these.
    #[cfg(test)]
    pub(crate) fn after_checks(checks: isize) -> Self {
        Self {
            checks: Some(Arc::new(checks.into())),
            ..Self::default()
        }
    }

    /// How many checks are left of [`Cancellation::after_checks`]; below 0 once one has cancelled.
    #[cfg(test)]
    pub(crate) fn checks_left(&self) -> isize {
        let checks = self.checks.as_ref();
        checks.map_or(isize::MAX, |checks| checks.load(Ordering::Relaxed))
    }

    /// Stops the searches that hold a clone of this.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Fails when it is time to stop.
    ///
    /// # Errors
    /// [`Error::Cancelled`] or [`Error::DeadlineExceeded`].
    pub fn check(&self) -> Result<(), Error> {
        #[cfg(test)]
        if let Some(checks) = &self.checks
            && checks.fetch_sub(1, Ordering::Relaxed) <= 0
        {
            return Err(Error::Cancelled);
        }
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::DeadlineExceeded { walked: 0 }),
            Some(_) | None => Ok(()),
        }
    }
}
