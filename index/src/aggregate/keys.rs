//! The groups of a block of documents.

use tantivy::query::{Scorer, Weight};
use tantivy::{DocId, SegmentReader};

use super::column::{Buffer, Raw, ValueBlock, Values};
use super::histogram::{IntervalBounds, Intervals, Recent};
use super::node::{By, Range};
use crate::doc_walk::go_to;
use crate::geo::GeoPoint;
use crate::points::Points;
use crate::run::Run;

/// What documents are grouped by, on one segment.
pub(super) enum GroupKeys<'a> {
    Values(Values),
    Intervals {
        values: Values,
        intervals: &'a Intervals,
        bounds: IntervalBounds,
        recent: Recent,
    },
    Ranges {
        values: Values,
        ranges: &'a [Range],
    },
    Distances {
        points: Option<Points>,
        origin: GeoPoint,
        ranges: &'a [(f64, f64)],
    },
    Filters(Box<Filters<'a>>),
}

/// Filters on one segment. Their scorers walk only forward.
pub(super) struct Filters<'a> {
    weights: &'a [Box<dyn Weight>],
    reader: SegmentReader,
    scorers: Vec<Box<dyn Scorer>>,
    /// The last document that they were asked for.
    last: DocId,
}

impl<'a> Filters<'a> {
    fn open(weights: &'a [Box<dyn Weight>], reader: &SegmentReader) -> tantivy::Result<Self> {
        let scorers = weights.iter().map(|filter| filter.scorer(reader, 1.0));
        Ok(Self {
            weights,
            reader: reader.clone(),
            scorers: scorers.collect::<tantivy::Result<_>>()?,
            last: 0,
        })
    }

    /// Those that stand at or before the first of `docs`, which ascend. A document that is in more groups than a block has rows comes in
    /// several blocks, and its objects with it.
    fn at(&mut self, docs: &[DocId]) -> tantivy::Result<&mut [Box<dyn Scorer>]> {
        if docs.first().is_some_and(|first| *first < self.last) {
            *self = Self::open(self.weights, &self.reader)?;
        }
        self.last = docs.last().copied().unwrap_or(self.last);
        Ok(&mut self.scorers)
    }
}

impl<'a> GroupKeys<'a> {
    /// `filters` are those of a grouping by filters.
    pub(super) fn open(
        by: &'a By,
        filters: &'a [Box<dyn Weight>],
        reader: &SegmentReader,
        run: &Run,
    ) -> tantivy::Result<Self> {
        Ok(match by {
            By::Value(field) => Self::Values(Values::open(reader, field, run)?),
            By::Intervals {
                field,
                intervals,
                bounds,
            } => Self::Intervals {
                values: Values::open(reader, field, run)?,
                intervals,
                bounds: *bounds,
                recent: Recent::default(),
            },
            By::Ranges { field, ranges } => Self::Ranges {
                values: Values::open(reader, field, run)?,
                ranges,
            },
            By::Distances { path, origin, ranges } => Self::Distances {
                points: Points::open(reader, path)?,
                origin: *origin,
                ranges,
            },
            By::Filters(_) => Self::Filters(Box::new(Filters::open(filters, reader)?)),
        })
    }

    /// The lowest and the highest key, where they are known.
    pub(super) fn span(&self) -> Option<(u64, u64)> {
        let up_to = |groups: usize| (0, (groups as u64).saturating_sub(1));
        match self {
            Self::Values(values) => values.span(),
            Self::Intervals { .. } => None,
            Self::Ranges { ranges, .. } => Some(up_to(ranges.len())),
            Self::Distances { ranges, .. } => Some(up_to(ranges.len())),
            Self::Filters(filters) => Some(up_to(filters.weights.len())),
        }
    }

    /// The values, where each key is one.
    pub(super) fn values(&self) -> Option<&Values> {
        match self {
            Self::Values(values) => Some(values),
            _ => None,
        }
    }

    /// The key that has a name, if it may occur.
    pub(super) fn number_of(&self, name: &Raw) -> tantivy::Result<Option<u64>> {
        match self {
            Self::Values(values) => values.number_of(name),
            _ => Ok(match name {
                Raw::Number(number) => Some(*number),
                Raw::Bytes(_) => None,
            }),
        }
    }

    /// The keys of documents, in the order of the documents; each key of a document comes once.
    pub(super) fn read<'b>(
        &mut self,
        docs: &'b [DocId],
        slots: &'b [u32],
        room: &'b mut [Buffer; 2],
    ) -> tantivy::Result<ValueBlock<'b>> {
        let [room, out] = room;
        out.clear();
        match self {
            Self::Values(values) => return Ok(values.read(docs, slots, true, room)),
            Self::Intervals {
                values,
                intervals,
                bounds,
                recent,
            } => {
                let block = values.read(docs, slots, true, room);
                let mut before = None;
                for ((value, doc), slot) in block.values.iter().zip(block.docs).zip(block.slots) {
                    let key = recent.key(intervals, *value);
                    let now = Some((key, *doc, *slot));
                    if bounds.contains(key) && before != now {
                        before = now;
                        out.push(key, *doc, *slot);
                    }
                }
            }
            Self::Ranges { values, ranges } => {
                let block = values.read(docs, slots, true, room);
                let mut at = 0;
                while let (Some(doc), Some(slot)) = (block.docs.get(at), block.slots.get(at)) {
                    let same = block.docs.iter().zip(block.slots).skip(at);
                    let length = same
                        .take_while(|(other, around)| (*other, *around) == (doc, slot))
                        .count();
                    let own = block.values.get(at..at + length).unwrap_or_default();
                    for (nth, range) in ranges.iter().enumerate() {
                        if own.iter().any(|value| range.holds(*value)) {
                            out.push(nth as u64, *doc, *slot);
                        }
                    }
                    at += length;
                }
            }
            Self::Distances {
                points,
                origin,
                ranges,
            } => {
                let Some(points) = points else {
                    return Ok(out.block());
                };
                for (doc, slot) in docs.iter().zip(slots) {
                    let distances = points.of(*doc).map(|point| origin.distance_meters(point));
                    let Some(nearest) = distances.min_by(f64::total_cmp) else {
                        continue;
                    };
                    for (nth, (from, to)) in ranges.iter().enumerate() {
                        if *from <= nearest && nearest < *to {
                            out.push(nth as u64, *doc, *slot);
                        }
                    }
                }
            }
            Self::Filters(filters) => {
                let scorers = filters.at(docs)?;
                for (doc, slot) in docs.iter().zip(slots) {
                    for (nth, filter) in scorers.iter_mut().enumerate() {
                        if go_to(filter, *doc) == *doc {
                            out.push(nth as u64, *doc, *slot);
                        }
                    }
                }
            }
        }
        Ok(out.block())
    }

    /// What keys, which ascend, are called in every segment.
    pub(super) fn names(&self, keys: &[u64]) -> tantivy::Result<Vec<Raw>> {
        match self {
            Self::Values(values) if values.has_strings() => {
                let mut names = Vec::with_capacity(keys.len());
                values.each_string(keys, |bytes| names.push(Raw::Bytes(bytes.to_vec())))?;
                Ok(names)
            }
            _ => Ok(keys.iter().copied().map(Raw::Number).collect()),
        }
    }
}

impl Range {
    fn holds(&self, value: u64) -> bool {
        (self.low..self.high).contains(&u128::from(value))
    }
}
