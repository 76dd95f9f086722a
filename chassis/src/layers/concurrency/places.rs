//! Places to work: a caller that has its share of them, as many as are free (see [`pool`](crate::callers::pool)), waits for its own calls
//! to end, everybody else for any.
//!
//! Where all places are taken, each caller waits with one call in the line of all and with the others behind it: whoever asks for much
//! makes nobody else wait longer.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::callers::pool::{COLUMNS, Columns, HeldCounts};

/// How soon a caller that has its share looks again when none of its own calls has ended: others may have given places back.
const RECHECK: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Places {
    pub(super) max: usize,
    pub(super) free: Arc<Semaphore>,
    held: HeldCounts,
    /// Where calls wait for others of their caller, by its first column.
    columns: Box<[Column]>,
}

/// Where those wait whose callers have their share.
#[derive(Debug, Default)]
struct Column {
    /// Of each caller that waits here: callers may have a column in common, and don't wait for each other.
    turns: Mutex<Vec<(Columns, Weak<Turn>)>>,
    given_back: Notify,
}

/// One call of a caller looks whether it still has its share, the others wait behind it.
type Turn = tokio::sync::Mutex<()>;

impl Column {
    fn turn(&self, caller: Columns) -> Arc<Turn> {
        let mut turns = self.turns.lock();
        turns.retain(|(_, turn)| turn.strong_count() > 0);
        let known = turns.iter().find(|(of, _)| *of == caller);
        known.and_then(|(_, turn)| turn.upgrade()).unwrap_or_else(|| {
            let turn = Arc::default();
            turns.push((caller, Arc::downgrade(&turn)));
            turn
        })
    }
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
            held: HeldCounts::new(),
            columns: (0..COLUMNS).map(|_| Column::default()).collect(),
        })
    }

    /// Has the caller its share? One call it may always have, or have waiting.
    fn has_share(&self, caller: Columns) -> bool {
        self.held.by(caller) >= self.free.available_permits().max(1)
    }

    fn share(self: &Arc<Self>, caller: Columns) -> Share {
        self.held.add(caller);
        let places = Arc::clone(self);
        Share { places, caller }
    }

    /// A place, if there is one for this caller now; there is no share for nobody in particular.
    pub(super) fn try_take(self: &Arc<Self>, caller: Option<Columns>) -> Option<Place> {
        if caller.is_some_and(|caller| self.has_share(caller)) {
            return None;
        }
        let _permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let _share = caller.map(|caller| self.share(caller));
        Some(Place { _permit, _share })
    }

    /// A place, when there is one for this caller. `None` never: the semaphore isn't closed.
    pub(super) async fn take(self: &Arc<Self>, caller: Option<Columns>) -> Option<Place> {
        let share = match caller {
            Some(caller) => Some(self.wait_for_share(caller).await),
            None => None,
        };
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        // Others of the caller may have been left waiting while there was less room.
        if let Some(share) = share.as_ref().filter(|share| !self.has_share(share.caller)) {
            share.tell_next();
        }
        let (_permit, _share) = (permit, share);
        Some(Place { _permit, _share })
    }

    /// Waits until the caller has less than its share, and counts one more for it.
    async fn wait_for_share(self: &Arc<Self>, caller: Columns) -> Share {
        let column = self.columns.get(caller.first());
        let Some(column) = column.filter(|_| self.has_share(caller)) else {
            return self.share(caller);
        };
        let turn = column.turn(caller);
        let _looks = turn.lock().await;
        loop {
            let mut given_back = pin!(column.given_back.notified());
            // Before looking: what is given back from now on is heard.
            given_back.as_mut().enable();
            if !self.has_share(caller) {
                return self.share(caller);
            }
            // Whether it was heard or not, the loop looks.
            let _ = tokio::time::timeout(RECHECK, given_back).await;
        }
    }
}

impl Share {
    fn tell_next(&self) {
        if let Some(column) = self.places.columns.get(self.caller.first()) {
            // One that looks, of this caller or of another in its column: then this one's finds out when it looks again.
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::callers::CallerKey;

    fn named(name: &str) -> Columns {
        Columns::of(&CallerKey::Name(name.into()))
    }

    /// Two callers that wait in the same column.
    fn neighbours() -> (Columns, Columns) {
        let one = named("one");
        let others = (0..).map(|number: u32| named(&number.to_string()));
        let mut beside = others.filter(|other| other.first() == one.first());
        (one, beside.next().expect("one of 8,192"))
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_room_waits_for_no_caller_of_its_column() {
        let places = Places::new(8);
        let (greedy, modest) = neighbours();
        let take = |caller| places.try_take(caller).expect("a place");
        let others = [take(None), take(None)];
        let mut held = vec![take(Some(greedy)), take(Some(greedy)), take(Some(greedy))];
        let mut waits = Box::pin(places.take(Some(greedy)));
        assert!(waits.as_mut().now_or_never().is_none(), "it has its share");
        held.extend([take(Some(modest)), take(Some(modest))]);
        let mut next = Box::pin(places.take(Some(modest)));
        assert!(next.as_mut().now_or_never().is_none(), "so has the other");
        // Now three are free, as many as the one holds, and more than the other does.
        drop(others);
        let taken = tokio::select! {
            biased;
            _ = &mut waits => None,
            taken = tokio::time::timeout(RECHECK * 2, next) => taken.expect("its turn"),
        };
        assert!(taken.is_some());
        drop((held, waits));
        let column = &places.columns[greedy.first()];
        let _turn = column.turn(greedy);
        assert_eq!(column.turns.lock().len(), 1, "who has left is forgotten");
    }
}
