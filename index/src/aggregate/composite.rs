//! Groups of several keys, by pages: as many as there are, in memory for one page.
//!
//! The documents of a segment are kept as a set of bits while the walk goes on. At its end a pass over them finds the
//! lowest keys behind the page before, no more than a page holds. The lowest keys of all segments are the lowest of those,
//! and each of them is complete: a key that a segment left out has a page of lower ones in that segment alone. When they
//! are known, a second pass gives their documents to what is inside.

mod source;

use std::cmp::Ordering;

use foldhash::HashMap;
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, Result, SegmentReader, TERMINATED};

use super::branch::{AggregationContext, Armed, Branch, inside_bytes};
use super::budget::Account;
use super::column::{Buffer, Raw};
use super::gathered::Gathered;
use super::node::{Composite, Node, Shape};
use super::second_pass::{AggregationPass, KeptSegment};
use crate::bits::Bits;
use crate::error::Error;
use crate::limits::{MAX_DOCUMENT_KEYS, limit};
use crate::page;
use crate::result::Datum;
use crate::run::Run;
use crate::sort::{RawSortValue, directed};
use source::OpenSource;

/// Keys of a segment that are held beyond those of a page before the highest are dropped.
const SPARE_KEYS: usize = 8_192;
/// Names that are read before they are accounted for.
const NAMES_PER_CHECK: usize = 256;

/// A composite aggregation on one segment. It collects documents, and counts their groups afterwards.
pub(super) struct SegmentComposite<'a> {
    sources: Sources<'a>,
    /// Positions of the last group of the page before.
    after: Option<Vec<u128>>,
    reader: SegmentReader,
    documents: Bits,
}

impl<'a> SegmentComposite<'a> {
    pub(super) fn open(
        composite: &'a Composite,
        path: &'a str,
        reader: &SegmentReader,
        run: &Run,
    ) -> Result<Self> {
        let sources = Sources::open(composite, path, reader, run)?;
        let after = composite.after.as_ref().map(|after| {
            let positions = sources.all.iter().zip(after);
            positions
                .map(|(source, sort_value)| source.position_of(sort_value))
                .collect()
        });
        Ok(Self {
            after: after.transpose()?,
            sources,
            reader: reader.clone(),
            documents: Bits::within(reader.max_doc(), run.allowance())?,
        })
    }

    pub(super) fn take(&mut self, docs: &[DocId]) {
        docs.iter().for_each(|doc| self.documents.insert(*doc));
    }

    /// The positions of the lowest groups behind the page before, with their counts.
    fn lowest(&mut self, context: &mut AggregationContext<'_>) -> Result<HashMap<Vec<u128>, u64>> {
        // One more than the page has: whether there is a next page.
        let wanted = self.sources.composite.size + 1;
        let mut counts: HashMap<Vec<u128>, u64> = HashMap::default();
        let mut highest: Option<Vec<u128>> = None;
        let after = &self.after;
        self.sources.each(&self.documents, context, |positions, _, _| {
            let passed = after.as_deref().is_some_and(|after| positions <= after);
            if passed || highest.as_deref().is_some_and(|highest| positions > highest) {
                return Ok(());
            }
            match counts.get_mut(positions) {
                Some(count) => *count += 1,
                None => drop(counts.insert(positions.to_vec(), 1)),
            }
            if counts.len() > wanted + SPARE_KEYS {
                highest = keep_lowest(&mut counts, wanted);
            }
            Ok(())
        })?;
        keep_lowest(&mut counts, wanted);
        Ok(counts)
    }
}

/// The sources on a segment.
struct Sources<'a> {
    composite: &'a Composite,
    path: &'a str,
    all: Vec<OpenSource<'a>>,
}

impl<'a> Sources<'a> {
    fn open(composite: &'a Composite, path: &'a str, reader: &SegmentReader, run: &Run) -> Result<Self> {
        let all = composite.sources.iter();
        let all = all.map(|source| OpenSource::open(source, reader, run));
        Ok(Self {
            composite,
            path,
            all: all.collect::<Result<_>>()?,
        })
    }

