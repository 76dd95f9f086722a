//! Aggregations: how they are asked for.

use std::collections::BTreeMap;

use souk_chassis::status::FieldPath;
use souk_index::limits::{MAX_AGGREGATION_LEVELS, MAX_AGGREGATIONS};
use souk_index::{Aggregation, Figure, GroupOrder, GroupOrderBy, QueryValue};
use souk_proto::search::v1::{self as pb, aggregation::Kind, group_order::By};
use souk_proto::r#type::v1::Value;

use super::reader::Reader;
use crate::wire::query_value;

const TERMS_SIZE_DEFAULT: usize = 10;
const CELLS_SIZE_DEFAULT: usize = 1_000;

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
        if aggregations.len() > MAX_AGGREGATIONS {
            self.limit(
                at.clone(),
                "MAX_AGGREGATIONS",
                MAX_AGGREGATIONS,
                aggregations.len(),
            );
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
            Kind::Terms(terms) => return self.terms_groups(terms, &at.field("terms"), level),
            Kind::GeoCell(cells) => return self.cells(cells, &at.field("geo_cell"), level),
            Kind::Percentiles(_)
            | Kind::TopHits(_)
            | Kind::Range(_)
            | Kind::Filters(_)
            | Kind::GeoDistance(_)
            | Kind::Histogram(_)
            | Kind::DateHistogram(_)
            | Kind::Composite(_) => {
                let (word, feature, advice) = unanswered(kind);
                self.unsupported(at.field(word), feature, advice);
                return None;
            }
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

    fn terms_groups(
        &mut self,
        terms: &pb::TermsAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let field = self.name(&terms.field, at, "field");
        let size = self.size(terms.size, TERMS_SIZE_DEFAULT, at);
        let min_doc_count = u64::try_from(terms.min_doc_count).ok();
        if min_doc_count.is_none() {
            let message = format!("is {}, must not be negative", terms.min_doc_count);
            self.violations
                .push(at.field("min_doc_count"), "OUT_OF_RANGE", message);
        }
        let path = at.field("order");
        let order: Vec<_> = terms
            .order
            .iter()
            .enumerate()
            .map(|(place, order)| self.group_order(order, &path.index(place)))
            .collect();
        let order: Option<Vec<_>> = order.into_iter().collect();
        let missing = self.stand_in(terms.missing.as_ref(), at);
        let inside = self.aggregations(&terms.aggregations, &at.field("aggregations"), level + 1);
        Some(Aggregation::Terms {
            field: field?,
            size: size?,
            min_doc_count: min_doc_count?.max(1),
            order: order?,
            missing: missing?,
            aggregations: inside?,
        })
    }

    fn cells(&mut self, cells: &pb::GeoCellAggregation, at: &FieldPath, level: usize) -> Option<Aggregation> {
        let field = self.name(&cells.field, at, "field");
        let resolution = u8::try_from(cells.resolution).ok().filter(|level| *level <= 15);
        if resolution.is_none() {
            let message = format!("is {}, must lie between 0 and 15", cells.resolution);
            self.violations
                .push(at.field("resolution"), "OUT_OF_RANGE", message);
        }
        let size = self.size(cells.size, CELLS_SIZE_DEFAULT, at);
        let inside = self.aggregations(&cells.aggregations, &at.field("aggregations"), level + 1);
        Some(Aggregation::GeoCell {
            field: field?,
            resolution: resolution?,
            size: size?,
            aggregations: inside?,
        })
    }

    fn size(&mut self, size: i32, default: usize, at: &FieldPath) -> Option<usize> {
        let read = usize::try_from(size).ok();
        if read.is_none() {
            let message = format!("is {size}, must not be negative");
            self.violations.push(at.field("size"), "OUT_OF_RANGE", message);
        }
        read.map(|size| if size == 0 { default } else { size })
    }

    fn stand_in(&mut self, missing: Option<&Value>, at: &FieldPath) -> Option<Option<QueryValue>> {
        match missing {
            None => Some(None),
            Some(value) => query_value(Some(value), at.field("missing"), &mut self.violations).map(Some),
        }
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

/// The name, the feature and the advice of a kind that the index doesn't answer.
fn unanswered(kind: &Kind) -> (&'static str, &'static str, &'static str) {
    const SEARCH_EACH: &str = "search once for each group with a query of its own, and aggregate that";
    match kind {
        Kind::Percentiles(_) => (
            "percentiles",
            "a percentiles aggregation",
            "use stats, or sort by the field and skip to the place",
        ),
        Kind::TopHits(_) => (
            "top_hits",
            "a top_hits aggregation",
            "search for the group with a sort",
        ),
        Kind::Range(_) => ("range", "a range aggregation", SEARCH_EACH),
        Kind::Filters(_) => ("filters", "a filters aggregation", SEARCH_EACH),
        Kind::GeoDistance(_) => ("geo_distance", "a geo_distance aggregation", SEARCH_EACH),
        Kind::Histogram(_) => ("histogram", "a histogram aggregation", SEARCH_EACH),
        Kind::DateHistogram(_) => ("date_histogram", "a date_histogram aggregation", SEARCH_EACH),
        _ => (
            "composite",
            "a composite aggregation",
            "use terms, or export and aggregate outside",
        ),
    }
}
