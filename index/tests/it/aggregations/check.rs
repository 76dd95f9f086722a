//! Whether answers are what brute force expects.

use std::collections::{BTreeMap, BTreeSet};

use souk_index::{
    Aggregation, AggregationResult, Datum, GeoPoint, Group, GroupOrder, GroupOrderBy, MetricKind, QueryValue,
    Sort, SortValue, TopHit, ValueRange,
};

use super::super::{reference, scope_at};
use super::entities::{Entity, Rank, data, go, rank, scope_of};
use super::groups::{Members, calendar_of, combinations, groups as group_by, interval, points};

type Outcome = Result<(), String>;

/// Checks answers to aggregations that were given objects of a scope.
pub(crate) fn check_all(
    asked: &[(String, Aggregation)],
    found: &[(String, AggregationResult)],
    given: &[Entity<'_>],
    scope: &str,
) -> Outcome {
    if asked.len() != found.len() {
        return Err("another number of results".to_owned());
    }
    for ((name, aggregation), (named, result)) in asked.iter().zip(found) {
        assert_eq!(name, named);
        check(aggregation, result, given, scope).map_err(|wrong| format!("{name}: {wrong}"))?;
    }
    Ok(())
}

/// The scope of an aggregation that is given objects of `scope`.
fn own_scope(aggregation: &Aggregation, scope: &str) -> String {
    match aggregation {
        Aggregation::Figure { field, .. }
        | Aggregation::Percentiles { field, .. }
        | Aggregation::GeoCentroid { field }
        | Aggregation::Terms { field, .. }
        | Aggregation::Range { field, .. }
        | Aggregation::GeoDistance { field, .. }
        | Aggregation::Histogram { field, .. }
        | Aggregation::DateHistogram { field, .. }
        | Aggregation::GeoCell { field, .. }
        | Aggregation::GeoHash { field, .. } => scope_of(field).to_owned(),
        Aggregation::Filters { .. } => scope.to_owned(),
        Aggregation::TopHits { .. } => String::new(),
        Aggregation::Composite { sources, .. } => scope_of(&sources[0].field).to_owned(),
    }
}

fn check(
    aggregation: &Aggregation,
    result: &AggregationResult,
    given: &[Entity<'_>],
    scope: &str,
) -> Outcome {
    let scope = own_scope(aggregation, scope);
    let own = go(given, &scope);
    let right = match (aggregation, result) {
        (
            Aggregation::Figure {
                field,
                figure,
                missing,
            },
            _,
        ) => {
            let values: Vec<Datum> = own
                .iter()
                .flat_map(|entity| data(entity, field, missing.as_ref()))
                .collect();
            figure_fits(*figure, &values, result)
        }
        (
            Aggregation::Percentiles {
                field,
                percentages,
                missing,
            },
            _,
        ) => percentiles_fit(field, percentages, missing.as_ref(), &own, result),
        (Aggregation::GeoCentroid { field }, AggregationResult::Centroid { point, count }) => {
            centroid_fits(field, &own, *point, *count)
        }
        (Aggregation::TopHits { size, sort }, AggregationResult::TopHits(hits)) => {
            top_hits_fit(*size, sort, &own, hits)
        }
        (
            _,
            AggregationResult::Groups {
                groups, other_count, ..
            },
        ) => return groups_fit(aggregation, groups, *other_count, &own, &scope),
        _ => false,
    };
    if right {
        Ok(())
    } else {
        Err(format!("{aggregation:?} answered {result:?}"))
    }
}

fn percentiles_fit(
    field: &str,
    percentages: &[f64],
    missing: Option<&QueryValue>,
    own: &[Entity<'_>],
    result: &AggregationResult,
) -> bool {
    let mut sorted: Vec<Datum> = own
        .iter()
        .flat_map(|entity| data(entity, field, missing))
        .collect();
    sorted.sort_by_key(rank);
    let AggregationResult::Percentiles {
        values,
        count,
        rank_error_bound,
    } = result
    else {
        return false;
    };
    if sorted.is_empty() {
        return values.is_empty() && *count == 0;
    }
    let expected = percentages.iter().map(|percentage| {
        let covered = |rank: &usize| covers(*rank, sorted.len(), *percentage);
        let rank = (1..=sorted.len()).find(covered).expect("all of them are 100 %");
        sorted[rank - 1].clone()
    });
    *count == sorted.len() as u64 && *rank_error_bound == 0.0 && *values == expected.collect::<Vec<_>>()
}

/// Whether `part` of `all` are at least so many percent: in whole numbers, of the percentage as it is written.
fn covers(part: usize, all: usize, percentage: f64) -> bool {
    let written = percentage.to_string();
    let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
    // 20 digits behind the point are enough for what these tests ask.
    let padded = format!("{whole}{fraction:0<20}");
    assert!(fraction.len() <= 20, "{written}");
    let percent = 10_u128.pow(20);
    part as u128 * 100 * percent >= padded.parse::<u128>().expect("digits") * all as u128
}

/// The middle of points by sums of doubles.
fn centroid_fits(field: &str, own: &[Entity<'_>], found: Option<GeoPoint>, count: u64) -> bool {
    let points: Vec<GeoPoint> = own.iter().flat_map(|entity| points(entity, field)).collect();
    let mut sum = [0.0; 3];
    for point in &points {
        let (latitude, longitude) = (point.latitude().to_radians(), point.longitude().to_radians());
        sum[0] += latitude.cos() * longitude.cos();
        sum[1] += latitude.cos() * longitude.sin();
        sum[2] += latitude.sin();
    }
    let length = sum.iter().map(|part| part * part).sum::<f64>().sqrt();
    let Some(found) = found else {
        return count == points.len() as u64 && length < 1e-9 * (1.0 + count as f64);
    };
    let latitude = sum[2].atan2(sum[0].hypot(sum[1])).to_degrees();
    let longitude = sum[1].atan2(sum[0]).to_degrees();
    let expected = GeoPoint::new(latitude, longitude).expect("a point");
    count == points.len() as u64 && found.distance_meters(expected) < 0.05
}

fn top_hits_fit(size: usize, sorts: &[Sort], own: &[Entity<'_>], hits: &[TopHit]) -> bool {
    let mut expected: Vec<(Vec<u8>, Vec<SortValue>)> = own
        .iter()
        .map(|entity| {
            let value = |sort| {
                reference::sort_value(scope_at(""), sort, entity.key, entity.object()).expect("no scores")
            };
            (entity.key.to_vec(), sorts.iter().map(value).collect())
        })
        .collect();
    expected.sort_by(|one, other| reference::compare_hits(sorts, (&one.0, &one.1), (&other.0, &other.1)));
    expected.truncate(size);
    let found: Vec<_> = hits
        .iter()
        .map(|hit| (hit.key.clone(), hit.sort_values.clone()))
        .collect();
    found == expected
}

fn shown_range(datum: &Datum, bounds: &ValueRange, first: Option<&Datum>) -> bool {
    let integer = |value: &QueryValue| match value {
        QueryValue::Integer(number) => *number,
        other => panic!("not made by this test: {other:?}"),
    };
    let before_end = bounds.to.as_ref().is_none_or(|to| match datum {
        Datum::Long(begin) | Datum::Date(begin) => *begin < integer(to),
        Datum::Double(begin) => *begin < integer(to) as f64,
        _ => false,
    });
    before_end && first.is_none_or(|first| rank(datum) >= rank(first))
}

/// The groups of a histogram that are shown, empty ones among them.
fn intervals<'a>(
    aggregation: &Aggregation,
    mut own: BTreeMap<Rank, Members<'a>>,
) -> BTreeMap<Rank, Members<'a>> {
    let (bounds, min_doc_count) = match aggregation {
        Aggregation::Histogram {
            bounds,
            min_doc_count,
            ..
        }
        | Aggregation::DateHistogram {
            bounds,
            min_doc_count,
            ..
        } => (bounds, *min_doc_count),
        _ => return own,
    };
    let end = |value: &QueryValue| match value {
        QueryValue::Integer(number) => *number,
        other => panic!("not made by this test: {other:?}"),
    };
    // The interval that holds a number, so many intervals later.
    let begin = |number: i64, later: i64| match aggregation {
        Aggregation::Histogram {
            field,
            interval: width,
            offset,
            ..
        } => {
            let of = if ["price", "items.weight"].contains(&field.as_str()) {
                Datum::Double(number as f64)
            } else {
                Datum::Long(number)
            };
            match interval(&of, *width, *offset) {
                Datum::Long(begin) => Datum::Long(begin + later * *width as i64),
                Datum::Double(begin) => {
                    let step = ((begin - offset) / width).round() + later as f64;
                    Datum::Double(step * width + offset + 0.0)
                }
                other => other,
            }
        }
        _ => {
            let begin = calendar_of(aggregation).begin(i128::from(number), i128::from(later));
            Datum::Date(i64::try_from(begin).expect("near the epoch"))
        }
    };
    let first = bounds.from.as_ref().map(|from| begin(end(from), 0));
    own.retain(|_, (keys, members)| {
        let key = keys[0].as_ref().expect("a key");
        members.len() as u64 >= min_doc_count && shown_range(key, bounds, first.as_ref())
    });
    if let (Some(from), Some(_), 0) = (&bounds.from, &bounds.to, min_doc_count) {
        for later in 0.. {
            let key = begin(end(from), later);
            if !shown_range(&key, bounds, None) {
                break;
            }
            own.entry(rank(&key)).or_insert((vec![Some(key)], Vec::new()));
        }
    }
    own
}

fn groups_fit(
    aggregation: &Aggregation,
    groups: &[Group],
    other_count: u64,
    own: &[Entity<'_>],
    scope: &str,
) -> Outcome {
    let wrong = |why: &str| {
        Err(format!(
            "{why}: {aggregation:?} answered {groups:?}, {other_count} others"
        ))
    };
    let inside = aggregation.inside();
    if let Aggregation::Composite { sources, .. } = aggregation {
        let expected = combinations(sources, own);
        if groups.len() != expected.len() {
            return wrong("another number of groups");
        }
        for (group, (keys, members)) in groups.iter().zip(expected) {
            if group.keys != keys || group.count != members.len() as u64 {
                return wrong(&format!("not {keys:?}"));
            }
            check_all(inside, &group.aggregations, &members, scope)?;
        }
        return Ok(());
    }
    let expected = group_by(aggregation, own, scope);
    let (order, size, min_doc_count) = match aggregation {
        Aggregation::Terms {
            order,
            size,
            min_doc_count,
            ..
        } => (order.as_slice(), *size, *min_doc_count),
        Aggregation::GeoCell { size, .. } | Aggregation::GeoHash { size, .. } => (&[][..], *size, 1),
        Aggregation::Histogram { order, .. } | Aggregation::DateHistogram { order, .. } => {
            let all: u64 = expected.values().map(|(_, members)| members.len() as u64).sum();
            let expected = intervals(aggregation, expected);
            let shown: u64 = groups.iter().map(|group| group.count).sum();
            // Those outside of the bounds count nowhere.
            if groups.len() != expected.len() || shown + other_count > all {
                return wrong("another number of groups");
            }
            let by_key = [GroupOrder {
                by: GroupOrderBy::Key,
                descending: false,
            }];
            let order = if order.is_empty() { &by_key[..] } else { order };
            if !groups.windows(2).all(|pair| in_order(&pair[0], &pair[1], order)) {
                return wrong("another order");
            }
            for group in groups {
                match group.keys[0].as_ref().and_then(|key| expected.get(&rank(key))) {
                    Some((_, members)) if members.len() as u64 == group.count => {
                        check_all(inside, &group.aggregations, members, scope)?;
                    }
                    _ => return wrong(&format!("not {:?}", group.keys)),
                }
            }
            return Ok(());
        }
        Aggregation::Range { ranges, .. } => {
            return each_fits(aggregation, groups, ranges.len(), expected, scope);
        }
        Aggregation::GeoDistance { ranges, .. } => {
            return each_fits(aggregation, groups, ranges.len(), expected, scope);
        }
        Aggregation::Filters { filters, .. } => {
            return each_fits(aggregation, groups, filters.len(), expected, scope);
        }
        other => return Err(format!("no grouping: {other:?}")),
    };
    let all: u64 = expected.values().map(|(_, members)| members.len() as u64).sum();
    let large = expected
        .values()
        .filter(|(_, members)| members.len() as u64 >= min_doc_count);
    let shown: u64 = groups.iter().map(|group| group.count).sum();
    let by_count = [GroupOrder {
        by: GroupOrderBy::Count,
        descending: true,
    }];
    let order = if order.is_empty() { &by_count } else { order };
    if groups.len() != large.count().min(size) || all - shown != other_count {
        return wrong("other groups");
    }
    if !groups.windows(2).all(|pair| in_order(&pair[0], &pair[1], order)) {
        return wrong("another order");
    }
    for group in groups {
        match group.keys[0].as_ref().and_then(|key| expected.get(&rank(key))) {
            Some((_, members)) if members.len() as u64 == group.count => {
                check_all(inside, &group.aggregations, members, scope)?;
            }
            _ => return wrong(&format!("not {:?}", group.keys)),
        }
    }
    // By count or key, those that are left out come after the last that is shown.
    let by_figure = order
        .iter()
        .any(|key| matches!(key.by, GroupOrderBy::Aggregation(_)));
    if let Some(last) = groups.last().filter(|_| !by_figure) {
        let key = |group: &Group| group.keys[0].as_ref().map(rank);
        let shown: BTreeSet<_> = groups.iter().map(key).collect();
        for (rank, (keys, members)) in &expected {
            let left_out = Group {
                keys: keys.clone(),
                count: members.len() as u64,
                aggregations: Vec::new(),
            };
            let due = left_out.count >= min_doc_count && !shown.contains(&Some(rank.clone()));
            if due && !in_order(last, &left_out, order) {
                return wrong("a better group was left out");
            }
        }
    }
    Ok(())
}

/// One group for each range or filter.
fn each_fits(
    aggregation: &Aggregation,
    groups: &[Group],
    every: usize,
    expected: BTreeMap<Rank, Members<'_>>,
    scope: &str,
) -> Outcome {
    if groups.len() != every {
        return Err(format!("{aggregation:?} answered {groups:?}"));
    }
    for (nth, group) in groups.iter().enumerate() {
        let members = expected.get(&(nth as i128, String::new()));
        let members = members.map_or(&[][..], |(_, members)| members.as_slice());
        if group.count != members.len() as u64 {
            return Err(format!("{nth}: {aggregation:?} answered {groups:?}"));
        }
        check_all(aggregation.inside(), &group.aggregations, members, scope)?;
    }
    Ok(())
}

fn in_order(one: &Group, other: &Group, order: &[GroupOrder]) -> bool {
    let key = |group: &Group| rank(group.keys[0].as_ref().expect("a key"));
    for by in order {
        let figure = |group: &Group, name: &str| {
            let (_, result) = group.aggregations.iter().find(|(own, _)| own == name)?;
            match result {
                AggregationResult::Value(value) => value.clone(),
                _ => None,
            }
        };
        let ordering = match &by.by {
            GroupOrderBy::Key => key(one).cmp(&key(other)),
            GroupOrderBy::Count => one.count.cmp(&other.count),
            GroupOrderBy::Aggregation(name) => match (figure(one, name), figure(other, name)) {
                (Some(Datum::Long(one)), Some(Datum::Double(other))) => (one as f64).total_cmp(&other),
                (Some(Datum::Double(one)), Some(Datum::Long(other))) => one.total_cmp(&(other as f64)),
                (Some(one), Some(other)) => rank(&one).cmp(&rank(&other)),
                (None, Some(_)) => return false,
                (Some(_), None) => return true,
                (None, None) => continue,
            },
        };
        if ordering.is_ne() {
            return ordering.is_lt() != by.descending;
        }
    }
    key(one) < key(other)
}

fn close(one: f64, other: f64, scale: f64) -> bool {
    (one - other).abs() <= scale * 1e-9 + f64::MIN_POSITIVE || one == other
}

/// Whether no other double is nearer to a mean of whole numbers, of which there are few: compared as whole numbers, with
/// the points half way to its neighbours.
fn is_nearest_mean(found: f64, sum: i128, count: i128) -> bool {
    let bits = if found.abs() < 1_048_576.0 { 80 } else { 40 };
    let fixed = |number: f64| (number * 2_f64.powi(bits)) as i128;
    let below = fixed(found.next_down()) + fixed(found);
    let above = fixed(found) + fixed(found.next_up());
    let twice = 2 * (sum << bits);
    below * count <= twice && twice <= above * count
}

fn figure_fits(figure: MetricKind, values: &[Datum], result: &AggregationResult) -> bool {
    let count = values.len() as i64;
    let whole: i128 = values
        .iter()
        .map(|value| match value {
            Datum::Long(number) | Datum::Date(number) => i128::from(*number),
            _ => 0,
        })
        .sum();
    let doubles = || {
        values.iter().filter_map(|value| match value {
            Datum::Double(number) => Some(*number),
            _ => None,
        })
    };
    let double: f64 = doubles().sum();
    let scale: f64 = doubles().map(f64::abs).sum();
    let lowest = values.iter().min_by_key(|value| rank(value)).cloned();
    let highest = values.iter().max_by_key(|value| rank(value)).cloned();
    let sum_fits = |found: Option<&Datum>| match (found, values.first()) {
        (None, None) => true,
        (Some(Datum::Double(found)), Some(Datum::Double(_))) => close(*found, double, scale),
        (Some(Datum::Long(found)), Some(Datum::Long(_))) => i128::from(*found) == whole,
        (Some(Datum::Double(found)), Some(Datum::Long(_))) => {
            i64::try_from(whole).is_err() && *found == whole as f64
        }
        _ => false,
    };
    let avg_fits = |found: Option<&Datum>| match (found, values.first()) {
        (None, None) => true,
        (Some(Datum::Double(found)), Some(Datum::Double(_))) => {
            close(*found, double / count as f64, scale / count as f64)
        }
        (Some(Datum::Double(found)), Some(Datum::Long(_))) => {
            is_nearest_mean(*found, whole, i128::from(count))
        }
        (Some(Datum::Date(found)), Some(Datum::Date(_))) => {
            i128::from(*found) == whole.div_euclid(i128::from(count))
        }
        _ => false,
    };
    match (figure, result) {
        (MetricKind::Count, AggregationResult::Value(value)) => *value == Some(Datum::Long(count)),
        (MetricKind::DistinctCount, AggregationResult::Value(value)) => {
            let different: BTreeSet<_> = values.iter().map(rank).collect();
            *value == Some(Datum::Long(different.len() as i64))
        }
        (MetricKind::Min, AggregationResult::Value(value)) => *value == lowest,
        (MetricKind::Max, AggregationResult::Value(value)) => *value == highest,
        (MetricKind::Sum, AggregationResult::Value(value)) => sum_fits(value.as_ref()),
        (MetricKind::Avg, AggregationResult::Value(value)) => avg_fits(value.as_ref()),
        (
            MetricKind::Stats,
            AggregationResult::Stats {
                count: found,
                sum,
                avg,
                min,
                max,
            },
        ) => {
            let dates = matches!(values.first(), Some(Datum::Date(_)));
            *found == count as u64
                && (if dates {
                    sum.is_none()
                } else {
                    sum_fits(sum.as_ref())
                })
                && avg_fits(avg.as_ref())
                && (min, max) == (&lowest, &highest)
        }
        _ => false,
    }
}
