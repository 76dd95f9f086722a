//! The values of a segment's documents, as numbers whose order is the values', read a block at a time.

use std::sync::Arc;

use h3o::Resolution;
use tantivy::columnar::{BytesColumn, Cardinality, Column, MonotonicallyMappableToU64};
use tantivy::{DocId, SegmentReader};

use super::node::FieldOf;
use crate::attribute;
use crate::columns::{GeoCells, StringColumn, cell};
use crate::geo::{GeoPoint, geohash};
use crate::plan::ordinals_between;
use crate::points::Points;
use crate::result::{Datum, SortValue};
use crate::run::Run;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Long,
    Double,
    Boolean,
    Date,
    Keyword,
    /// An attribute: its type is that of each value.
    Attribute,
    /// The H3 cell of a point.
    Cell(Resolution),
    /// The geohash of a point, of so many characters.
    GeoHash(u8),
    /// A point: its two coordinates side by side.
    Point,
}

/// A value, comparable across segments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Raw {
    /// A number, mapped to a u64 so that the order is kept.
    Number(u64),
    Bytes(Vec<u8>),
}

impl Raw {
    /// Bytes that it takes beyond its own size.
    pub(super) fn behind(&self) -> usize {
        match self {
            Self::Number(_) => 0,
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// The value as the kind has it.
    pub(super) fn datum(&self, kind: Kind) -> Datum {
        match self {
            Self::Bytes(bytes) if kind == Kind::Attribute => attribute_datum(bytes),
            Self::Bytes(bytes) => Datum::String(String::from_utf8_lossy(bytes).into_owned()),
            Self::Number(number) => match kind {
                Kind::Long => Datum::Long(i64::from_u64(*number)),
                Kind::Date => Datum::Date(i64::from_u64(*number)),
                Kind::Double => Datum::Double(f64::from_u64(*number)),
                Kind::Boolean => Datum::Boolean(bool::from_u64(*number)),
                Kind::GeoHash(characters) => Datum::String(geohash::name(*number, characters)),
                Kind::Cell(_) | Kind::Keyword | Kind::Attribute | Kind::Point => {
                    Datum::String(format!("{number:x}"))
                }
            },
        }
    }
}

fn attribute_datum(term: &[u8]) -> Datum {
    match attribute::value(&String::from_utf8_lossy(term)) {
        Some(SortValue::Long(number)) => Datum::Long(number),
        Some(SortValue::Double(number)) => Datum::Double(number),
        Some(SortValue::Boolean(flag)) => Datum::Boolean(flag),
        Some(SortValue::Date(nanos)) => Datum::Date(nanos),
        Some(SortValue::String(text)) => Datum::String(text),
        Some(SortValue::Bytes(bytes) | SortValue::Key(bytes)) => Datum::Bytes(bytes),
        Some(SortValue::Missing) | None => Datum::Bytes(term.to_vec()),
    }
}

/// Values of documents, each with its document and the number of the document's group: three lists of one length.
#[derive(Clone, Copy)]
pub(super) struct ValueBlock<'b> {
    pub(super) values: &'b [u64],
    pub(super) docs: &'b [DocId],
    pub(super) slots: &'b [u32],
}

/// Rows of a [`Buffer`] that are kept for the next block: an aggregation may be one of hundreds.
const KEPT_ROWS: usize = 1_024;

/// Room for a [`ValueBlock`].
#[derive(Default)]
pub(super) struct Buffer {
    pub(super) values: Vec<u64>,
    pub(super) docs: Vec<DocId>,
    pub(super) slots: Vec<u32>,
    options: Vec<Option<u64>>,
}

impl Buffer {
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.docs.clear();
        self.slots.clear();
    }

    /// Gives memory back that a large block took.
    pub(super) fn trim(&mut self) {
        if self.docs.capacity().max(self.values.capacity()) > KEPT_ROWS {
            *self = Self::default();
        }
    }

    pub(super) fn push(&mut self, value: u64, doc: DocId, slot: u32) {
        self.values.push(value);
        self.docs.push(doc);
        self.slots.push(slot);
    }

    pub(super) fn block(&self) -> ValueBlock<'_> {
        self.block_of(&self.docs, &self.slots)
    }

    /// The values, one of each of these documents.
    fn block_of<'b>(&'b self, docs: &'b [DocId], slots: &'b [u32]) -> ValueBlock<'b> {
        let values = &self.values;
        ValueBlock { values, docs, slots }
    }

    /// Sorts the values from `first` on, which are of one document, and keeps each once.
    fn different(&mut self, first: usize) {
        let Some(own) = self.values.get_mut(first..) else {
            return;
        };
        own.sort_unstable();
        let mut kept = first;
        for at in first..self.values.len() {
            let value = self.values.get(at).copied().unwrap_or_default();
            if kept == first || self.values.get(kept - 1) != Some(&value) {
                if let Some(place) = self.values.get_mut(kept) {
                    *place = value;
                }
                kept += 1;
            }
        }
        self.values.truncate(kept);
        self.docs.truncate(kept);
        self.slots.truncate(kept);
    }
}

