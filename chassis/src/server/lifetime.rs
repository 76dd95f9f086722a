//! Connection age with jitter, idle and stall limits of one connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::config::ConnectionConfig;
use crate::connection_info::{ConnectionActivity, Standing};

/// Jitter applied to the maximum age, in ± percent: clients that came together don't leave together.
const JITTER: u32 = 10;

/// Time for a client that never called to hear that the connection ends; one that doesn't answer is hung up on.
const GOODBYE: Duration = Duration::from_secs(3);

/// Why the client of a connection is told to leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaveReason {
    /// It has its age.
    Old,
    /// Nothing came for long.
    Idle,
    /// No call was let in, or none but questions for health, and no more of those.
    Unused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Its client is told to make another one; calls under way go on.
    Leave(LeaveReason),
    Cut(&'static str),
}

#[derive(Debug)]
pub(super) struct Lifetime {
    activity: Arc<ConnectionActivity>,
    /// When it began to be served; it may have waited for a place before.
    began: Instant,
    old_at: Instant,
    config: ConnectionConfig,
    /// Why and when its client was told to leave.
    leaving: Option<(LeaveReason, Instant)>,
}

impl Lifetime {
    /// The limits of `config`; `draw`, from 0 to 1, is where in the range of the jitter the age lies.
    pub(super) fn new(activity: Arc<ConnectionActivity>, config: &ConnectionConfig, draw: f64) -> Self {
        let spread = config.age_max.saturating_mul(JITTER) / 100;
        let age = config.age_max.saturating_sub(spread) + (spread * 2).mul_f64(draw.clamp(0.0, 1.0));
        let began = Instant::now();
        Self {
            activity,
            began,
            old_at: began + age,
            config: config.clone(),
            leaving: None,
        }
    }

    pub(super) async fn due(&mut self) -> Due {
        loop {
            let now = Instant::now();
            let (at, due) = self.next(now);
            if at <= now
                && let Some(due) = due
            {
                if let Due::Leave(reason) = due {
                    self.leaving = Some((reason, now));
                }
                return due;
            }
            sleep_until(at).await;
        }
    }

    /// No call was let in, and health isn't asked for now.
    fn is_of_no_use(&self) -> bool {
        self.activity.standing() != Standing::Caller && self.activity.health_calls.is_empty()
    }

