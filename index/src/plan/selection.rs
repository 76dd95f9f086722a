//! Documents of which a column has a value, or the ordinal of one, in a range or a set.
//!
//! The lowest and highest values of each block of documents (see [`crate::columns`]) tell of most blocks that all of their
//! documents match, or none: only the others are read.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tantivy::columnar::Cardinality;
use tantivy::query::{AllScorer, EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader, TERMINATED, TantivyError};

use super::doc_set::DocSetBuilder;
use crate::bits::Bits;
use crate::columns::{CodeRange, Cover, DOCS_PER_BLOCK, NumberColumn, VaFile, Within, behind_block};
use crate::run::Run;
use crate::unexplained::unexplained;

const BLOCKS_PER_CHECK: u32 = 256;

/// What documents of one segment are selected.
pub(super) enum Opened {
    /// None.
    Nothing,
    /// All, whether they have a value or not.
    Everything,
    /// Those with a value.
    Values(Selection),
    /// These.
    Documents(DocSetBuilder),
}

/// Finds out what is selected of a segment.
pub(super) trait Select: fmt::Debug + Send + Sync + 'static {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Opened>;
}

/// Values of a column.
pub(super) enum Values {
    Between(RangeInclusive<u64>),
    Among(Arc<Bits>),
}

impl Values {
    fn contain(&self, value: u64) -> bool {
        match self {
            Self::Between(range) => range.contains(&value),
            Self::Among(bits) => u32::try_from(value).is_ok_and(|value| bits.contains(value)),
        }
    }
}

/// The documents of a segment of which a column has a value in a range.
pub(super) fn between(
    column: Arc<NumberColumn>,
    range: RangeInclusive<u64>,
    run: &Arc<Run>,
    max_doc: DocId,
) -> Opened {
    let (lowest, highest) = (column.column.min_value(), column.column.max_value());
    if lowest > *range.end() || highest < *range.start() || range.is_empty() {
        return Opened::Nothing;
    }
    let full = column.column.get_cardinality() == Cardinality::Full;
    if full && range.contains(&lowest) && range.contains(&highest) {
        return Opened::Everything;
    }
    Opened::Values(Selection::new(column, Values::Between(range), run, max_doc))
}

/// The documents of a segment of which a column has one of some values.
pub(super) struct Selection {
    column: Arc<NumberColumn>,
    values: Values,
    run: Arc<Run>,
    max_doc: DocId,
}

impl Selection {
    pub(super) fn new(column: Arc<NumberColumn>, values: Values, run: &Arc<Run>, max_doc: DocId) -> Self {
        Self {
            column,
            values,
            run: Arc::clone(run),
            max_doc,
        }
    }

    /// The column, and the range that its values are to lie in, if it is one.
    pub(super) fn range(&self) -> Option<(&Arc<NumberColumn>, &RangeInclusive<u64>)> {
        match &self.values {
            Values::Between(range) => Some((&self.column, range)),
            Values::Among(_) => None,
        }
    }

    pub(super) fn check(&self) -> tantivy::Result<()> {
        self.run.check_inside()
    }

    pub(super) fn leave(&self, error: TantivyError) {
        self.run.leave("reading a column", error);
    }

    /// About how many documents match, and how many have to be read to know which.
    pub(super) fn estimate(&self) -> tantivy::Result<(u32, u32)> {
        Ok(match &self.values {
            Values::Between(range) => self.column.blocks(&self.run)?.estimate(range),
            Values::Among(bits) => {
                let values = self.column.column.max_value().saturating_add(1);
                let share = f64::from(bits.len()) / values as f64;
                ((share * f64::from(self.max_doc)) as u32, self.max_doc)
            }
        })
    }

    /// How the block of a document lies to the values.
    pub(super) fn cover(&self, doc: DocId) -> tantivy::Result<Cover> {
        Ok(match &self.values {
            Values::Between(range) => self.column.blocks(&self.run)?.of(doc).cover(range),
            Values::Among(_) => Cover::Some,
        })
    }

