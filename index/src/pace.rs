//! Looks at the deadline and the cancellation of a search once in so many steps of its work.

use std::ops::Deref;

use crate::run::Run;

/// Counts steps of work, and checks the search every so many of them.
#[derive(Clone)]
pub(crate) struct Pace<R> {
    run: R,
    per_check: u32,
    left: u32,
}

impl<R: Deref<Target = Run>> Pace<R> {
    /// Checks every `per_check` steps: as many as take some 0.1 ms.
    pub(crate) fn new(run: R, per_check: u32) -> Self {
        Self {
            run,
            per_check,
            left: per_check,
        }
    }

    /// Before `steps`, of which none counts as one, too.
    ///
    /// # Errors
    /// When the search has to stop; the reason is left in its [`Run`].
    pub(crate) fn step(&mut self, steps: u32) -> tantivy::Result<()> {
        if let Some(left @ 1..) = self.left.checked_sub(steps.max(1)) {
            self.left = left;
            return Ok(());
        }
        self.left = self.per_check;
        self.run.check_inside()
    }

    /// [`Pace::step`] where no error can be returned: whoever stops ends quietly, and the search is told by
    /// [`Run::outcome`].
    pub(crate) fn stops(&mut self, steps: u32) -> bool {
        self.step(steps).is_err()
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }
}
