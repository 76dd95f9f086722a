//! The groups of an aggregation, by brute force.

use std::collections::BTreeMap;

use h3o::{LatLng, Resolution};
use souk_index::{
    Aggregation, CalendarUnit, CompositeSource, Datum, FieldValue, GeoPoint, QueryValue, SourceKind,
    TimeZone, ValueRange,
};

use super::super::{reference, scope_at};
use super::entities::{Entity, Rank, data, rank, scope_of};

/// A group: its keys and its members.
pub(crate) type Members<'a> = (Vec<Option<Datum>>, Vec<Entity<'a>>);

pub(crate) fn points(entity: &Entity<'_>, field: &str) -> Vec<GeoPoint> {
    let values = reference::values(entity.object(), scope_at(scope_of(field)), field);
    values
        .iter()
        .map(|value| match value {
            FieldValue::GeoPoint(point) => *point,
            other => panic!("not a point: {other:?}"),
        })
        .collect()
}

/// By halving the globe; up to 12 characters doubles are exact.
fn geohash(point: GeoPoint, characters: u8) -> String {
    const NAMES: &str = "0123456789bcdefghjkmnpqrstuvwxyz";
    let mut halves = [
        (-180.0, 180.0, point.longitude()),
        (-90.0, 90.0, point.latitude()),
    ];
    let mut bits = (0..usize::from(characters) * 5).map(|nth| {
        let (low, high, place) = &mut halves[nth % 2];
        let middle: f64 = (*low + *high) / 2.0;
        let upper = *place >= middle;
        *if upper { low } else { high } = middle;
        usize::from(upper)
    });
    let mut name = String::new();
    for _ in 0..characters {
        let number = bits.by_ref().take(5).fold(0, |number, bit| number * 2 + bit);
        name.extend(NAMES.chars().nth(number));
    }
    name
}

fn cell(point: GeoPoint, resolution: u8) -> Datum {
    let place = LatLng::new(point.latitude(), point.longitude()).expect("a place");
    let cell = place.to_cell(Resolution::try_from(resolution).expect("a resolution"));
    Datum::String(cell.to_string())
}

/// A number as a double.
fn real(datum: &Datum) -> f64 {
    match datum {
        Datum::Long(number) | Datum::Date(number) => *number as f64,
        Datum::Double(number) => *number,
        other => panic!("no number: {other:?}"),
    }
}

fn below(datum: &Datum, end: &QueryValue) -> bool {
    match (datum, end) {
        (Datum::Long(number) | Datum::Date(number), QueryValue::Integer(end)) => number < end,
        (Datum::Double(number), QueryValue::Integer(end)) => *number < *end as f64,
        other => panic!("not made by this test: {other:?}"),
    }
}

fn is_whole(interval: f64, offset: f64) -> bool {
    interval.fract() == 0.0 && offset.fract() == 0.0
}

/// The beginning of the interval of a number.
pub(crate) fn interval(datum: &Datum, interval: f64, offset: f64) -> Datum {
    match datum {
        Datum::Long(number) if is_whole(interval, offset) => {
            let (width, offset) = (interval as i128, offset as i128);
            let begin = (i128::from(*number) - offset).div_euclid(width) * width + offset;
            Datum::Long(i64::try_from(begin).unwrap_or(i64::MIN))
        }
        _ => {
            let offset = offset % interval;
            let step = ((real(datum) - offset) / interval).floor();
            Datum::Double((step * interval + offset).clamp(f64::MIN, f64::MAX) + 0.0)
        }
    }
}

const DAY: i128 = 86_400_000_000_000;

fn days_of_year(year: i128) -> i128 {
    if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) {
        366
    } else {
        365
    }
}

fn days_of_month(year: i128, month: i128) -> i128 {
    match month {
        1 => days_of_year(year) - 337,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

/// Days from 1970 to the first of a month, which is counted from January of the year 0.
fn days_before(month: i128) -> i128 {
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12));
    let years: i128 = if year >= 1970 {
        (1970..year).map(days_of_year).sum()
    } else {
        -(year..1970).map(days_of_year).sum::<i128>()
    };
    years + (0..month).map(|month| days_of_month(year, month)).sum::<i128>()
}

fn month_of(day: i128) -> i128 {
    // From a month that is surely not behind it: months have 30 to 31 days in the mean.
    let mut month = 1970 * 12 + day.div_euclid(30).min(day.div_euclid(31)) - 1;
    while days_before(month + 1) <= day {
        month += 1;
    }
    assert!(days_before(month) <= day, "{day}");
    month
}

