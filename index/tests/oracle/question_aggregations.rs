//! Random aggregations, three levels deep, in and out of nested objects.

use souk_index::{
    Aggregation, CalendarUnit, CompositeSource, GroupOrder, GroupOrderBy, MetricKind, QueryValue, SourceKind,
    TimeZone, ValueRange,
};

use crate::exact;
use crate::questions::Questions;
use crate::universe::{Kind, Leaf, once_in, pick};

type Named = Vec<(String, Aggregation)>;

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
/// Where intervals of numbers begin: mostly near 0, or as far as numbers reach.
const OFFSETS: [f64; 10] = [0.0, 0.0, 0.0, 0.0, 1.0, -7.5, 1.7e18, -9.1e18, 1e19, f64::MAX];
const LEVELS: usize = 3;
/// Nanoseconds of two hours.
const HOURS: i64 = 7_200_000_000_000;

fn is_number(leaf: &Leaf) -> bool {
    matches!(leaf.kind, Kind::Long | Kind::Double | Kind::Date)
}

fn is_summable(leaf: &Leaf) -> bool {
    matches!(leaf.kind, Kind::Long | Kind::Double)
}

fn is_key(leaf: &Leaf) -> bool {
    is_number(leaf) || matches!(leaf.kind, Kind::Keyword | Kind::Boolean | Kind::Bytes)
}

fn is_point(leaf: &Leaf) -> bool {
    leaf.kind == Kind::Point
}

/// Whether aggregations go from the objects of one scope to those of another.
fn reaches(from: &str, to: &str) -> bool {
    let inside = |outer: &str, inner: &str| {
        outer.is_empty() || inner == outer || inner.starts_with(&format!("{outer}."))
    };
    inside(from, to) || inside(to, from)
}

