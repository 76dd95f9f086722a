//! Waiting for something, as long as the call has time.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// What is left of the time of a call when work that ends by itself is answered.
const ANSWER_MARGIN: Duration = Duration::from_millis(500);

/// How long a call may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    until: Option<Instant>,
}

impl Wait {
    /// Until a moment; `None` is as long as it takes.
    pub(crate) fn new(until: Option<Instant>) -> Self {
        Self { until }
    }

    /// As long as that, but from now on no longer than this.
    pub(crate) fn at_most(self, longest: Duration) -> Self {
        let at = Instant::now() + longest;
        Self::new(Some(self.until.map_or(at, |until| until.min(at))))
    }

    /// The moment at which waiting ends.
    pub(crate) fn until(self) -> Option<Instant> {
        self.until
    }

    /// The moment at which work ends that answers with what it has: shortly before, as an answer at the deadline comes too late.
    pub(crate) fn answer_by(self) -> Option<Instant> {
        let until = self.until?;
        Some(until.checked_sub(ANSWER_MARGIN).unwrap_or(until))
    }

    /// Waits until a watched value is as wanted; `false` when time runs out before, or nobody sends any more.
    pub(crate) async fn for_value<T>(
        self,
        values: &mut watch::Receiver<T>,
        wanted: impl FnMut(&T) -> bool,
    ) -> bool {
        self.for_end(values.wait_for(wanted))
            .await
            .is_some_and(|value| value.is_ok())
    }

    /// Waits for a future; `None` when time runs out before.
    pub(crate) async fn for_end<F: Future>(self, future: F) -> Option<F::Output> {
        match self.until {
            Some(until) => tokio::time::timeout_at(until, future).await.ok(),
            None => Some(future.await),
        }
    }
}
