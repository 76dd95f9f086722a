//! How long, and how often, a call is made again.

use std::time::{Duration, Instant};

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// The first pause before a call is made again; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause, unless the service asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The tries of one call.
pub(crate) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    /// Tries for so long.
    pub(crate) fn new(time: Duration) -> Self {
        Self {
            until: Instant::now() + time,
            pause: PAUSE_MIN,
        }
    }

    /// Waits until the call that ended with `status` may be made again; `false` when it isn't worth it, or the time is over.
    pub(crate) async fn again(&mut self, status: &Status) -> bool {
        let asked = status.get_details_retry_info().and_then(|info| info.retry_delay);
        // Up to twice as long, so that several streams don't come back together.
        let jitter = Duration::from_millis(fastrand::u64(0..=self.pause.as_millis() as u64));
        let wait = asked.unwrap_or(self.pause) + jitter;
        if !is_passing(status.code()) || Instant::now() + wait > self.until {
            return false;
        }
        tracing::debug!(code = ?status.code(), ?wait, "a call is made again");
        tokio::time::sleep(wait).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}

/// Worth another try.
fn is_passing(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable | Code::ResourceExhausted | Code::Aborted | Code::DeadlineExceeded
    )
}
