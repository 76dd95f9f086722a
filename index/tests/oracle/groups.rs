//! The groups of aggregations: which documents and objects are in which.

use std::collections::BTreeMap;

use h3o::{LatLng, Resolution};
use num_bigint::BigInt;
use souk_index::{Aggregation, CompositeSource, Datum, FieldValue, Object, QueryValue, SourceKind};

use crate::answers::Match;
use crate::calendar::Calendar;
use crate::exact;
use crate::geo;
use crate::matching::{Oracle, objects, points, values};
use crate::universe::{Kind, Leaf};

/// A document that matches, or an object in it.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) of: Match<'a>,
    /// The objects from the outermost to itself, each with its place in its list.
    trail: Vec<(usize, &'a Object)>,
}

impl<'a> Place<'a> {
    pub(crate) fn document(of: Match<'a>) -> Self {
        Self {
            of,
            trail: Vec::new(),
        }
    }

    pub(crate) fn object(&self) -> &'a Object {
        self.trail.last().map_or(self.of.document, |(_, object)| object)
    }

    fn is(&self, other: &Self) -> bool {
        let places = |place: &Self| place.trail.iter().map(|(nth, _)| *nth).collect::<Vec<_>>();
        self.of.key == other.of.key && places(self) == places(other)
    }
}

/// The names of a path.
fn names(scope: &str) -> Vec<&str> {
    scope.split('.').filter(|name| !name.is_empty()).collect()
}

/// From the objects of one scope to those of another that are inside of them, or that they are inside of, each once.
pub(crate) fn go<'a>(given: &[Place<'a>], from: &str, to: &str) -> Vec<Place<'a>> {
    let (from, to) = (names(from), names(to));
    let mut places = given.to_vec();
    for name in to.iter().skip(from.len()) {
        let inside = places.iter().flat_map(|place| {
            objects(place.object(), name).enumerate().map(move |step| Place {
                of: place.of,
                trail: [place.trail.as_slice(), &[step]].concat(),
            })
        });
        places = inside.collect();
    }
    if to.len() < from.len() {
        let mut around: Vec<Place<'a>> = Vec::new();
        for mut place in places {
            place.trail.truncate(to.len());
            if !around.iter().any(|other| other.is(&place)) {
                around.push(place);
            }
        }
        places = around;
    }
    places
}

/// Where a key stands among others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Missing,
    Number(BigInt),
    Text(Vec<u8>),
}

/// A key as it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) rank: Rank,
    pub(crate) shown: Option<Datum>,
}

impl Key {
    /// Whether a shown key is this one; doubles were rounded.
    pub(crate) fn is(&self, found: Option<&Datum>) -> bool {
        match (&self.shown, found) {
            (Some(Datum::Double(own)), Some(Datum::Double(found))) => {
                (own - found).abs() <= own.abs() * 1e-9 || own == found
            }
            (own, found) => own.as_ref() == found,
        }
    }

    fn value(value: &FieldValue) -> Self {
        let number = || Rank::Number(exact::of_field(value));
        match value {
            FieldValue::Long(long) => Self {
                rank: number(),
                shown: Some(Datum::Long(*long)),
            },
            FieldValue::Double(double) => Self {
                rank: number(),
                shown: Some(Datum::Double(double + 0.0)),
            },
            FieldValue::Date(time) => Self {
                rank: number(),
                shown: Some(Datum::Date(*time)),
            },
            FieldValue::Boolean(flag) => Self {
                rank: Rank::Number(BigInt::from(u8::from(*flag))),
                shown: Some(Datum::Boolean(*flag)),
            },
            FieldValue::String(text) => Self::text(text.as_str().to_owned()),
            FieldValue::Bytes(bytes) => Self {
                rank: Rank::Text(bytes.clone()),
                shown: Some(Datum::Bytes(bytes.clone())),
            },
            other => panic!("no key: {other:?}"),
        }
    }

    fn text(text: String) -> Self {
        Self {
            rank: Rank::Text(text.as_bytes().to_vec()),
            shown: Some(Datum::String(text)),
        }
    }
}

/// A group: its keys, and what is in it.
pub(crate) type Members<'a> = (Vec<Key>, Vec<Place<'a>>);

/// Groups in the order of their keys.
pub(crate) type Groups<'a> = BTreeMap<Vec<Rank>, Members<'a>>;

/// The values of a field, or what stands in for them.
pub(crate) fn data(place: &Place<'_>, leaf: &Leaf, missing: Option<&QueryValue>) -> Vec<FieldValue> {
    let own = values(place.object(), leaf);
    if !own.is_empty() {
        return own.to_vec();
    }
    let stand_in = missing.map(|value| match (leaf.kind, value) {
        (Kind::Long, QueryValue::Integer(number)) => FieldValue::Long(*number),
        (Kind::Double, QueryValue::Integer(number)) => FieldValue::Double(*number as f64),
        (_, QueryValue::Double(number)) => FieldValue::Double(*number),
        (_, QueryValue::Integer(time) | QueryValue::Time(time)) => FieldValue::Date(*time),
        (_, QueryValue::Boolean(flag)) => FieldValue::Boolean(*flag),
        (_, QueryValue::String(text)) => FieldValue::from(text.as_str()),
        (_, QueryValue::Bytes(bytes)) => FieldValue::Bytes(bytes.clone()),
    });
    stand_in.into_iter().collect()
}

