//! How many different values there are: exact while there is room, then an estimate.

use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::budget::Budget;
use super::column::{Block, Values};
use super::node::Node;
use super::sketch::{ERROR_BOUND, SKETCH_BYTES, Sketch};
use crate::bits::Bits;
use crate::error::Error;
use crate::limits::DOCUMENTS_PER_CHECK;
use crate::run::Run;

/// Bytes that one value takes in a set.
const VALUE_BYTES: usize = 2 * size_of::<u128>();
/// Values of a segment that are kept before their strings are looked up.
const MAX_PENDING: usize = 1 << 20;

/// Different values: numbers themselves, or the 128-bit hashes of strings.
pub(super) enum Different {
    Exact(FxHashSet<u128>),
    Sketch(Sketch),
}

impl Default for Different {
    fn default() -> Self {
        Self::Exact(FxHashSet::default())
    }
}

impl Different {
    /// How many there are, and by what part of it that may be off.
    pub(super) fn count(&self) -> (u64, f64) {
        match self {
            Self::Exact(values) => (values.len() as u64, 0.0),
            Self::Sketch(sketch) => (sketch.estimate(), ERROR_BOUND),
        }
    }

    fn insert(&mut self, value: u128, budget: &mut Budget, node: &Node) -> Result<(), Error> {
        match self {
            Self::Sketch(sketch) => sketch.insert(hash(value)),
            Self::Exact(values) => {
                if !values.insert(value) {
                    return Ok(());
                }
                // A small set takes less than a sketch.
                if !budget.exact(VALUE_BYTES) && values.len() > SKETCH_BYTES / VALUE_BYTES {
                    self.estimate(budget, node)?;
                }
            }
        }
        Ok(())
    }

    fn estimate(&mut self, budget: &mut Budget, node: &Node) -> Result<(), Error> {
        if let Self::Exact(values) = self {
            budget.release(values.len() * VALUE_BYTES);
            budget.bytes(SKETCH_BYTES, node)?;
            let mut sketch = Sketch::new();
            values.iter().for_each(|value| sketch.insert(hash(*value)));
            *self = Self::Sketch(sketch);
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: Self, budget: &mut Budget, node: &Node) -> Result<(), Error> {
        if matches!(self, Self::Exact(values) if values.is_empty()) {
            *self = other;
            return Ok(());
        }
        match other {
            Self::Exact(values) => {
                budget.release(values.len() * VALUE_BYTES);
                for value in values {
                    self.insert(value, budget, node)?;
                }
            }
            Self::Sketch(other) => {
                self.estimate(budget, node)?;
                if let Self::Sketch(sketch) = self {
                    sketch.merge(&other);
                }
            }
        }
        Ok(())
    }
}

fn hash(value: u128) -> u64 {
    xxh3_64(&value.to_le_bytes())
}

/// The different values of each group on one segment.
#[derive(Default)]
pub(super) struct SegmentDifferent {
    /// Numbers of the segment that were not looked up yet, with their groups.
    pending: FxHashSet<(u64, u32)>,
    /// The same, of the only group, where numbers are ordinals.
    ordinals: Option<Bits>,
    groups: Vec<Different>,
}

impl SegmentDifferent {
    /// `alone` when there is only one group.
    pub(super) fn new(values: &Values, alone: bool) -> Self {
        let terms = values.strings().map(|strings| strings.num_terms());
        // One more for a string that the dictionary lacks.
        let terms = terms.and_then(|terms| u32::try_from(terms + 1).ok());
        Self {
            ordinals: terms.filter(|_| alone).map(Bits::new),
            ..Self::default()
        }
    }

    /// Takes a block; groups are numbered below `groups`.
    pub(super) fn take(
        &mut self,
        block: Block<'_>,
        groups: usize,
        values: &Values,
        budget: &mut Budget,
        node: &Node,
        run: &Run,
    ) -> tantivy::Result<()> {
        if self.groups.len() < groups {
            self.groups.resize_with(groups, Different::default);
        }
        if let Some(ordinals) = &mut self.ordinals {
            for value in block.values {
                ordinals.insert(*value as u32);
            }
            return Ok(());
        }
        self.pending
            .extend(block.values.iter().copied().zip(block.slots.iter().copied()));
        if self.pending.len() >= MAX_PENDING {
            self.look_up(values, budget, node, run)?;
        }
        Ok(())
    }

