//! The order of hits, of inner hits, and of top rows.

use souk_engine::index::limits::MAX_SORTS;
use souk_engine::index::{ArrayMode, Missing, NestedSort, Sort};
use souk_tablestore::messages::{self as pb, SortMode, SortOrder};
use souk_tablestore::{QueryNode, ServiceError, Value, variant};

use super::fields::{Fields, enumeration, name, point};
use super::query::query;
use crate::error::{invalid, missing, unsupported};

/// What stands for an end of the order instead of a value that is missing.
const FIRST: &str = "_first";
const LAST: &str = "_last";

fn within(count: usize, what: &str) -> Result<(), ServiceError> {
    match count > MAX_SORTS {
        true => Err(invalid(format!("The number of {what} exceeds {MAX_SORTS}."))),
        false => Ok(()),
    }
}

impl Fields<'_> {
    /// The order of a search that has none: that of the index, which is by primary key unless it was made with another.
    pub(super) fn default_sorts(&self) -> Result<Vec<Sort>, ServiceError> {
        let schema = self.note.schema.as_ref();
        match schema.and_then(|schema| schema.index_sort.as_ref()) {
            Some(sort) if !sort.sorter.is_empty() => self.sorts(sort),
            _ => Ok(vec![Sort::PrimaryKey { descending: false }]),
        }
    }

    /// Reads an order. Ties end in the primary key, whatever it says of that.
    pub(super) fn sorts(&self, sort: &pb::Sort) -> Result<Vec<Sort>, ServiceError> {
        within(sort.sorter.len(), "sorters")?;
        sort.sorter.iter().map(|sorter| self.sort(sorter)).collect()
    }

    /// Reads the order of the objects of inner hits, by their own fields. Ties end as they stand in their row, which a last sorter may
    /// ask for.
    pub(super) fn object_sorts(&self, sort: &pb::Sort) -> Result<Vec<Sort>, ServiceError> {
        let mut sorts = self.sorts(sort)?;
        for (read, asked) in sorts.iter_mut().zip(&sort.sorter) {
            let asked = asked.field_sort.as_ref();
            let filter = asked.and_then(|sort| sort.nested_filter.as_ref());
            if let (Sort::Field { nested, .. }, None) = (read, filter) {
                *nested = None;
            }
        }
        let last_by_document = sort.sorter.last().is_some_and(|last| last.doc_sort.is_some());
        if last_by_document && matches!(sorts.as_slice(), [_, .., Sort::PrimaryKey { descending: false }]) {
            sorts.pop();
        }
        Ok(sorts)
    }

    fn sort(&self, sorter: &pb::Sorter) -> Result<Sort, ServiceError> {
        if let Some(field) = &sorter.field_sort {
            return self.field_sort(field);
        }
        if let Some(distance) = &sorter.geo_distance_sort {
            return self.distance_sort(distance);
        }
        if let Some(score) = &sorter.score_sort {
            return Ok(Sort::Score {
                ascending: !is_descending(score.order, SortOrder::Desc)?,
            });
        }
        // Rows have no order of their own in an index: that of their keys is as good.
        let keys = sorter.pk_sort.as_ref().map(|sort| sort.order);
        let order = keys.or_else(|| sorter.doc_sort.as_ref().map(|sort| sort.order));
        let order = order.ok_or_else(|| missing("What a sorter sorts by"))?;
        Ok(Sort::PrimaryKey {
            descending: is_descending(order, SortOrder::Asc)?,
        })
    }

    fn field_sort(&self, sort: &pb::FieldSort) -> Result<Sort, ServiceError> {
        let field = name(sort.field_name.as_deref())?;
        if sort.missing_field.is_some() || !sort.missing_fields.is_empty() {
            return Err(unsupported(
                "missing_field of a sort: other columns that stand in for a field",
            ));
        }
        let missing = match &sort.missing_value {
            None => Missing::Last,
            Some(bytes) => match variant::decode(bytes.clone()) {
                Ok(Value::String(text)) if text == FIRST => Missing::First,
                Ok(Value::String(text)) if text == LAST => Missing::Last,
                _ => Missing::Value(self.value(&field, Some(bytes), "The missing value of a sort")?),
            },
        };
        let mode = match sort.mode {
            None => None,
            Some(mode) => Some(match enumeration(Some(mode), SortMode::Min, "sort mode")? {
                SortMode::Min => ArrayMode::Min,
                SortMode::Max => ArrayMode::Max,
                SortMode::Avg => ArrayMode::Avg,
            }),
        };
        Ok(Sort::Field {
            descending: is_descending(sort.order, SortOrder::Asc)?,
            mode,
            missing,
            nested: self.nested(&field, sort.nested_filter.as_ref())?,
            field,
        })
    }

    /// Which objects a sort by a field looks at: all around it, or those of a filter.
    fn nested(
        &self,
        field: &str,
        filter: Option<&pb::NestedFilter>,
    ) -> Result<Option<NestedSort>, ServiceError> {
        let Some(given) = filter else {
            let around = self.resolve(field).and_then(|field| field.scope.clone());
            return Ok(around.map(|path| NestedSort { path, filter: None }));
        };
        let path = name(given.path.as_deref())?;
        // Each is a tree of its own: together they are no more than a search's sorts may have.
        self.sort_filters.set(self.sort_filters.get() + 1);
        within(self.sort_filters.get(), "filters of all sorts")?;
        let filter = given.filter.clone().map(|filter| {
            let node = QueryNode::decode(filter)?;
            let fields = Fields {
                in_sort: true,
                ..*self
            };
            query(&node, fields)
        });
        Ok(Some(NestedSort {
            path,
            filter: filter.transpose()?,
        }))
    }

    fn distance_sort(&self, sort: &pb::GeoDistanceSort) -> Result<Sort, ServiceError> {
        if sort.nested_filter.is_some() {
            return Err(unsupported("nested filters of sorts by distance"));
        }
        let descending = is_descending(sort.order, SortOrder::Asc)?;
        if sort.mode.is_some_and(|mode| mode != i32::from(SortMode::Min)) {
            return Err(unsupported(
                "sorts by another than the shortest of several distances",
            ));
        }
        let points = sort.points.iter().map(|text| point(text));
        Ok(Sort::GeoDistance {
            field: name(sort.field_name.as_deref())?,
            points: points.collect::<Result<_, _>>()?,
            descending,
        })
    }
}

pub(super) fn is_descending(order: Option<i32>, default: SortOrder) -> Result<bool, ServiceError> {
    Ok(enumeration(order, default, "sort order")? == SortOrder::Desc)
}