    /// Whether a document matches; its block is known to have some that do.
    pub(super) fn has(&self, doc: DocId) -> bool {
        let column = &self.column.column;
        column.values_for_doc(doc).any(|value| self.values.contain(value))
    }

    /// Keeps those of some documents, in ascending order, that match.
    pub(super) fn keep(&self, docs: &mut Vec<DocId>) -> tantivy::Result<()> {
        let blocks = match &self.values {
            Values::Between(range) => Some((self.column.blocks(&self.run)?, range)),
            Values::Among(_) => None,
        };
        let coded = match &self.values {
            Values::Between(range) => self.coded(docs.len(), range)?,
            Values::Among(_) => None,
        };
        let (mut behind, mut cover) = (0, Cover::Some);
        docs.retain(|doc| {
            if *doc >= behind {
                behind = behind_block(*doc);
                if let Some((blocks, range)) = blocks {
                    cover = blocks.of(*doc).cover(range);
                }
            }
            match cover {
                Cover::All => true,
                Cover::None => false,
                Cover::Some => match coded.map(|(codes, range)| codes.within(*doc, range)) {
                    Some(Within::Yes) => true,
                    Some(Within::No) => false,
                    Some(Within::Perhaps) | None => self.has(*doc),
                },
            }
        });
        Ok(())
    }

    /// The codes of the column's values, if it has any, and of the range.
    fn coded(
        &self,
        docs: usize,
        range: &RangeInclusive<u64>,
    ) -> tantivy::Result<Option<(&VaFile, CodeRange)>> {
        let codes = self.column.codes(docs, &self.run)?;
        Ok(codes.map(|codes| (codes, codes.range(range))))
    }

    /// Adds the documents from `from` to `to` (at most a block's) that match.
    pub(super) fn list(&self, from: DocId, to: DocId, docs: &mut Vec<DocId>) {
        match &self.values {
            Values::Between(range) => {
                let column = &self.column.column;
                column.get_docids_for_value_range(range.clone(), from..to, docs);
            }
            Values::Among(bits) if self.column.column.get_cardinality() == Cardinality::Full => {
                let mut buffer = [0; DOCS_PER_BLOCK as usize];
                let count = to.saturating_sub(from) as usize;
                if let Some(values) = buffer.get_mut(..count) {
                    self.column.column.values.get_range(u64::from(from), values);
                    let has = |value: u64| u32::try_from(value).is_ok_and(|value| bits.contains(value));
                    let found = (from..to).zip(values).filter(|(_, value)| has(**value));
                    docs.extend(found.map(|(doc, _)| doc));
                }
            }
            Values::Among(_) => docs.extend((from..to).filter(|doc| self.has(*doc))),
        }
    }

    /// All of them in order, each with the same score. `target` is the first document that may be asked for; whether
    /// that one matches is known then, but no more is looked for.
    pub(super) fn scorer(self, target: Option<DocId>, score: Score) -> tantivy::Result<SelectionScorer> {
        let (matches, open) = match target {
            // A rough figure will do: it only decides which clause of several leads.
            None => self.estimate()?,
            Some(_) => (self.max_doc, self.max_doc),
        };
        let mut scorer = SelectionScorer {
            selection: self,
            doc: 0,
            listed: 0..0,
            docs: Vec::with_capacity(DOCS_PER_BLOCK as usize),
            at: 0,
            matches,
            open,
            score,
        };
        if target.is_none() {
            scorer.doc = scorer.find(0);
        }
        Ok(scorer)
    }
}

pub(super) struct SelectionScorer {
    selection: Selection,
    doc: DocId,
    /// The documents of which `docs` has those that match.
    listed: std::ops::Range<DocId>,
    docs: Vec<DocId>,
    at: usize,
    matches: u32,
    open: u32,
    score: Score,
}

