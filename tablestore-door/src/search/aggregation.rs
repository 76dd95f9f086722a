//! Figures that are asked for, and the aggregations of one level.

use bytes::Bytes;
use souk_engine::index::{Aggregation, GroupOrder, GroupOrderBy, MetricKind};
use souk_tablestore::messages::{GroupBySort, SortOrder};
use souk_tablestore::{AggregationBody, AggregationNode, GroupByNode, ServiceError};

use super::fields::{Fields, count, name};
use super::sort::is_descending;
use crate::error::missing;

/// Rows of a top rows aggregation that doesn't say.
const TOP_ROWS: usize = 1;

impl Fields<'_> {
    /// Reads the figures, then the groupings, of one level: they are answered in that order.
    pub(super) fn aggregations(
        &self,
        figures: &[AggregationNode],
        groups: &[GroupByNode],
    ) -> Result<Vec<(String, Aggregation)>, ServiceError> {
        let figures = figures
            .iter()
            .map(|node| Ok((node.name.to_string(), self.figure(&node.body)?)));
        let groups = groups
            .iter()
            .map(|node| Ok((node.name.to_string(), self.grouping(node)?)));
        figures.chain(groups).collect()
    }

    fn figure(&self, body: &AggregationBody) -> Result<Aggregation, ServiceError> {
        let of =
            |figure, field: &Option<String>, missing: Option<&Bytes>| -> Result<Aggregation, ServiceError> {
                let field = name(field.as_deref())?;
                Ok(Aggregation::Figure {
                    missing: self.optional(&field, missing)?,
                    field,
                    figure,
                })
            };
        match body {
            AggregationBody::Avg(body) => of(MetricKind::Avg, &body.field_name, body.missing.as_ref()),
            AggregationBody::Max(body) => of(MetricKind::Max, &body.field_name, body.missing.as_ref()),
            AggregationBody::Min(body) => of(MetricKind::Min, &body.field_name, body.missing.as_ref()),
            AggregationBody::Sum(body) => of(MetricKind::Sum, &body.field_name, body.missing.as_ref()),
            AggregationBody::Count(body) => of(MetricKind::Count, &body.field_name, None),
            AggregationBody::DistinctCount(body) => {
                of(MetricKind::DistinctCount, &body.field_name, body.missing.as_ref())
            }
            AggregationBody::TopRows(body) => Ok(Aggregation::TopHits {
                size: body
                    .limit
                    .map_or(Ok(TOP_ROWS), |limit| count(limit, "The limit of top rows"))?,
                sort: match &body.sort {
                    Some(sort) if !sort.sorter.is_empty() => self.sorts(sort)?,
                    _ => self.default_sorts()?,
                },
            }),
            AggregationBody::Percentiles(body) => {
                let field = name(body.field_name.as_deref())?;
                Ok(Aggregation::Percentiles {
                    missing: self.optional(&field, body.missing.as_ref())?,
                    field,
                    percentages: body.percentiles.clone(),
                })
            }
        }
    }
}

/// The order of groups; empty where none is given.
pub(super) fn group_orders(sort: Option<&GroupBySort>) -> Result<Vec<GroupOrder>, ServiceError> {
    let sorters = sort.iter().flat_map(|sort| &sort.sorters);
    let orders = sorters.map(|sorter| {
        let (by, order) = if let Some(key) = &sorter.group_key_sort {
            (GroupOrderBy::Key, key.order)
        } else if let Some(rows) = &sorter.row_count_sort {
            (GroupOrderBy::Count, rows.order)
        } else if let Some(figure) = &sorter.sub_agg_sort {
            let name = figure.sub_agg_name.clone();
            let name = name.ok_or_else(|| missing("The name of an aggregation to sort groups by"))?;
            (GroupOrderBy::Aggregation(name), figure.order)
        } else {
            return Err(missing("What groups are sorted by"));
        };
        Ok(GroupOrder {
            by,
            descending: is_descending(order, SortOrder::Asc)?,
        })
    });
    orders.collect()
}