    /// Gives every key of every document: positions, and the document.
    fn each(
        &mut self,
        documents: &Bits,
        context: &mut AggregationContext<'_>,
        mut take: impl FnMut(&[u128], DocId, &mut AggregationContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let numbers: Vec<u32> = (0..COLLECT_BLOCK_BUFFER_LEN as u32).collect();
        let mut next = documents.next(0);
        let mut block = Vec::with_capacity(COLLECT_BLOCK_BUFFER_LEN);
        let mut combination: Vec<u128> = Vec::with_capacity(self.all.len());
        let mut positions = vec![Vec::new(); COLLECT_BLOCK_BUFFER_LEN * self.all.len()];
        while next != TERMINATED {
            next = documents.block(next, &mut block);
            context.visit(block.len())?;
            positions.iter_mut().for_each(Vec::clear);
            let sources = self.all.len();
            for (nth, source) in self.all.iter_mut().enumerate() {
                let mut room = std::mem::take(&mut source.room);
                let found =
                    source
                        .keys
                        .read(&block, numbers.get(..block.len()).unwrap_or_default(), &mut room)?;
                for (key, number) in found.values.iter().zip(found.slots) {
                    let position = source.position(*key);
                    if let Some(own) = positions.get_mut(*number as usize * sources + nth) {
                        own.push(position);
                    }
                }
                source.room = room;
            }
            for (number, doc) in block.iter().enumerate() {
                let Some(own) = positions.get_mut(number * sources..(number + 1) * sources) else {
                    continue;
                };
                for (own, source) in own.iter_mut().zip(&self.all) {
                    if own.is_empty() && source.source.include_missing {
                        own.push(source.turned(0));
                    }
                }
                let combinations = own.iter().map(Vec::len).fold(1, usize::saturating_mul);
                if combinations > MAX_DOCUMENT_KEYS {
                    let advice = "use fewer sources that are arrays";
                    let error = Error::limit(self.path, limit!(MAX_DOCUMENT_KEYS), combinations, advice);
                    return Err(context.run.give_up(error));
                }
                context.visit(combinations)?;
                combine(own, &mut combination, &mut |positions| {
                    take(positions, *doc, context)
                })?;
            }
        }
        Ok(())
    }
}

/// Gives every combination of one value of each list.
fn combine(
    lists: &[Vec<u128>],
    begun: &mut Vec<u128>,
    take: &mut impl FnMut(&[u128]) -> Result<()>,
) -> Result<()> {
    let Some((first, rest)) = lists.split_first() else {
        return take(begun);
    };
    for value in first {
        begun.push(*value);
        combine(rest, begun, take)?;
        begun.pop();
    }
    Ok(())
}

/// Drops all but the lowest; the highest that is left, where some were dropped.
fn keep_lowest(counts: &mut HashMap<Vec<u128>, u64>, wanted: usize) -> Option<Vec<u128>> {
    if counts.len() <= wanted {
        return None;
    }
    let mut all: Vec<Vec<u128>> = counts.keys().cloned().collect();
    let (_, highest, _) = all.select_nth_unstable(wanted - 1);
    let highest = std::mem::take(highest);
    counts.retain(|positions, _| *positions <= highest);
    Some(highest)
}

/// The lowest groups of all segments so far.
pub(super) struct Pages {
    /// In order.
    groups: Vec<Page>,
    /// Those that are gone through again.
    segments: Vec<KeptSegment>,
    /// By the places of the groups.
    pub(super) inside: Vec<Gathered>,
}

struct Page {
    names: Vec<Option<Raw>>,
    count: u64,
}

impl Page {
    /// Bytes of a group without those behind its names.
    fn bytes(composite: &Composite) -> usize {
        size_of::<Self>() + composite.sources.len() * size_of::<Option<Raw>>()
    }
}

/// Bytes behind names.
fn behind(names: &[Option<Raw>]) -> usize {
    names.iter().flatten().map(Raw::behind).sum()
}

impl Pages {
    pub(super) fn new(inside: Vec<Gathered>) -> Self {
        Self {
            groups: Vec::new(),
            segments: Vec::new(),
            inside,
        }
    }

