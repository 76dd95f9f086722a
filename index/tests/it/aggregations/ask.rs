//! Random aggregations over the schema of these tests.

use fastrand::Rng;
use souk_index::{
    Aggregation, CalendarUnit, CompositeSource, GroupOrder, GroupOrderBy, MetricKind, QueryValue, Sort,
    SourceKind, ValueRange,
};

use super::super::random;
use super::super::value::pick;
use super::entities::scope_of;

const KEYS: [&str; 13] = [
    "kind",
    "tags",
    "n",
    "m",
    "price",
    "flag",
    "at",
    "items.sku",
    "items.qty",
    "items.weight",
    "items.fresh",
    "items.parts.code",
    "items.parts.made",
];
const SUMMABLE: [&str; 6] = ["n", "m", "price", "items.qty", "items.weight", "items.parts.size"];
const DATES: [&str; 2] = ["at", "items.parts.made"];
const POINTS: [&str; 2] = ["spot", "items.place"];
const FIGURES: [MetricKind; 7] = [
    MetricKind::Count,
    MetricKind::DistinctCount,
    MetricKind::Min,
    MetricKind::Max,
    MetricKind::Avg,
    MetricKind::Stats,
    MetricKind::Sum,
];
const UNITS: [CalendarUnit; 9] = [
    CalendarUnit::Millisecond,
    CalendarUnit::Second,
    CalendarUnit::Minute,
    CalendarUnit::Hour,
    CalendarUnit::Day,
    CalendarUnit::Week,
    CalendarUnit::Month,
    CalendarUnit::Quarter,
    CalendarUnit::Year,
];

type Named = Vec<(String, Aggregation)>;

fn missing(rng: &mut Rng, field: &str) -> Option<QueryValue> {
    rng.bool().then(|| match field {
        "kind" | "tags" | "items.sku" | "items.parts.code" => {
            QueryValue::from(pick(rng, &["alpha", "none of them", "", "zzz"]))
        }
        "flag" | "items.fresh" => QueryValue::Boolean(rng.bool()),
        _ => QueryValue::Integer(rng.i64(-3..4)),
    })
}

fn number(rng: &mut Rng) -> &'static str {
    if rng.bool() {
        pick(rng, &SUMMABLE)
    } else {
        pick(rng, &DATES)
    }
}

/// Aggregations of what matching objects of `scope` are grouped into.
pub(crate) fn aggregations(rng: &mut Rng, scope: &str, level: usize) -> Named {
    let count = rng.usize(1..4);
    (0..count)
        .map(|nth| {
            let aggregation = if level < 3 && rng.bool() {
                grouping(rng, scope, level)
            } else {
                leaf(rng)
            };
            (format!("a{nth}"), aggregation)
        })
        .collect()
}

fn leaf(rng: &mut Rng) -> Aggregation {
    match rng.u8(..9) {
        0 => {
            let field = number(rng);
            Aggregation::Percentiles {
                field: field.to_owned(),
                percentages: vec![0.0, 37.5, 50.0, rng.f64() * 100.0, 100.0],
                missing: missing(rng, field),
            }
        }
        2 => Aggregation::GeoCentroid {
            field: pick(rng, &POINTS).to_owned(),
        },
        1 => Aggregation::TopHits {
            size: rng.usize(1..4),
            sort: loop {
                let sort = random::sorts(rng);
                let scored = sort.iter().any(|sort| matches!(sort, Sort::Score { .. }));
                if !scored && !sort.is_empty() {
                    break sort;
                }
            },
        },
        _ => figure(rng),
    }
}

fn figure(rng: &mut Rng) -> Aggregation {
    let figure = pick(rng, &FIGURES);
    let field = match figure {
        MetricKind::Count | MetricKind::DistinctCount if rng.u8(..4) == 0 => pick(rng, &POINTS),
        MetricKind::Count | MetricKind::DistinctCount => pick(rng, &KEYS),
        MetricKind::Sum => pick(rng, &SUMMABLE),
        MetricKind::Min | MetricKind::Max | MetricKind::Avg | MetricKind::Stats => number(rng),
    };
    let missing = if POINTS.contains(&field) {
        None
    } else {
        missing(rng, field)
    };
    Aggregation::Figure {
        field: field.to_owned(),
        figure,
        missing,
    }
}

fn order(rng: &mut Rng, inside: &Named) -> Vec<GroupOrder> {
    let mut order = Vec::new();
    for _ in 0..rng.usize(..3) {
        let single = inside.iter().find(
            |(_, inner)| matches!(inner, Aggregation::Figure { figure, .. } if *figure != MetricKind::Stats),
        );
        let by = match (rng.u8(..3), single) {
            (0, _) => GroupOrderBy::Key,
            (1, Some((name, _))) => GroupOrderBy::Aggregation(name.clone()),
            _ => GroupOrderBy::Count,
        };
        order.push(GroupOrder {
            by,
            descending: rng.bool(),
        });
    }
    order
}

fn inside(rng: &mut Rng, scope: &str, level: usize) -> Named {
    if level < 3 {
        aggregations(rng, scope, level + 1)
    } else {
        Vec::new()
    }
}

fn ends(rng: &mut Rng, unit: i64) -> ValueRange {
    let (a, b) = (rng.i64(-20..20) * unit, rng.i64(-20..20) * unit);
    ValueRange {
        from: rng.bool().then(|| QueryValue::Integer(a.min(b))),
        to: rng.bool().then(|| QueryValue::Integer(a.max(b))),
    }
}

