//! What is kept between the calls of a client, each for a time after its last use: snapshots for exports, views for the
//! pages of searches. They keep old data on the disk, so their number is bounded, of all and of each caller, and so is their
//! time: after its last use, and in all, however often it is used. A caller is one that a gateway has proven; where callers
//! aren't authenticated, nobody can be told from others, and only the bound of all counts. Whoever works on one takes it anew for each step, and so lets go of it between
//! them: a client that doesn't read on keeps nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::error::LimitOf;

/// How often what has expired is let go of, also when nobody asks any more.
const SWEEP: Duration = Duration::from_secs(15);

/// What is kept, by numbers that can't be guessed. Clones share it.
#[derive(Debug)]
pub(crate) struct Leases<T> {
    kept: Arc<Mutex<HashMap<u64, Kept<T>>>>,
    limits: LeaseLimits,
}

/// How many leases there are at most, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseLimits {
    /// How many are kept at a time.
    pub(crate) count: usize,
    /// How many of them for one caller.
    pub(crate) share: usize,
    /// How long one is kept, whoever uses it.
    pub(crate) age: Duration,
}

/// There is no room for another lease: as many as allowed are kept for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    pub(crate) max: usize,
    pub(crate) of: LimitOf,
}

impl<T> Clone for Leases<T> {
    fn clone(&self) -> Self {
        Self {
            kept: Arc::clone(&self.kept),
            limits: self.limits,
        }
    }
}

#[derive(Debug)]
struct Kept<T> {
    value: T,
    /// For whom, where that is known.
    caller: Option<Arc<str>>,
    lease: Duration,
    /// Whether it goes when there is no room for another one.
    finished: bool,
    began: Instant,
    used: Instant,
}

impl<T> Kept<T> {
    fn is_due(&self, age: Duration) -> bool {
        self.used.elapsed() >= self.lease || self.began.elapsed() >= age
    }
}

impl<T: Clone + Send + 'static> Leases<T> {
    /// Room for some values, swept until `closing`. Must be called inside a tokio runtime.
    pub(crate) fn new(limits: LeaseLimits, closing: CancellationToken) -> Self {
        let leases = Self {
            kept: Arc::default(),
            limits,
        };
        let swept = leases.clone();
        tokio::spawn(async move {
            while closing
                .run_until_cancelled(tokio::time::sleep(SWEEP))
                .await
                .is_some()
            {
                drop(swept.swept());
            }
        });
        leases
    }

    /// Keeps a value for a caller, if one is known, until it hasn't been used for `lease`.
    ///
    /// # Errors
    /// When there is no room.
    pub(crate) fn keep(&self, value: T, lease: Duration, caller: Option<Arc<str>>) -> Result<u64, Full> {
        let LeaseLimits { count, share, .. } = self.limits;
        let mut kept = self.swept();
        if caller.is_some() {
            let full = Full {
                max: share,
                of: LimitOf::Caller,
            };
            make_room(&mut kept, full, |kept| kept.caller == caller)?;
        }
        let full = Full {
            max: count,
            of: LimitOf::All,
        };
        make_room(&mut kept, full, |_| true)?;
        let (number, _) = Uuid::new_v4().as_u64_pair();
        let now = Instant::now();
        let lease = Kept {
            value,
            caller,
            lease,
            finished: false,
            began: now,
            used: now,
        };
        kept.insert(number, lease);
        Ok(number)
    }

    /// A value that is kept: this is a use of it, and `lease` is how long it is kept from now on, when it is to change.
    pub(crate) fn take(&self, number: u64, lease: Option<Duration>) -> Option<T> {
        let mut kept = self.swept();
        let found = kept.get_mut(&number)?;
        found.used = Instant::now();
        found.lease = lease.unwrap_or(found.lease);
        Some(found.value.clone())
    }

    /// Says that a value was used up: it is kept for `lease` after its last use at most, so that the last call for it can be
    /// repeated, and no longer than there is room.
    pub(crate) fn finish(&self, number: u64, lease: Duration) {
        if let Some(found) = self.kept.lock().get_mut(&number) {
            found.lease = found.lease.min(lease);
            found.finished = true;
        }
    }

    /// Takes back that a value was used up, for another who begins to use it: it is kept for `lease` after its last use again, as any other.
    pub(crate) fn renew(&self, number: u64, lease: Duration) {
        if let Some(found) = self.kept.lock().get_mut(&number) {
            found.lease = lease;
            found.finished = false;
        }
    }

    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        self.swept().len()
    }

    /// Those whose time isn't over.
    fn swept(&self) -> MutexGuard<'_, HashMap<u64, Kept<T>>> {
        let mut kept = self.kept.lock();
        kept.retain(|_, kept| !kept.is_due(self.limits.age));
        kept
    }

    /// Lets go of all of them.
    pub(crate) fn clear(&self) {
        self.kept.lock().clear();
    }
}

