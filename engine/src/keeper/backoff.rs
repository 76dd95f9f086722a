//! How long to wait before what failed is tried again: exponential backoff with jitter.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The first pause, about.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest, about: what is wrong may have passed that long before it is noticed.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: PAUSE_MIN }
    }
}

impl Backoff {
    /// The next pause.
    pub(super) fn pause(&mut self) -> Duration {
        let jitter = 0.8 + 0.4 * fastrand::f64();
        let pause = self.next.mul_f64(jitter);
        self.next = self.next.saturating_mul(2).min(PAUSE_MAX);
        pause
    }

    /// Waits for the next pause; `false` when asked to stop meanwhile.
    pub(super) fn wait(&mut self, runtime: &Handle, stop: &CancellationToken) -> bool {
        let pause = self.pause();
        let stopped = async { tokio::time::timeout(pause, stop.cancelled()).await.is_ok() };
        !runtime.block_on(stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let pauses: Vec<Duration> = (0..12).map(|_| backoff.pause()).collect();
        assert!(pauses[0] < PAUSE_MIN.mul_f64(1.21), "{pauses:?}");
        assert!(
            pauses.windows(2).take(5).all(|pair| pair[0] < pair[1]),
            "{pauses:?}"
        );
        assert!(
            pauses.iter().all(|pause| *pause <= PAUSE_MAX.mul_f64(1.21)),
            "{pauses:?}"
        );
        assert!(pauses[11] >= PAUSE_MAX.mul_f64(0.79), "{pauses:?}");
    }
}