/// Intervals of time as they are asked for.
#[derive(Clone, Copy)]
pub(crate) struct Calendar {
    pub(crate) interval: u32,
    pub(crate) unit: CalendarUnit,
    pub(crate) zone: TimeZone,
    pub(crate) offset: i64,
}

impl Calendar {
    /// When the interval of a time begins, so many intervals later.
    pub(crate) fn begin(self, time: i128, later: i128) -> i128 {
        let text = self.zone.to_string();
        let number = |range: std::ops::Range<usize>| text[range].parse::<i128>().expect("digits");
        let minutes = number(1..3) * 60 + number(4..6);
        let sign = if text.starts_with('-') { -1 } else { 1 };
        let ahead = sign * minutes * 60_000_000_000 - i128::from(self.offset);
        let local = time + ahead;
        let interval = i128::from(self.interval);
        let fixed = |unit: i128, from: i128| {
            let width = unit * interval;
            ((local - from).div_euclid(width) + later) * width + from
        };
        let months = |unit: i128| {
            let width = unit * interval;
            days_before((month_of(local.div_euclid(DAY)).div_euclid(width) + later) * width) * DAY
        };
        let begin = match self.unit {
            CalendarUnit::Millisecond => fixed(1_000_000, 0),
            CalendarUnit::Second => fixed(1_000_000_000, 0),
            CalendarUnit::Minute => fixed(60_000_000_000, 0),
            CalendarUnit::Hour => fixed(3_600_000_000_000, 0),
            CalendarUnit::Day => fixed(DAY, 0),
            CalendarUnit::Week => fixed(7 * DAY, -3 * DAY),
            CalendarUnit::Month => months(1),
            CalendarUnit::Quarter => months(3),
            CalendarUnit::Year => months(12),
        };
        begin - ahead
    }

    fn of(self, datum: &Datum) -> Datum {
        let Datum::Date(time) = datum else {
            panic!("no time: {datum:?}")
        };
        let begin = self.begin(i128::from(*time), 0);
        Datum::Date(i64::try_from(begin).unwrap_or(i64::MIN))
    }
}

/// The keys of one entity: each once.
fn keys(aggregation: &Aggregation, entity: &Entity<'_>) -> BTreeMap<Rank, Vec<Option<Datum>>> {
    let of_data = |field: &str, missing: Option<&QueryValue>, key: &dyn Fn(Datum) -> Datum| {
        let data = data(entity, field, missing).into_iter().map(key);
        data.map(|datum| (rank(&datum), vec![Some(datum)])).collect()
    };
    let nth = |nth: usize, keys: Vec<Option<Datum>>| ((nth as i128, String::new()), keys);
    match aggregation {
        Aggregation::Terms { field, missing, .. } => of_data(field, missing.as_ref(), &|datum| datum),
        Aggregation::Histogram {
            field,
            interval: width,
            offset,
            missing,
            ..
        } => of_data(field, missing.as_ref(), &|datum| {
            interval(&datum, *width, *offset)
        }),
        Aggregation::DateHistogram { field, missing, .. } => {
            let calendar = calendar_of(aggregation);
            of_data(field, missing.as_ref(), &|datum| calendar.of(&datum))
        }
        Aggregation::GeoCell {
            field, resolution, ..
        } => {
            let cells = points(entity, field)
                .into_iter()
                .map(|point| cell(point, *resolution));
            cells.map(|cell| (rank(&cell), vec![Some(cell)])).collect()
        }
        Aggregation::GeoHash {
            field, characters, ..
        } => {
            let cells = points(entity, field)
                .into_iter()
                .map(|point| Datum::String(geohash(point, *characters)));
            cells.map(|cell| (rank(&cell), vec![Some(cell)])).collect()
        }
        Aggregation::Range { field, ranges, .. } => {
            let data = data(entity, field, None);
            let holds = |range: &ValueRange| {
                data.iter().any(|datum| {
                    range.from.as_ref().is_none_or(|from| !below(datum, from))
                        && range.to.as_ref().is_none_or(|to| below(datum, to))
                })
            };
            let own = ranges.iter().enumerate().filter(|(_, range)| holds(range));
            own.map(|(at, _)| nth(at, Vec::new())).collect()
        }
        Aggregation::GeoDistance {
            field,
            origin,
            ranges,
            ..
        } => {
            let distances = points(entity, field)
                .into_iter()
                .map(|point| origin.distance_meters(point));
            let Some(nearest) = distances.min_by(f64::total_cmp) else {
                return BTreeMap::new();
            };
            let own = ranges.iter().enumerate().filter(|(_, (from, to))| {
                from.is_none_or(|from| from <= nearest) && to.is_none_or(|to| nearest < to)
            });
            own.map(|(at, _)| nth(at, Vec::new())).collect()
        }
        other => panic!("no grouping by values: {other:?}"),
    }
}

