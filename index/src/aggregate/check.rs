//! What makes a request's aggregations invalid.

mod field;
mod groupings;
mod sources;

use std::fmt;
use std::sync::Arc;

use super::column::Kind;
use super::node::{FieldOf, Grouping, Node, Prepared, Shape};
use super::quantiles::Percentage;
use crate::error::{Checker, Error, Reason, Refusals, Violations};
use crate::layout::Layout;
use crate::limits::{Limit, limit};
use crate::request::{
    Aggregation, GroupOrder, GroupOrderBy, MetricKind, Query, QueryValue, SearchRequest, Sort,
};
use crate::run::Run;
use crate::sort::Order;
use field::FieldRequirement;

/// Checks aggregations of a query; paths begin with `aggregations`.
pub(crate) fn prepare(
    layout: &Layout,
    run: &Arc<Run>,
    request: &SearchRequest,
    design: u64,
) -> Result<Prepared, Error> {
    let mut check = AggregationCheck {
        layout,
        run,
        query: &request.query,
        design,
        refusals: Refusals::default(),
    };
    let top = At {
        path: "aggregations",
        level: 1,
        scope: None,
    };
    let nodes = check.level(&request.aggregations, top);
    check.refusals.or(Prepared { nodes })
}

/// Gathers what is wrong. Its methods answer `None` when they noted something.
struct AggregationCheck<'a> {
    layout: &'a Layout,
    run: &'a Arc<Run>,
    query: &'a Query,
    design: u64,
    refusals: Refusals,
}

/// Where aggregations stand.
#[derive(Clone, Copy)]
struct At<'s> {
    /// In the request.
    path: &'s str,
    level: usize,
    /// The nested objects that they are given.
    scope: Option<&'s str>,
}

impl fmt::Display for At<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.path)
    }
}

impl Checker for AggregationCheck<'_> {
    fn violations(&mut self) -> &mut Violations {
        self.refusals.violations()
    }
}

