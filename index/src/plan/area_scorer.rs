//! Documents with a point in an area: those of the cells inside it, and those of the cells at its boundary of which the
//! coordinates say so.

use std::sync::Arc;

use tantivy::columnar::Column;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::Field;
use tantivy::{DocId, Score, SegmentReader, Term};

use super::gathered::Gathered;
use super::no_match;
use super::verify::{Check, Verify};
use crate::geo::{Area, Cover, GeoPoint};
use crate::layout::{latitude_column, longitude_column};

/// Whether a point of a document lies in an area.
#[derive(Clone, Debug)]
pub(super) struct InArea {
    path: String,
    area: Arc<Area>,
}

impl InArea {
    /// In `area`, for points of the field at `path`.
    pub(super) fn new(path: &str, area: Area) -> Self {
        Self {
            path: path.to_owned(),
            area: Arc::new(area),
        }
    }
}

impl Verify for InArea {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Check> {
        let columns = reader.fast_fields();
        let latitudes: Option<Column<i64>> = columns.column_opt(&latitude_column(&self.path))?;
        let longitudes: Option<Column<i64>> = columns.column_opt(&longitude_column(&self.path))?;
        let (Some(latitudes), Some(longitudes)) = (latitudes, longitudes) else {
            return Ok(Box::new(|_| false));
        };
        let area = Arc::clone(&self.area);
        Ok(Box::new(move |doc| {
            latitudes
                .values_for_doc(doc)
                .zip(longitudes.values_for_doc(doc))
                .any(|(latitude, longitude)| {
                    GeoPoint::from_columns(latitude, longitude).is_some_and(|point| area.contains(point))
                })
        }))
    }
}

/// The documents with a point in an area that cells cover.
#[derive(Clone, Debug)]
pub(super) struct AreaQuery {
    cells: Field,
    cover: Arc<Cover>,
    inside: InArea,
}

impl AreaQuery {
    pub(super) fn new(cells: Field, cover: Cover, inside: InArea) -> Self {
        Self {
            cells,
            cover: Arc::new(cover),
            inside,
        }
    }
}

impl Query for AreaQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(AreaWeight(self.clone())))
    }
}

struct AreaWeight(AreaQuery);

impl Weight for AreaWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let AreaQuery { cells, cover, inside } = &self.0;
        let index = reader.inverted_index(*cells)?;
        let mut gathered = Gathered::new(reader.max_doc());
        for cell in &cover.accepted {
            if let Some(term) = index.get_term_info(&Term::from_field_u64(*cells, *cell))? {
                gathered.insert_term(&index, &term, |_| true)?;
            }
        }
        let mut check = inside.open(reader)?;
        for cell in &cover.to_verify {
            if let Some(term) = index.get_term_info(&Term::from_field_u64(*cells, *cell))? {
                gathered.insert_term(&index, &term, &mut check)?;
            }
        }
        Ok(gathered.into_scorer(boost))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        if !(self.0.inside.open(reader)?)(doc) {
            return Err(no_match(doc));
        }
        Ok(Explanation::new("area", 1.0))
    }
}
