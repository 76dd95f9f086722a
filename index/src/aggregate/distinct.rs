//! How many different values there are: exact while there is room, then an estimate.

use foldhash::HashSet;
use tantivy::Result;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::budget::{Account, table_bytes};
use super::column::{ValueBlock, Values};
use super::sketch::{ERROR_BOUND, SKETCH_BYTES, Sketch};
use crate::bits::Bits;
use crate::limits::DOCUMENTS_PER_CHECK;
use crate::run::Run;

/// Values of a segment that are kept before their strings are looked up.
const MAX_PENDING: usize = 400_000;
/// Values of a segment for which there is always room before their strings are looked up.
const MIN_PENDING: usize = 200;
/// Parts in which pending values are sorted, so that none takes long.
const PENDING_PARTS: u64 = 128;
const VALUES_PER_CHECK: usize = DOCUMENTS_PER_CHECK as usize;

/// Distinct values: numbers themselves, or the 128-bit hashes of strings.
pub(super) enum Distinct {
    Exact(HashSet<u128>),
    Sketch(Sketch),
}

impl Default for Distinct {
    fn default() -> Self {
        Self::Exact(HashSet::default())
    }
}

impl Distinct {
    /// How many there are, and by what part of it that may be off.
    pub(super) fn count(&self) -> (u64, f64) {
        match self {
            Self::Exact(values) => (values.len() as u64, 0.0),
            Self::Sketch(sketch) => (sketch.estimate(), ERROR_BOUND),
        }
    }

    fn insert(&mut self, value: u128, account: &mut Account<'_>) -> Result<()> {
        if let Self::Exact(values) = self {
            if values.len() < values.capacity() || values.contains(&value) {
                values.insert(value);
                return Ok(());
            }
            let (now, grown) = (bytes(values), table_bytes::<u128>(values.len() + 1));
            let pressure = account.exact(grown - now)?;
            // A small set takes less than a sketch.
            if pressure <= 1.0 || grown <= SKETCH_BYTES {
                values.insert(value);
                return Ok(());
            }
            account.release_exact(grown - now);
            self.estimate(account)?;
        }
        if let Self::Sketch(sketch) = self {
            sketch.insert(hash(value));
        }
        Ok(())
    }

    fn estimate(&mut self, account: &mut Account<'_>) -> Result<()> {
        if let Self::Exact(values) = self {
            account.hold(SKETCH_BYTES)?;
            let mut sketch = Sketch::new();
            for (nth, value) in values.iter().enumerate() {
                account.run.check_nth(nth, VALUES_PER_CHECK)?;
                sketch.insert(hash(*value));
            }
            account.release_exact(bytes(values));
            *self = Self::Sketch(sketch);
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: Self, account: &mut Account<'_>) -> Result<()> {
        if matches!(self, Self::Exact(values) if values.is_empty()) {
            *self = other;
            return Ok(());
        }
        match other {
            Self::Exact(values) => {
                let held = bytes(&values);
                for (nth, value) in values.into_iter().enumerate() {
                    account.run.check_nth(nth, VALUES_PER_CHECK)?;
                    self.insert(value, account)?;
                }
                account.release_exact(held);
            }
            Self::Sketch(other) => {
                self.estimate(account)?;
                if let Self::Sketch(sketch) = self {
                    sketch.merge(&other);
                }
                account.release(SKETCH_BYTES);
            }
        }
        Ok(())
    }
}

fn bytes(values: &HashSet<u128>) -> usize {
    table_bytes::<u128>(values.capacity())
}

fn hash(value: u128) -> u64 {
    xxh3_64(&value.to_le_bytes())
}

#[derive(Default)]
pub(super) struct SegmentDistinct {
    /// Ordinals of the segment that were not looked up yet, with their groups.
    pending: HashSet<(u64, u32)>,
    /// The same, of the only group.
    ordinals: Option<Bits>,
    groups: Vec<Distinct>,
}

impl SegmentDistinct {
    /// `alone` when there is only one group.
    pub(super) fn new(values: &Values, alone: bool, run: &Run) -> Result<Self> {
        let terms = values.strings().map(|strings| strings.num_terms());
        // One more for a string that the dictionary lacks.
        let terms = terms.and_then(|terms| u32::try_from(terms + 1).ok());
        let ordinals = terms.filter(|_| alone);
        Ok(Self {
            ordinals: ordinals
                .map(|terms| Bits::within(terms, run.allowance()))
                .transpose()?,
            ..Self::default()
        })
    }

    /// Takes a block; groups are numbered below `groups`.
    pub(super) fn take(
        &mut self,
        block: ValueBlock<'_>,
        groups: usize,
        values: &Values,
        account: &mut Account<'_>,
    ) -> Result<()> {
        self.groups
            .resize_with(groups.max(self.groups.len()), Distinct::default);
        if let Some(ordinals) = &mut self.ordinals {
            for value in block.values {
                ordinals.insert(*value as u32);
            }
            return Ok(());
        }
        if !values.has_strings() {
            for (value, slot) in block.values.iter().zip(block.slots) {
                if let Some(group) = self.groups.get_mut(*slot as usize) {
                    group.insert(u128::from(*value), account)?;
                }
            }
            return Ok(());
        }
        for pending in block.values.iter().copied().zip(block.slots.iter().copied()) {
            if self.pending.len() == self.pending.capacity() && !self.pending.contains(&pending) {
                self.make_room(values, account)?;
            }
            self.pending.insert(pending);
        }
        Ok(())
    }

