//! The memory allowance of a search: one number for everything that it holds until it answers.
//!
//! Memory is taken before it is used, and given back when its owner is dropped. What lives between searches (columns,
//! dictionaries) isn't part of it, nor is what no request can make large: scorers, buffers of fixed sizes.
//!
//! [`AllowanceExceeded`] converts into the errors of the search library and of input and output, so that `?` carries it
//! out of their traits; [`Error::engine`] and [`Error::reading`] turn it back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::AllowanceExceeded;
use crate::limits::MAX_SEARCH_BYTES;

/// Bytes that a grant takes ahead at most when it grows, so that small growth seldom comes to the shared counter.
const AHEAD_BYTES: usize = 64 * 1024;
/// A grant takes this part of itself ahead.
const AHEAD_PART: usize = 8;

/// Elements that a vector has room for once it has any.
const LEAST_ELEMENTS: usize = 4;

/// The memory that one search may hold. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    shared: Arc<Counter>,
}

#[derive(Debug)]
struct Counter {
    taken: AtomicUsize,
    peak: AtomicUsize,
    max: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        Self::new(MAX_SEARCH_BYTES)
    }
}

impl Allowance {
    /// For work that isn't a search's, and is bounded otherwise.
    pub(crate) fn unbounded() -> Self {
        Self::new(usize::MAX)
    }

    fn new(max: usize) -> Self {
        Self {
            shared: Arc::new(Counter {
                taken: AtomicUsize::new(0),
                peak: AtomicUsize::new(0),
                max,
            }),
        }
    }

    /// Takes `bytes` until the grant is dropped.
    pub(crate) fn take(&self, bytes: usize) -> Result<Grant, AllowanceExceeded> {
        self.reserve(bytes)?;
        Ok(self.granted(bytes))
    }

    /// A grant of nothing yet, to grow.
    pub(crate) fn grant(&self) -> Grant {
        self.granted(0)
    }

    fn granted(&self, bytes: usize) -> Grant {
        let (taken, used) = (bytes, bytes);
        let of = self.clone();
        Grant { of, taken, used }
    }

    /// The most bytes that were taken at a time.
    pub(crate) fn peak(&self) -> usize {
        self.shared.peak.load(Ordering::Relaxed)
    }

    fn reserve(&self, bytes: usize) -> Result<(), AllowanceExceeded> {
        let Counter { taken, peak, max } = &*self.shared;
        let added = |taken: usize| taken.checked_add(bytes).filter(|sum| sum <= max);
        match taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added) {
            Ok(before) => {
                peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(before) => Err(AllowanceExceeded {
                actual: before.saturating_add(bytes),
            }),
        }
    }

    fn give_back(&self, bytes: usize) {
        self.shared.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes taken of an [`Allowance`], given back on drop.
#[derive(Debug)]
pub(crate) struct Grant {
    of: Allowance,
    /// What the allowance is without: `used`, and what was taken ahead.
    taken: usize,
    used: usize,
}

impl Grant {
    /// Takes `more` bytes besides.
    ///
    /// # Errors
    /// [`AllowanceExceeded`] when fewer are left; the grant is what it was before.
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), AllowanceExceeded> {
        let used = self.used.saturating_add(more);
        if used > self.taken {
            let missing = used - self.taken;
            let ahead = (used / AHEAD_PART).min(AHEAD_BYTES);
            let reserved = match self.of.reserve(missing.saturating_add(ahead)) {
                Ok(()) => missing + ahead,
                Err(_) => self.of.reserve(missing).map(|()| missing)?,
            };
            self.taken += reserved;
        }
        self.used = used;
        Ok(())
    }

    /// Makes room for `more` elements behind those of a vector that the grant holds. While they move, the old room and the
    /// new one are both taken.
    pub(crate) fn reserve<T>(&mut self, vec: &mut Vec<T>, more: usize) -> Result<(), AllowanceExceeded> {
        let (capacity, needed) = (vec.capacity(), vec.len().saturating_add(more));
        if needed <= capacity {
            return Ok(());
        }
        let grown = capacity.saturating_add(capacity / 2);
        let wanted = needed.max(grown).max(LEAST_ELEMENTS);
        self.grow(wanted.saturating_mul(size_of::<T>()))?;
        vec.reserve_exact(wanted - vec.len());
        self.shrink_to(self.used - capacity * size_of::<T>());
        Ok(())
    }

    /// Adds an element to a vector that the grant holds.
    pub(crate) fn push<T>(&mut self, vec: &mut Vec<T>, element: T) -> Result<(), AllowanceExceeded> {
        self.reserve(vec, 1)?;
        vec.push(element);
        Ok(())
    }

    /// Another grant of the same allowance, of `bytes`.
    pub(crate) fn beside(&self, bytes: usize) -> Result<Self, AllowanceExceeded> {
        self.of.take(bytes)
    }

    /// Takes over what another grant holds of the same allowance.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        self.taken += std::mem::take(&mut other.taken);
        self.used += std::mem::take(&mut other.used);
    }