    /// The next that may be due; `None` when it is only time to look again.
    fn next(&self, now: Instant) -> (Instant, Option<Due>) {
        let cut_at = self.old_at + self.config.age_grace;
        let (at, due) = match self.leaving {
            Some((LeaveReason::Old, _)) => (cut_at, Due::Cut("it is old, and its calls don't end")),
            Some((LeaveReason::Unused, at)) if self.is_of_no_use() => (
                at + GOODBYE,
                Due::Cut("no call came, and its client doesn't leave"),
            ),
            // It may have streams that have nothing to say; they end with its age.
            Some(_) => (cut_at, Due::Cut("it was asked to end before, and is old")),
            None => {
                let (silent_at, reason) = match self.activity.last_work() {
                    Some(last) if self.activity.standing() == Standing::Caller => {
                        (last + self.config.idle_max, LeaveReason::Idle)
                    }
                    last => {
                        let since = last.unwrap_or(self.began);
                        (since + self.config.first_call_timeout, LeaveReason::Unused)
                    }
                };
                match silent_at < self.old_at {
                    true => (silent_at, Due::Leave(reason)),
                    false => (self.old_at, Due::Leave(LeaveReason::Old)),
                }
            }
        };
        let stall_max = self.config.write_stall_max;
        match self.activity.blocked() {
            Some(since) if since + stall_max <= at => {
                (since + stall_max, Some(Due::Cut("its client takes no bytes")))
            }
            None if now + stall_max < at => (now + stall_max, None),
            _ => (at, Some(due)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ConnectionConfig {
        ConnectionConfig {
            age_max: Duration::from_secs(1000),
            age_grace: Duration::from_secs(50),
            idle_max: Duration::from_secs(5000),
            first_call_timeout: Duration::from_secs(60),
            write_stall_max: Duration::from_secs(30),
            ..ConnectionConfig::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_call_is_told_to_leave() {
        let began = Instant::now();
        let mut lifetime = Lifetime::new(Arc::new(ConnectionActivity::new()), &config(), 0.5);
        assert_eq!(lifetime.due().await, Due::Leave(LeaveReason::Unused));
        assert_eq!(began.elapsed().as_secs(), 60);
        assert!(matches!(lifetime.due().await, Due::Cut(_)));
        assert_eq!(began.elapsed().as_secs(), 63);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_one_is_told_to_leave_and_cut_after_the_grace() {
        for (draw, leaves) in [(0.0, 900), (0.5, 1000), (1.0, 1100)] {
            let began = Instant::now();
            let activity = Arc::new(ConnectionActivity::new());
            activity.let_in(Standing::Caller);
            let mut lifetime = Lifetime::new(activity, &config(), draw);
            assert_eq!(lifetime.due().await, Due::Leave(LeaveReason::Old));
            assert_eq!(began.elapsed().as_secs(), leaves);
            assert!(matches!(lifetime.due().await, Due::Cut(_)));
            assert_eq!(began.elapsed().as_secs(), leaves + 50);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_one_is_told_to_leave_and_its_streams_end_with_its_age() {
        let began = Instant::now();
        let activity = Arc::new(ConnectionActivity::new());
        activity.let_in(Standing::Caller);
        let mut config = config();
        config.idle_max = Duration::from_secs(300);
        let mut lifetime = Lifetime::new(Arc::clone(&activity), &config, 0.5);
        let busy = async {
            tokio::time::sleep(Duration::from_secs(200)).await;
            activity.let_in(Standing::Caller);
            std::future::pending::<()>().await;
        };
        let due = tokio::select! {
            due = lifetime.due() => due,
            () = busy => unreachable!("it never ends"),
        };
        assert_eq!(due, Due::Leave(LeaveReason::Idle));
        assert_eq!(began.elapsed().as_secs(), 500);
        assert!(matches!(lifetime.due().await, Due::Cut(_)));
        assert_eq!(began.elapsed().as_secs(), 1050);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_takes_no_bytes_is_cut() {
        let began = Instant::now();
        let activity = Arc::new(ConnectionActivity::new());
        activity.let_in(Standing::Caller);
        let mut lifetime = Lifetime::new(Arc::clone(&activity), &config(), 0.5);
        tokio::time::advance(Duration::from_secs(10)).await;
        activity.note_blocked();
        assert!(matches!(
            lifetime.due().await,
            Due::Cut("its client takes no bytes")
        ));
        assert_eq!(began.elapsed().as_secs(), 40);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_are_refused_are_no_work_and_health_is_for_a_while() {
        let began = Instant::now();
        let activity = Arc::new(ConnectionActivity::new());
        let mut lifetime = Lifetime::new(Arc::clone(&activity), &config(), 0.5);
        let refused = async {
            loop {
                activity.note_work();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let due = tokio::select! {
            due = lifetime.due() => due,
            () = refused => unreachable!("it never ends"),
        };
        assert_eq!(due, Due::Leave(LeaveReason::Unused));
        assert_eq!(began.elapsed().as_secs(), 60);

        for (watches, expected) in [(false, 113), (true, 1050)] {
            let began = Instant::now();
            let activity = Arc::new(ConnectionActivity::new());
            let mut lifetime = Lifetime::new(Arc::clone(&activity), &config(), 0.5);
            tokio::time::advance(Duration::from_secs(50)).await;
            activity.let_in(Standing::Probe);
            let _watch = watches.then(|| activity.health_calls.token());
            let refused = async {
                loop {
                    activity.note_work();
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            };
            let ends = async {
                assert_eq!(lifetime.due().await, Due::Leave(LeaveReason::Unused));
                assert_eq!(began.elapsed().as_secs(), 110);
                assert!(matches!(lifetime.due().await, Due::Cut(_)));
                began.elapsed().as_secs()
            };
            let ended = tokio::select! {
                ended = ends => ended,
                () = refused => unreachable!("it never ends"),
            };
            assert_eq!(ended, expected, "a watch lasts as long as a connection may");
        }
    }
}
