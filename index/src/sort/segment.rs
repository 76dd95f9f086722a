//! The sort keys of an order, opened on one segment.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use tantivy::query::{EnableScoring, Weight};
use tantivy::{DocId, Score, SegmentReader};

use super::column::{self, Nothing, Pick, Scores, Values};
use super::distance::{Distances, Targets};
use super::leading::Leading;
use super::nearest::Nearest;
use super::objects::Objects;
use super::order::{Absent, Key, Order, SortSource, ValueKind};
use super::rank::{self, Rank};
use super::raw_value::{RawSortValue, RawSortValues, spell};
use crate::attribute;
use crate::columns::StringColumn;
use crate::layout::{Handle, Layout};
use crate::limits::DOCUMENTS_PER_CHECK;
use crate::pace::Pace;
use crate::points::Points;
use crate::run::Run;

/// Cost of a key over nested objects, compared with one that reads a column: a document may have many.
const NESTED_KEY_COST: usize = 16;

/// Documents already ranked, of a heap or a page, that are moved or turned into sort values between two checks of the
/// deadline.
pub(super) const RANKS_PER_CHECK: u32 = 512;

/// Position of the second key, which breaks ties in an order that begins with the score.
pub(super) const TIE_KEY: usize = 1;

/// An order that is ready for the segments of one searcher.
pub(crate) struct PreparedOrder<'a> {
    pub(crate) order: &'a Order,
    layout: &'a Layout,
    run: &'a Run,
    /// The filters of nested keys.
    filters: Vec<Option<Box<dyn Weight>>>,
}

impl<'a> PreparedOrder<'a> {
    pub(crate) fn new(
        order: &'a Order,
        layout: &'a Layout,
        run: &'a Run,
        searcher: &tantivy::Searcher,
    ) -> tantivy::Result<Self> {
        let filters = order.keys.iter().map(|key| {
            let filter = key.nested().and_then(|nested| nested.filter.as_ref());
            let unscored = EnableScoring::disabled_from_searcher(searcher);
            filter.map(|filter| filter.weight(unscored)).transpose()
        });
        Ok(Self {
            order,
            layout,
            run,
            filters: filters.collect::<tantivy::Result<_>>()?,
        })
    }

