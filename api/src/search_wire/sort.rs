//! The order of hits.

use souk_chassis::status::FieldPath;
use souk_index::limits::MAX_SORT_POINTS;
use souk_index::{ArrayMode, Missing, NestedSort, Sort};
use souk_proto::search::v1::{self as pb, field_sort, sort::Kind};

use super::reader::Reader;
use crate::wire::query_value;

impl Reader<'_> {
    /// Reads one key of an order; `None` comes with a violation.
    pub(super) fn sort(&mut self, sort: &pb::Sort, path: &FieldPath) -> Option<Sort> {
        match &sort.kind {
            None => {
                let message = "needs one of the kinds of Sort, for example field";
                self.violations.push(path, "FIELD_REQUIRED", message);
                None
            }
            Some(Kind::Field(field)) => self.field_sort(field, &path.field("field")),
            Some(Kind::Score(score)) => Some(Sort::Score {
                ascending: score.ascending,
            }),
            Some(Kind::PrimaryKey(key)) => Some(Sort::PrimaryKey {
                descending: key.descending,
            }),
            Some(Kind::GeoDistance(distance)) => self.distance_sort(distance, &path.field("geo_distance")),
        }
    }

    fn field_sort(&mut self, sort: &pb::FieldSort, at: &FieldPath) -> Option<Sort> {
        let field = self.name(&sort.field, at, "field");
        let mode = self
            .enumeration(sort.mode, &at.field("mode"))
            .map(|mode| match mode {
                pb::SortMode::Unspecified => None,
                pb::SortMode::Min => Some(ArrayMode::Min),
                pb::SortMode::Max => Some(ArrayMode::Max),
                pb::SortMode::Avg => Some(ArrayMode::Avg),
                pb::SortMode::Sum => Some(ArrayMode::Sum),
            });
        let missing = self.missing(sort.missing.as_ref(), at);
        let nested = match &sort.nested {
            None => Some(None),
            Some(nested) => self.nested_sort(nested, &at.field("nested")).map(Some),
        };
        Some(Sort::Field {
            field: field?,
            descending: sort.descending,
            mode: mode?,
            missing: missing?,
            nested: nested?,
        })
    }

    fn missing(&mut self, missing: Option<&field_sort::Missing>, at: &FieldPath) -> Option<Missing> {
        match missing {
            None => Some(Missing::Last),
            Some(field_sort::Missing::MissingOrder(order)) => {
                let order = self.enumeration(*order, &at.field("missing_order"))?;
                Some(match order {
                    pb::MissingOrder::First => Missing::First,
                    pb::MissingOrder::Unspecified | pb::MissingOrder::Last => Missing::Last,
                })
            }
            Some(field_sort::Missing::MissingValue(value)) => {
                query_value(Some(value), at.field("missing_value"), &mut self.violations).map(Missing::Value)
            }
        }
    }

    fn nested_sort(&mut self, nested: &pb::NestedSort, at: &FieldPath) -> Option<NestedSort> {
        let path = self.name(&nested.path, at, "path");
        let filter = match &nested.filter {
            None => Some(None),
            Some(filter) => self.tree(filter, &at.field("filter")).map(Some),
        };
        Some(NestedSort {
            path: path?,
            filter: filter?,
        })
    }

    fn distance_sort(&mut self, sort: &pb::GeoDistanceSort, at: &FieldPath) -> Option<Sort> {
        let field = self.name(&sort.field, at, "field");
        let path = at.field("points");
        if sort.points.is_empty() {
            let message = format!("is empty, 1 to {MAX_SORT_POINTS} points are needed");
            self.violations.push(path, "FIELD_REQUIRED", message);
            return None;
        }
        if sort.points.len() > MAX_SORT_POINTS {
            self.limit(path, "MAX_SORT_POINTS", MAX_SORT_POINTS, sort.points.len());
            return None;
        }
        let points = self.points(&sort.points, &path);
        Some(Sort::GeoDistance {
            field: field?,
            points: points?,
            descending: sort.descending,
        })
    }
}