pub(super) struct Values {
    column: Source,
    /// What the strings behind ordinals are.
    strings: Option<Arc<StringColumn>>,
    /// What documents without a value have.
    missing: Option<u64>,
    /// The string behind the first number that is no ordinal.
    stranger: Option<Vec<u8>>,
}

enum Source {
    /// No document has a value.
    Nothing,
    /// Every document has one.
    Full(Column<u64>),
    Column(Column<u64>),
    /// Those values that lie in a range.
    Among(Column<u64>, std::ops::Range<u64>),
    /// Numbers that are made of points, or kept cells.
    Points(Points, Kind, Option<Arc<GeoCells>>),
}

impl Values {
    pub(super) fn open(reader: &SegmentReader, field: &FieldOf, run: &Run) -> tantivy::Result<Self> {
        let columns = run.columns();
        let mut strings = None;
        let column = match field.kind {
            Kind::Long | Kind::Date | Kind::Double | Kind::Boolean => columns
                .numbers(reader, &field.path)?
                .map(|numbers| numbers.column.clone()),
            Kind::Keyword | Kind::Attribute => {
                strings = columns.strings(reader, &field.path)?;
                strings.as_ref().map(|strings| strings.column.ords().clone())
            }
            Kind::Cell(_) | Kind::GeoHash(_) | Kind::Point => None,
        };
        let among = match (&field.attribute, &strings) {
            (Some(name), Some(strings)) => {
                let (lower, upper) = attribute::bounds(name);
                Some(ordinals_between(&strings.column, &lower, &upper)?)
            }
            _ => None,
        };
        let column = match (column, field.kind) {
            (Some(column), Kind::Attribute) => Source::Among(column, among.unwrap_or_default()),
            (Some(column), _) if column.get_cardinality() == Cardinality::Full => Source::Full(column),
            (Some(column), _) => Source::Column(column),
            (None, Kind::Cell(_) | Kind::GeoHash(_) | Kind::Point) => {
                match Points::open(reader, &field.path)? {
                    None => Source::Nothing,
                    Some(points) => {
                        let cells = match field.kind {
                            Kind::Cell(resolution) => columns.cells(reader, &field.path, &points, resolution),
                            _ => None,
                        };
                        Source::Points(points, field.kind, cells)
                    }
                }
            }
            (None, _) => Source::Nothing,
        };
        let mut stranger = None;
        let missing = match &field.missing {
            None => None,
            Some(Raw::Number(number)) => Some(*number),
            Some(Raw::Bytes(bytes)) => {
                let known = match &strings {
                    Some(strings) => strings.column.dictionary().term_ord(bytes)?,
                    None => None,
                };
                let beyond = strings
                    .as_ref()
                    .map_or(0, |strings| strings.column.num_terms() as u64);
                if known.is_none() {
                    stranger = Some(bytes.clone());
                }
                Some(known.unwrap_or(beyond))
            }
        };
        Ok(Self {
            column,
            strings,
            missing,
            stranger,
        })
    }

    /// The lowest and the highest number, as far as the columns tell at once.
    pub(super) fn span(&self) -> Option<(u64, u64)> {
        let (low, high) = match (&self.column, &self.strings) {
            (Source::Among(_, among), _) => (among.start, among.end.saturating_sub(1).max(among.start)),
            (Source::Full(_) | Source::Column(_), Some(strings)) => {
                (0, (strings.column.num_terms() as u64).saturating_sub(1))
            }
            (Source::Full(column) | Source::Column(column), None) if column.values.num_vals() > 0 => {
                (column.min_value(), column.max_value())
            }
            _ => {
                let missing = self.missing?;
                (missing, missing)
            }
        };
        let missing = self.missing.unwrap_or(low);
        Some((low.min(missing), high.max(missing)))
    }

    /// How many different values there are at most.
    pub(super) fn most(&self) -> usize {
        let values = match &self.column {
            Source::Nothing | Source::Points(..) => 0,
            Source::Full(column) | Source::Column(column) | Source::Among(column, _) => {
                column.values.num_vals() as usize
            }
        };
        let keys = self
            .span()
            .map_or(0, |(lowest, highest)| (highest - lowest).saturating_add(1));
        values
            .saturating_add(usize::from(self.missing.is_some()))
            .min(usize::try_from(keys).unwrap_or(usize::MAX))
    }

    /// The number of a value by its name, if it occurs.
    pub(super) fn number_of(&self, name: &Raw) -> tantivy::Result<Option<u64>> {
        Ok(match (name, &self.strings) {
            (Raw::Number(number), _) => Some(*number),
            (Raw::Bytes(bytes), _) if self.stranger.as_ref() == Some(bytes) => self.missing,
            (Raw::Bytes(bytes), Some(strings)) => strings.column.dictionary().term_ord(bytes)?,
            (Raw::Bytes(_), None) => None,
        })
    }