    /// Opens the order on one segment. `scores` tells whether scores differ between documents.
    pub(crate) fn open(&self, reader: &SegmentReader, scores: bool) -> tantivy::Result<SegmentOrder<'a>> {
        let keys = self.order.keys.iter().zip(&self.filters);
        let keys = keys.map(|(key, filter)| self.open_key(key, filter.as_deref(), reader));
        let keys = keys.collect::<tantivy::Result<Vec<_>>>()?;
        let open_leading = |nth: usize| {
            let Some(opened) = keys.get(nth) else {
                return Ok(None);
            };
            let ordinals = opened.strings.as_ref().map(|strings| &strings.ordinals);
            Leading::open(nth, opened.key, ordinals, opened.missing, self.run, reader)
        };
        let leading_key = self.order.leading(scores);
        let leading = leading_key.map_or(Ok(None), &open_leading)?;
        let ties = match scores && self.order.begins_with_best_score() {
            true => open_leading(TIE_KEY)?,
            false => None,
        };
        let nearest = leading_key.map_or(Ok(None), |nth| self.nearest(nth, reader))?;
        Ok(SegmentOrder {
            run: self.run,
            max_doc: reader.max_doc(),
            ranks: Vec::with_capacity(keys.len()),
            keys,
            leading,
            ties,
            nearest,
            doc: 0,
            score: 0.0,
        })
    }

    /// Opens the key `nth` for a walk from the nearest point on, if it is by distance, nearest first.
    fn nearest(&self, nth: usize, reader: &SegmentReader) -> tantivy::Result<Option<Nearest>> {
        let Some(Key {
            source: SortSource::Distance { path, points },
            descending: false,
            ..
        }) = self.order.keys.get(nth)
        else {
            return Ok(None);
        };
        let Some((column, Handle::Point { cell, .. })) =
            Points::open(reader, path)?.zip(self.layout.handle(path))
        else {
            return Ok(None);
        };
        Ok(Some(Nearest {
            nth,
            distances: Distances::new(column, Targets::new(points)),
            index: reader.inverted_index(cell)?,
            passed: None,
        }))
    }

    /// Sorts segments by their best value of the leading key: once the page is full, the last ones can often be skipped.
    pub(crate) fn sort_segments(&self, readers: &mut [&SegmentReader], scores: bool) -> tantivy::Result<()> {
        let leading = self.order.leading(scores);
        let Some((nth, key)) = leading.and_then(|nth| Some((nth, self.order.keys.get(nth)?))) else {
            return Ok(());
        };
        let SortSource::Values {
            kind: ValueKind::Number(_),
            ..
        } = &key.source
        else {
            return Ok(());
        };
        let missing = Rank::missing(key.absent == Absent::First);
        let edges = readers.iter().map(|reader| {
            let leading = Leading::open(nth, key, None, missing, self.run, reader)?;
            Ok((reader.segment_id(), leading.and_then(|leading| leading.edge())))
        });
        let edges = edges.collect::<tantivy::Result<HashMap<_, _>>>()?;
        readers.sort_by_key(|reader| edges.get(&reader.segment_id()).copied().flatten());
        Ok(())
    }

    /// Documents to compare between two checks of the deadline: fewer when comparing one takes long.
    pub(crate) fn documents_per_check(&self) -> u32 {
        let cost = |key: &Key| match &key.source {
            SortSource::Score | SortSource::PrimaryKey => 0,
            SortSource::Values { nested: None, .. } => 1,
            SortSource::Values { nested: Some(_), .. } => NESTED_KEY_COST,
            SortSource::Distance { points, .. } => points.len(),
        };
        let cost = self.order.keys.iter().map(cost).sum::<usize>().max(1);
        (DOCUMENTS_PER_CHECK / cost as u32).max(1)
    }

    fn open_key(
        &self,
        key: &'a Key,
        filter: Option<&dyn Weight>,
        reader: &SegmentReader,
    ) -> tantivy::Result<SegmentKey<'a>> {
        let mut strings = None;
        let values: Box<dyn Values> = match &key.source {
            SortSource::Score => Box::new(Scores),
            SortSource::Distance { path, points } => match Points::open(reader, path)? {
                Some(column) => Box::new(Distances::new(column, Targets::new(points))),
                None => Box::new(Nothing),
            },
            SortSource::Values {
                path,
                kind: ValueKind::Number(kind),
                pick,
                ..
            } => match self.run.columns().numbers(reader, path)? {
                Some(numbers) => {
                    let objects = self.objects(key, filter, reader)?;
                    column::numbers(numbers.column.clone(), *kind, *pick, objects)
                }
                None => Box::new(Nothing),
            },
            SortSource::Values { path, kind, pick, .. } => {
                strings = self.run.columns().strings(reader, path)?;
                match &strings {
                    Some(strings) => {
                        let attribute_ordinals = match kind {
                            ValueKind::Attribute(name) => {
                                let (from, to) = attribute::bounds(name);
                                Some(strings.column.dictionary().term_bounds_to_ord(from, to)?)
                            }
                            ValueKind::Number(_) | ValueKind::Keyword => None,
                        };
                        let objects = self.objects(key, filter, reader)?;
                        column::ordinals(strings.column.ords().clone(), attribute_ordinals, *pick, objects)
                    }
                    None => Box::new(Nothing),
                }
            }
            SortSource::PrimaryKey => {
                strings = self.run.columns().strings(reader, &self.layout.key_path)?;
                match &strings {
                    Some(strings) => column::ordinals(strings.column.ords().clone(), None, Pick::Only, None),
                    None => Box::new(Nothing),
                }
            }
        };
        let missing = Rank::missing(key.absent == Absent::First);
        let mut opened = SegmentKey {
            key,
            values,
            strings,
            missing,
        };
        if let Absent::As(substitute) = &key.absent {
            opened.missing = opened.rank_of(substitute)?;
        }
        Ok(opened)
    }

    /// Opens the nested objects over which a key ranges; `None` for a key of the documents themselves.
    fn objects(
        &self,
        key: &Key,
        filter: Option<&dyn Weight>,
        reader: &SegmentReader,
    ) -> tantivy::Result<Option<Objects>> {
        let Some(nested) = key.nested() else {
            return Ok(None);
        };
        let kind = self.layout.kind_term(Some(&nested.path));
        let Some((root, kind)) = self.layout.root_kind().zip(kind) else {
            return Ok(None);
        };
        Objects::open(reader, self.run.parents(), &root, &kind, filter).map(Some)
    }
}

