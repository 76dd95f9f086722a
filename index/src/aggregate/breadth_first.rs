//! Breadth-first `terms`: values are counted over all segments, and then only the documents of those that are shown take
//! the aggregations inside.
//!
//! Which groups are shown is exact up to [`MAX_AGGREGATION_GROUPS`] different values, or [`MAX_NAME_BYTES`] of strings. Of more, the last
//! are forgotten: the rarest, and of those that are as rare the last by key; or by key alone, which costs nothing. How often a forgotten
//! value can have occurred is summed (as in Manku and Motwani, "Approximate frequency counts over data streams", 2002); the groups that are
//! shown are counted again, exactly.

use std::cmp::Ordering;

use foldhash::HashMap;
use tantivy::{DocId, Result, SegmentReader, TERMINATED, TantivyError};

use super::branch::{AggregationContext, Armed, Branch, Groups, inside_bytes};
use super::budget::Account;
use super::column::{Buffer, Kind, Raw, Values};
use super::gathered::GatheredGroups;
use super::keys::GroupKeys;
use super::node::{By, Grouping, Node, Shape, Size};
use super::second_pass::{AggregationPass, KeptSegment};
use super::slots::Slots;
use crate::bits::Bits;
use crate::limits::{DOCUMENTS_PER_CHECK, MAX_AGGREGATION_GROUPS, MAX_STRING_BYTES, MAX_TERMS_GROUPS};
use crate::request::{GroupOrderBy, MetricKind};
use crate::run::Run;
use crate::sort::directed;

/// Values that a segment counts at a time: as many as a hash table of 2¹⁸ places takes.
const MAX_COUNTED: usize = 229_376;
/// Bytes of names from which on candidates are forgotten.
const MAX_NAME_BYTES: usize = 24 * 1024 * 1024;
/// However long names are, there is room for as many as are shown, and a third more.
const _: () = assert!(MAX_NAME_BYTES / MAX_STRING_BYTES >= MAX_TERMS_GROUPS / 3 * 4);
/// Groups up to which figures of a fixed size are taken depth-first, in one pass.
const FEW_GROUPS: usize = 8_192;

/// How many different values there may be, counted in each segment, before a grouping at the first level is breadth-first;
/// none if it can't be, because the groups that are shown depend on what is inside them.
pub(super) fn depth_first_values(node: &Node) -> Option<usize> {
    let Shape::Groups(grouping) = &node.shape else {
        return None;
    };
    let (By::Value(field), Size::First(size)) = (&grouping.by, grouping.size) else {
        return None;
    };
    if matches!(field.kind, Kind::Cell(_) | Kind::GeoHash(_) | Kind::Point) {
        return None;
    }
    Ranking::new(grouping)?;
    let fixed = |node: &Node| match &node.shape {
        Shape::Figure { figure, .. } => *figure != MetricKind::DistinctCount,
        Shape::Centroid { .. } => true,
        Shape::Percentiles { .. } | Shape::TopHits { .. } | Shape::Groups(_) | Shape::Composite(_) => false,
    };
    let few = node.inside.iter().all(fixed).then_some(FEW_GROUPS);
    Some(size.max(few.unwrap_or_default()))
}

/// The order of groups, as far as counts and keys decide it.
#[derive(Clone, Copy)]
struct Ranking {
    by_count: bool,
    key_descending: bool,
    /// Whether nothing else decides.
    whole: bool,
}

impl Ranking {
    fn new(grouping: &Grouping) -> Option<Self> {
        let first = grouping.order.first()?;
        let by_count = match (&first.by, first.descending) {
            (GroupOrderBy::Count, true) => true,
            (GroupOrderBy::Key, _) => false,
            _ => return None,
        };
        if !by_count && grouping.min_doc_count > 1 {
            return None;
        }
        let next = grouping.order.iter().find(|key| key.by != GroupOrderBy::Count);
        Some(Self {
            by_count,
            key_descending: next.is_some_and(|key| key.by == GroupOrderBy::Key && key.descending),
            whole: next.is_none_or(|key| key.by == GroupOrderBy::Key),
        })
    }

