//! The points of a segment's documents, from their columns.

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

    /// Whether every document has at most one point.
    pub(crate) fn at_most_one(&self) -> bool {
        self.latitudes.get_cardinality() != Cardinality::Multivalued
    }

    pub(crate) fn of(&self, doc: DocId) -> impl Iterator<Item = GeoPoint> + '_ {
        let places = self
            .latitudes
            .values_for_doc(doc)
            .zip(self.longitudes.values_for_doc(doc));
        places.filter_map(|(latitude, longitude)| GeoPoint::from_columns(latitude, longitude))
    }
}
