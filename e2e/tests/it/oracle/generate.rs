//! Random queries and orders over the fields of a resource.

use prost_types::Timestamp;
use souk_e2e::data::{self, START_2024, SeededRandom, TAGS, TYPES, WORDS};
use souk_proto::search::v1::{
    BoolQuery, ConstScoreQuery, ExistsQuery, FieldSort, GeoBoundingBoxQuery, GeoDistanceQuery,
    GeoDistanceSort, MatchAllQuery, MatchQuery, MissingOrder, NestedQuery, NestedSort, Operator, PrefixQuery,
    PrimaryKeySort, Query, RangeQuery, ScoreMode, Sort, SortMode, SuffixQuery, TermQuery, TermsQuery,
    WildcardQuery, field_sort, query, range_query, sort,
};
use souk_proto::r#type::v1::{GeoPoint, Value, value};

/// What a field holds, as far as queries on it are concerned.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    /// One of some words as a whole.
    Keyword(&'static [&'static str]),
    /// Several words of `WORDS`, as a whole.
    Phrase,
    /// Several words of `WORDS`, analysed.
    Words,
    /// Whole numbers below.
    Integer(u64),
    /// Numbers below, in tenths or thousandths.
    Double(u64, f64),
    /// Times within this many seconds after `START_2024`.
    Time(u64),
    /// Positions.
    Point,
    /// Objects with fields of their own.
    Objects(&'static [Field]),
}