    /// The values of documents, which may repeat. With `different` each value of a document comes once, in order.
    pub(super) fn read<'b>(
        &self,
        docs: &'b [DocId],
        slots: &'b [u32],
        different: bool,
        buffer: &'b mut Buffer,
    ) -> ValueBlock<'b> {
        match &self.column {
            Source::Full(column) => {
                buffer.values.clear();
                buffer.values.resize(docs.len(), 0);
                match docs {
                    [first, .., last]
                        if (*last as usize).checked_sub(*first as usize) == Some(docs.len() - 1)
                            && docs.is_sorted_by(|one, other| one < other) =>
                    {
                        column.values.get_range(u64::from(*first), &mut buffer.values);
                    }
                    _ => column.values.get_vals(docs, &mut buffer.values),
                }
                return buffer.block_of(docs, slots);
            }
            Source::Nothing => {
                buffer.clear();
                if let Some(missing) = self.missing {
                    buffer.values.resize(docs.len(), missing);
                    return buffer.block_of(docs, slots);
                }
            }
            Source::Column(column) if column.get_cardinality() == Cardinality::Optional => {
                buffer.clear();
                buffer.options.clear();
                buffer.options.resize(docs.len(), None);
                column.first_vals(docs, &mut buffer.options);
                for ((value, doc), slot) in buffer.options.iter().zip(docs).zip(slots) {
                    if let Some(value) = value.or(self.missing) {
                        buffer.values.push(value);
                        buffer.docs.push(*doc);
                        buffer.slots.push(*slot);
                    }
                }
            }
            Source::Column(column) => self.several(docs, slots, different, buffer, |doc, out| {
                out.extend(column.values_for_doc(doc));
            }),
            Source::Among(column, among) => self.several(docs, slots, different, buffer, |doc, out| {
                out.extend(column.values_for_doc(doc).filter(|value| among.contains(value)));
            }),
            Source::Points(points, kind, cells) => {
                let read = |row| match cells {
                    Some(cells) => cells.at(row),
                    None => number(points.at(row)?, *kind),
                };
                if points.cardinality() == Cardinality::Full {
                    buffer.values.clear();
                    buffer.values.extend(docs.iter().filter_map(|doc| read(*doc)));
                    if buffer.values.len() == docs.len() {
                        return buffer.block_of(docs, slots);
                    }
                }
                self.several(docs, slots, different, buffer, |doc, out| {
                    out.extend(points.rows(doc).filter_map(read));
                });
            }
        }
        buffer.block()
    }

    fn several(
        &self,
        docs: &[DocId],
        slots: &[u32],
        different: bool,
        buffer: &mut Buffer,
        read: impl Fn(DocId, &mut Vec<u64>),
    ) {
        buffer.clear();
        for (doc, slot) in docs.iter().zip(slots) {
            let first = buffer.values.len();
            read(*doc, &mut buffer.values);
            if buffer.values.len() == first {
                buffer.values.extend(self.missing);
            }
            buffer.docs.resize(buffer.values.len(), *doc);
            buffer.slots.resize(buffer.values.len(), *slot);
            if different && buffer.values.len() > first + 1 {
                buffer.different(first);
            }
        }
    }

    /// Whether numbers are ordinals of strings.
    pub(super) fn has_strings(&self) -> bool {
        self.strings.is_some() || self.stranger.is_some()
    }

    /// Gives each of `numbers`, which ascend, what it stands for, in that order.
    pub(super) fn each_string(&self, numbers: &[u64], mut take: impl FnMut(&[u8])) -> tantivy::Result<()> {
        let known = self.strings().map_or(0, |column| column.num_terms() as u64);
        let split = numbers.partition_point(|number| *number < known);
        let (inside, outside) = numbers.split_at(split);
        if let Some(strings) = self.strings.as_ref().filter(|_| !inside.is_empty()) {
            strings.each_string(inside, &mut take)?;
        }
        for _ in outside {
            take(self.stranger.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    /// The dictionary behind ordinals.
    pub(super) fn strings(&self) -> Option<&BytesColumn> {
        self.strings.as_ref().map(|strings| &strings.column)
    }

    /// The number of a string that documents without a value have, though the dictionary lacks it.
    pub(super) fn stranger(&self) -> Option<(u64, &[u8])> {
        self.missing.zip(self.stranger.as_deref())
    }
}

fn number(point: GeoPoint, kind: Kind) -> Option<u64> {
    match kind {
        Kind::Cell(resolution) => cell(point, resolution),
        Kind::GeoHash(characters) => Some(geohash::of_point(point, characters)),
        _ => {
            let (latitude, longitude) = (point.lat_e7.cast_unsigned(), point.lon_e7.cast_unsigned());
            Some(u64::from(latitude) << 32 | u64::from(longitude))
        }
    }
}

/// The point of a number that [`Kind::Point`] made.
pub(super) fn point_of_number(number: u64) -> GeoPoint {
    let (latitude, longitude) = ((number >> 32) as u32, number as u32);
    GeoPoint::from_units(latitude.cast_signed(), longitude.cast_signed())
}