/// One sort key on one segment.
struct SegmentKey<'a> {
    key: &'a Key,
    values: Box<dyn Values>,
    /// The dictionary, where values are ordinals of strings.
    strings: Option<Arc<StringColumn>>,
    /// The rank of documents without a value.
    missing: Rank,
}

impl SegmentKey<'_> {
    fn rank(&mut self, doc: DocId, score: Score) -> Rank {
        match self.values.value(doc, score) {
            Some(value) => Rank::among(value, self.key.descending),
            None => self.missing,
        }
    }

    /// Where a value of another segment, or of a page token, stands in this one.
    fn rank_of(&self, sort_value: &RawSortValue) -> io::Result<Rank> {
        let value = match sort_value {
            RawSortValue::Missing => return Ok(Rank::missing(self.key.absent == Absent::First)),
            RawSortValue::Number(number) => *number,
            RawSortValue::Bytes(bytes) => self.position(bytes)?,
        };
        Ok(Rank::among(value, self.key.descending))
    }

    /// The position of a string, which the dictionary may lack.
    fn position(&self, bytes: &[u8]) -> io::Result<u64> {
        let against_substitute = match &self.key.absent {
            Absent::As(RawSortValue::Bytes(substitute)) => bytes.cmp(substitute.as_slice()),
            Absent::As(_) | Absent::First | Absent::Last => Ordering::Less,
        };
        let column = self.strings.as_ref().map(|strings| &strings.column);
        rank::position(column, bytes, against_substitute)
    }

    /// Appends the value of the key `nth` to the sort values of each of these documents.
    fn sort_values(
        &self,
        nth: usize,
        documents: &[&[Rank]],
        sort_values: &mut [RawSortValues],
        run: &Run,
    ) -> io::Result<()> {
        // Each with the position of its document.
        let mut ordinals = Vec::new();
        let mut pace = Pace::new(run, RANKS_PER_CHECK);
        for (position, (ranks, values)) in documents.iter().zip(sort_values.iter_mut()).enumerate() {
            pace.step(1).map_err(io::Error::other)?;
            let Some(rank) = ranks.get(nth) else { continue };
            match (rank.value(self.key.descending), &self.key.absent) {
                (Some(_), Absent::As(substitute)) if *rank == self.missing => values.add(substitute)?,
                (None, _) => values.push(RawSortValue::Missing),
                (Some(value), _) if self.strings.is_some() => {
                    ordinals.extend(rank::ordinal(value).map(|ordinal| (ordinal, position)));
                    values.push(RawSortValue::Bytes(Vec::new()));
                }
                (Some(number), _) => values.push(RawSortValue::Number(number)),
            }
        }
        match &self.strings {
            Some(strings) => spell(strings, ordinals, sort_values, run),
            None => Ok(()),
        }
    }
}

/// An order on one segment, positioned on one document. Its ranks are computed when they are first needed.
pub(crate) struct SegmentOrder<'a> {
    pub(crate) run: &'a Run,
    max_doc: DocId,
    keys: Vec<SegmentKey<'a>>,
    /// The leading key, which decides most comparisons, where it can be read in blocks.
    pub(crate) leading: Option<Leading>,
    /// The tie-breaking key of an order by score, best first, where it can be read in blocks.
    pub(super) ties: Option<Leading>,
    /// The leading key, where it is by distance.
    pub(super) nearest: Option<Nearest>,
    doc: DocId,
    score: Score,
    ranks: Vec<Rank>,
}

