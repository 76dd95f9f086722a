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
    /// How many looks find nothing yet.
    #[cfg(test)]
    looks: Option<Arc<std::sync::atomic::AtomicIsize>>,
}

impl Cancellation {
    /// Never stops by itself.
    pub fn none() -> Self {
        Self::default()
    }

    /// Stops at `deadline`.
    pub fn at(deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..Self::default()
        }
    }

    /// Stops at the look behind so many.
    #[cfg(test)]
    pub(crate) fn after_looks(looks: isize) -> Self {
        Self {
            looks: Some(Arc::new(looks.into())),
            ..Self::default()
        }
    }

    /// How many looks are left of [`Cancellation::after_looks`]; below 0 once one has found that it is time to stop.
    #[cfg(test)]
    pub(crate) fn looks_left(&self) -> isize {
        let looks = self.looks.as_ref();
        looks.map_or(isize::MAX, |looks| looks.load(Ordering::Relaxed))
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
        #[cfg(test)]
        if let Some(looks) = &self.looks
            && looks.fetch_sub(1, Ordering::Relaxed) <= 0
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
