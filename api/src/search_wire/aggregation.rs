//! Aggregations: how figures are asked for; groupings are in [`super::grouping`].

use std::collections::BTreeMap;

use souk_chassis::status::FieldPath;
use souk_index::limits::{MAX_AGGREGATION_LEVELS, MAX_FIGURES, MAX_GROUPINGS};
use souk_index::{Aggregation, Figure, GroupOrder, GroupOrderBy, QueryValue};
use souk_proto::search::v1::{self as pb, aggregation::Kind, group_order::By};
use souk_proto::r#type::v1::Value;

use super::reader::Reader;
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
        let Some(kind) = &aggregation.kind else {
            let message = "needs one of the kinds of Aggregation, for example terms";
            self.violations.push(at, "FIELD_REQUIRED", message);
            return None;
        };
        let (word, figure, field, missing) = match kind {
            Kind::Avg(avg) => ("avg", Figure::Avg, &avg.field, &avg.missing),
            Kind::Max(max) => ("max", Figure::Max, &max.field, &max.missing),
            Kind::Min(min) => ("min", Figure::Min, &min.field, &min.missing),
            Kind::Sum(sum) => ("sum", Figure::Sum, &sum.field, &sum.missing),
            Kind::Count(count) => ("count", Figure::Count, &count.field, &count.missing),
            Kind::DistinctCount(count) => (
                "distinct_count",
                Figure::DistinctCount,
                &count.field,
                &count.missing,
            ),
            Kind::Stats(stats) => ("stats", Figure::Stats, &stats.field, &stats.missing),
            Kind::Percentiles(percentiles) => return self.percentiles(percentiles, &at.field("percentiles")),
            Kind::GeoCentroid(middle) => {
                let field = self.name(&middle.field, &at.field("geo_centroid"), "field");
                return field.map(|field| Aggregation::GeoCentroid { field });
            }
            Kind::TopHits(top) => return self.top_hits(top, &at.field("top_hits")),
            _ => return self.grouping(kind, at, level),
        };
        let at = at.field(word);
        let field = self.name(field, &at, "field");
        let missing = self.stand_in(missing.as_ref(), &at);
        Some(Aggregation::Figure {
            field: field?,
            figure,
            missing: missing?,
        })
    }

    fn percentiles(&mut self, asked: &pb::PercentilesAggregation, at: &FieldPath) -> Option<Aggregation> {
        let field = self.name(&asked.field, at, "field");
        let missing = self.stand_in(asked.missing.as_ref(), at);
        Some(Aggregation::Percentiles {
            field: field?,
            percentages: asked.percentages.clone(),
            missing: missing?,
        })
    }

    fn top_hits(&mut self, top: &pb::TopHitsAggregation, at: &FieldPath) -> Option<Aggregation> {
        let size = self.size(top.size, TOP_HITS_DEFAULT, at);
        let sort = super::orders(&top.sort, &at.field("sort"), self);
        Some(Aggregation::TopHits {
            size: size?,
            sort: sort?,
        })
    }

    pub(super) fn size(&mut self, size: i32, default: usize, at: &FieldPath) -> Option<usize> {
        let read = usize::try_from(size).ok();
        if read.is_none() {
            let message = format!("is {size}, must not be negative");
            self.violations.push(at.field("size"), "OUT_OF_RANGE", message);
        }
        read.map(|size| if size == 0 { default } else { size })
    }

    pub(super) fn stand_in(&mut self, missing: Option<&Value>, at: &FieldPath) -> Option<Option<QueryValue>> {
        match missing {
            None => Some(None),
            Some(value) => query_value(Some(value), at.field("missing"), &mut self.violations).map(Some),
        }
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
            Some(By::Aggregation(name)) => GroupOrderBy::Aggregation(self.name_of_aggregation(name, at)?),
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

    fn name_of_aggregation(&mut self, name: &str, at: &FieldPath) -> Option<String> {
        if name.is_empty() {
            let message = "is required: the name of an aggregation inside the groups";
            self.violations
                .push(at.field("aggregation"), "FIELD_REQUIRED", message);
            return None;
        }
        Some(name.to_owned())
    }
}