/// The intervals of a `DateHistogram`.
pub(crate) fn calendar_of(aggregation: &Aggregation) -> Calendar {
    match aggregation {
        Aggregation::DateHistogram {
            interval,
            unit,
            time_zone,
            offset,
            ..
        } => Calendar {
            interval: *interval,
            unit: *unit,
            zone: *time_zone,
            offset: *offset,
        },
        other => panic!("no date histogram: {other:?}"),
    }
}

/// All groups of a grouping that have members.
pub(crate) fn groups<'a>(
    aggregation: &Aggregation,
    given: &[Entity<'a>],
    scope: &str,
) -> BTreeMap<Rank, Members<'a>> {
    let mut groups: BTreeMap<Rank, Members<'a>> = BTreeMap::new();
    for entity in given {
        let own = match aggregation {
            Aggregation::Filters { filters, .. } => {
                let matching = filters.iter().enumerate();
                matching
                    .filter(|(_, filter)| reference::matches(filter, entity.object(), scope_at(scope)))
                    .map(|(at, _)| ((at as i128, String::new()), Vec::new()))
                    .collect()
            }
            _ => keys(aggregation, entity),
        };
        for (rank, keys) in own {
            groups
                .entry(rank)
                .or_insert((keys, Vec::new()))
                .1
                .push(entity.clone());
        }
    }
    groups
}

/// The keys of a composite: their order, and what is shown of them.
type Combination = (Vec<Option<Rank>>, Vec<Option<Datum>>);

/// The groups of a composite, in order.
pub(crate) fn combinations<'a>(sources: &[CompositeSource], given: &[Entity<'a>]) -> Vec<Members<'a>> {
    let mut groups: BTreeMap<Vec<Option<Rank>>, Members<'a>> = BTreeMap::new();
    for entity in given {
        let mut combinations: Vec<Combination> = vec![Default::default()];
        for source in sources {
            let mut own: BTreeMap<Option<Rank>, Option<Datum>> = source_keys(source, entity)
                .into_iter()
                .map(|datum| (Some(rank(&datum)), Some(datum)))
                .collect();
            if own.is_empty() && source.include_missing {
                own.insert(None, None);
            }
            combinations = combinations
                .into_iter()
                .flat_map(|(ranks, keys)| {
                    own.iter().map(move |(rank, datum)| {
                        let (mut ranks, mut keys) = (ranks.clone(), keys.clone());
                        ranks.push(rank.clone());
                        keys.push(datum.clone());
                        (ranks, keys)
                    })
                })
                .collect();
        }
        for (ranks, keys) in combinations {
            groups
                .entry(ranks)
                .or_insert((keys, Vec::new()))
                .1
                .push(entity.clone());
        }
    }
    let mut sorted: Vec<_> = groups.into_iter().collect();
    sorted.sort_by(|(one, _), (other, _)| {
        let by_source = sources.iter().zip(one.iter().zip(other));
        by_source
            .map(|(source, (one, other))| {
                if source.descending {
                    other.cmp(one)
                } else {
                    one.cmp(other)
                }
            })
            .find(|ordering| ordering.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    sorted.into_iter().map(|(_, members)| members).collect()
}

fn source_keys(source: &CompositeSource, entity: &Entity<'_>) -> Vec<Datum> {
    let data = || data(entity, &source.field, source.missing.as_ref()).into_iter();
    match &source.kind {
        SourceKind::Terms => data().collect(),
        SourceKind::Histogram {
            interval: width,
            offset,
        } => data().map(|datum| interval(&datum, *width, *offset)).collect(),
        SourceKind::DateHistogram {
            interval,
            unit,
            time_zone,
            offset,
        } => {
            let calendar = Calendar {
                interval: *interval,
                unit: *unit,
                zone: *time_zone,
                offset: *offset,
            };
            data().map(|datum| calendar.of(&datum)).collect()
        }
        SourceKind::GeoCell { resolution } => points(entity, &source.field)
            .into_iter()
            .map(|point| cell(point, *resolution))
            .collect(),
    }
}
