//! What is searched for.

use std::ops::Bound;

use fastrand::Rng;
use prost::Message as _;
use souk_tablestore::messages::{self as pb, Query, QueryType};
use souk_tablestore::variant;

use super::datum::Datum;
use super::indexes::column_of;
use super::row::Row;

/// What is searched for.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    All,
    Is(&'static str, Datum),
    Within(&'static str, Bound<i64>, Bound<i64>),
    Begins(&'static str, &'static str),
    Has(&'static str),
    Bool {
        must: Vec<Wanted>,
        must_not: Vec<Wanted>,
        should: Vec<Wanted>,
    },
}

impl Wanted {
    /// By some of these fields, among which are `size` and `word`.
    pub(super) fn draw(random: &mut Rng, fields: &[&'static str], depth: usize) -> Self {
        let field = random.choice(fields.iter().copied()).expect("a field");
        let is_text = column_of(field) == "word";
        match random.u8(..if depth < 2 { 12 } else { 9 }) {
            0 => Self::All,
            1..4 => Self::Is(field, Datum::draw(random, column_of(field))),
            4..7 if is_text => Self::Begins(field, random.choice(["t", "Tea", "手"]).expect("one")),
            4..7 => {
                let mut bound = |number: i64| match random.u8(..3) {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(number),
                    _ => Bound::Excluded(number),
                };
                let (from, to) = (bound(-1), bound(2));
                match (from, to) {
                    (Bound::Unbounded, Bound::Unbounded) => Self::All,
                    (from, to) => Self::Within(field, from, to),
                }
            }
            7 | 8 => Self::Has(field),
            _ => {
                let mut some = |most: usize| {
                    let count = random.usize(..most);
                    (0..count)
                        .map(|_| Self::draw(random, fields, depth + 1))
                        .collect::<Vec<_>>()
                };
                let (must, must_not, should) = (some(3), some(2), some(3));
                match must.is_empty() && must_not.is_empty() && should.is_empty() {
                    true => Self::All,
                    false => Self::Bool {
                        must,
                        must_not,
                        should,
                    },
                }
            }
        }
    }

    pub(super) fn holds(&self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Is(field, value) => row.newest(column_of(field)) == Some(value),
            Self::Within(field, from, to) => match row.newest(column_of(field)) {
                Some(Datum::Integer(number)) => std::ops::RangeBounds::contains(&(*from, *to), number),
                _ => false,
            },
            Self::Begins(field, prefix) => {
                matches!(row.newest(column_of(field)), Some(Datum::Text(text)) if text.starts_with(prefix))
            }
            Self::Has(field) => row.newest(column_of(field)).is_some(),
            Self::Bool {
                must,
                must_not,
                should,
            } => {
                let holds = |part: &Self| part.holds(row);
                // One of those that should has to where nothing else says what is found.
                let needs_one = must.is_empty() && !should.is_empty();
                must.iter().all(holds)
                    && !must_not.iter().any(holds)
                    && (!needs_one || should.iter().any(holds))
            }
        }
    }

    pub(super) fn wire(&self) -> Query {
        let query = |kind: QueryType, body: Vec<u8>| Query {
            r#type: Some(kind.into()),
            query: Some(body.into()),
        };
        let named = |name: &str| Some(name.to_owned());
        match self {
            Self::All => query(QueryType::MatchAll, pb::MatchAllQuery {}.encode_to_vec()),
            Self::Is(field, value) => {
                let body = pb::TermQuery {
                    field_name: named(field),
                    term: Some(variant::encode(&value.wire())),
                    weight: None,
                };
                query(QueryType::Term, body.encode_to_vec())
            }
            Self::Within(field, from, to) => {
                let end = |bound: &Bound<i64>| match bound {
                    Bound::Unbounded => (None, None),
                    Bound::Included(number) => (Some(variant::encode(&(*number).into())), Some(true)),
                    Bound::Excluded(number) => (Some(variant::encode(&(*number).into())), Some(false)),
                };
                let ((range_from, include_lower), (range_to, include_upper)) = (end(from), end(to));
                let body = pb::RangeQuery {
                    field_name: named(field),
                    range_from,
                    range_to,
                    include_lower,
                    include_upper,
                };
                query(QueryType::Range, body.encode_to_vec())
            }
            Self::Begins(field, prefix) => {
                let body = pb::PrefixQuery {
                    field_name: named(field),
                    prefix: named(prefix),
                    ..pb::PrefixQuery::default()
                };
                query(QueryType::Prefix, body.encode_to_vec())
            }
            Self::Has(field) => {
                let body = pb::ExistsQuery {
                    field_name: named(field),
                };
                query(QueryType::Exists, body.encode_to_vec())
            }
            Self::Bool {
                must,
                must_not,
                should,
            } => {
                let wire = |parts: &[Self]| parts.iter().map(Self::wire).collect();
                let body = pb::BoolQuery {
                    must_queries: wire(must),
                    must_not_queries: wire(must_not),
                    should_queries: wire(should),
                    ..pb::BoolQuery::default()
                };
                query(QueryType::Bool, body.encode_to_vec())
            }
        }
    }
}
