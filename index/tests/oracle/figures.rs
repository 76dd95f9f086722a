//! The figures of aggregations: exact numbers of all values, and the doubles nearest to them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use num_bigint::BigInt;
use souk_index::{AggregationResult, Datum, FieldValue, GeoPoint, MetricKind};

use crate::exact;
use crate::geo;

/// Compares two figures.
pub(crate) fn compare(one: &Datum, other: &Datum) -> Ordering {
    let exactly = |datum: &Datum| match datum {
        Datum::Long(number) | Datum::Date(number) => exact::integer(*number),
        Datum::Double(number) => exact::double(*number),
        other => panic!("no figure: {other:?}"),
    };
    exactly(one).cmp(&exactly(other))
}

/// Whether figures that are shown alike may not be: sums of whole numbers beyond 64 bits are shown as the nearest doubles, and ordered
/// as they are.
pub(crate) fn may_differ(one: &Datum, other: &Datum) -> bool {
    let is_rounded =
        |datum: &Datum| matches!(datum, Datum::Double(number) if number.abs() >= 2.0_f64.powi(63));
    compare(one, other).is_eq() && (is_rounded(one) || is_rounded(other))
}

fn sum(values: &[FieldValue]) -> BigInt {
    values.iter().map(exact::of_field).sum()
}

/// A figure; `None` where there is none.
pub(crate) fn figure(figure: MetricKind, values: &[FieldValue]) -> Option<Datum> {
    let by = |value: &&FieldValue| exact::of_field(value);
    match figure {
        MetricKind::Count => Some(Datum::Long(values.len() as i64)),
        MetricKind::DistinctCount => Some(Datum::Long(distinct(values))),
        MetricKind::Min => values.iter().min_by_key(by).map(shown),
        MetricKind::Max => values.iter().max_by_key(by).map(shown),
        MetricKind::Sum => {
            let whole = matches!(values.first()?, FieldValue::Long(_)).then(|| sum(values) >> 1_074);
            let long = whole.and_then(|whole| i64::try_from(whole).ok());
            let double = || exact::nearest(&sum(values), 1).clamp(f64::MIN, f64::MAX);
            Some(long.map_or_else(|| Datum::Double(double()), Datum::Long))
        }
        MetricKind::Avg => Some(match values.first()? {
            // The mean of times ends with a whole nanosecond.
            FieldValue::Date(_) => {
                let (whole, count) = (sum(values) >> 1_074_u32, BigInt::from(values.len()));
                let mut mean = &whole / &count;
                if &mean * &count > whole {
                    mean -= 1;
                }
                Datum::Date(i64::try_from(mean).expect("a time between others"))
            }
            _ => Datum::Double(exact::nearest(&sum(values), values.len() as u64)),
        }),
        MetricKind::Stats => panic!("several figures"),
    }
}

fn shown(value: &FieldValue) -> Datum {
    match value {
        FieldValue::Long(number) => Datum::Long(*number),
        FieldValue::Date(time) => Datum::Date(*time),
        FieldValue::Double(number) => Datum::Double(number + 0.0),
        other => panic!("no number: {other:?}"),
    }
}

fn distinct(values: &[FieldValue]) -> i64 {
    let names = values.iter().map(|value| match value {
        FieldValue::Double(number) => format!("{:?}", number + 0.0),
        other => format!("{other:?}"),
    });
    names.collect::<BTreeSet<String>>().len() as i64
}

/// Whether an answer is the figure of these values.
pub(crate) fn check(asked: MetricKind, values: &[FieldValue], found: &AggregationResult) -> bool {
    match (asked, found) {
        (
            MetricKind::Stats,
            AggregationResult::Stats {
                count,
                sum,
                avg,
                min,
                max,
            },
        ) => {
            let is = |of: MetricKind, found: &Option<Datum>| figure(of, values) == *found;
            let dates = matches!(values.first(), Some(FieldValue::Date(_)));
            *count == values.len() as u64
                && (if dates {
                    sum.is_none()
                } else {
                    is(MetricKind::Sum, sum)
                })
                && is(MetricKind::Avg, avg)
                && is(MetricKind::Min, min)
                && is(MetricKind::Max, max)
        }
        (MetricKind::Stats, _) => false,
        (_, AggregationResult::Value(found)) => figure(asked, values) == *found,
        _ => false,
    }
}

/// Whether percentiles are right: each the lowest value that at least so many of all values are not above.
pub(crate) fn check_percentiles(
    percentages: &[f64],
    values: &[FieldValue],
    found: &AggregationResult,
) -> bool {
    let AggregationResult::Percentiles {
        values: shown,
        count,
        rank_error_bound,
    } = found
    else {
        return false;
    };
    let mut sorted: Vec<BigInt> = values.iter().map(exact::of_field).collect();
    sorted.sort();
    let number = |datum: &Datum| match datum {
        Datum::Long(number) | Datum::Date(number) => exact::integer(*number),
        Datum::Double(number) => exact::double(*number),
        other => panic!("no number: {other:?}"),
    };
    // At least so many of all: in whole numbers, percentages as they are written.
    let enough = |not_above: usize, percentage: f64| {
        let written = percentage.to_string();
        let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
        let digits: BigInt = format!("{whole}{fraction}").parse().expect("a number");
        let hundred = BigInt::from(100) * BigInt::from(10).pow(fraction.len() as u32);
        BigInt::from(not_above) * hundred >= digits * BigInt::from(sorted.len())
    };
    let expected = percentages.iter().filter_map(|percentage| {
        let nth = (0..sorted.len()).find(|nth| enough(nth + 1, *percentage));
        nth.map(|nth| sorted[nth].clone())
    });
    *count == values.len() as u64
        && *rank_error_bound == 0.0
        && shown.iter().map(number).eq(expected)
        && shown.iter().all(|datum| match values.first() {
            Some(FieldValue::Long(_)) => matches!(datum, Datum::Long(_)),
            Some(FieldValue::Date(_)) => matches!(datum, Datum::Date(_)),
            _ => matches!(datum, Datum::Double(_)),
        })
}

/// Whether a point is in the middle of others.
pub(crate) fn check_centroid(points: &[GeoPoint], found: &AggregationResult) -> bool {
    let AggregationResult::Centroid { point, count } = found else {
        return false;
    };
    let mut middle = [0.0; 3];
    for point in points {
        for (sum, part) in middle.iter_mut().zip(geo::direction(*point)) {
            *sum += part;
        }
    }
    let length = geo::length(middle);
    let fits = match point {
        None => length < 1e-6 * (1.0 + points.len() as f64),
        // Directions that nearly cancel each other out tell little.
        Some(_) if length < 1e-6 * points.len() as f64 => !points.is_empty(),
        Some(found) => {
            let direction = geo::direction(*found);
            let apart = [0, 1, 2].map(|part| direction[part] - middle[part] / length);
            geo::length(apart) < 2e-8 + 1e-13 * points.len() as f64 / length
        }
    };
    fits && *count == points.len() as u64
}