impl AggregationCheck<'_> {
    fn within_limit(&mut self, path: &str, limit: Limit, actual: usize) -> Option<()> {
        self.at_most(path, limit, actual, "ask for less at once")
    }

    fn level(&mut self, aggregations: &[(String, Aggregation)], at: At<'_>) -> Vec<Node> {
        if aggregations.is_empty() {
            return Vec::new();
        }
        let groupings = aggregations.iter().filter(|(_, own)| own.is_grouping()).count();
        let figures = aggregations.len() - groupings;
        let fits = self
            .within_limit(at.path, limit!(MAX_AGGREGATION_LEVELS), at.level)
            .and_then(|()| self.within_limit(at.path, limit!(MAX_FIGURES), figures))
            .and_then(|()| self.within_limit(at.path, limit!(MAX_GROUPINGS), groupings));
        if fits.is_none() {
            return Vec::new();
        }
        aggregations
            .iter()
            .filter_map(|(name, aggregation)| {
                let path = &format!("{at}[{name:?}].{}", aggregation.word());
                self.aggregation(name, aggregation, At { path, ..at })
            })
            .collect()
    }

    fn aggregation(&mut self, name: &str, aggregation: &Aggregation, at: At<'_>) -> Option<Node> {
        let shaped = match aggregation {
            Aggregation::Figure {
                field,
                figure,
                missing,
            } => self.figure(field, *figure, missing.as_ref(), at),
            Aggregation::Percentiles {
                field,
                percentages,
                missing,
            } => self.percentiles(field, percentages, missing.as_ref(), at),
            Aggregation::GeoCentroid { field } => self
                .field(field, FieldRequirement::Point, None, at)
                .map(|(field, scope)| (Shape::Centroid { field }, scope)),
            Aggregation::TopHits { size, sort } => self.top_hits(*size, sort, at).map(|shape| (shape, None)),
            Aggregation::Composite {
                sources, size, after, ..
            } => self.composite(sources, *size, after.as_deref(), at),
            _ => self
                .grouping(aggregation, at)
                .map(|(grouping, scope)| (Shape::Groups(grouping), scope)),
        };
        // What is inside is checked all the same.
        let scope = match &shaped {
            Some((_, scope)) => scope.clone(),
            None => at.scope.map(str::to_owned),
        };
        let inside = At {
            path: &format!("{at}.aggregations"),
            level: at.level + 1,
            scope: scope.as_deref(),
        };
        let inside = self.level(aggregation.inside(), inside);
        let (shape, scope) = shaped?;
        Some(Node {
            name: name.to_owned(),
            path: at.path.to_owned(),
            scope,
            shape,
            inside,
        })
    }

    fn figure(
        &mut self,
        field: &str,
        figure: MetricKind,
        missing: Option<&QueryValue>,
        at: At<'_>,
    ) -> Option<Shaped> {
        let wanted = match figure {
            MetricKind::Sum => FieldRequirement::LongOrDouble,
            MetricKind::Min | MetricKind::Max | MetricKind::Avg | MetricKind::Stats => {
                FieldRequirement::Number
            }
            MetricKind::Count | MetricKind::DistinctCount => FieldRequirement::Value,
        };
        let (field, scope) = self.field(field, wanted, missing, at)?;
        Some((Shape::Figure { field, figure }, scope))
    }

    fn percentiles(
        &mut self,
        field: &str,
        percentages: &[f64],
        missing: Option<&QueryValue>,
        at: At<'_>,
    ) -> Option<Shaped> {
        let field = self.field(field, FieldRequirement::Number, missing, at);
        let at = format!("{at}.percentages");
        if percentages.is_empty() {
            let advice = "give one to 20, for example 50 and 99";
            return self.refuse(at, Reason::Missing, "there is no percentage", advice);
        }
        self.within_limit(&at, limit!(MAX_PERCENTAGES), percentages.len())?;
        let mut fits = true;
        for (nth, percentage) in percentages.iter().enumerate() {
            if !(0.0..=100.0).contains(percentage) {
                fits = false;
                let message = format!("{percentage} is no percentage");
                let at = format!("{at}[{nth}]");
                self.note(at, Reason::OutOfRange, message, "give a number from 0 to 100");
            }
        }
        let (field, scope) = field.filter(|_| fits)?;
        let percentages = percentages.iter().map(|own| Percentage::new(*own)).collect();
        Some((Shape::Percentiles { field, percentages }, scope))
    }

    fn top_hits(&mut self, size: usize, sort: &[Sort], at: At<'_>) -> Option<Shape> {
        let fits = self.size(size, limit!(MAX_TOP_HITS), at);
        let order = Order::new(self.layout, self.run, sort);
        let order = self
            .refusals
            .answered(order.map_err(|error| error.under(at.path)))?;
        fits?;
        Some(Shape::TopHits {
            order: Box::new(order),
            size,
        })
    }

    fn size(&mut self, size: usize, limit: Limit, at: At<'_>) -> Option<()> {
        let path = format!("{at}.size");
        self.within_limit(&path, limit, size)?;
        if size == 0 {
            return self.refuse(path, Reason::OutOfRange, "is 0", "ask for at least one");
        }
        Some(())
    }

    fn order(&mut self, order: &[GroupOrder], inside: &[(String, Aggregation)], at: At<'_>) -> Option<()> {
        self.within_limit(&format!("{at}.order"), limit!(MAX_GROUP_ORDERS), order.len())?;
        let mut known = Some(());
        for (nth, key) in order.iter().enumerate() {
            let GroupOrderBy::Aggregation(name) = &key.by else {
                continue;
            };
            let named = inside.iter().find(|(own, _)| own == name);
            let single = named.is_some_and(|(_, aggregation)| {
                matches!(aggregation, Aggregation::Figure { figure, .. } if *figure != MetricKind::Stats)
            });
            if !single {
                known = None;
                let at = format!("{at}.order[{nth}].aggregation");
                let message = format!("there is no aggregation `{name}` of one figure inside the groups");
                let advice = "name an avg, max, min, sum, count or distinct_count of this grouping";
                self.note(at, Reason::Missing, message, advice);
            }
        }
        known
    }
}

/// A field, and the path of the nested objects that it is a field of.
type Placed = (FieldOf, Option<String>);
type Shaped = (Shape, Option<String>);
type Grouped = (Grouping, Option<String>);

/// The kinds that have numbers to compare with.
fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Long | Kind::Double | Kind::Date)
}