/// Intervals, counted by whole numbers.
pub(crate) enum Steps {
    /// Of numbers: width and beginning; `whole` where all are whole.
    Numbers {
        width: BigInt,
        begin: BigInt,
        whole: bool,
    },
    Times(Calendar),
}

impl Steps {
    pub(crate) fn numbers(kind: Kind, interval: f64, offset: f64) -> Self {
        let whole = kind == Kind::Long && interval.fract() == 0.0 && offset.fract() == 0.0;
        let width = exact::double(interval);
        Self::Numbers {
            begin: exact::double(offset) % &width,
            width,
            whole,
        }
    }

    /// The steps of a histogram.
    pub(crate) fn of(oracle: &Oracle<'_>, aggregation: &Aggregation) -> Option<Self> {
        match aggregation {
            Aggregation::Histogram {
                field,
                interval,
                offset,
                ..
            } => Some(Self::numbers(
                oracle.universe.leaf(field).kind,
                *interval,
                *offset,
            )),
            Aggregation::DateHistogram {
                interval,
                unit,
                time_zone,
                offset,
                ..
            } => Some(Self::Times(Calendar {
                interval: *interval,
                unit: *unit,
                zone: *time_zone,
                offset: *offset,
            })),
            _ => None,
        }
    }

    /// Which interval a number is in, and whether doubles may say otherwise.
    fn place(&self, number: &BigInt) -> (BigInt, bool) {
        match self {
            Self::Times(calendar) => {
                let time = i128::try_from(number >> 1_074).expect("a time");
                (BigInt::from(calendar.index(time)), false)
            }
            Self::Numbers { width, begin, whole } => {
                let from = number - begin;
                let mut index = &from / width;
                if &index * width > from {
                    index -= 1;
                }
                let rest = &from - &index * width;
                let part = exact::nearest(&rest, 1) / exact::nearest(width, 1);
                let steps = exact::nearest(&(number.magnitude() + begin.magnitude()).into(), 1)
                    / exact::nearest(width, 1);
                let near = rest != BigInt::ZERO && part.min(1.0 - part) <= (steps + 1.0) * 1e-14;
                (index, !whole && (near || steps > 4e15))
            }
        }
    }

    pub(crate) fn index(&self, oracle: &Oracle<'_>, number: &BigInt) -> BigInt {
        let (index, doubtful) = self.place(number);
        if doubtful {
            oracle.doubt();
        }
        index
    }

    /// The intervals of the first and the last number, where those of other numbers aren't shown.
    pub(crate) fn ends(&self) -> Option<(BigInt, BigInt)> {
        let of = |number| self.place(&exact::integer(number)).0;
        matches!(self, Self::Numbers { whole: true, .. }).then(|| (of(i64::MIN), of(i64::MAX)))
    }

    /// Where an interval begins.
    pub(crate) fn begin(&self, index: &BigInt) -> BigInt {
        match self {
            Self::Times(calendar) => {
                BigInt::from(calendar.begin(i128::try_from(index).expect("an interval of a time"))) << 1_074
            }
            Self::Numbers { width, begin, .. } => index * width + begin,
        }
    }

    /// The key of an interval. What begins before all numbers begins with the first.
    pub(crate) fn key(&self, index: BigInt) -> Key {
        let begin = self.begin(&index);
        let whole = || i64::try_from(&begin >> 1_074).unwrap_or(i64::MIN);
        let shown = match self {
            Self::Times(_) => Datum::Date(whole()),
            Self::Numbers { whole: true, .. } => Datum::Long(whole()),
            Self::Numbers { .. } => Datum::Double(exact::nearest(&begin, 1).clamp(f64::MIN, f64::MAX) + 0.0),
        };
        Key {
            rank: Rank::Number(index),
            shown: Some(shown),
        }
    }
}

