//! Selections: the documents with a value of a column in a range, or with an ordinal in a set.
//!
//! By its lowest and highest value (see [`crate::columns`]), most blocks of documents are known to match whole or not at
//! all. The values of the others alone are read.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tantivy::columnar::Cardinality;
use tantivy::query::{AllScorer, EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Result, Score, SeekDangerResult, SegmentReader, TERMINATED};

use super::doc_set::DocSetBuilder;
use crate::bits::Bits;
use crate::columns::{Cover, DOCS_PER_BLOCK, NumberColumn, Within, behind_block};
use crate::doc_walk::settles;
use crate::pace::Pace;
use crate::run::Run;
use crate::unexplained::{Standing, unexplained};

/// Blocks, or documents one at a time, between two looks at the deadline.
const STEPS_PER_CHECK: u32 = 256;
/// What a search was doing when a column couldn't be read, for its error.
pub(super) const READING: &str = "reading a column";

/// The documents of one segment that a clause selects.
pub(super) enum Selected {
    /// None.
    Nothing,
    /// All, whether they have a value or not.
    Everything,
    /// Those with certain values of a column.
    Values(Selection),
    /// Those that were found already.
    Documents(DocSetBuilder),
}

/// A clause that selects documents by their values, without scores.
pub(super) trait Select: fmt::Debug + Send + Sync + 'static {
    fn open(&self, reader: &SegmentReader) -> Result<Selected>;
}

/// The values of a column that match.
pub(super) enum ValueSet {
    Range(RangeInclusive<u64>),
    /// Several, ascending.
    Listed(Arc<[u64]>),
    /// Ordinals of a dictionary.
    Ordinals(Arc<Bits>),
}

impl ValueSet {
    fn contains(&self, value: u64) -> bool {
        match self {
            Self::Range(range) => range.contains(&value),
            Self::Listed(listed) => listed.binary_search(&value).is_ok(),
            Self::Ordinals(ordinals) => contains_ordinal(ordinals, value),
        }
    }
}

/// From the lowest to the highest of ascending values; empty without any.
fn ends(listed: &[u64]) -> RangeInclusive<u64> {
    listed.first().copied().unwrap_or(1)..=listed.last().copied().unwrap_or(0)
}

fn contains_ordinal(ordinals: &Bits, value: u64) -> bool {
    u32::try_from(value).is_ok_and(|value| ordinals.contains(value))
}

/// Selects the documents of a segment with a value of the column in a range.
pub(super) fn between(
    column: Arc<NumberColumn>,
    range: RangeInclusive<u64>,
    run: &Arc<Run>,
    max_doc: DocId,
) -> Selected {
    let (lowest, highest) = (column.column.min_value(), column.column.max_value());
    if lowest > *range.end() || highest < *range.start() || range.is_empty() {
        return Selected::Nothing;
    }
    let full = column.column.get_cardinality() == Cardinality::Full;
    if full && range.contains(&lowest) && range.contains(&highest) {
        return Selected::Everything;
    }
    Selected::Values(Selection::new(column, ValueSet::Range(range), run, max_doc))
}

/// The documents of a segment with a matching value of a column.
pub(super) struct Selection {
    column: Arc<NumberColumn>,
    values: ValueSet,
    pub(super) run: Arc<Run>,
    max_doc: DocId,
}

impl Selection {
    pub(super) fn new(column: Arc<NumberColumn>, values: ValueSet, run: &Arc<Run>, max_doc: DocId) -> Self {
        Self {
            column,
            values,
            run: Arc::clone(run),
            max_doc,
        }
    }

    /// The column and the range of matching values, if it is a range.
    pub(super) fn range(&self) -> Option<(&Arc<NumberColumn>, &RangeInclusive<u64>)> {
        match &self.values {
            ValueSet::Range(range) => Some((&self.column, range)),
            ValueSet::Listed(_) | ValueSet::Ordinals(_) => None,
        }
    }

    /// Estimates how many documents match, and of how many the values have to be read.
    pub(super) fn estimate(&self) -> Result<(u32, u32)> {
        Ok(match &self.values {
            ValueSet::Range(range) => self.column.blocks(&self.run)?.estimate(range),
            ValueSet::Listed(listed) => self.column.blocks(&self.run)?.estimate(&ends(listed)),
            ValueSet::Ordinals(ordinals) => {
                let values = self.column.column.max_value().saturating_add(1);
                let share = f64::from(ordinals.len()) / values as f64;
                ((share * f64::from(self.max_doc)) as u32, self.max_doc)
            }
        })
    }

