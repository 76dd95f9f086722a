//! Whether answers to aggregations are right: each group, each figure, their order, and what is left out.

use std::cmp::Ordering;

use num_bigint::BigInt;
use souk_index::{
    Aggregation, AggregationResult, Datum, Group, GroupOrder, GroupOrderBy, MetricKind, QueryValue,
    ValueRange,
};

use crate::answers::found;
use crate::exact;
use crate::figures;
use crate::groups::{Groups, Key, Members, Place, Rank, Steps, data, go};
use crate::matching::{Oracle, points};
use crate::orders::{self, Candidate, Found, effective};
use crate::universe::Kind;

type Outcome = Result<(), String>;

impl<'a> Oracle<'a> {
    /// Checks answers to aggregations that are given objects of a scope.
    pub(crate) fn check_aggregations(
        &self,
        asked: &[(String, Aggregation)],
        answers: &[(String, AggregationResult)],
        given: &[Place<'a>],
        scope: &str,
    ) -> Outcome {
        if !asked
            .iter()
            .map(|(name, _)| name)
            .eq(answers.iter().map(|(name, _)| name))
        {
            return Err("other names".to_owned());
        }
        for ((name, aggregation), (_, answer)) in asked.iter().zip(answers) {
            self.check_aggregation(aggregation, answer, given, scope)
                .map_err(|wrong| format!("{name}: {wrong}"))?;
        }
        Ok(())
    }

    /// The objects that an aggregation takes where it is given those of `scope`.
    fn scope_of(&self, aggregation: &Aggregation, scope: &str) -> String {
        let field = match aggregation {
            Aggregation::Filters { .. } => return scope.to_owned(),
            Aggregation::TopHits { .. } => return String::new(),
            Aggregation::Composite { sources, .. } => &sources[0].field,
            Aggregation::Figure { field, .. }
            | Aggregation::Percentiles { field, .. }
            | Aggregation::GeoCentroid { field }
            | Aggregation::Terms { field, .. }
            | Aggregation::Range { field, .. }
            | Aggregation::GeoDistance { field, .. }
            | Aggregation::Histogram { field, .. }
            | Aggregation::DateHistogram { field, .. }
            | Aggregation::GeoCell { field, .. }
            | Aggregation::GeoHash { field, .. } => field,
        };
        self.universe.leaf(field).scope.clone()
    }

    fn check_aggregation(
        &self,
        aggregation: &Aggregation,
        answer: &AggregationResult,
        given: &[Place<'a>],
        scope: &str,
    ) -> Outcome {
        let own_scope = self.scope_of(aggregation, scope);
        let own = go(given, scope, &own_scope);
        let all = |field: &str, missing: Option<&QueryValue>| {
            let leaf = self.universe.leaf(field);
            own.iter()
                .flat_map(|place| data(place, leaf, missing))
                .collect::<Vec<_>>()
        };
        let right = match aggregation {
            Aggregation::Figure {
                field,
                figure,
                missing,
            } => figures::check(*figure, &all(field, missing.as_ref()), answer),
            Aggregation::Percentiles {
                field,
                percentages,
                missing,
            } => figures::check_percentiles(percentages, &all(field, missing.as_ref()), answer),
            Aggregation::GeoCentroid { field } => {
                let leaf = self.universe.leaf(field);
                let points: Vec<_> = own
                    .iter()
                    .flat_map(|place| points(place.object(), leaf))
                    .collect();
                figures::check_centroid(&points, answer)
            }
            Aggregation::TopHits { size, sort } => {
                let AggregationResult::TopHits(hits) = answer else {
                    return Err("no top hits".to_owned());
                };
                let sorts = effective(sort);
                let candidates: Vec<Candidate> = own
                    .iter()
                    .map(|place| {
                        self.candidate(&sorts, (place.of.key, place.of.document, ""), place.of.score)
                    })
                    .collect();
                let hits: Vec<Found> = hits
                    .iter()
                    .map(|hit| found(&hit.key, hit.score, &hit.sort_values, sort))
                    .collect();
                return orders::check(&sorts, &candidates, &hits, (0, *size));
            }
            _ => return self.check_groups(aggregation, answer, &own, &own_scope),
        };
        if right {
            Ok(())
        } else {
            Err(format!("{aggregation:?} of {} answered {answer:?}", own.len()))
        }
    }

    fn check_groups(
        &self,
        aggregation: &Aggregation,
        answer: &AggregationResult,
        own: &[Place<'a>],
        scope: &str,
    ) -> Outcome {
        let AggregationResult::Groups {
            groups,
            other_count,
            count_error_bound,
            next_page_token,
        } = answer
        else {
            return Err("no groups".to_owned());
        };
        let wrong = |why: &str| Err(format!("{why}: {aggregation:?} answered {answer:?}"));
        let mut expected = self.groups(aggregation, own, scope);
        let inside = aggregation.inside();
        let (order, size, least) = match aggregation {
            Aggregation::Range { field, ranges, .. } => {
                let kind = self.universe.leaf(field).kind;
                let ends: Vec<Vec<Option<BigInt>>> = ranges
                    .iter()
                    .map(|range| {
                        [&range.from, &range.to]
                            .map(|end| end.as_ref().map(|end| shown(end, kind)))
                            .to_vec()
                    })
                    .collect();
                return self.each(aggregation, groups, &expected, scope, &ends);
            }
            Aggregation::GeoDistance { ranges, .. } => {
                let ends: Vec<Vec<Option<BigInt>>> = ranges
                    .iter()
                    .map(|(from, to)| {
                        [Some(from.unwrap_or(0.0)), *to]
                            .map(|end| end.map(exact::double))
                            .to_vec()
                    })
                    .collect();
                return self.each(aggregation, groups, &expected, scope, &ends);
            }
            Aggregation::Filters { filters, .. } => {
                return self.each(
                    aggregation,
                    groups,
                    &expected,
                    scope,
                    &vec![Vec::new(); filters.len()],
                );
            }
            Aggregation::Composite { size, .. } => {
                if next_page_token.is_some() != (expected.len() > *size) {
                    return wrong("a token, or none");
                }
                return self.composite(aggregation, groups, &expected, scope);
            }
            Aggregation::Terms {
                order,
                size,
                min_doc_count,
                ..
            } => (order.clone(), *size, *min_doc_count),
            Aggregation::GeoCell { size, .. } | Aggregation::GeoHash { size, .. } => (Vec::new(), *size, 1),
            Aggregation::Histogram {
                order,
                min_doc_count,
                bounds,
                ..
            }
            | Aggregation::DateHistogram {
                order,
                min_doc_count,
                bounds,
                ..
            } => {
                let steps = Steps::of(self, aggregation).expect("a histogram");
                self.bound(&steps, bounds, *min_doc_count, &mut expected);
                let by_key = GroupOrder {
                    by: GroupOrderBy::Key,
                    descending: false,
                };
                let order = if order.is_empty() {
                    vec![by_key]
                } else {
                    order.clone()
                };
                (order, usize::MAX, *min_doc_count)
            }
            other => return Err(format!("no grouping: {other:?}")),
        };
        let by_count = GroupOrder {
            by: GroupOrderBy::Count,
            descending: true,
        };
        let order = if order.is_empty() { vec![by_count] } else { order };
        let all: u64 = expected.values().map(|(_, members)| members.len() as u64).sum();
        let shown: u64 = groups.iter().map(|group| group.count).sum();
        let due = |members: &Members<'_>| members.1.len() as u64 >= least;
        let due_count = expected.values().filter(|members| due(members)).count();
        if groups.len() != due_count.min(size) || shown + other_count != all || *count_error_bound != 0 {
            return wrong("other groups");
        }
        let mut known: Vec<(&Rank, &Group)> = Vec::new();
        let mut left: Vec<(&[Key], &[Place<'a>])> = expected
            .values()
            .map(|(keys, places)| (keys.as_slice(), places.as_slice()))
            .collect();
        for group in groups {
            let at = left.iter().position(|(keys, _)| is_of(keys, group));
            let Some(at) = at else {
                return wrong(&format!("no group {:?}", group.keys));
            };
            let (keys, places) = left.remove(at);
            if group.count != places.len() as u64 {
                return wrong(&format!("{} in {:?}", places.len(), group.keys));
            }
            self.check_aggregations(inside, &group.aggregations, places, scope)?;
            known.push((&keys[0].rank, group));
        }
        if !known.windows(2).all(|pair| in_order(pair[0], pair[1], &order)) {
            return wrong("another order");
        }
        if let Some(last) = known.last() {
            for (keys, places) in left {
                if places.len() as u64 >= least
                    && self.before(&keys[0].rank, places, scope, *last, &order, inside)
                {
                    return wrong(&format!("{keys:?} was left out"));
                }
            }
        }
        Ok(())
    }

    /// One group for each range or filter, in their order.
    fn each(
        &self,
        aggregation: &Aggregation,
        groups: &[Group],
        expected: &Groups<'a>,
        scope: &str,
        ends: &[Vec<Option<BigInt>>],
    ) -> Outcome {
        if groups.len() != ends.len() {
            return Err(format!("{} groups of {aggregation:?}", groups.len()));
        }
        for (nth, (group, ends)) in groups.iter().zip(ends).enumerate() {
            let members = expected.get(&vec![Rank::Number(BigInt::from(nth))]);
            let places = members.map_or(&[][..], |(_, places)| places.as_slice());
            let keys: Vec<Option<BigInt>> = group
                .keys
                .iter()
                .map(|key| {
                    key.as_ref().map(|key| match key {
                        Datum::Long(number) | Datum::Date(number) => exact::integer(*number),
                        Datum::Double(number) => exact::double(*number),
                        other => panic!("no end: {other:?}"),
                    })
                })
                .collect();
            if group.count != places.len() as u64 || keys != *ends {
                return Err(format!(
                    "{nth} with {}: {aggregation:?} answered {groups:?}",
                    places.len()
                ));
            }
            self.check_aggregations(aggregation.inside(), &group.aggregations, places, scope)?;
        }
        Ok(())
    }

    /// A page of a composite, which begins with the first group.
    fn composite(
        &self,
        aggregation: &Aggregation,
        groups: &[Group],
        expected: &Groups<'a>,
        scope: &str,
    ) -> Outcome {
        let Aggregation::Composite {
            sources,
            size,
            aggregations,
            ..
        } = aggregation
        else {
            return Err("no composite".to_owned());
        };
        let mut sorted: Vec<(&Vec<Rank>, &Members<'a>)> = expected.iter().collect();
        sorted.sort_by(|(one, _), (other, _)| {
            let by_source = sources
                .iter()
                .zip(one.iter().zip(other.iter()))
                .map(|(source, (one, other))| {
                    if source.descending {
                        other.cmp(one)
                    } else {
                        one.cmp(other)
                    }
                });
            by_source.fold(Ordering::Equal, Ordering::then)
        });
        sorted.truncate(*size);
        if groups.len() != sorted.len() {
            return Err(format!("{} groups, not {}", groups.len(), sorted.len()));
        }
        for (group, (_, (keys, places))) in groups.iter().zip(sorted) {
            if !is_of(keys, group) || group.count != places.len() as u64 {
                return Err(format!("{group:?} is not {keys:?} with {}", places.len()));
            }
            self.check_aggregations(aggregations, &group.aggregations, places, scope)?;
        }
        Ok(())
    }

    /// Takes intervals away that don't overlap the bounds, and adds empty ones where they are asked for.
    fn bound(&self, steps: &Steps, bounds: &ValueRange, least: u64, groups: &mut Groups<'a>) {
        let first = bounds
            .from
            .as_ref()
            .map(|from| steps.index(self, &exact::of_query(from)));
        let end = bounds.to.as_ref().map(exact::of_query);
        let before = |begin: &BigInt, end: &BigInt| {
            if begin != end && exact::nearest(begin, 1) == exact::nearest(end, 1) {
                // Doubles don't tell them apart.
                self.doubt();
            }
            begin < end
        };
        let shown = |index: &BigInt| {
            first.as_ref().is_none_or(|first| index >= first)
                && end.as_ref().is_none_or(|end| before(&steps.begin(index), end))
        };
        groups.retain(|ranks, _| matches!(&ranks[0], Rank::Number(index) if shown(index)));
        if let (Some(first), Some(_), 0) = (&first, &end, least) {
            let ends = steps.ends();
            let mut index = match &ends {
                Some((lowest, _)) => first.max(lowest).clone(),
                None => first.clone(),
            };
            while shown(&index) && ends.as_ref().is_none_or(|(_, highest)| index <= *highest) {
                let key = steps.key(index.clone());
                groups
                    .entry(vec![key.rank.clone()])
                    .or_insert_with(|| (vec![key], Vec::new()));
                index += 1;
            }
        }
    }

    /// Whether a group that isn't shown surely comes before one that is.
    fn before(
        &self,
        rank: &Rank,
        places: &[Place<'a>],
        scope: &str,
        (last_rank, last): (&Rank, &Group),
        order: &[GroupOrder],
        inside: &[(String, Aggregation)],
    ) -> bool {
        for by in order {
            let ordering = match &by.by {
                GroupOrderBy::Key => rank.cmp(last_rank),
                GroupOrderBy::Count => (places.len() as u64).cmp(&last.count),
                GroupOrderBy::Aggregation(name) => {
                    let (_, aggregation) = inside.iter().find(|(own, _)| own == name).expect("a figure");
                    match (self.figure(aggregation, places, scope), figure_of(last, name)) {
                        (Some(own), Some(last)) if figures::may_differ(&own, &last) => return false,
                        (Some(own), Some(last)) => figures::compare(&own, &last),
                        (None, None) => continue,
                        (own, _) => return own.is_some(),
                    }
                }
            };
            if ordering.is_ne() {
                return ordering.is_lt() != by.descending;
            }
        }
        rank < last_rank
    }

    /// The figure that an aggregation comes to.
    fn figure(&self, aggregation: &Aggregation, given: &[Place<'a>], scope: &str) -> Option<Datum> {
        let Aggregation::Figure {
            field,
            figure,
            missing,
        } = aggregation
        else {
            panic!("no figure")
        };
        let leaf = self.universe.leaf(field);
        let own = go(given, scope, &leaf.scope);
        let values: Vec<_> = own
            .iter()
            .flat_map(|place| data(place, leaf, missing.as_ref()))
            .collect();
        let points = leaf.kind == Kind::Point;
        debug_assert!(!points || matches!(figure, MetricKind::Count | MetricKind::DistinctCount));
        figures::figure(*figure, &values)
    }
}

/// The end of a range as it is shown: of a DOUBLE as the nearest double.
fn shown(end: &QueryValue, kind: Kind) -> BigInt {
    match end {
        QueryValue::Integer(number) if kind == Kind::Double => exact::double(*number as f64),
        _ => exact::of_query(end),
    }
}

fn is_of(keys: &[Key], group: &Group) -> bool {
    keys.len() == group.keys.len()
        && keys
            .iter()
            .zip(&group.keys)
            .all(|(key, found)| key.is(found.as_ref()))
}

fn figure_of(group: &Group, name: &str) -> Option<Datum> {
    match group.aggregations.iter().find(|(own, _)| own == name) {
        Some((_, AggregationResult::Value(value))) => value.clone(),
        other => panic!("no figure: {other:?}"),
    }
}

/// Whether two groups are in order by what they show; those without a figure are last.
fn in_order(one: (&Rank, &Group), other: (&Rank, &Group), order: &[GroupOrder]) -> bool {
    for by in order {
        let ordering = match &by.by {
            GroupOrderBy::Key => one.0.cmp(other.0),
            GroupOrderBy::Count => one.1.count.cmp(&other.1.count),
            GroupOrderBy::Aggregation(name) => match (figure_of(one.1, name), figure_of(other.1, name)) {
                (Some(one), Some(other)) if figures::may_differ(&one, &other) => return true,
                (Some(one), Some(other)) => figures::compare(&one, &other),
                (None, None) => continue,
                (own, _) => return own.is_some(),
            },
        };
        if ordering.is_ne() {
            return ordering.is_lt() != by.descending;
        }
    }
    one.0 < other.0
}