/// A field's name and what it holds.
pub(super) type Field = (&'static str, Holds);

const USERS: &[&str] = &["u0000", "u0001", "u0002", "u0007"];
const KINDS: &[&str] = &["image", "video", "audio", "document"];
const CITIES: &[&str] = &["杭州", "Helsinki", "Suva"];
const PERSONS: &[&str] = &["影0", "影1", "影5"];

pub(super) const SHOP_FIELDS: &[Field] = &[
    ("name", Holds::Words),
    ("name.keyword", Holds::Phrase),
    ("type", Holds::Keyword(&TYPES)),
    ("city", Holds::Keyword(CITIES)),
    ("position", Holds::Point),
    ("rating", Holds::Double(51, 10.0)),
    ("average_price_cents", Holds::Integer(20_000)),
    ("tags", Holds::Keyword(&TAGS)),
];

pub(super) const MEDIA_FIELDS: &[Field] = &[
    ("user_id", Holds::Keyword(USERS)),
    ("type", Holds::Keyword(KINDS)),
    ("title", Holds::Words),
    ("title.keyword", Holds::Phrase),
    ("size_bytes", Holds::Integer(1 << 24)),
    ("width", Holds::Integer(4_000)),
    ("duration", Holds::Double(600, 1.0)),
    ("created_at", Holds::Time(60_000_000)),
    ("position", Holds::Point),
    (
        "tags",
        Holds::Objects(&[
            ("tags.tag", Holds::Keyword(&TAGS)),
            ("tags.score", Holds::Double(1_001, 1_000.0)),
        ]),
    ),
    (
        "faces",
        Holds::Objects(&[
            ("faces.person", Holds::Keyword(PERSONS)),
            ("faces.similarity", Holds::Double(1_001, 1_000.0)),
        ]),
    ),
];

fn of(kind: query::Kind) -> Query {
    Query { kind: Some(kind) }
}

fn some(kind: value::Kind) -> Value {
    Value { kind: Some(kind) }
}

fn text(text: &str) -> Value {
    some(value::Kind::StringValue(text.to_owned()))
}

/// A random query of at most `depth` levels.
pub(super) fn query(fields: &[Field], random: &mut SeededRandom, depth: u32) -> Query {
    if depth > 0 && random.once_in(2) {
        let clauses = |random: &mut SeededRandom, most: u64| -> Vec<Query> {
            let count = random.below(most + 1);
            (0..count).map(|_| query(fields, random, depth - 1)).collect()
        };
        let must = clauses(random, 2);
        let filter = clauses(random, 1);
        let should = clauses(random, 3);
        let must_not = clauses(random, 1);
        let minimum_should_match =
            (!should.is_empty() && random.once_in(3)).then(|| random.below(should.len() as u64 + 1) as u32);
        return of(query::Kind::Bool(BoolQuery {
            must,
            filter,
            should,
            must_not,
            minimum_should_match,
            ..BoolQuery::default()
        }));
    }
    if random.once_in(12) {
        return of(query::Kind::MatchAll(MatchAllQuery {}));
    }
    let &(name, holds) = random.pick(fields);
    let field = name.to_owned();
    if random.once_in(12) && !matches!(holds, Holds::Objects(_)) {
        return of(query::Kind::Exists(ExistsQuery { field }));
    }
    if depth > 0 && random.once_in(12) {
        let filter = Some(Box::new(query(fields, random, 0)));
        return of(query::Kind::ConstScore(Box::new(ConstScoreQuery {
            filter,
            weight: Some(2.0),
        })));
    }
    match holds {
        Holds::Keyword(values) => keyword(field, values, random),
        Holds::Phrase => phrase(field, random),
        Holds::Words => {
            let words = ["coffee", "vivo", "VIVO", "pro", "tea", "nothing"];
            let asked = format!("{} {}", random.pick(&words), random.pick(&words));
            let operator = if random.once_in(2) {
                Operator::And
            } else {
                Operator::Or
            };
            of(query::Kind::Match(MatchQuery {
                field,
                text: asked,
                operator: operator.into(),
                ..Default::default()
            }))
        }
        Holds::Integer(below) => range(field, random, |random| {
            some(value::Kind::IntValue(random.below(below) as i64))
        }),
        Holds::Double(below, parts) => range(field, random, |n| {
            some(value::Kind::DoubleValue(n.below(below) as f64 / parts))
        }),
        Holds::Time(below) => range(field, random, |random| {
            let seconds = START_2024 + random.below(below) as i64;
            some(value::Kind::TimeValue(Timestamp { seconds, nanos: 0 }))
        }),
        Holds::Point => point(field, random),
        Holds::Objects(inner) => {
            let mode = [ScoreMode::None, ScoreMode::Avg, ScoreMode::Max];
            let inner = query(inner, random, depth.min(1));
            of(query::Kind::Nested(Box::new(NestedQuery {
                path: field,
                query: Some(Box::new(inner)),
                score_mode: (*random.pick(&mode)).into(),
                ..NestedQuery::default()
            })))
        }
    }
}

fn keyword(field: String, values: &[&str], random: &mut SeededRandom) -> Query {
    match random.below(5) {
        0 => {
            let count = 1 + random.below(3);
            let values = (0..count).map(|_| text(random.pick::<&str>(values))).collect();
            of(query::Kind::Terms(TermsQuery {
                field,
                values,
                weight: None,
            }))
        }
        1 => range(field, random, |random| text(random.pick::<&str>(values))),
        2 => {
            let value = random.pick(values).chars().take(1).collect();
            of(query::Kind::Prefix(PrefixQuery {
                field,
                value,
                weight: None,
            }))
        }
        _ => {
            let value = Some(text(random.pick::<&str>(values)));
            of(query::Kind::Term(TermQuery {
                field,
                value,
                weight: None,
            }))
        }
    }
}

fn phrase(field: String, random: &mut SeededRandom) -> Query {
    let word = (*random.pick(&WORDS)).to_owned();
    match random.below(4) {
        0 => of(query::Kind::Prefix(PrefixQuery {
            field,
            value: word,
            weight: None,
        })),
        1 => of(query::Kind::Suffix(SuffixQuery {
            field,
            value: word,
            weight: None,
        })),
        2 => {
            let infix: String = word.chars().take(2).collect();
            of(query::Kind::Wildcard(WildcardQuery {
                field,
                pattern: format!("*{infix}*"),
                weight: None,
            }))
        }
        _ => {
            let rest: String = word.chars().skip(1).collect();
            of(query::Kind::Wildcard(WildcardQuery {
                field,
                pattern: format!("?{rest}*"),
                weight: None,
            }))
        }
    }
}

/// Whether `a` comes before `b`, both of one kind.
fn before(a: &Value, b: &Value) -> bool {
    match (a.kind.as_ref(), b.kind.as_ref()) {
        (Some(value::Kind::StringValue(a)), Some(value::Kind::StringValue(b))) => a < b,
        (Some(value::Kind::IntValue(a)), Some(value::Kind::IntValue(b))) => a < b,
        (Some(value::Kind::DoubleValue(a)), Some(value::Kind::DoubleValue(b))) => a < b,
        (Some(value::Kind::TimeValue(a)), Some(value::Kind::TimeValue(b))) => a.seconds < b.seconds,
        other => panic!("values of two kinds: {other:?}"),
    }
}

fn range(
    field: String,
    random: &mut SeededRandom,
    mut value: impl FnMut(&mut SeededRandom) -> Value,
) -> Query {
    let (a, b) = (value(random), value(random));
    // An empty range is an error, so the ends are put in order, and equal ones are both included.
    let (low, high) = if before(&b, &a) { (b, a) } else { (a, b) };
    let distinct = before(&low, &high);
    let lower = match random.below(3) {
        0 => None,
        1 if distinct => Some(range_query::Lower::Gt(low)),
        _ => Some(range_query::Lower::Gte(low)),
    };
    let upper = match random.below(3) {
        0 if lower.is_some() => None,
        1 if distinct => Some(range_query::Upper::Lt(high)),
        _ => Some(range_query::Upper::Lte(high)),
    };
    of(query::Kind::Range(RangeQuery { field, lower, upper }))
}

fn point(field: String, random: &mut SeededRandom) -> Query {
    let center = data::position(random);
    if random.once_in(2) {
        let distance_meters = *random.pick(&[0.0, 500.0, 3_000.0, 20_000.0, 9_000_000.0]);
        let center = Some(center);
        return of(query::Kind::GeoDistance(GeoDistanceQuery {
            field,
            center,
            distance_meters,
        }));
    }
    let width = *random.pick(&[0.001, 0.05, 0.2, 30.0]);
    let around = |degrees: f64| if degrees > 180.0 { degrees - 360.0 } else { degrees };
    let east = around(center.longitude + width);
    let corner = |latitude: f64, longitude: f64| Some(GeoPoint { latitude, longitude });
    of(query::Kind::GeoBoundingBox(GeoBoundingBoxQuery {
        field,
        top_left: corner((center.latitude + width).min(90.0), center.longitude),
        bottom_right: corner((center.latitude - width).max(-90.0), east),
    }))
}

/// A random order of up to three keys; always at least one, so that scores play no part.
pub(super) fn sort(fields: &[Field], random: &mut SeededRandom) -> Vec<Sort> {
    let count = 1 + random.below(3);
    let mut keys: Vec<Sort> = (0..count).filter_map(|_| sort_key(fields, random)).collect();
    keys.push(primary_key(random));
    keys
}

fn primary_key(random: &mut SeededRandom) -> Sort {
    Sort {
        kind: Some(sort::Kind::PrimaryKey(PrimaryKeySort {
            descending: random.once_in(2),
        })),
    }
}

fn sort_key(fields: &[Field], random: &mut SeededRandom) -> Option<Sort> {
    let &(name, holds) = random.pick(fields);
    let descending = random.once_in(2);
    let kind = match holds {
        Holds::Words => return None,
        Holds::Point => {
            let count = 1 + random.below(2);
            let points = (0..count).map(|_| data::position(random)).collect();
            sort::Kind::GeoDistance(GeoDistanceSort {
                field: name.to_owned(),
                points,
                descending,
            })
        }
        Holds::Objects(inner) => {
            let &(field, _) = random.pick(inner);
            let filter = random.once_in(2).then(|| query(inner, random, 0));
            let nested = Some(NestedSort {
                path: name.to_owned(),
                filter,
            });
            sort::Kind::Field(FieldSort {
                nested,
                ..sort_by_field(field, descending, random)
            })
        }
        Holds::Keyword(_) | Holds::Phrase | Holds::Integer(_) | Holds::Double(..) | Holds::Time(_) => {
            sort::Kind::Field(sort_by_field(name, descending, random))
        }
    };
    Some(Sort { kind: Some(kind) })
}

fn sort_by_field(field: &str, descending: bool, random: &mut SeededRandom) -> FieldSort {
    let modes = [SortMode::Unspecified, SortMode::Min, SortMode::Max];
    let first = random
        .once_in(3)
        .then(|| field_sort::Missing::MissingOrder(MissingOrder::First.into()));
    FieldSort {
        field: field.to_owned(),
        descending,
        mode: (*random.pick(&modes)).into(),
        missing: first,
        nested: None,
    }
}