    /// Makes room for one more that is pending: by memory, or by looking up what is.
    fn make_room(&mut self, values: &Values, account: &mut Account<'_>) -> Result<()> {
        let pending = self.pending.len();
        let now = table_bytes::<(u64, u32)>(self.pending.capacity());
        let more = table_bytes::<(u64, u32)>(pending + 1).saturating_sub(now);
        if pending < MIN_PENDING {
            return account.hold_for_segment(more);
        }
        if pending >= MAX_PENDING || !account.try_hold_for_segment(more) {
            self.look_up(values, account)?;
        }
        Ok(())
    }

    pub(super) fn end(mut self, values: &Values, account: &mut Account<'_>) -> Result<Vec<Distinct>> {
        if let Some(ordinals) = self.ordinals.take() {
            let mut part = Vec::new();
            let mut next = ordinals.next(0);
            while next != tantivy::TERMINATED {
                part.push((u64::from(next), 0));
                next = ordinals.next(next + 1);
                if part.len() >= VALUES_PER_CHECK {
                    self.strings(&part, values, account)?;
                    part.clear();
                }
            }
            self.strings(&part, values, account)?;
        }
        self.look_up(values, account)?;
        Ok(self.groups)
    }

    fn look_up(&mut self, values: &Values, account: &mut Account<'_>) -> Result<()> {
        let list = 2 * self.pending.len() * size_of::<(u64, u32)>();
        account.hold_for_segment(list)?;
        let highest = self.pending.iter().map(|(ordinal, _)| *ordinal).max();
        let width = highest.unwrap_or_default() / PENDING_PARTS + 1;
        let mut parts = vec![Vec::new(); PENDING_PARTS as usize];
        for (ordinal, slot) in self.pending.drain() {
            if let Some(part) = parts.get_mut((ordinal / width) as usize) {
                part.push((ordinal, slot));
            }
        }
        for mut pending in parts {
            account.run.check_inside()?;
            pending.sort_unstable();
            for part in pending.chunks(VALUES_PER_CHECK) {
                self.strings(part, values, account)?;
            }
        }
        account.release_of_segment(list);
        Ok(())
    }

    /// Inserts the strings behind ordinals, which ascend.
    fn strings(&mut self, part: &[(u64, u32)], values: &Values, account: &mut Account<'_>) -> Result<()> {
        account.run.check_inside()?;
        let mut ordinals: Vec<u64> = part.iter().map(|(ordinal, _)| *ordinal).collect();
        ordinals.dedup();
        let mut hashes = Vec::with_capacity(ordinals.len());
        values.each_string(&ordinals, |bytes| hashes.push(xxh3_128(bytes)))?;
        let same = part.chunk_by(|(one, _), (other, _)| one == other);
        for (same, hash) in same.zip(hashes) {
            for (_, slot) in same {
                if let Some(group) = self.groups.get_mut(*slot as usize) {
                    group.insert(hash, account)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::budget::testing;
    use crate::limits::MAX_EXACT_BYTES;

    #[test]
    fn without_room_it_is_an_estimate_that_says_so() {
        testing::with_account(|account| {
            let mut one = Distinct::default();
            for value in 0..20_000 {
                one.insert(value, account).expect("there is room");
            }
            assert_eq!(one.count(), (20_000, 0.0));
            account.exact(MAX_EXACT_BYTES).expect("there is room");
            let mut other = Distinct::default();
            for value in 10_000..40_000 {
                other.insert(value, account).expect("there is room");
            }
            one.merge(other, account).expect("there is room");
            let (count, bound) = one.count();
            assert!(
                bound > 0.0 && (count as f64 / 40_000.0 - 1.0).abs() <= bound,
                "{count}"
            );
            // A small set stays exact even then.
            let mut small = Distinct::default();
            for value in 0..100 {
                small.insert(value, account).expect("there is room");
            }
            assert_eq!(small.count(), (100, 0.0));
        });
    }

    /// More merges than there is room for sketches.
    #[test]
    fn a_sketch_that_was_merged_is_given_back() {
        testing::with_account(|account| {
            let mut all = Distinct::default();
            for value in 0..2 * (crate::limits::MAX_SEARCH_BYTES / SKETCH_BYTES) {
                account.hold(SKETCH_BYTES).expect("there is room");
                let mut sketch = Sketch::new();
                sketch.insert(hash(value as u128));
                all.merge(Distinct::Sketch(sketch), account)
                    .expect("there is room");
            }
            let (count, bound) = all.count();
            assert!((count as f64 / 20_480.0 - 1.0).abs() <= bound, "{count}");
        });
    }

    #[test]
    fn small_sets_that_can_not_shrink_are_refused_beyond_the_allowance() {
        testing::with_account(|account| {
            let mut sets = 0;
            let refused = loop {
                let mut small = Distinct::default();
                sets += 1;
                if let Err(refused) = (0..400).try_for_each(|value| small.insert(value, account)) {
                    break refused;
                }
            };
            assert!(refused.to_string().contains("MAX_SEARCH_BYTES"), "{refused}");
            // Of 512 places for 128 bits and a byte each.
            assert!((15_000..20_000).contains(&sets), "{sets}");
        });
    }
}
