//! Places to work: a caller that has its share of them waits for its own calls to end, everybody else for any.
//!
//! Where all places are taken, each caller waits with one call in the line of all and with the others behind it: whoever asks for much
//! makes nobody else wait longer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore};

use crate::callers::pool::{COLUMNS, Columns, Held};

/// How soon a caller over its share looks again when none of its own calls has ended: others may have given places back.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    free: Arc<Semaphore>,
    held: Held,
    /// Where calls wait for others of their caller, by its first column.
    columns: Box<[Column]>,
}

/// Where those wait whose callers have their share. One looks whether that is still so, the others wait behind it.
#[derive(Debug, Default)]
struct Column {
    turn: Mutex<()>,
    given_back: Notify,
}

#[derive(Debug)]
pub(super) struct Place {
    // Given back before the caller's next call is told.
    _permit: OwnedSemaphorePermit,
    _share: Option<Share>,
}

/// What a caller holds by a call that works, or is next to.
#[derive(Debug)]
struct Share {
    places: Arc<Places>,
    caller: Columns,
}

impl Places {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            free: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
            held: Held::new(),
            columns: (0..COLUMNS).map(|_| Column::default()).collect(),
        })
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    pub(super) fn free(&self) -> &Arc<Semaphore> {
        &self.free
    }

    /// Has the caller its share? One call it may always have, or have waiting.
    fn is_over(&self, caller: Columns) -> bool {
        self.held.by(caller) >= self.free.available_permits().max(1)
    }

    fn share(self: &Arc<Self>, caller: Columns) -> Share {
        self.held.add(caller);
        Share {
            places: Arc::clone(self),
            caller,
        }
    }

    /// A place, if there is one for this caller now; there is no share for nobody in particular.
    pub(super) fn try_take(self: &Arc<Self>, caller: Option<Columns>) -> Option<Place> {
        if caller.is_some_and(|caller| self.is_over(caller)) {
            return None;
        }
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let share = caller.map(|caller| self.share(caller));
        Some(Place {
            _permit: permit,
            _share: share,
        })
    }

    /// A place, when there is one for this caller. `None` never: the semaphore isn't closed.
    pub(super) async fn take(self: &Arc<Self>, caller: Option<Columns>) -> Option<Place> {
        let share = match caller {
            Some(caller) => Some(self.own_turn(caller).await),
            None => None,
        };
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        // Others of the caller may have been left waiting while there was less room.
        if let Some(share) = &share
            && !self.is_over(share.caller)
        {
            share.tell_next();
        }
        Some(Place {
            _permit: permit,
            _share: share,
        })
    }

    /// Waits until the caller has less than its share.
    async fn own_turn(self: &Arc<Self>, caller: Columns) -> Share {
        let over = self.columns.get(caller.first()).filter(|_| self.is_over(caller));
        let Some(column) = over else {
            return self.share(caller);
        };
        let _looks = column.turn.lock().await;
        loop {
            let mut given_back = pin!(column.given_back.notified());
            // Before looking: what is given back from now on is heard.
            given_back.as_mut().enable();
            if !self.is_over(caller) {
                return self.share(caller);
            }
            // Whether it was heard or not, the loop looks.
            let _ = tokio::time::timeout(LOOK, given_back).await;
        }
    }
}

impl Share {
    fn tell_next(&self) {
        if let Some(column) = self.places.columns.get(self.caller.first()) {
            // The one that looks, of this caller or of another in its column.
            column.given_back.notify_one();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.places.held.remove(self.caller);
        self.tell_next();
    }
}