    /// Bytes that it was asked for.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Gives back so many bytes.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.shrink_to(self.used.saturating_sub(bytes));
    }

    /// Gives back all but `bytes`; nothing if it has fewer.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.used = self.used.min(bytes);
        self.of.give_back(self.taken - self.used);
        self.taken = self.used;
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.of.give_back(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::error::Error;

    fn is_refused(error: &Error) -> bool {
        let Error::LimitExceeded { limit, max, .. } = error else {
            return false;
        };
        *limit == "MAX_SEARCH_BYTES" && *max == MAX_SEARCH_BYTES as u64
    }

    #[test]
    fn grants_share_what_there_is_and_give_it_back() {
        let allowance = Allowance::new(100);
        let one = allowance.take(60).expect("there is room");
        let clone = allowance.clone();
        assert_eq!(clone.take(41).expect_err("too many").actual, 101);
        let other = clone.take(40).expect("there is room");
        assert!(allowance.take(1).is_err());
        drop(one);
        assert!(allowance.take(usize::MAX).is_err());
        let again = allowance.take(60).expect("there is room again");
        drop((other, again));
        assert!(allowance.take(100).is_ok());
        assert_eq!(allowance.peak(), 100);
    }

    #[test]
    fn a_grant_grows_to_the_last_byte_and_shrinks() {
        let allowance = Allowance::new(1_000);
        let mut grant = allowance.grant();
        for _ in 0..1_000 {
            grant.grow(1).expect("there is room");
        }
        assert!(grant.grow(1).is_err());
        grant.shrink_to(400);
        let other = allowance.take(600).expect("there is room");
        assert!(grant.grow(1).is_err());
        drop(other);
        grant.grow(600).expect("there is room");
        grant.shrink_to(2_000);
        assert!(allowance.take(1).is_err());
        drop(grant);
        assert!(allowance.take(1_000).is_ok());
    }

    #[test]
    fn vectors_are_held_with_all_of_their_room() {
        let allowance = Allowance::new(4_000);
        let mut grant = allowance.grant();
        let mut numbers: Vec<u64> = Vec::new();
        while grant.push(&mut numbers, 1).is_ok() {
            let least = numbers.capacity() * size_of::<u64>();
            assert!(allowance.shared.taken.load(Ordering::Relaxed) >= least);
        }
        // The old room and the new one don't fit beside each other.
        assert!((150..500).contains(&numbers.len()), "{}", numbers.len());
        assert_eq!(grant.used, numbers.capacity() * size_of::<u64>());
    }

    #[test]
    fn growing_takes_little_more_than_is_used() {
        let allowance = Allowance::new(1_000_000);
        let mut grants: Vec<Grant> = (0..1_000).map(|_| allowance.grant()).collect();
        for grant in &mut grants {
            for _ in 0..80 {
                grant.grow(10).expect("there is room");
            }
        }
        assert!(allowance.peak() <= 900_000, "{} bytes", allowance.peak());
    }

    #[test]
    fn a_refusal_comes_through_other_errors() {
        let exceeded = Allowance::new(1).take(2).expect_err("too many");
        assert!(is_refused(&exceeded.into()));
        assert!(is_refused(&Error::engine("testing", exceeded.into())));
        assert!(is_refused(&Error::reading("testing", exceeded.into())));
        let other = Error::reading("testing", io::Error::other("another"));
        assert!(matches!(other, Error::Io { doing: "testing", .. }));
    }
}
