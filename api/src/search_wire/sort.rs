//! The order of hits.

use souk_chassis::status::FieldPath;
use souk_index::limits::MAX_SORT_POINTS;
use souk_index::{ArrayMode, Missing, NestedSort, Sort};
use souk_proto::search::v1::{self as pb, field_sort, sort::Kind};

use super::reader::{Reader, enumeration, name};
use crate::wire::{point, query_value};

impl Reader<'_> {
    /// Reads one key of an order; `None` comes with a violation.
    pub(super) fn sort(&mut self, sort: &pb::Sort, path: &FieldPath) -> Option<Sort> {
        match sort.kind.as_ref()? {
            Kind::Field(field) => self.field_sort(field, &path.field("field")),
            Kind::Score(score) => Some(Sort::Score {
                ascending: score.ascending,
            }),
            Kind::PrimaryKey(key) => Some(Sort::PrimaryKey {
                descending: key.descending,
            }),
            Kind::GeoDistance(distance) => self.distance_sort(distance, &path.field("geo_distance")),
        }
    }

    fn field_sort(&mut self, sort: &pb::FieldSort, at: &FieldPath) -> Option<Sort> {
        let field = name(&sort.field);
        let mode = enumeration(sort.mode).map(|mode| match mode {
            pb::SortMode::Unspecified => None,
            pb::SortMode::Min => Some(ArrayMode::Min),
            pb::SortMode::Max => Some(ArrayMode::Max),
            pb::SortMode::Avg => Some(ArrayMode::Avg),
            pb::SortMode::Sum => Some(ArrayMode::Sum),
        });
        let missing = Self::missing(sort.missing.as_ref());
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

    fn missing(missing: Option<&field_sort::Missing>) -> Option<Missing> {
        match missing {
            None => Some(Missing::Last),
            Some(field_sort::Missing::MissingOrder(order)) => {
                let order = enumeration(*order)?;
                Some(match order {
                    pb::MissingOrder::First => Missing::First,
                    pb::MissingOrder::Unspecified | pb::MissingOrder::Last => Missing::Last,
                })
            }
            Some(field_sort::Missing::MissingValue(value)) => query_value(value).map(Missing::Value),
        }
    }

    fn nested_sort(&mut self, nested: &pb::NestedSort, at: &FieldPath) -> Option<NestedSort> {
        let path = name(&nested.path);
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
        let field = name(&sort.field);
        let path = at.field("points");
        if sort.points.len() > MAX_SORT_POINTS {
            self.limit(path, "MAX_SORT_POINTS", MAX_SORT_POINTS, sort.points.len());
            return None;
        }
        Some(Sort::GeoDistance {
            field: field?,
            points: sort.points.iter().map(point).collect::<Option<_>>()?,
            descending: sort.descending,
        })
    }
}