    /// The different values of each group.
    pub(super) fn end(
        mut self,
        values: &Values,
        budget: &mut Budget,
        node: &Node,
        run: &Run,
    ) -> tantivy::Result<Vec<Different>> {
        if let Some(ordinals) = self.ordinals.take() {
            let mut part = Vec::new();
            let mut next = ordinals.next(0);
            while next != tantivy::TERMINATED {
                part.push((u64::from(next), 0));
                next = ordinals.next(next + 1);
                if part.len() >= DOCUMENTS_PER_CHECK as usize {
                    self.strings(&part, values, budget, node, run)?;
                    part.clear();
                }
            }
            self.strings(&part, values, budget, node, run)?;
        }
        self.look_up(values, budget, node, run)?;
        Ok(self.groups)
    }

    fn look_up(
        &mut self,
        values: &Values,
        budget: &mut Budget,
        node: &Node,
        run: &Run,
    ) -> tantivy::Result<()> {
        let mut pending: Vec<_> = self.pending.drain().collect();
        if values.has_strings() {
            pending.sort_unstable();
            for part in pending.chunks(DOCUMENTS_PER_CHECK as usize) {
                self.strings(part, values, budget, node, run)?;
            }
            return Ok(());
        }
        for part in pending.chunks(DOCUMENTS_PER_CHECK as usize) {
            run.check_inside()?;
            for (value, slot) in part {
                self.insert(u128::from(*value), *slot, budget, node)
                    .map_err(|error| run.give_up(error))?;
            }
        }
        Ok(())
    }

    /// Inserts the strings behind ordinals, which ascend.
    fn strings(
        &mut self,
        part: &[(u64, u32)],
        values: &Values,
        budget: &mut Budget,
        node: &Node,
        run: &Run,
    ) -> tantivy::Result<()> {
        run.check_inside()?;
        let mut ordinals: Vec<u64> = part.iter().map(|(ordinal, _)| *ordinal).collect();
        ordinals.dedup();
        let mut hashes = Vec::with_capacity(ordinals.len());
        values.each_string(&ordinals, |bytes| hashes.push(xxh3_128(bytes)))?;
        let hashes: Vec<(u64, u128)> = ordinals.into_iter().zip(hashes).collect();
        for (ordinal, slot) in part {
            let at = hashes.partition_point(|(own, _)| own < ordinal);
            if let Some((_, hash)) = hashes.get(at) {
                self.insert(*hash, *slot, budget, node)
                    .map_err(|error| run.give_up(error))?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, value: u128, slot: u32, budget: &mut Budget, node: &Node) -> Result<(), Error> {
        match self.groups.get_mut(slot as usize) {
            Some(group) => group.insert(value, budget, node),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Figure;
    use crate::aggregate::column::Kind;
    use crate::aggregate::node::{FieldOf, Shape};
    use crate::limits::MAX_EXACT_BYTES;

    #[test]
    fn without_room_it_is_an_estimate_that_says_so() {
        let field = FieldOf {
            path: "n".to_owned(),
            kind: Kind::Long,
            attribute: None,
            missing: None,
        };
        let node = Node {
            name: "a".to_owned(),
            path: "aggregations".to_owned(),
            scope: None,
            shape: Shape::Figure {
                field,
                figure: Figure::DistinctCount,
            },
            inside: Vec::new(),
        };
        let mut budget = Budget::default();
        let mut one = Different::default();
        for value in 0..20_000 {
            one.insert(value, &mut budget, &node).expect("there is room");
        }
        assert_eq!(one.count(), (20_000, 0.0));
        budget.exact(MAX_EXACT_BYTES);
        let mut other = Different::default();
        for value in 10_000..40_000 {
            other.insert(value, &mut budget, &node).expect("there is room");
        }
        one.merge(other, &mut budget, &node).expect("there is room");
        let (count, bound) = one.count();
        assert!(
            bound > 0.0 && (count as f64 / 40_000.0 - 1.0).abs() <= bound,
            "{count}"
        );
        // A small set stays exact even then.
        let mut small = Different::default();
        for value in 0..100 {
            small.insert(value, &mut budget, &node).expect("there is room");
        }
        assert_eq!(small.count(), (100, 0.0));
    }
}