    fn compare<K: Ord>(self, (one, count): (&K, u64), (other, others): (&K, u64)) -> Ordering {
        let by_key = directed(one.cmp(other), self.key_descending);
        match self.by_count {
            true => others.cmp(&count).then(by_key),
            false => by_key,
        }
    }

    /// Moves the first `most` to the front; the highest count of the others, where it says how many were forgotten.
    fn split<K: Ord>(self, all: &mut [(K, u64)], most: usize) -> u64 {
        if all.len() <= most {
            return 0;
        }
        all.select_nth_unstable_by(most, |(one, count), (other, others)| {
            self.compare((one, *count), (other, *others))
        });
        let next = all.get(most).map_or(0, |(_, count)| *count);
        if self.by_count { next } else { 0 }
    }
}

pub(super) struct SegmentValues<'a> {
    ranking: Ranking,
    keys: GroupKeys<'a>,
    slots: Slots,
    reader: SegmentReader,
    documents: Bits,
    all: u64,
    /// How much lower than the true one a count may be.
    error: u64,
    /// Groups that are accounted for.
    known: usize,
    numbers: Vec<u32>,
    room: [Buffer; 2],
}

impl<'a> SegmentValues<'a> {
    pub(super) fn open(keys: GroupKeys<'a>, node: &Node, reader: &SegmentReader, run: &Run) -> Result<Self> {
        let (_, ranking) = ranked(node)?;
        Ok(Self {
            ranking,
            slots: Slots::new(keys.span()),
            keys,
            reader: reader.clone(),
            documents: Bits::within(reader.max_doc(), run.allowance())?,
            all: 0,
            error: 0,
            known: 0,
            numbers: Vec::new(),
            room: Default::default(),
        })
    }

    /// Counts documents; `slots` are all 0.
    pub(super) fn take(&mut self, docs: &[DocId], slots: &[u32], account: &mut Account<'_>) -> Result<()> {
        let block = self.keys.read(docs, slots, &mut self.room)?;
        self.slots
            .number(block.values, block.slots, &mut self.numbers, account);
        self.all += block.values.len() as u64;
        docs.iter().for_each(|doc| self.documents.insert(*doc));
        let groups = self.slots.groups.len();
        if groups > self.known {
            account.hold_for_segment((groups - self.known) * Slots::GROUP_BYTES)?;
            self.known = groups;
        }
        if groups > MAX_COUNTED {
            account.run.check_inside()?;
            // A list of all, and a hash table of half of them.
            let lists = 3 * groups * size_of::<(u64, u64)>();
            account.hold(lists)?;
            self.forget();
            account.release(lists);
        }
        self.room.iter_mut().for_each(Buffer::trim);
        Ok(())
    }

    /// Forgets the last half of the values.
    fn forget(&mut self) {
        let (first, next) = self.first(MAX_COUNTED / 2);
        self.error += next;
        let known: HashMap<u64, u64> = first.into_iter().collect();
        self.slots
            .retain(|key, _| known.get(&key).copied().unwrap_or_default());
    }

    /// The first values, at most `most`, ascending with their counts; and the highest count that is left out. A string that
    /// the dictionary lacks is always among them: its number doesn't tell its place.
    fn first(&self, most: usize) -> (Vec<(u64, u64)>, u64) {
        let keys = self.slots.groups.iter().map(|(_, key)| *key);
        let mut first: Vec<(u64, u64)> = keys.zip(self.slots.counts.iter().copied()).collect();
        let stranger = self.keys.values().and_then(Values::stranger);
        let stranger = stranger.map(|(number, _)| number);
        let at = first.iter().position(|(key, _)| Some(*key) == stranger);
        let stranger = at.map(|at| first.swap_remove(at));
        let next = self.ranking.split(&mut first, most);
        first.truncate(most);
        first.extend(stranger);
        first.sort_unstable();
        (first, next)
    }
}

/// The values of all segments so far.
#[derive(Default)]
pub(super) struct Candidates {
    counts: HashMap<Raw, u64>,
    name_bytes: usize,
    all: u64,
    /// How much lower than the true one a count may be.
    error: u64,
    segments: Vec<KeptSegment>,
}

