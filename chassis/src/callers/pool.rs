//! A pool that all callers share fairly.
//!
//! A caller gets one more while it holds less than is free (the dynamic threshold of shared buffers, Choudhury and Hahne 1998): alone
//! it has half at most, two have a third each, and something is left for the next. Callers needn't be known beforehand.
//!
//! How much each holds is counted in a count-min sketch, in fixed memory and without a lock. A caller is overestimated where others
//! collide with it in every row: with a thousand others one caller in five thousand is. The hash is keyed with random bits.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use tonic::Status;

use super::CallerKey;
use crate::status::{RETRY_AFTER, StatusBuilder};

pub(crate) const ROWS: usize = 4;

pub(crate) const COLUMNS: usize = 8_192;

/// Where a caller is counted: its column in each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns([u16; ROWS]);

impl Columns {
    /// Those of a caller, the same in all pools of this process.
    pub(crate) fn of(caller: &CallerKey) -> Self {
        static KEYED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let hash = KEYED.hash_one(caller);
        Self(std::array::from_fn(|row| (hash >> (row * 16)) as u16))
    }

    /// Those in rows of `columns`, at most 65,536.
    pub(crate) fn among(self, columns: usize) -> [usize; ROWS] {
        self.0.map(|column| usize::from(column) % columns)
    }

    pub(crate) fn first(self) -> usize {
        self.among(COLUMNS)[0]
    }
}

#[derive(Debug)]
pub(crate) struct HeldCounts([Box<[AtomicU32]>; ROWS]);

impl HeldCounts {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| {
            (0..COLUMNS).map(|_| AtomicU32::new(0)).collect()
        }))
    }

    fn counters(&self, caller: Columns) -> impl Iterator<Item = &AtomicU32> {
        let rows = self.0.iter().zip(caller.among(COLUMNS));
        rows.filter_map(|(row, column)| row.get(column))
    }

    /// What a caller holds, or more where others meet it in every row.
    pub(crate) fn by(&self, caller: Columns) -> usize {
        let counters = self.counters(caller);
        let held = counters.map(|counter| counter.load(Ordering::Relaxed));
        held.min().map_or(0, |held| held as usize)
    }

    pub(crate) fn add(&self, caller: Columns) {
        self.counters(caller).for_each(|counter| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
    }

    pub(crate) fn remove(&self, caller: Columns) {
        self.counters(caller).for_each(|counter| {
            counter.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) max: usize,
    /// Most for one caller, whatever is free.
    each_max: usize,
    taken: AtomicUsize,
    held: HeldCounts,
}

/// Why a caller gets none of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// All are taken.
    All,
    /// The caller has its share.
    Share,
}

/// The reason and the words of the refusals when all are taken, and when the caller has its share.
pub(crate) type FullWords = [(&'static str, &'static str); 2];

/// RESOURCE_EXHAUSTED, with a retry delay.
pub(crate) fn refusal(reason: &'static str, message: impl Into<String>, limit: usize) -> Status {
    StatusBuilder::resource_exhausted(reason, message)
        .metadata("limit", limit)
        .retry_after(RETRY_AFTER)
        .build()
}

impl Pool {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Self::with_each(max, max)
    }

    pub(crate) fn with_each(max: usize, each_max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            each_max,
            taken: AtomicUsize::new(0),
            held: HeldCounts::new(),
        })
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes one until dropped; without a caller no share is checked. Callers that come at the same moment may get one more each.
    pub(crate) fn take(self: &Arc<Self>, caller: Option<Columns>) -> Result<Taken, Full> {
        let free = self.max.saturating_sub(self.taken());
        if free == 0 {
            return Err(Full::All);
        }
        if caller.is_some_and(|caller| self.held.by(caller) >= free.min(self.each_max)) {
            return Err(Full::Share);
        }
        let taken = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < self.max).then_some(taken + 1)
            });
        if taken.is_err() {
            return Err(Full::All);
        }
        if let Some(caller) = caller {
            self.held.add(caller);
        }
        let pool = Arc::clone(self);
        Ok(Taken { pool, caller })
    }

    /// [`Self::take`] for `caller`, or the refusal.
    pub(crate) fn admit(
        self: &Arc<Self>,
        caller: Option<CallerKey>,
        [all, share]: FullWords,
    ) -> Result<Taken, Status> {
        let taken = self.take(caller.as_ref().map(Columns::of));
        taken.map_err(|full| match full {
            Full::All => refusal(all.0, all.1, self.max),
            Full::Share => refusal(share.0, share.1, self.each_max),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Taken {
    pool: Arc<Pool>,
    caller: Option<Columns>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(caller) = self.caller {
            self.pool.held.remove(caller);
        }
        self.pool.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Option<Columns> {
        Some(Columns::of(&CallerKey::Name(name.into())))
    }

    /// Takes for a caller until it gets no more.
    fn all(pool: &Arc<Pool>, caller: Option<Columns>) -> (Vec<Taken>, Full) {
        let mut taken = Vec::new();
        loop {
            match pool.take(caller) {
                Ok(one) => taken.push(one),
                Err(full) => return (taken, full),
            }
        }
    }

    #[test]
    fn each_gets_as_much_as_it_leaves_and_gives_it_back() {
        let pool = Pool::new(90);
        let (first, why) = all(&pool, named("first"));
        assert_eq!((first.len(), why), (45, Full::Share));
        let (second, why) = all(&pool, named("second"));
        assert_eq!((second.len(), why), (23, Full::Share));
        // However many come, the next finds something.
        let others: Vec<_> = ["third", "fourth", "fifth"]
            .map(|name| all(&pool, named(name)).0)
            .into();
        assert!(others.iter().all(|taken| !taken.is_empty()));
        drop((first, second));
        let (third, _) = all(&pool, named("third"));
        assert!(!third.is_empty(), "there is more again");
        drop((third, others));
        assert_eq!(pool.taken(), 0);
        assert_eq!(all(&pool, named("first")).0.len(), 45);
    }

    #[test]
    fn a_caller_has_no_more_than_its_own_limit_and_nobody_has_all() {
        let pool = Pool::with_each(10, 2);
        let (few, why) = all(&pool, named("someone"));
        assert_eq!((few.len(), why), (2, Full::Share));
        let (rest, why) = all(&pool, None);
        assert_eq!((rest.len(), why), (8, Full::All));
    }

    #[test]
    fn a_place_for_one_is_for_anyone() {
        let pool = Pool::new(1);
        let one = pool.take(named("someone"));
        assert_eq!(pool.take(named("another")).err(), Some(Full::All));
        drop(one);
        assert!(pool.take(named("another")).is_ok());
    }

    #[test]
    fn hardly_anybody_is_taken_for_another() {
        let held = HeldCounts::new();
        for number in 0..20 {
            held.add(Columns::of(&CallerKey::Name(format!("attacker {number}").into())));
        }
        let met =
            |number: &u32| held.by(Columns::of(&CallerKey::Name(format!("caller {number}").into()))) > 0;
        // One in ten thousand by chance.
        assert!((0..1_000).filter(met).count() < 20);
    }
}
