//! The key that decides most comparisons, read for many documents at once.
//!
//! Orders mostly begin with one number, one string or the document's key. Then a column holds what nearly every document
//! fails by as soon as enough better ones are known: reading it in blocks and comparing numbers spares the rest. The
//! column also tells which values are worth looking at first (see [`super::probe`]), and whether any of a segment is.

use std::ops::RangeInclusive;

use tantivy::columnar::{Cardinality, Column, ColumnType};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, SegmentReader};

use super::column::{NumberKind, Pick};
use super::order::{Absent, Key, Source};
use super::rank::{self, Rank};

/// The first key that can differ between documents, where each document has at most one value of it.
pub(super) struct Leading {
    /// Which key of the order it is.
    pub(super) nth: usize,
    /// Absent when no document of the segment has a value.
    column: Option<Column<u64>>,
    /// Whether the column's values are ordinals.
    ordinals: bool,
    descending: bool,
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
        ordinals: Option<&Column<u64>>,
        missing: Rank,
        reader: &SegmentReader,
    ) -> tantivy::Result<Option<Self>> {
        let (column, is_ordinal) = match &key.source {
            Source::Numbers {
                path,
                kind: NumberKind::Long | NumberKind::Date | NumberKind::Double,
                pick: Pick::Only,
                nested: None,
            } => {
                let types = [ColumnType::I64, ColumnType::F64];
                let column = reader.fast_fields().u64_lenient_for_type(Some(&types), path)?;
                (column.map(|(column, _)| column), false)
            }
            Source::Strings {
                pick: Pick::Only,
                nested: None,
                ..
            }
            | Source::PrimaryKey => (ordinals.cloned(), true),
            Source::Score | Source::Numbers { .. } | Source::Strings { .. } | Source::Distance { .. } => {
                return Ok(None);
            }
        };
        Ok(Some(Self {
            nth,
            column: column.filter(|column| column.values.num_vals() > 0),
            ordinals: is_ordinal,
            descending: key.descending,
            missing,
            missing_last: key.absent == Absent::Last,
        }))
    }

    /// The ranks of up to a block of documents.
    pub(super) fn ranks(&self, docs: &[DocId]) -> [Rank; COLLECT_BLOCK_BUFFER_LEN] {
        let mut ranks = [self.missing; COLLECT_BLOCK_BUFFER_LEN];
        let mut values = [None; COLLECT_BLOCK_BUFFER_LEN];
        if let (Some(column), Some(values)) = (&self.column, values.get_mut(..docs.len())) {
            column.first_vals(docs, values);
        }
        for (rank, value) in ranks.iter_mut().zip(values) {
            if let Some(value) = value {
                *rank = self.rank(value);
            }
        }
        ranks
    }

    /// The rank of a value of the column.
    fn rank(&self, value: u64) -> Rank {
        let position = if self.ordinals {
            rank::of_ordinal(value)
        } else {
            value
        };
        Rank::among(position, self.descending)
    }

    /// No document of the segment stands before this, if that is known.
    pub(super) fn edge(&self) -> Option<Rank> {
        if !self.missing_last {
            return None;
        }
        Some(match &self.column {
            None => self.missing,
            Some(column) if self.descending => self.rank(column.max_value()),
            Some(column) => self.rank(column.min_value()),
        })
    }

    /// The column, if its values can be looked at in slices, best first: documents without one have to come last.
    pub(super) fn sliceable(&self) -> Option<&Column<u64>> {
        let single = |column: &&Column<u64>| column.get_cardinality() != Cardinality::Multivalued;
        self.column.as_ref().filter(single).filter(|_| self.missing_last)
    }

    /// Values from the front of the order on, behind `after` as far as that is known, up to those of `last`; and the
    /// rank up to which these are all.
    pub(super) fn slice(&self, after: Option<Rank>, last: Rank) -> Option<(RangeInclusive<u64>, Rank)> {
        // A string that the segment doesn't have lies between two ordinals: one too many is offered, and refused.
        let value = |rank: Rank| {
            rank.value(self.descending)
                .map(|position| if self.ordinals { position / 4 } else { position })
        };
        let last_value = value(last)?;
        let first = after.and_then(value);
        let range = if self.descending {
            last_value..=first.unwrap_or(u64::MAX)
        } else {
            first.unwrap_or(0)..=last_value
        };
        Some((range, last))
    }

    /// The rank of every so many values of `column`, sorted; at most about `most`.
    pub(super) fn sample(&self, column: &Column<u64>, most: u32) -> Vec<Rank> {
        let values = column.values.num_vals();
        let step = values.div_ceil(most.max(1)).max(1);
        let sampled = (0..values).step_by(step as usize);
        let mut ranks: Vec<Rank> = sampled.map(|row| self.rank(column.values.get_val(row))).collect();
        ranks.sort_unstable();
        ranks
    }
}