impl SelectionScorer {
    /// The first match from `from` on. A search that has to stop finds no more: it will be told.
    fn find(&mut self, from: DocId) -> DocId {
        let mut from = from;
        let mut passed = 0_u32;
        while from < self.selection.max_doc {
            if self.listed.contains(&from) {
                let rest = self.docs.get(self.at..).unwrap_or_default();
                self.at += rest.partition_point(|doc| *doc < from);
                if let Some(doc) = self.docs.get(self.at) {
                    return *doc;
                }
                from = self.listed.end;
                continue;
            }
            passed += 1;
            if passed.is_multiple_of(BLOCKS_PER_CHECK) && self.selection.run.check_inside().is_err() {
                return TERMINATED;
            }
            let behind = behind_block(from).min(self.selection.max_doc);
            match self.selection.cover(from) {
                Ok(Cover::None) => from = behind,
                Ok(Cover::All) => return from,
                Ok(Cover::Some) => {
                    self.docs.clear();
                    self.at = 0;
                    self.selection.list(from, behind, &mut self.docs);
                    self.listed = from..behind;
                }
                Err(error) => {
                    self.selection.leave(error);
                    return TERMINATED;
                }
            }
        }
        TERMINATED
    }
}

impl DocSet for SelectionScorer {
    fn advance(&mut self) -> DocId {
        if self.doc != TERMINATED {
            self.doc = self.find(self.doc + 1);
        }
        self.doc
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc < target {
            self.doc = self.find(target);
        }
        self.doc
    }

    /// Looks at this document alone.
    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        if target >= self.selection.max_doc {
            self.doc = TERMINATED;
            return SeekDangerResult::SeekLowerBound(TERMINATED);
        }
        let found = match self.selection.cover(target) {
            Ok(Cover::All) => true,
            Ok(Cover::Some) => self.selection.has(target),
            Ok(Cover::None) => {
                let behind = behind_block(target);
                let bound = if behind < self.selection.max_doc {
                    behind
                } else {
                    TERMINATED
                };
                return SeekDangerResult::SeekLowerBound(bound);
            }
            Err(error) => {
                self.selection.leave(error);
                return SeekDangerResult::SeekLowerBound(TERMINATED);
            }
        };
        if found {
            self.doc = target;
            return SeekDangerResult::Found;
        }
        SeekDangerResult::SeekLowerBound(target + 1)
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.matches
    }

    /// A value costs about an eighth of a step through a list of documents.
    fn cost(&self) -> u64 {
        u64::from(self.matches) + u64::from(self.open / 8)
    }
}

impl Scorer for SelectionScorer {
    fn score(&mut self) -> Score {
        self.score
    }
}

/// The documents that something selects.
#[derive(Clone, Debug)]
pub(super) struct SelectionQuery(pub(super) Arc<dyn Select>);

impl SelectionQuery {
    fn open(
        &self,
        reader: &SegmentReader,
        target: Option<DocId>,
        boost: Score,
    ) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(match self.0.open(reader)? {
            Opened::Nothing => Box::new(EmptyScorer),
            Opened::Everything => Box::new(AllScorer::new(reader.max_doc())),
            Opened::Documents(documents) => documents.into_scorer(boost)?,
            Opened::Values(selection) => Box::new(selection.scorer(target, boost)?),
        })
    }
}

impl Query for SelectionQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for SelectionQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.open(reader, None, boost)
    }

    /// Doesn't look for a first match: the other clauses of an intersection may be far ahead.
    fn scorer_danger(
        &self,
        reader: &SegmentReader,
        target: DocId,
        boost: Score,
    ) -> tantivy::Result<(SeekDangerResult, Box<dyn Scorer>)> {
        let mut scorer = self.open(reader, Some(target), boost)?;
        let found = scorer.seek_danger(target);
        Ok((found, scorer))
    }

    unexplained!();
}