impl Candidates {
    pub(super) fn add(
        &mut self,
        segment: SegmentValues<'_>,
        node: &Node,
        context: &mut AggregationContext<'_>,
    ) -> Result<()> {
        let (grouping, ranking) = ranked(node)?;
        // Of the only segment, the first groups are those of all.
        let alone = context.alone && ranking.whole;
        let account = &mut context.account(node);
        let most = match grouping.size {
            Size::First(size) if alone => size,
            _ => MAX_AGGREGATION_GROUPS,
        };
        account.hold_for_segment(segment.slots.groups.len() * size_of::<(u64, u64)>())?;
        let (first, next) = segment.first(most);
        self.error += segment.error + if alone { 0 } else { next };
        self.all += segment.all;
        for part in first.chunks(DOCUMENTS_PER_CHECK as usize) {
            account.run.check_inside()?;
            let keys: Vec<u64> = part.iter().map(|(key, _)| *key).collect();
            for (name, (_, count)) in segment.keys.names(&keys)?.into_iter().zip(part) {
                self.count(name, *count, account)?;
            }
            if self.counts.len() > 2 * MAX_AGGREGATION_GROUPS || self.name_bytes > MAX_NAME_BYTES {
                self.forget(ranking, account)?;
            }
        }
        if self.counts.len() > MAX_AGGREGATION_GROUPS {
            self.forget(ranking, account)?;
        }
        let kept = KeptSegment::new(segment.reader, segment.documents, node, context);
        self.segments.push(kept);
        Ok(())
    }

    fn count(&mut self, name: Raw, count: u64, account: &mut Account<'_>) -> Result<()> {
        if let Some(own) = self.counts.get_mut(&name) {
            *own += count;
            return Ok(());
        }
        account.hold(entry_bytes(&name))?;
        self.name_bytes += name.behind();
        self.counts.insert(name, count);
        Ok(())
    }

    /// Forgets the last candidates: half of those that there may be, none of as many as are shown.
    fn forget(&mut self, ranking: Ranking, account: &mut Account<'_>) -> Result<()> {
        let half = (MAX_AGGREGATION_GROUPS / 2).min(self.counts.len() / 2);
        let most = half.max(MAX_TERMS_GROUPS).min(self.counts.len());
        account.run.check_inside()?;
        let list = self.counts.len() * size_of::<(Raw, u64)>();
        account.hold(list)?;
        let mut all: Vec<(Raw, u64)> = self.counts.drain().collect();
        self.error += ranking.split(&mut all, most);
        for (name, _) in all.drain(most..) {
            account.release(entry_bytes(&name));
            self.name_bytes -= name.behind();
        }
        self.counts.extend(all);
        account.release(list);
        account.run.check_inside()
    }

    /// The names of the groups that can be shown, ascending.
    fn chosen(&mut self, grouping: &Grouping, ranking: Ranking) -> Vec<(Raw, u64)> {
        let mut all: Vec<(Raw, u64)> = self.counts.drain().collect();
        if let Size::First(size) = grouping.size
            && all.len() > size
        {
            ranking.split(&mut all, size);
            if ranking.whole {
                all.truncate(size);
            } else {
                // What is inside decides between those of the same count.
                let first = all.iter().take(size).map(|(_, count)| *count);
                let least = first.min().unwrap_or_default();
                all.retain(|(_, count)| *count >= least);
            }
        }
        all.sort_unstable();
        all
    }

