//! Activity of a connection: what happened on it, and when. Shared between its bytes, its calls and its clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// What its calls have made of a connection so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Standing {
    Stranger,
    Probe,
    Caller,
}

#[derive(Debug)]
pub(crate) struct ConnectionActivity {
    began: Instant,
    standing: AtomicU8,
    /// Questions for health that are being answered.
    questions: AtomicUsize,
    /// When a question for health was last let in or, once another call was, when HEADERS or DATA last passed in either direction: in
    /// milliseconds since `began`, plus one. 0 before the first call that is let in.
    last_work: AtomicU64,
    /// Since when the peer takes no bytes, likewise; 0 while it does.
    blocked: AtomicU64,
}

impl ConnectionActivity {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            standing: AtomicU8::new(Standing::Stranger as u8),
            questions: AtomicUsize::new(0),
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

    /// A call is let in that makes at least this of the connection.
    pub(crate) fn let_in(&self, standing: Standing) {
        if self.standing() < standing {
            self.standing.fetch_max(standing as u8, Ordering::Relaxed);
        }
        self.last_work.store(self.now(), Ordering::Relaxed);
    }

    /// A question for health that is answered until this is dropped.
    pub(crate) fn question(self: &Arc<Self>) -> Question {
        self.questions.fetch_add(1, Ordering::Relaxed);
        Question(Arc::clone(self))
    }

    /// Are questions for health being answered? A watch is one, as long as it lasts.
    pub(crate) fn has_questions(&self) -> bool {
        self.questions.load(Ordering::Relaxed) > 0
    }

    /// When a part of a call last passed; `None` before the first that was let in.
    pub(crate) fn last_work(&self) -> Option<Instant> {
        self.at(&self.last_work)
    }

    /// A part of a call passes. Those of calls that are refused are no work, until one was let in that doesn't ask for health alone.
    pub(crate) fn note_work(&self) {
        if self.standing() == Standing::Caller {
            self.last_work.store(self.now(), Ordering::Relaxed);
        }
    }

    /// The peer takes no bytes, from now on if not before.
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

/// See [`ConnectionActivity::question`].
#[derive(Debug)]
pub(crate) struct Question(Arc<ConnectionActivity>);

impl Drop for Question {
    fn drop(&mut self) {
        self.0.questions.fetch_sub(1, Ordering::Relaxed);
    }
}