impl SegmentOrder<'_> {
    /// Whether documents may be visited in any order: nested objects can only be walked forward.
    pub(super) fn is_random_access(&self) -> bool {
        self.keys.iter().all(|key| key.key.nested().is_none())
    }

    /// Position of the leading key, which decides most comparisons.
    pub(super) fn leading_key(&self) -> Option<usize> {
        let by_distance = self.nearest.as_ref().map(|nearest| nearest.nth);
        self.leading.as_ref().map(|leading| leading.nth).or(by_distance)
    }

    /// The rank of a position under the leading key, if that alone decides which documents lie before the position: all have
    /// the same score, and the position has it too.
    pub(super) fn leading_rank_of(&mut self, position: &[Rank], score: Score) -> Option<Rank> {
        let nth = self.leading_key()?;
        let same = |(key, rank): (&mut SegmentKey<'_>, &Rank)| key.rank(0, score) == *rank;
        let all_same = self.keys.iter_mut().take(nth).zip(position).all(same);
        position.get(nth).copied().filter(|_| all_same)
    }

    /// Moves to a document; forward only, unless [`Self::is_random_access`].
    pub(crate) fn move_to(&mut self, doc: DocId, score: Score) {
        (self.doc, self.score) = (doc, score);
        self.ranks.clear();
    }

    /// Compares the document with other ranks; computes no more keys than it takes.
    pub(crate) fn compare(&mut self, others: &[Rank]) -> Ordering {
        for (nth, other) in others.iter().enumerate() {
            let Some(rank) = self.rank(nth) else { break };
            let ordering = rank.cmp(other);
            if ordering.is_ne() {
                return ordering;
            }
        }
        Ordering::Equal
    }

    /// The ranks of the document under all keys.
    pub(crate) fn ranks(&mut self) -> &[Rank] {
        self.rank(self.keys.len().saturating_sub(1));
        &self.ranks
    }

    fn rank(&mut self, nth: usize) -> Option<Rank> {
        for key in self.keys.iter_mut().take(nth + 1).skip(self.ranks.len()) {
            let rank = key.rank(self.doc, self.score);
            self.ranks.push(rank);
        }
        self.ranks.get(nth).copied()
    }

    /// Where a document of another segment, or a page token, stands in this segment.
    pub(crate) fn ranks_of(&self, sort_values: &[RawSortValue]) -> io::Result<Vec<Rank>> {
        let keys = self.keys.iter().zip(sort_values);
        keys.map(|(key, sort_value)| key.rank_of(sort_value)).collect()
    }

    /// Bytes of the ranks of a document.
    pub(crate) fn rank_bytes(&self) -> usize {
        self.keys.len() * size_of::<Rank>()
    }

    /// Most documents of the segment that can be among the top `size`.
    pub(crate) fn capacity(&self, size: usize) -> usize {
        size.min(self.max_doc as usize)
    }

    /// The values behind the ranks of several documents.
    ///
    /// # Errors
    /// When a column can't be read, there is no memory for the values, or the search has to stop; see
    /// [`Run::unreadable`].
    pub(crate) fn sort_values(&self, documents: &[&[Rank]]) -> io::Result<Vec<RawSortValues>> {
        self.sort_values_of(0..self.keys.len(), documents)
    }

    /// [`SegmentOrder::sort_values`] of some of the keys.
    pub(super) fn sort_values_of(
        &self,
        keys: Range<usize>,
        documents: &[&[Rank]],
    ) -> io::Result<Vec<RawSortValues>> {
        // With room for the keys behind, which may be read later.
        let room = self.keys.len().saturating_sub(keys.start);
        let mut sort_values = Vec::with_capacity(documents.len());
        let mut pace = Pace::new(self.run, RANKS_PER_CHECK);
        for _ in documents {
            pace.step(1).map_err(io::Error::other)?;
            sort_values.push(RawSortValues::new(room, self.run.allowance())?);
        }
        for (nth, key) in self.keys.iter().enumerate().take(keys.end).skip(keys.start) {
            key.sort_values(nth, documents, &mut sort_values, self.run)?;
        }
        Ok(sort_values)
    }
}