    pub(super) fn add(
        &mut self,
        mut segment: SegmentComposite<'_>,
        node: &Node,
        context: &mut AggregationContext<'_>,
    ) -> Result<()> {
        let counts = segment.lowest(context)?;
        let composite = segment.sources.composite;
        // In order, so that equal searches take equal memory.
        let mut lowest: Vec<_> = counts.keys().collect();
        lowest.sort_unstable();
        let named = named(&segment.sources.all, &lowest, &mut context.account(node))?;
        let account = &mut context.account(node);
        for (positions, names) in named {
            let count = counts.get(positions).copied().unwrap_or_default();
            let known = self
                .groups
                .binary_search_by(|page| composite.compare(&page.names, &names));
            match known {
                Ok(at) => {
                    account.release(behind(&names));
                    if let Some(page) = self.groups.get_mut(at) {
                        page.count += count;
                    }
                }
                Err(at) => {
                    account.groups(1)?;
                    account.hold(Page::bytes(composite))?;
                    self.groups.insert(at, Page { names, count });
                }
            }
        }
        let page = self.groups.len().min(composite.size + 1);
        account.release_groups(self.groups.len() - page);
        for dropped in self.groups.drain(page..) {
            account.release(Page::bytes(composite) + behind(&dropped.names));
        }
        if !node.inside.is_empty() && !counts.is_empty() {
            let kept = KeptSegment::new(segment.reader, segment.documents, node, context);
            self.segments.push(kept);
        }
        Ok(())
    }

    /// Takes what is inside the groups of the page.
    pub(super) fn settle(&mut self, armed: &Armed<'_>, second: &mut AggregationPass<'_>) -> Result<()> {
        let node = armed.node;
        let Shape::Composite(composite) = &node.shape else {
            return Ok(());
        };
        let page = self.groups.len().min(composite.size);
        let bytes = page * inside_bytes(node);
        second.budget.of(node, second.run).hold(bytes)?;
        for segment in std::mem::take(&mut self.segments) {
            self.take_again(&segment, armed, composite, second)?;
            second.let_go(segment.scored);
        }
        Ok(())
    }

