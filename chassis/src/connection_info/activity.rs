//! Activity of a connection: what happened on it, and when. Shared by its stream, its calls and its timers.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// The best call that was admitted on a connection so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Standing {
    /// None.
    Stranger,
    /// A health call.
    Probe,
    /// Another call.
    Caller,
}

#[derive(Debug)]
pub(crate) struct ConnectionActivity {
    began: Instant,
    standing: AtomicU8,
    /// A token for each health call, such as a watch, in flight.
    pub(crate) health_calls: TaskTracker,
    /// When a health call was last admitted or, once another call was, when HEADERS or DATA last passed in either direction: in
    /// milliseconds since `began`, plus one. 0 before the first admitted call.
    last_work: AtomicU64,
    /// Since when the peer takes no bytes, likewise; 0 while it does.
    blocked: AtomicU64,
}

impl ConnectionActivity {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            standing: AtomicU8::new(Standing::Stranger as u8),
            health_calls: TaskTracker::new(),
            last_work: AtomicU64::new(0),
            blocked: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    fn at(&self, time: &AtomicU64) -> Option<Instant> {
        let millis = time.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.began + Duration::from_millis(millis))
    }

    pub(crate) fn standing(&self) -> Standing {
        match self.standing.load(Ordering::Relaxed) {
            0 => Standing::Stranger,
            1 => Standing::Probe,
            _ => Standing::Caller,
        }
    }

    /// Notes that a call was admitted.
    pub(crate) fn let_in(&self, standing: Standing) {
        if self.standing() < standing {
            self.standing.fetch_max(standing as u8, Ordering::Relaxed);
        }
        self.last_work.store(self.now(), Ordering::Relaxed);
    }

    /// When a part of a call last passed; `None` before the first admitted call.
    pub(crate) fn last_work(&self) -> Option<Instant> {
        self.at(&self.last_work)
    }

    /// Notes that a part of a call passes; ignored until a call other than of health was admitted.
    pub(crate) fn note_work(&self) {
        if self.standing() == Standing::Caller {
            self.last_work.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Notes that the peer takes no bytes, since now if not before.
    pub(crate) fn note_blocked(&self) {
        if self.blocked.load(Ordering::Relaxed) == 0 {
            self.blocked.store(self.now(), Ordering::Relaxed);
        }
    }

    pub(crate) fn note_taken(&self) {
        if self.blocked.load(Ordering::Relaxed) != 0 {
            self.blocked.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn blocked(&self) -> Option<Instant> {
        self.at(&self.blocked)
    }
}