/// Makes room among the leases that `counts`, if there is none: the one that was used up longest ago goes.
fn make_room<T>(
    kept: &mut HashMap<u64, Kept<T>>,
    full: Full,
    counts: impl Fn(&Kept<T>) -> bool,
) -> Result<(), Full> {
    let counted = || kept.iter().filter(|(_, kept)| counts(kept));
    if counted().count() < full.max {
        return Ok(());
    }
    let finished = counted().filter(|(_, kept)| kept.finished);
    let oldest = finished
        .min_by_key(|(_, kept)| kept.used)
        .map(|(number, _)| *number);
    kept.remove(&oldest.ok_or(full)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(60);

    fn leases<T: Clone + Send + 'static>(count: usize) -> Leases<T> {
        let limits = LeaseLimits {
            count,
            share: 2,
            age: 10 * LEASE,
        };
        Leases::new(limits, CancellationToken::new())
    }

    fn full(max: usize, of: LimitOf) -> Full {
        Full { max, of }
    }

    #[tokio::test(start_paused = true)]
    async fn each_caller_has_a_share_and_nobody_takes_the_others() {
        let leases = leases(5);
        let keep = |caller: &str| leases.keep((), LEASE, Some(caller.into()));
        let ada = [keep("ada").expect("room"), keep("ada").expect("room")];
        assert_eq!(keep("ada"), Err(full(2, LimitOf::Caller)));
        let bob = keep("bob").expect("room");
        leases.finish(bob, LEASE);
        // What another has used up isn't room for more than a share.
        assert_eq!(keep("ada"), Err(full(2, LimitOf::Caller)));
        leases.finish(ada[1], LEASE);
        let third = keep("ada").expect("room of her own");
        assert_eq!(
            (leases.take(ada[1], None), leases.take(bob, None)),
            (None, Some(()))
        );
        // Those who aren't known have the rest, and no share: they can't be told apart.
        for _ in 0..3 {
            assert!(leases.keep((), LEASE, None).is_ok());
        }
        assert_eq!(leases.take(bob, None), None, "used up, it made room");
        assert_eq!(keep("bob"), Err(full(5, LimitOf::All)));
        assert!(leases.take(third, None).is_some());
        tokio::time::advance(LEASE).await;
        assert!(keep("ada").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn each_is_kept_for_its_time_after_its_last_use() {
        let leases = leases(2);
        let one = leases.keep("one", LEASE, None).expect("room");
        let two = leases.keep("two", 2 * LEASE, None).expect("room");
        assert_eq!(leases.keep("three", LEASE, None), Err(full(2, LimitOf::All)));
        tokio::time::advance(LEASE / 2).await;
        assert_eq!(leases.take(one, None), Some("one"));
        tokio::time::advance(LEASE * 3 / 4).await;
        assert_eq!(leases.take(one, Some(LEASE / 4)), Some("one"));
        tokio::time::advance(LEASE / 3).await;
        assert_eq!(
            (leases.take(one, None), leases.take(two, None)),
            (None, Some("two"))
        );
        leases.finish(two, LEASE / 4);
        leases.finish(two, LEASE);
        tokio::time::advance(LEASE / 3).await;
        assert_eq!(leases.take(two, None), None);
        let three = leases.keep("three", LEASE, None).expect("room");
        leases.clear();
        assert_eq!(leases.take(three, None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_asks_for_is_let_go_of_too() {
        let leases = leases(1);
        let value = Arc::new(());
        leases.keep(Arc::clone(&value), LEASE, None).expect("room");
        tokio::time::sleep(LEASE + SWEEP).await;
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn however_often_one_is_used_its_age_ends_it() {
        let leases = leases(1);
        let value = Arc::new(());
        let one = leases.keep(Arc::clone(&value), LEASE, None).expect("room");
        for _ in 0..19 {
            tokio::time::sleep(LEASE / 2).await;
            assert!(leases.take(one, Some(LEASE)).is_some());
        }
        tokio::time::sleep(LEASE / 2).await;
        assert_eq!(leases.take(one, Some(LEASE)), None);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_used_up_makes_room_and_nothing_else_does() {
        let leases = leases(2);
        let one = leases.keep("one", LEASE, None).expect("room");
        let two = leases.keep("two", LEASE, None).expect("room");
        assert_eq!(leases.keep("three", LEASE, None), Err(full(2, LimitOf::All)));
        leases.finish(one, LEASE);
        assert_eq!(leases.take(one, None), Some("one"));
        assert!(leases.keep("three", LEASE, None).is_ok());
        assert_eq!(
            (leases.take(one, None), leases.take(two, None)),
            (None, Some("two"))
        );
        assert_eq!(leases.keep("four", LEASE, None), Err(full(2, LimitOf::All)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_begins_to_use_again_is_kept_as_any_other() {
        let leases = leases(1);
        let one = leases.keep("one", LEASE, None).expect("room");
        leases.finish(one, LEASE / 4);
        leases.renew(one, LEASE);
        assert_eq!(leases.keep("two", LEASE, None), Err(full(1, LimitOf::All)));
        tokio::time::advance(LEASE / 2).await;
        assert_eq!(leases.take(one, None), Some("one"));
        leases.finish(one, LEASE / 4);
        assert!(leases.keep("two", LEASE, None).is_ok());
    }
}