    /// How much of the document's block matches, as far as its lowest and highest value tell.
    pub(super) fn cover(&self, doc: DocId) -> Result<Cover> {
        Ok(match &self.values {
            ValueSet::Range(range) => self.column.blocks(&self.run)?.of(doc).cover(range),
            ValueSet::Listed(listed) => match self.column.blocks(&self.run)?.of(doc).cover(&ends(listed)) {
                Cover::All => Cover::Some,
                cover => cover,
            },
            ValueSet::Ordinals(_) => Cover::Some,
        })
    }

    /// Whether a document matches, by its values. Not inlined: [`Selection::retain`] asks it of few documents, and passes over the others
    /// in two thirds of the time without it.
    #[inline(never)]
    pub(super) fn matches(&self, doc: DocId) -> bool {
        let column = &self.column.column;
        column
            .values_for_doc(doc)
            .any(|value| self.values.contains(value))
    }

    /// Retains the documents, which are in ascending order, that match.
    pub(super) fn retain(&self, docs: &mut Vec<DocId>) -> Result<()> {
        let ValueSet::Range(range) = &self.values else {
            docs.retain(|doc| self.matches(*doc));
            return Ok(());
        };
        let blocks = self.column.blocks(&self.run)?;
        // A column with few documents, or one that isn't asked for often, has no codes.
        let coded = self.column.codes(docs.len(), &self.run)?;
        let coded = coded.map(|codes| (codes, codes.range(range)));
        let (mut block_end, mut cover) = (0, Cover::Some);
        docs.retain(|doc| {
            if *doc >= block_end {
                block_end = behind_block(*doc);
                cover = blocks.of(*doc).cover(range);
            }
            match cover {
                Cover::All => true,
                Cover::None => false,
                Cover::Some => match coded.map(|(codes, range)| codes.within(*doc, range)) {
                    Some(Within::Yes) => true,
                    Some(Within::No) => false,
                    Some(Within::Perhaps) | None => self.matches(*doc),
                },
            }
        });
        Ok(())
    }

    /// Puts the matches from `from` (inclusive) to `to` (exclusive), at most a block's, into `docs`, which is empty.
    pub(super) fn collect(&self, from: DocId, to: DocId, docs: &mut Vec<DocId>) {
        match &self.values {
            ValueSet::Range(range) => {
                let column = &self.column.column;
                column.get_docids_for_value_range(range.clone(), from..to, docs);
            }
            ValueSet::Listed(listed) => {
                let column = &self.column.column;
                column.get_docids_for_value_range(ends(listed), from..to, docs);
                docs.retain(|doc| self.matches(*doc));
            }
            ValueSet::Ordinals(ordinals) if self.column.column.get_cardinality() == Cardinality::Full => {
                let mut buffer = [0; DOCS_PER_BLOCK as usize];
                let count = to.saturating_sub(from) as usize;
                if let Some(values) = buffer.get_mut(..count) {
                    self.column.column.values.get_range(u64::from(from), values);
                    let found = (from..to)
                        .zip(values)
                        .filter(|(_, value)| contains_ordinal(ordinals, **value));
                    docs.extend(found.map(|(doc, _)| doc));
                }
            }
            ValueSet::Ordinals(_) => docs.extend((from..to).filter(|doc| self.matches(*doc))),
        }
    }

    /// The matches in order, each with the same score. Without `target` the scorer stands on the first match. With it the
    /// scorer stands nowhere: the caller begins with [`DocSet::seek_danger`] of `target`.
    pub(super) fn scorer(self, target: Option<DocId>, score: Score) -> Result<SelectionScorer> {
        let (matches, to_read) = match target {
            None => self.estimate()?,
            // The most will do: the order of the intersection's clauses is decided by now.
            Some(_) => (self.max_doc, self.max_doc),
        };
        let pace = Pace::new(Arc::clone(&self.run), STEPS_PER_CHECK);
        let mut scorer = SelectionScorer {
            selection: self,
            doc: 0,
            whole_until: 0,
            collected: 0..0,
            docs: Vec::with_capacity(DOCS_PER_BLOCK as usize),
            next: 0,
            pace,
            matches,
            to_read,
            score,
        };
        if target.is_none() {
            scorer.settle(0);
        }
        Ok(scorer)
    }
}

/// Walks over the matches of a [`Selection`], a block at a time.
pub(super) struct SelectionScorer {
    selection: Selection,
    doc: DocId,
    /// All documents from `doc` on that lie before this one match.
    whole_until: DocId,
    /// The documents whose matches are `docs`.
    collected: std::ops::Range<DocId>,
    docs: Vec<DocId>,
    /// All of `docs` before this index lie before `doc`.
    next: usize,
    /// Steps are blocks that are walked over, and documents that don't match: an intersection asks for one at a time.
    pace: Pace<Arc<Run>>,
    /// Estimate of the matches, and of the documents whose values have to be read.
    matches: u32,
    to_read: u32,
    score: Score,
}