    /// Takes what is inside the groups that are shown.
    pub(super) fn settle(
        mut self,
        armed: &Armed<'_>,
        groups: &mut GatheredGroups,
        second: &mut AggregationPass<'_>,
    ) -> Result<()> {
        let node = armed.node;
        let (grouping, ranking) = ranked(node)?;
        let list = self.counts.len() * size_of::<(Raw, u64)>();
        let known: usize = self.counts.keys().map(entry_bytes).sum();
        second.budget.of(node, second.run).hold(list)?;
        second.run.check_inside()?;
        let chosen = self.chosen(grouping, ranking);
        // The table is empty, and the list has room for all until the groups are settled.
        self.counts = HashMap::default();
        let names: usize = chosen.iter().map(|(name, _)| name.behind()).sum();
        second.budget.release(known - names);
        second.run.check_inside()?;
        if armed.inside.is_empty() && self.error == 0 {
            for (name, count) in chosen {
                groups.count(0, &name, count, node, &mut second.budget.of(node, second.run))?;
            }
        } else {
            for segment in std::mem::take(&mut self.segments) {
                take_again(&segment, &chosen, armed, groups, second)?;
                second.let_go(segment.scored);
            }
        }
        second.budget.release(list + names);
        groups.left_out = self.all - groups.counts.iter().sum::<u64>();
        groups.error = self.error;
        Ok(())
    }
}

fn ranked(node: &Node) -> Result<(&Grouping, Ranking)> {
    let ranked = match &node.shape {
        Shape::Groups(grouping) => Ranking::new(grouping).map(|ranking| (grouping, ranking)),
        _ => None,
    };
    ranked.ok_or_else(|| TantivyError::InternalError("a grouping lost its order".to_owned()))
}

/// Bytes of a candidate, in a hash table that doubles.
fn entry_bytes(name: &Raw) -> usize {
    2 * (size_of::<Raw>() + size_of::<u64>()) + name.behind()
}

/// Gives a segment's documents of the groups that are shown to what is inside.
fn take_again(
    segment: &KeptSegment,
    chosen: &[(Raw, u64)],
    armed: &Armed<'_>,
    groups: &mut GatheredGroups,
    second: &mut AggregationPass<'_>,
) -> Result<()> {
    let node = armed.node;
    second.budget.segment();
    let around = second.around(node, segment);
    let (run, context) = (second.run, &mut second.again(&segment.scored));
    let (grouping, _) = ranked(node)?;
    let mut keys = GroupKeys::open(&grouping.by, &[], around.reader, run)?;
    let mut inside = Branch::all(&armed.inside, around, context.budget)?;
    let mut own = Vec::with_capacity(chosen.len());
    for part in chosen.chunks(DOCUMENTS_PER_CHECK as usize) {
        run.check_inside()?;
        for (name, _) in part {
            own.extend(keys.number_of(name)?);
        }
    }
    let each = Slots::GROUP_BYTES + inside_bytes(node);
    context.account(node).hold_for_segment(own.len() * each)?;
    let mut slots = Slots::of_keys(&own);
    let mut room: [Buffer; 2] = Default::default();
    let (mut docs, mut numbers) = (Vec::new(), Vec::new());
    let (mut block, mut next) = (Vec::new(), segment.documents.next(0));
    let zeros = [0; tantivy::COLLECT_BLOCK_BUFFER_LEN];
    while next != TERMINATED {
        next = segment.documents.block(next, &mut block);
        context.visit(block.len())?;
        let found = keys.read(&block, zeros.get(..block.len()).unwrap_or_default(), &mut room)?;
        docs.clear();
        numbers.clear();
        for (key, doc) in found.values.iter().zip(found.docs) {
            if let Some(number) = slots.count(*key) {
                docs.push(*doc);
                numbers.push(number);
            }
        }
        for branch in &mut inside {
            branch.take(&docs, &numbers, own.len(), context)?;
        }
    }
    groups.add(Groups::of_segment(keys, slots, inside), node, &[0], context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_groups_are_those_of_their_order() {
        let all = || vec![("a", 3), ("b", 5), ("c", 3), ("d", 1)];
        let by_count = Ranking {
            by_count: true,
            key_descending: false,
            whole: true,
        };
        let by_key = Ranking {
            by_count: false,
            key_descending: true,
            whole: true,
        };
        for (ranking, expected, next) in [(by_count, ["a", "b"], 3), (by_key, ["c", "d"], 0)] {
            let mut split = all();
            assert_eq!(ranking.split(&mut split, 2), next);
            let mut first: Vec<_> = split.iter().take(2).map(|(key, _)| *key).collect();
            first.sort_unstable();
            assert_eq!(first, expected);
            assert_eq!(ranking.split(&mut all(), 4), 0);
        }
    }
}