impl Questions<'_> {
    /// A field of any objects that are inside those of the scope, or around them.
    fn reached(&mut self, scope: &str, fits: impl Fn(&Leaf) -> bool) -> Option<Leaf> {
        let all = self.universe.leaves.iter();
        let fields: Vec<Leaf> = all
            .filter(|leaf| fits(leaf) && reaches(scope, &leaf.scope))
            .cloned()
            .collect();
        (!fields.is_empty()).then(|| pick(self.rng, &fields).clone())
    }

    pub(crate) fn aggregations(&mut self, scope: &str, level: usize) -> Named {
        let count = self.rng.usize(1..4);
        let named = (0..count).map(|nth| (format!("a{nth}"), self.aggregation(scope, level)));
        named.collect()
    }

    fn aggregation(&mut self, scope: &str, level: usize) -> Aggregation {
        loop {
            let made = if level == 1 && once_in(self.rng, 8) {
                Some(self.composite())
            } else if level <= LEVELS && self.rng.u8(..5) < 3 {
                self.grouping(scope, level)
            } else {
                self.leaf_aggregation(scope)
            };
            if let Some(aggregation) = made {
                return aggregation;
            }
        }
    }

    fn missing(&mut self, kind: Kind) -> Option<QueryValue> {
        (kind != Kind::Point && once_in(self.rng, 3)).then(|| self.stand_in(kind))
    }

    fn leaf_aggregation(&mut self, scope: &str) -> Option<Aggregation> {
        match self.rng.u8(..8) {
            0 => {
                let leaf = self.reached(scope, is_number)?;
                let count = self.rng.usize(1..6);
                let percentages = (0..count).map(|_| {
                    *pick(
                        self.rng,
                        &[0.0, 7.0, 14.0, 28.0, 50.0, 55.0, 56.0, 12.5, 33.3, 99.9, 100.0],
                    )
                });
                let percentages = percentages.collect();
                Some(Aggregation::Percentiles {
                    missing: self.missing(leaf.kind),
                    field: leaf.path,
                    percentages,
                })
            }
            1 => Some(Aggregation::GeoCentroid {
                field: self.reached(scope, is_point)?.path,
            }),
            2 => Some(Aggregation::TopHits {
                size: *pick(self.rng, &[1, 2, 5, 100]),
                sort: self.sorts(),
            }),
            _ => {
                let figure = *pick(self.rng, &FIGURES);
                let leaf = self.reached(scope, |leaf| match figure {
                    MetricKind::Count | MetricKind::DistinctCount => is_key(leaf) || is_point(leaf),
                    MetricKind::Sum => is_summable(leaf),
                    _ => is_number(leaf),
                })?;
                Some(Aggregation::Figure {
                    missing: self.missing(leaf.kind),
                    field: leaf.path,
                    figure,
                })
            }
        }
    }

    fn inside(&mut self, scope: &str, level: usize) -> Named {
        if level < LEVELS && !once_in(self.rng, 3) {
            self.aggregations(scope, level + 1)
        } else {
            Vec::new()
        }
    }

    fn order(&mut self, inside: &Named) -> Vec<GroupOrder> {
        let single = inside.iter().find(
            |(_, inner)| matches!(inner, Aggregation::Figure { figure, .. } if *figure != MetricKind::Stats),
        );
        let single = single.map(|(name, _)| name.clone());
        let count = self.rng.usize(..3);
        let order = (0..count).map(|_| {
            let by = match (self.rng.u8(..4), &single) {
                (0, _) => GroupOrderBy::Key,
                (1 | 2, Some(name)) => GroupOrderBy::Aggregation(name.clone()),
                _ => GroupOrderBy::Count,
            };
            GroupOrder {
                by,
                descending: self.rng.bool(),
            }
        });
        order.collect()
    }

    /// Two ends, the lower below the upper.
    fn ends(&mut self, kind: Kind) -> (QueryValue, QueryValue) {
        loop {
            let (a, b) = (self.value(kind), self.value(kind));
            let ordering = exact::of_query(&a).cmp(&exact::of_query(&b));
            if ordering.is_ne() {
                return if ordering.is_lt() { (a, b) } else { (b, a) };
            }
        }
    }

    fn value_range(&mut self, kind: Kind) -> ValueRange {
        let (from, to) = self.ends(kind);
        ValueRange {
            from: self.rng.bool().then_some(from),
            to: self.rng.bool().then_some(to),
        }
    }

    fn grouping(&mut self, scope: &str, level: usize) -> Option<Aggregation> {
        Some(match self.rng.u8(..10) {
            0 => {
                let leaf = self.reached(scope, is_number)?;
                let count = self.rng.usize(1..4);
                Aggregation::Range {
                    ranges: (0..count).map(|_| self.value_range(leaf.kind)).collect(),
                    aggregations: self.inside(&leaf.scope, level),
                    field: leaf.path,
                }
            }
            1 | 2 => {
                let count = self.rng.usize(1..4);
                Aggregation::Filters {
                    filters: (0..count).map(|_| self.query(scope, 1)).collect(),
                    aggregations: self.inside(scope, level),
                }
            }
            3 => {
                let leaf = self.reached(scope, is_point)?;
                let (a, b) = (
                    *pick(self.rng, &[0.0, 500.0, 10_000.0]),
                    *pick(self.rng, &[20_000.0, 1e6, 2e7]),
                );
                Aggregation::GeoDistance {
                    origin: *pick(self.rng, &self.universe.points),
                    ranges: vec![(Some(a), Some(b)), (None, Some(b)), (Some(a), None)],
                    aggregations: self.inside(&leaf.scope, level),
                    field: leaf.path,
                }
            }
            4 => {
                let leaf = self.reached(scope, is_point)?;
                Aggregation::GeoCell {
                    resolution: self.rng.u8(..16),
                    size: *pick(self.rng, &[1, 2, 10_000]),
                    aggregations: self.inside(&leaf.scope, level),
                    field: leaf.path,
                }
            }
            5 => self.histogram(scope, level)?,
            6 => self.date_histogram(scope, level)?,
            _ => {
                let leaf = self.reached(scope, is_key)?;
                let inside = self.inside(&leaf.scope, level);
                Aggregation::Terms {
                    size: *pick(self.rng, &[1, 2, 5, 2_000]),
                    min_doc_count: self.rng.u64(..4),
                    order: self.order(&inside),
                    missing: self.missing(leaf.kind),
                    aggregations: inside,
                    field: leaf.path,
                }
            }
        })
    }

    fn histogram(&mut self, scope: &str, level: usize) -> Option<Aggregation> {
        let leaf = self.reached(scope, is_summable)?;
        let inside = self.inside(&leaf.scope, level);
        if once_in(self.rng, 6) {
            return Some(self.wide_histogram(leaf, inside));
        }
        // Empty groups are shown between ends that lie near each other.
        let (min_doc_count, bounds) = if self.rng.bool() {
            let from = self.rng.i64(-20..20);
            let end = |number: i64| Some(QueryValue::Integer(number));
            let bounds = ValueRange {
                from: end(from),
                to: end(from + self.rng.i64(1..30)),
            };
            (self.rng.u64(..2), bounds)
        } else {
            let range = self.value_range(leaf.kind);
            (
                self.rng.u64(1..3),
                if once_in(self.rng, 2) {
                    range
                } else {
                    ValueRange::default()
                },
            )
        };
        Some(Aggregation::Histogram {
            interval: *pick(self.rng, &[1.0, 2.0, 7.0, 2.5, 0.25, 1e17, 2e19, 1e300]),
            offset: *pick(self.rng, &OFFSETS),
            min_doc_count,
            missing: self.missing(leaf.kind),
            bounds,
            order: self.order(&inside),
            aggregations: inside,
            field: leaf.path,
        })
    }

    /// Empty groups between ends that are as far apart as numbers are.
    fn wide_histogram(&mut self, leaf: Leaf, inside: Named) -> Aggregation {
        let (intervals, from, to) = match leaf.kind {
            Kind::Long => (
                [1e17, 9.3e18, 2e19, 1e300],
                [i64::MIN as f64, -1e19, -1e300],
                [1.0, 1e19, 1e300],
            ),
            _ => (
                [1e307, 1e308, 1.5e308, f64::MAX],
                [-1.4e308, -1.6e308, f64::MIN],
                [1.0, 1.6e308, f64::MAX],
            ),
        };
        let end = |number: f64| Some(QueryValue::Double(number));
        // Of fractions, intervals of a LONG go on beyond its numbers.
        let whole = OFFSETS.map(f64::trunc);
        Aggregation::Histogram {
            interval: *pick(self.rng, &intervals),
            offset: *pick(self.rng, &whole),
            min_doc_count: self.rng.u64(..2),
            missing: self.missing(leaf.kind),
            bounds: ValueRange {
                from: end(*pick(self.rng, &from)),
                to: end(*pick(self.rng, &to)),
            },
            order: self.order(&inside),
            aggregations: inside,
            field: leaf.path,
        }
    }

    fn zone(&mut self) -> TimeZone {
        pick(self.rng, &["", "+08:00", "-03:30", "+18:00"])
            .parse()
            .expect("a zone")
    }

    fn date_histogram(&mut self, scope: &str, level: usize) -> Option<Aggregation> {
        let leaf = self.reached(scope, |leaf| leaf.kind == Kind::Date)?;
        let inside = self.inside(&leaf.scope, level);
        let unit = *pick(self.rng, &UNITS);
        let width = match unit {
            CalendarUnit::Millisecond => 1_000_000,
            CalendarUnit::Second => 1_000_000_000,
            CalendarUnit::Minute => 60_000_000_000,
            CalendarUnit::Hour => HOURS / 2,
            _ => HOURS * 12,
        };
        let (min_doc_count, bounds) = if self.rng.bool() {
            let from = 1_700_000_000_000_000_000 + self.rng.i64(-60..60) * HOURS;
            let to = from + self.rng.i64(1..100) * width;
            let end = |time: i64| Some(QueryValue::Time(time));
            (
                self.rng.u64(..2),
                ValueRange {
                    from: end(from),
                    to: end(to),
                },
            )
        } else {
            let range = self.value_range(Kind::Date);
            (
                self.rng.u64(1..3),
                if once_in(self.rng, 2) {
                    range
                } else {
                    ValueRange::default()
                },
            )
        };
        Some(Aggregation::DateHistogram {
            interval: *pick(self.rng, &[1, 1, 2, 3, 7]),
            unit,
            time_zone: self.zone(),
            offset: *pick(self.rng, &[0, 0, HOURS * 3, -HOURS]),
            min_doc_count,
            missing: self.missing(leaf.kind),
            bounds,
            order: self.order(&inside),
            aggregations: inside,
            field: leaf.path,
        })
    }

    /// A composite whose sources are fields of the same objects.
    fn composite(&mut self) -> Aggregation {
        let scope = loop {
            if let Some(leaf) = self.reached("", is_key) {
                break leaf.scope;
            }
        };
        let mut sources = Vec::new();
        while sources.len() < 4 && (sources.is_empty() || self.rng.bool()) {
            sources.extend(self.source(&scope));
        }
        Aggregation::Composite {
            sources,
            size: *pick(self.rng, &[1, 3, 7, 2_000]),
            after: None,
            aggregations: self.inside(&scope, 1),
        }
    }

    fn source(&mut self, scope: &str) -> Option<CompositeSource> {
        let (leaf, kind) = match self.rng.u8(..7) {
            0 => {
                let kind = SourceKind::Histogram {
                    interval: *pick(self.rng, &[2.0, 2.5, 2e19, 1e300]),
                    offset: *pick(self.rng, &OFFSETS),
                };
                (self.field(scope, is_summable)?, kind)
            }
            1 => {
                let kind = SourceKind::DateHistogram {
                    interval: self.rng.u32(1..3),
                    unit: *pick(self.rng, &UNITS),
                    time_zone: self.zone(),
                    offset: 0,
                };
                (self.field(scope, |leaf| leaf.kind == Kind::Date)?, kind)
            }
            2 => (
                self.field(scope, is_point)?,
                SourceKind::GeoCell {
                    resolution: self.rng.u8(..16),
                },
            ),
            _ => (self.field(scope, is_key)?, SourceKind::Terms),
        };
        let missing = self.missing(leaf.kind);
        Some(CompositeSource {
            field: leaf.path,
            kind,
            descending: self.rng.bool(),
            include_missing: missing.is_none() && self.rng.bool(),
            missing,
        })
    }
}