impl<'a> Oracle<'a> {
    /// The groups of a grouping that have members; ranges and filters are numbered.
    pub(crate) fn groups(&self, aggregation: &Aggregation, given: &[Place<'a>], scope: &str) -> Groups<'a> {
        let mut groups = Groups::new();
        for place in given {
            let mut own: Vec<Vec<Key>> = match aggregation {
                Aggregation::Composite { sources, .. } => self.combinations(sources, place),
                _ => self
                    .keys(aggregation, place, scope)
                    .into_iter()
                    .map(|key| vec![key])
                    .collect(),
            };
            own.sort_by_key(|keys| ranks(keys));
            own.dedup_by_key(|keys| ranks(keys));
            for keys in own {
                let group = groups.entry(ranks(&keys)).or_insert_with(|| (keys, Vec::new()));
                group.1.push(place.clone());
            }
        }
        groups
    }

    fn keys(&self, aggregation: &Aggregation, place: &Place<'_>, scope: &str) -> Vec<Key> {
        let leaf = |field: &str| self.universe.leaf(field);
        let nth = |nth: usize| Key {
            rank: Rank::Number(BigInt::from(nth)),
            shown: None,
        };
        match aggregation {
            Aggregation::Terms { field, missing, .. } => data(place, leaf(field), missing.as_ref())
                .iter()
                .map(Key::value)
                .collect(),
            Aggregation::Histogram { field, missing, .. }
            | Aggregation::DateHistogram { field, missing, .. } => {
                let steps = Steps::of(self, aggregation).expect("a histogram");
                self.steps(&steps, &data(place, leaf(field), missing.as_ref()))
            }
            Aggregation::GeoCell {
                field, resolution, ..
            } => self.cells(place, field, *resolution),
            Aggregation::GeoHash { .. } => unreachable!("the model of tests/it asks for them"),
            Aggregation::Range { field, ranges, .. } => {
                let data = data(place, leaf(field), None);
                let holds = |from: Option<&QueryValue>, to: Option<&QueryValue>| {
                    data.iter().any(|value| {
                        from.is_none_or(|from| exact::compare(value, from).is_ge())
                            && to.is_none_or(|to| exact::compare(value, to).is_lt())
                    })
                };
                let ranges = ranges.iter().enumerate();
                let own = ranges.filter(|(_, range)| holds(range.from.as_ref(), range.to.as_ref()));
                own.map(|(at, _)| nth(at)).collect()
            }
            Aggregation::Filters { filters, .. } => {
                let filters = filters.iter().enumerate();
                let own = filters.filter(|(_, filter)| self.matches(filter, place.object(), scope));
                own.map(|(at, _)| nth(at)).collect()
            }
            Aggregation::GeoDistance {
                field,
                origin,
                ranges,
                ..
            } => {
                let distances = points(place.object(), leaf(field)).into_iter();
                let distances = distances.map(|point| geo::meters(point, *origin));
                let Some(nearest) = distances.min_by(f64::total_cmp) else {
                    return Vec::new();
                };
                let mut ends = ranges.iter().flat_map(|(from, to)| [*from, *to]).flatten();
                if ends.any(|end| end > 0.0 && (end - nearest).abs() < geo::slack(nearest)) {
                    self.doubt();
                }
                let ranges = ranges.iter().enumerate();
                let own = ranges.filter(|(_, (from, to))| {
                    from.is_none_or(|from| nearest >= from) && to.is_none_or(|to| nearest < to)
                });
                own.map(|(at, _)| nth(at)).collect()
            }
            other => panic!("no grouping by keys: {other:?}"),
        }
    }

    fn steps(&self, steps: &Steps, data: &[FieldValue]) -> Vec<Key> {
        data.iter()
            .map(|value| steps.key(steps.index(self, &exact::of_field(value))))
            .collect()
    }

    fn cells(&self, place: &Place<'_>, field: &str, resolution: u8) -> Vec<Key> {
        let resolution = Resolution::try_from(resolution).expect("a resolution");
        let points = points(place.object(), self.universe.leaf(field)).into_iter();
        let cells = points.map(|point| {
            let place = LatLng::new(point.latitude(), point.longitude()).expect("a place");
            Key::text(place.to_cell(resolution).to_string())
        });
        cells.collect()
    }

    /// All combinations of the keys of several sources.
    fn combinations(&self, sources: &[CompositeSource], place: &Place<'_>) -> Vec<Vec<Key>> {
        let mut combinations = vec![Vec::new()];
        for source in sources {
            let leaf = self.universe.leaf(&source.field);
            let data = || data(place, leaf, source.missing.as_ref());
            let mut keys = match &source.kind {
                SourceKind::Terms => data().iter().map(Key::value).collect(),
                SourceKind::Histogram { interval, offset } => {
                    self.steps(&Steps::numbers(leaf.kind, *interval, *offset), &data())
                }
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
                    self.steps(&Steps::Times(calendar), &data())
                }
                SourceKind::GeoCell { resolution } => self.cells(place, &source.field, *resolution),
            };
            if keys.is_empty() && source.include_missing {
                keys.push(Key {
                    rank: Rank::Missing,
                    shown: None,
                });
            }
            let longer = combinations.iter().flat_map(|begun: &Vec<Key>| {
                keys.iter()
                    .map(move |key| [begun.as_slice(), std::slice::from_ref(key)].concat())
            });
            combinations = longer.collect();
        }
        combinations
    }
}

pub(crate) fn ranks(keys: &[Key]) -> Vec<Rank> {
    keys.iter().map(|key| key.rank.clone()).collect()
}
