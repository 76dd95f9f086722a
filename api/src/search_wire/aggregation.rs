//! Aggregations: how figures are asked for; groupings are in [`super::grouping`].

use std::collections::BTreeMap;

use souk_chassis::status::FieldPath;
use souk_index::limits::{MAX_AGGREGATION_LEVELS, MAX_FIGURES, MAX_GROUPINGS};
use souk_index::{Aggregation, GroupOrder, GroupOrderBy, MetricKind, QueryValue};
use souk_proto::search::v1::{self as pb, aggregation::Kind, group_order::By};
use souk_proto::r#type::v1::Value;

use super::reader::{Reader, name};
use crate::wire::query_value;

const TOP_HITS_DEFAULT: usize = 1;

/// How many of some aggregations are figures; the others are groupings.
pub(super) fn figures(aggregations: &BTreeMap<String, pb::Aggregation>) -> usize {
    let figure = |aggregation: &&pb::Aggregation| match &aggregation.kind {
        Some(
            Kind::Terms(_)
            | Kind::Range(_)
            | Kind::Filters(_)
            | Kind::GeoDistance(_)
            | Kind::Histogram(_)
            | Kind::DateHistogram(_)
            | Kind::GeoCell(_)
            | Kind::Composite(_),
        ) => false,
        Some(
            Kind::Avg(_)
            | Kind::Max(_)
            | Kind::Min(_)
            | Kind::Sum(_)
            | Kind::Count(_)
            | Kind::DistinctCount(_)
            | Kind::Percentiles(_)
            | Kind::Stats(_)
            | Kind::GeoCentroid(_)
            | Kind::TopHits(_),
        )
        | None => true,
    };
    aggregations.values().filter(figure).count()
}

impl Reader<'_> {
    /// Reads the aggregations of one level, the first of which is 1; `None` comes with a violation.
    pub(super) fn aggregations(
        &mut self,
        aggregations: &BTreeMap<String, pb::Aggregation>,
        at: &FieldPath,
        level: usize,
    ) -> Option<Vec<(String, Aggregation)>> {
        if level > MAX_AGGREGATION_LEVELS && !aggregations.is_empty() {
            self.limit(
                at.clone(),
                "MAX_AGGREGATION_LEVELS",
                MAX_AGGREGATION_LEVELS,
                level,
            );
            return None;
        }
        let figures = figures(aggregations);
        let groupings = aggregations.len() - figures;
        if figures > MAX_FIGURES {
            self.limit(at.clone(), "MAX_FIGURES", MAX_FIGURES, figures);
            return None;
        }
        if groupings > MAX_GROUPINGS {
            self.limit(at.clone(), "MAX_GROUPINGS", MAX_GROUPINGS, groupings);
            return None;
        }
        let read: Vec<_> = aggregations
            .iter()
            .map(|(name, aggregation)| {
                let aggregation = self.aggregation(aggregation, &at.key(name), level)?;
                Some((name.clone(), aggregation))
            })
            .collect();
        read.into_iter().collect()
    }

    fn aggregation(
        &mut self,
        aggregation: &pb::Aggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let kind = aggregation.kind.as_ref()?;
        let (figure, field, missing) = match kind {
            Kind::Avg(avg) => (MetricKind::Avg, &avg.field, &avg.missing),
            Kind::Max(max) => (MetricKind::Max, &max.field, &max.missing),
            Kind::Min(min) => (MetricKind::Min, &min.field, &min.missing),
            Kind::Sum(sum) => (MetricKind::Sum, &sum.field, &sum.missing),
            Kind::Count(count) => (MetricKind::Count, &count.field, &count.missing),
            Kind::DistinctCount(count) => (MetricKind::DistinctCount, &count.field, &count.missing),
            Kind::Stats(stats) => (MetricKind::Stats, &stats.field, &stats.missing),
            Kind::Percentiles(percentiles) => return Self::percentiles(percentiles),
            Kind::GeoCentroid(middle) => {
                let field = name(&middle.field);
                return field.map(|field| Aggregation::GeoCentroid { field });
            }
            Kind::TopHits(top) => return self.top_hits(top, &at.field("top_hits")),
            _ => return self.grouping(kind, at, level),
        };
        Some(Aggregation::Figure {
            field: name(field)?,
            figure,
            missing: optional_value(missing.as_ref())?,
        })
    }

    fn percentiles(asked: &pb::PercentilesAggregation) -> Option<Aggregation> {
        let field = name(&asked.field);
        let missing = optional_value(asked.missing.as_ref());
        Some(Aggregation::Percentiles {
            field: field?,
            percentages: asked.percentages.clone(),
            missing: missing?,
        })
    }

    fn top_hits(&mut self, top: &pb::TopHitsAggregation, at: &FieldPath) -> Option<Aggregation> {
        let sort = super::sorts(&top.sort, &at.field("sort"), self);
        Some(Aggregation::TopHits {
            size: size(top.size, TOP_HITS_DEFAULT),
            sort: sort?,
        })
    }

    /// The order of groups.
    pub(super) fn group_orders(
        &mut self,
        orders: &[pb::GroupOrder],
        at: &FieldPath,
    ) -> Option<Vec<GroupOrder>> {
        let path = at.field("order");
        let read: Vec<_> = orders
            .iter()
            .enumerate()
            .map(|(place, order)| self.group_order(order, &path.index(place)))
            .collect();
        read.into_iter().collect()
    }

    fn group_order(&mut self, order: &pb::GroupOrder, at: &FieldPath) -> Option<GroupOrder> {
        let by = match &order.by {
            Some(By::Key(true)) => GroupOrderBy::Key,
            Some(By::Count(true)) => GroupOrderBy::Count,
            Some(By::Aggregation(name)) => GroupOrderBy::Aggregation(self::name(name)?),
            Some(By::Key(false) | By::Count(false)) | None => {
                let message = "needs key or count as true, or the name of an aggregation";
                self.violations.push(at, "FIELD_REQUIRED", message);
                return None;
            }
        };
        Some(GroupOrder {
            by,
            descending: order.descending,
        })
    }
}

/// How many things a request wants; 0 is `default`.
pub(super) fn size(size: i32, default: usize) -> usize {
    match usize::try_from(size) {
        Ok(0) | Err(_) => default,
        Ok(size) => size,
    }
}

/// A value that a request may leave out: `Some(None)` where it does, `None` where the value can't be read.
pub(super) fn optional_value(value: Option<&Value>) -> Option<Option<QueryValue>> {
    match value {
        None => Some(None),
        Some(value) => query_value(value).map(Some),
    }
}
