//! The key that decides most comparisons, read for many documents at once.
//!
//! Orders mostly begin with one number, one string or the document's key. Then a column holds what nearly every document
//! fails by as soon as enough better ones are known: reading it in blocks and comparing numbers spares the rest. The
//! column also tells which values are worth looking at first (see [`super::block_max`]), and whether any of a segment is.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tantivy::columnar::Cardinality;
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, SegmentReader};

use super::column::{NumberKind, Pick};
use super::order::{Absent, Key, SortSource, ValueKind};
use super::rank::{self, Rank};
use crate::columns::{ColumnBlock, NumberColumn};
use crate::run::Run;

/// A key of which each document has at most one value: the first that can differ between documents, or the one that decides
/// between those of the same score.
pub(crate) struct Leading {
    /// Which key of the order it is.
    pub(crate) nth: usize,
    /// Absent when no document of the segment has a value.
    column: Option<Arc<NumberColumn>>,
    /// Whether the column's values are ordinals.
    ordinals: bool,
    pub(super) descending: bool,
    /// The rank of documents without a value.
    missing: Rank,
    /// Whether those come last.
    missing_last: bool,
}

impl Leading {
    /// The key `nth` on a segment, if it is of this kind. `ordinals` are the column of a key whose values are strings.
    pub(super) fn open(
        nth: usize,
        key: &Key,
        ordinals: Option<&Arc<NumberColumn>>,
        missing: Rank,
        run: &Run,
        reader: &SegmentReader,
    ) -> tantivy::Result<Option<Self>> {
        let (column, is_ordinal) = match &key.source {
            SortSource::PrimaryKey => (ordinals.cloned(), true),
            SortSource::Values {
                path,
                kind,
                pick: Pick::Only,
                nested: None,
            } => match kind {
                ValueKind::Keyword => (ordinals.cloned(), true),
                ValueKind::Number(NumberKind::Boolean) | ValueKind::Attribute(_) => return Ok(None),
                ValueKind::Number(_) => (run.columns().numbers(reader, path)?, false),
            },
            _ => return Ok(None),
        };
        Ok(Some(Self {
            nth,
            column,
            ordinals: is_ordinal,
            descending: key.descending,
            missing,
            missing_last: key.absent == Absent::Last,
        }))
    }

    /// Puts the documents whose rank `counts` into `ranked`, behind what it holds.
    pub(crate) fn rank_all(
        &self,
        docs: &[DocId],
        ranked: &mut Vec<(Rank, DocId)>,
        counts: impl Fn(Rank) -> bool,
    ) {
        for block in docs.chunks(COLLECT_BLOCK_BUFFER_LEN) {
            let mut buffer = [None; COLLECT_BLOCK_BUFFER_LEN];
            let values = buffer.get_mut(..block.len()).unwrap_or_default();
            if let Some(column) = &self.column {
                column.column.first_vals(block, values);
            }
            // A loop: `extend` by a filter takes a tenth of such a search longer.
            for (doc, value) in block.iter().zip(values) {
                let rank = value.map_or(self.missing, |value| self.rank(value));
                if counts(rank) {
                    ranked.push((rank, *doc));
                }
            }
        }
    }

    fn rank(&self, value: u64) -> Rank {
        let position = match self.ordinals {
            true => rank::of_ordinal(value),
            false => value,
        };
        Rank::among(position, self.descending)
    }

    /// No document of the segment stands before this, if that is known.
    pub(crate) fn edge(&self) -> Option<Rank> {
        if !self.missing_last {
            return None;
        }
        Some(match &self.column {
            None => self.missing,
            Some(column) if self.descending => self.rank(column.column.max_value()),
            Some(column) => self.rank(column.column.min_value()),
        })
    }

    /// The column, if its values can be looked at in slices, best first: documents without one have to come last.
    pub(super) fn sliceable(&self) -> Option<&Arc<NumberColumn>> {
        let single =
            |column: &&Arc<NumberColumn>| column.column.get_cardinality() != Cardinality::Multivalued;
        self.column.as_ref().filter(single).filter(|_| self.missing_last)
    }

    /// The ranks of the best and of the worst value of a block; `None` when none of its documents has a value.
    pub(super) fn ranks_of(&self, block: ColumnBlock) -> Option<(Rank, Rank)> {
        if block.is_empty() {
            return None;
        }
        let (lowest, highest) = (self.rank(block.lowest), self.rank(block.highest));
        Some((lowest.min(highest), lowest.max(highest)))
    }

    /// No document from `doc` on stands before this, if that is known.
    pub(super) fn edge_from(&self, doc: DocId, run: &Run) -> tantivy::Result<Option<Rank>> {
        if self.column.is_none() {
            return Ok(Some(self.missing));
        }
        let Some(column) = self.sliceable() else {
            return Ok(None);
        };
        let best = self.ranks_of(column.blocks(run)?.onwards(doc));
        Ok(Some(best.map_or(self.missing, |(best, _)| best)))
    }

    /// The values from `after` (or the best) to `limit`, and perhaps a few more; `None` when documents without a value
    /// lie before the limit.
    pub(super) fn values_between(&self, after: Option<Rank>, limit: Rank) -> Option<RangeInclusive<u64>> {
        // A string that the segment doesn't have lies between two ordinals: one too many is offered, and refused.
        let value = |rank: Rank| {
            rank.value(self.descending)
                .map(|position| if self.ordinals { position / 4 } else { position })
        };
        let worst = value(limit)?;
        let best = after.and_then(value);
        Some(if self.descending {
            worst..=best.unwrap_or(u64::MAX)
        } else {
            best.unwrap_or(0)..=worst
        })
    }
}
