//! The values of a segment's documents, as numbers whose order is the values'.

use h3o::{LatLng, Resolution};
use tantivy::columnar::{Column, MonotonicallyMappableToU64, StrColumn};
use tantivy::{DocId, SegmentReader};

use super::Datum;
use crate::geo::GeoPoint;
use crate::layout::{latitude_column, longitude_column};

/// What kind of values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Long,
    Double,
    Boolean,
    Date,
    Keyword,
    Cell(Resolution),
}

/// A value, comparable across segments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Raw {
    /// A number, mapped to a u64 so that the order is kept.
    Number(u64),
    /// A string's bytes.
    Bytes(Vec<u8>),
}

impl Raw {
    /// Bytes that it takes.
    pub(super) fn size(&self) -> usize {
        let text = match self {
            Self::Number(_) => 0,
            Self::Bytes(bytes) => bytes.len(),
        };
        size_of::<Self>() + text
    }

    /// The value as the kind has it.
    pub(super) fn datum(&self, kind: Kind) -> Datum {
        match self {
            Self::Bytes(bytes) => Datum::String(String::from_utf8_lossy(bytes).into_owned()),
            Self::Number(number) => match kind {
                Kind::Long => Datum::Long(i64::from_u64(*number)),
                Kind::Date => Datum::Date(i64::from_u64(*number)),
                Kind::Double => Datum::Double(f64::from_u64(*number)),
                Kind::Boolean => Datum::Boolean(bool::from_u64(*number)),
                Kind::Cell(_) | Kind::Keyword => Datum::String(format!("{number:x}")),
            },
        }
    }
}

/// A field on one segment.
pub(super) enum Values {
    /// No document has a value.
    Nothing,
    Long(Column<i64>),
    Double(Column<f64>),
    Boolean(Column<bool>),
    /// By ordinals of the segment's dictionary.
    Strings(StrColumn),
    Cells {
        latitudes: Column<i64>,
        longitudes: Column<i64>,
        resolution: Resolution,
    },
}

impl Values {
    pub(super) fn open(reader: &SegmentReader, path: &str, kind: Kind) -> tantivy::Result<Self> {
        let columns = reader.fast_fields();
        let opened = match kind {
            Kind::Long | Kind::Date => columns.column_opt::<i64>(path)?.map(Self::Long),
            Kind::Double => columns.column_opt::<f64>(path)?.map(Self::Double),
            Kind::Boolean => columns.column_opt::<bool>(path)?.map(Self::Boolean),
            Kind::Keyword => columns.str(path)?.map(Self::Strings),
            Kind::Cell(resolution) => columns
                .column_opt::<i64>(&latitude_column(path))?
                .zip(columns.column_opt::<i64>(&longitude_column(path))?)
                .map(|(latitudes, longitudes)| Self::Cells {
                    latitudes,
                    longitudes,
                    resolution,
                }),
        };
        Ok(opened.unwrap_or(Self::Nothing))
    }

    /// Adds the values of `doc` to `out`, as many as it has.
    pub(super) fn read(&self, doc: DocId, out: &mut Vec<u64>) {
        match self {
            Self::Nothing => {}
            Self::Long(column) => out.extend(column.values_for_doc(doc).map(|value| value.to_u64())),
            // -0.0 and 0.0 are one value.
            Self::Double(column) => {
                out.extend(column.values_for_doc(doc).map(|value| (value + 0.0).to_u64()));
            }
            Self::Boolean(column) => out.extend(column.values_for_doc(doc).map(|value| value.to_u64())),
            Self::Strings(column) => out.extend(column.term_ords(doc)),
            Self::Cells {
                latitudes,
                longitudes,
                resolution,
            } => {
                let pairs = latitudes.values_for_doc(doc).zip(longitudes.values_for_doc(doc));
                out.extend(
                    pairs
                        .filter_map(|(latitude, longitude)| GeoPoint::from_columns(latitude, longitude))
                        .filter_map(|point| LatLng::new(point.latitude(), point.longitude()).ok())
                        .map(|place| u64::from(place.to_cell(*resolution))),
                );
            }
        }
    }

    /// What the numbers of [`Values::read`] stand for; `numbers` is sorted.
    pub(super) fn raw(&self, numbers: &[u64]) -> tantivy::Result<Vec<Raw>> {
        let Self::Strings(column) = self else {
            return Ok(numbers.iter().copied().map(Raw::Number).collect());
        };
        let mut raw = Vec::with_capacity(numbers.len());
        column
            .dictionary()
            .sorted_ords_to_term_cb(numbers, |bytes| raw.push(Raw::Bytes(bytes.to_vec())))?;
        Ok(raw)
    }
}