pub(crate) fn grouping(rng: &mut Rng, scope: &str, level: usize) -> Aggregation {
    match rng.u8(..8) {
        0 => {
            let field = number(rng);
            let count = rng.usize(1..4);
            Aggregation::Range {
                field: field.to_owned(),
                ranges: (0..count).map(|_| ends(rng, 1)).collect(),
                aggregations: inside(rng, scope_of(field), level),
            }
        }
        1 => {
            let count = rng.usize(1..3);
            Aggregation::Filters {
                filters: (0..count).map(|_| random::query(rng, scope, 1)).collect(),
                aggregations: inside(rng, scope, level),
            }
        }
        2 => {
            let field = pick(rng, &POINTS);
            let meters = |rng: &mut Rng| pick(rng, &[0.0, 500.0, 10_000.0, 1e6]);
            let (a, b) = (meters(rng), meters(rng));
            Aggregation::GeoDistance {
                field: field.to_owned(),
                origin: souk_index::GeoPoint::new(30.27, 120.15).expect("a point"),
                ranges: vec![(None, Some(b)), (Some(a.min(b)), Some(a.max(b))), (Some(a), None)],
                aggregations: inside(rng, scope_of(field), level),
            }
        }
        3 => {
            let field = pick(rng, &POINTS);
            if rng.bool() {
                return Aggregation::GeoHash {
                    field: field.to_owned(),
                    characters: rng.u8(1..=12),
                    size: rng.usize(1..12),
                    aggregations: inside(rng, scope_of(field), level),
                };
            }
            Aggregation::GeoCell {
                field: field.to_owned(),
                resolution: rng.u8(..8),
                size: rng.usize(1..12),
                aggregations: inside(rng, scope_of(field), level),
            }
        }
        4 => {
            let field = pick(rng, &SUMMABLE);
            let inside = inside(rng, scope_of(field), level);
            Aggregation::Histogram {
                field: field.to_owned(),
                interval: pick(rng, &[1.0, 2.0, 2.5, 1e17]),
                offset: pick(rng, &[0.0, 1.0, -7.5]),
                min_doc_count: rng.u64(..3),
                missing: missing(rng, field),
                bounds: ends(rng, 1),
                order: order(rng, &inside),
                aggregations: inside,
            }
        }
        5 => {
            let field = pick(rng, &DATES);
            let inside = inside(rng, scope_of(field), level);
            let unit = pick(rng, &UNITS);
            let wide = matches!(
                unit,
                CalendarUnit::Month | CalendarUnit::Quarter | CalendarUnit::Year | CalendarUnit::Week
            );
            Aggregation::DateHistogram {
                field: field.to_owned(),
                interval: rng.u32(1..4),
                unit,
                time_zone: zone(rng),
                offset: pick(rng, &[0, 0, 21_600_000_000_000]),
                min_doc_count: rng.u64(..3),
                missing: missing(rng, field),
                bounds: ends(rng, if wide { 86_400_000_000_000 * 30 } else { 1_000_000 }),
                order: order(rng, &inside),
                aggregations: inside,
            }
        }
        _ => {
            let field = pick(rng, &KEYS);
            let inside = inside(rng, scope_of(field), level);
            Aggregation::Terms {
                field: field.to_owned(),
                size: rng.usize(1..12),
                min_doc_count: rng.u64(..4),
                order: order(rng, &inside),
                missing: missing(rng, field),
                aggregations: inside,
            }
        }
    }
}

fn zone(rng: &mut Rng) -> souk_index::TimeZone {
    pick(rng, &["", "+08:00", "-03:30"]).parse().expect("a zone")
}

/// A composite whose sources are of one scope.
pub(crate) fn composite(rng: &mut Rng) -> Aggregation {
    let scope = scope_of(pick(rng, &KEYS));
    let of_scope = |rng: &mut Rng, fields: &[&'static str]| {
        let own: Vec<&str> = fields
            .iter()
            .copied()
            .filter(|field| scope_of(field) == scope)
            .collect();
        (!own.is_empty()).then(|| pick(rng, &own))
    };
    let mut sources = Vec::new();
    while sources.len() < 3 && (sources.is_empty() || rng.bool()) {
        let (field, kind) = match rng.u8(..6) {
            0 => {
                let interval = pick(rng, &[2.0, 2.5]);
                let kind = SourceKind::Histogram {
                    interval,
                    offset: 1.0,
                };
                (of_scope(rng, &SUMMABLE), kind)
            }
            1 => {
                let kind = SourceKind::DateHistogram {
                    interval: 2,
                    unit: CalendarUnit::Month,
                    time_zone: zone(rng),
                    offset: 0,
                };
                (of_scope(rng, &DATES), kind)
            }
            2 => (of_scope(rng, &POINTS), SourceKind::GeoCell { resolution: 3 }),
            _ => (of_scope(rng, &KEYS), SourceKind::Terms),
        };
        let Some(field) = field else { continue };
        let points = matches!(kind, SourceKind::GeoCell { .. });
        let missing = if points { None } else { missing(rng, field) };
        sources.push(CompositeSource {
            field: field.to_owned(),
            kind,
            descending: rng.bool(),
            include_missing: missing.is_none() && rng.bool(),
            missing,
        });
    }
    Aggregation::Composite {
        sources,
        size: rng.usize(1..40),
        after: None,
        aggregations: if rng.bool() {
            aggregations(rng, scope, 2)
        } else {
            Vec::new()
        },
    }
}
