//! The points of a segment's documents, from their columns.

use std::ops::Range;

use tantivy::columnar::{Cardinality, Column};
use tantivy::{DocId, SegmentReader};

use crate::geo::GeoPoint;
use crate::layout::{latitude_column, longitude_column};

/// The columns of a GEO_POINT on one segment.
#[derive(Clone)]
pub(crate) struct Points {
    latitudes: Column<i64>,
    longitudes: Column<i64>,
}

impl Points {
    /// The points of the field at `path`; `None` when no document of the segment has one.
    pub(crate) fn open(reader: &SegmentReader, path: &str) -> tantivy::Result<Option<Self>> {
        let columns = reader.fast_fields();
        let latitudes = columns.column_opt::<i64>(&latitude_column(path))?;
        let longitudes = columns.column_opt::<i64>(&longitude_column(path))?;
        Ok(latitudes.zip(longitudes).map(|(latitudes, longitudes)| Self {
            latitudes,
            longitudes,
        }))
    }

    /// How many points documents have. Where each has one, its row is the document's number.
    pub(crate) fn cardinality(&self) -> Cardinality {
        self.latitudes.get_cardinality()
    }

    pub(crate) fn of(&self, doc: DocId) -> impl Iterator<Item = GeoPoint> + '_ {
        self.rows(doc).filter_map(|row| self.at(row))
    }

    /// How many points there are of all documents.
    pub(crate) fn count(&self) -> u32 {
        self.latitudes.values.num_vals()
    }

    /// The rows of a document's points: numbers from 0 to [`Self::count`].
    pub(crate) fn rows(&self, doc: DocId) -> Range<u32> {
        self.latitudes.index.value_row_ids(doc)
    }

    /// The point of a row.
    pub(crate) fn at(&self, row: u32) -> Option<GeoPoint> {
        let (latitudes, longitudes) = (&self.latitudes.values, &self.longitudes.values);
        GeoPoint::from_columns(latitudes.get_val(row), longitudes.get_val(row))
    }
}