    /// Gives a segment's documents of the groups of the page to what is inside.
    fn take_again(
        &mut self,
        segment: &KeptSegment,
        armed: &Armed<'_>,
        composite: &Composite,
        second: &mut AggregationPass<'_>,
    ) -> Result<()> {
        let node = armed.node;
        second.budget.segment();
        let around = second.around(node, segment);
        let (run, context) = (second.run, &mut second.again(&segment.scored));
        let mut sources = Sources::open(composite, &node.path, &segment.reader, run)?;
        let page = self.groups.get(..composite.size).unwrap_or(&self.groups);
        let mut slots: HashMap<Vec<u128>, u32> = HashMap::default();
        let mut places = Vec::new();
        for (place, group) in page.iter().enumerate() {
            run.check_nth(place, NAMES_PER_CHECK)?;
            let positions = sources.all.iter().zip(&group.names);
            let positions = positions.map(|(source, name)| source.position_by_name(name.as_ref()));
            if let Some(positions) = positions.collect::<Result<Option<Vec<_>>>>()? {
                slots.insert(positions, places.len() as u32);
                places.push(place as u32);
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        let bytes = places.len() * inside_bytes(node);
        context.account(node).hold_for_segment(bytes)?;
        let mut inside = Branch::all(&armed.inside, around, context.budget)?;
        let mut rows = Buffer::default();
        sources.each(&segment.documents, context, |positions, doc, context| {
            if let Some(slot) = slots.get(positions) {
                rows.docs.push(doc);
                rows.slots.push(*slot);
            }
            if rows.docs.len() >= COLLECT_BLOCK_BUFFER_LEN {
                flush(&mut rows, places.len(), &mut inside, context)?;
            }
            Ok(())
        })?;
        flush(&mut rows, places.len(), &mut inside, context)?;
        for (own, branch) in self.inside.iter_mut().zip(inside) {
            own.add(branch, &places, page.len(), context)?;
        }
        Ok(())
    }

    /// The groups of the page: keys, where what is inside was gathered, and counts.
    pub(super) fn shown(
        &self,
        composite: &Composite,
    ) -> impl Iterator<Item = (Vec<Option<Datum>>, u32, u64)> {
        let shown = self.groups.iter().take(composite.size).zip(0..);
        shown.map(|(page, place)| {
            let keys = composite.sources.iter().zip(&page.names).map(|(source, name)| {
                let name = name.as_ref()?;
                source.by.keys(name).pop().flatten()
            });
            (keys.collect(), place, page.count)
        })
    }

    pub(super) fn next_page_token(&self, composite: &Composite) -> Option<String> {
        let page = self.groups.get(..composite.size)?;
        let last = page.last().filter(|_| self.groups.len() > composite.size)?;
        let sort_values = last.names.iter().map(|name| match name {
            None => RawSortValue::Missing,
            Some(Raw::Number(number)) => RawSortValue::Number(*number),
            Some(Raw::Bytes(bytes)) => RawSortValue::Bytes(bytes.clone()),
        });
        let sort_values: Vec<RawSortValue> = sort_values.collect();
        Some(page::encode(composite.origin, &sort_values))
    }
}

impl Composite {
    fn compare(&self, one: &[Option<Raw>], other: &[Option<Raw>]) -> Ordering {
        let by_source = self.sources.iter().zip(one.iter().zip(other));
        let mut orderings =
            by_source.map(|(source, (one, other))| directed(one.cmp(other), source.descending));
        orderings
            .find(|ordering| ordering.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

/// Gives documents to the aggregations inside `groups` groups.
fn flush(
    rows: &mut Buffer,
    groups: usize,
    inside: &mut [Branch<'_>],
    context: &mut AggregationContext<'_>,
) -> Result<()> {
    for branch in inside {
        branch.take(&rows.docs, &rows.slots, groups, context)?;
    }
    rows.clear();
    Ok(())
}

/// A segment's group: its positions, and what its keys are called in every segment.
type Named<'p> = (&'p Vec<u128>, Vec<Option<Raw>>);

/// The bytes behind the names are held.
fn named<'p>(
    sources: &[OpenSource<'_>],
    groups: &[&'p Vec<u128>],
    account: &mut Account<'_>,
) -> Result<Vec<Named<'p>>> {
    let named = groups.iter();
    let named = named.map(|positions| (*positions, Vec::with_capacity(sources.len())));
    let mut named: Vec<Named<'p>> = named.collect();
    for (nth, source) in sources.iter().enumerate() {
        let key = |positions: &[u128]| positions.get(nth).and_then(|position| source.key(*position));
        let mut keys: Vec<u64> = groups.iter().filter_map(|positions| key(positions)).collect();
        keys.sort_unstable();
        keys.dedup();
        let (mut names, mut held) = (Vec::with_capacity(keys.len()), 0);
        for part in keys.chunks(NAMES_PER_CHECK) {
            let read = source.keys.names(part)?;
            let bytes = read.iter().map(Raw::behind).sum();
            account.hold(bytes)?;
            held += bytes;
            names.extend(read);
        }
        for (positions, own) in &mut named {
            let at = key(positions).and_then(|key| keys.binary_search(&key).ok());
            let name = at.and_then(|at| names.get(at));
            account.hold(name.map_or(0, Raw::behind))?;
            own.push(name.cloned());
        }
        account.release(held);
    }
    Ok(named)
}