impl SelectionScorer {
    fn settle(&mut self, target: DocId) -> DocId {
        self.doc = self.find(target);
        self.doc
    }

    /// The first match from `from` on. When the search has to stop there is none: its run holds the error.
    fn find(&mut self, from: DocId) -> DocId {
        let mut from = from;
        while from < self.selection.max_doc {
            if from < self.whole_until {
                return from;
            }
            if self.collected.contains(&from) {
                let rest = self.docs.get(self.next..).unwrap_or_default();
                // Mostly it is the next one.
                let near = rest.iter().take(2).position(|doc| *doc >= from);
                self.next += near.unwrap_or_else(|| rest.partition_point(|doc| *doc < from));
                if let Some(doc) = self.docs.get(self.next) {
                    return *doc;
                }
                from = self.collected.end;
                continue;
            }
            if self.pace.stops(1) {
                return TERMINATED;
            }
            let block_end = behind_block(from).min(self.selection.max_doc);
            match self.selection.cover(from) {
                Ok(Cover::None) => from = block_end,
                Ok(Cover::All) => self.whole_until = block_end,
                Ok(Cover::Some) => {
                    self.docs.clear();
                    self.next = 0;
                    self.selection.collect(from, block_end, &mut self.docs);
                    self.collected = from..block_end;
                }
                Err(error) => {
                    self.pace.run().leave(READING, error);
                    return TERMINATED;
                }
            }
        }
        TERMINATED
    }
}

impl DocSet for SelectionScorer {
    settles!();

    /// Reads the values of `target` alone, where `seek` would look for the next match.
    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        if target >= self.selection.max_doc {
            self.doc = TERMINATED;
            return SeekDangerResult::SeekLowerBound(TERMINATED);
        }
        let found = match self.selection.cover(target) {
            Ok(Cover::All) => true,
            Ok(Cover::Some) => self.selection.matches(target),
            Ok(Cover::None) => {
                let block_end = Some(behind_block(target)).filter(|end| *end < self.selection.max_doc);
                return SeekDangerResult::SeekLowerBound(block_end.unwrap_or(TERMINATED));
            }
            Err(error) => {
                self.pace.run().leave(READING, error);
                return SeekDangerResult::SeekLowerBound(TERMINATED);
            }
        };
        if found {
            self.doc = target;
            return SeekDangerResult::Found;
        }
        if self.pace.stops(1) {
            self.doc = TERMINATED;
            return SeekDangerResult::SeekLowerBound(TERMINATED);
        }
        SeekDangerResult::SeekLowerBound(target + 1)
    }

    fn size_hint(&self) -> u32 {
        self.matches
    }

    /// Reading a value takes about an eighth of a step through a posting list.
    fn cost(&self) -> u64 {
        u64::from(self.matches) + u64::from(self.to_read / 8)
    }
}

impl Scorer for SelectionScorer {
    fn score(&mut self) -> Score {
        self.score
    }
}

/// The query of the documents that a clause selects. Its scores don't count: [`super::clause::Clause::constant`] is around it.
#[derive(Clone, Debug)]
pub(super) struct SelectionQuery(pub(super) Arc<dyn Select>);

impl SelectionQuery {
    fn open(&self, reader: &SegmentReader, target: Option<DocId>, boost: Score) -> Result<Box<dyn Scorer>> {
        Ok(match self.0.open(reader)? {
            Selected::Nothing => Box::new(EmptyScorer),
            Selected::Everything => Box::new(AllScorer::new(reader.max_doc())),
            Selected::Documents(documents) => documents.into_scorer(boost)?,
            Selected::Values(selection) => Box::new(selection.scorer(target, boost)?),
        })
    }
}

impl Query for SelectionQuery {
    fn weight(&self, _: EnableScoring<'_>) -> Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for SelectionQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> Result<Box<dyn Scorer>> {
        self.open(reader, None, boost)
    }

    /// Doesn't look for a first match: the other clauses of an intersection may be far ahead of it.
    fn scorer_danger(&self, reader: &SegmentReader, target: DocId, boost: Score) -> Standing {
        let mut scorer = self.open(reader, Some(target), boost)?;
        let found = scorer.seek_danger(target);
        Ok((found, scorer))
    }

    unexplained!();
}
