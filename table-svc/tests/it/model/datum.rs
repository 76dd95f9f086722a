//! Values and keys as the oracle has them: with an order of their own.

use std::cmp::Ordering;

use fastrand::Rng;
use prost_types::Timestamp;
use souk_proto::table::v1::KeyType;
use souk_proto::r#type::v1::{Value, value};

/// The columns that rows have: `word` has texts, `raw` bytes, `size` and `at` seldom anything but whole numbers, `mixed` anything.
pub(super) const NAMES: [&str; 5] = ["at", "mixed", "raw", "size", "word"];
/// The column that some tables declare as one of times.
pub(super) const TIMES: &str = "at";
/// Texts of `word`.
pub(super) const WORDS: [&str; 4] = ["", "tea", "Tea12", "手机7"];
/// Most bytes of a text that a secondary index takes.
const INDEXED_MAX: usize = 1_024;

/// A value, in the order that secondary indexes have: of types first.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) enum Datum {
    Text(String),
    Integer(i64),
    Bytes(Vec<u8>),
    Double(f64),
    Truth(bool),
}

impl Eq for Datum {}

#[expect(
    clippy::derive_ord_xor_partial_ord,
    reason = "it is the derived order, of values among which none is no number"
)]
impl Ord for Datum {
    fn cmp(&self, other: &Self) -> Ordering {
        self.partial_cmp(other).expect("numbers that are some")
    }
}

/// Values of all key columns of a table.
pub(super) type Key = Vec<Datum>;

/// A type of key columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Bytes,
}

impl Kind {
    pub(super) fn wire(self) -> KeyType {
        match self {
            Self::Text => KeyType::String,
            Self::Integer => KeyType::Integer,
            Self::Bytes => KeyType::Binary,
        }
    }

    /// A value of it, of few, so that rows meet.
    pub(super) fn draw(self, random: &mut Rng) -> Datum {
        match self {
            Self::Integer => Datum::Integer(one(random, &[i64::MIN, -1, 0, 1, 2, i64::MAX])),
            Self::Text => Datum::text(one(random, &["", "ann", "bob", "奶茶"])),
            Self::Bytes => Datum::Bytes(one::<&[u8]>(random, &[&[], &[0], &[0, 255], &[255]]).to_vec()),
        }
    }
}

/// One of several.
pub(super) fn one<T: Copy>(random: &mut Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

impl Datum {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// A value that a column may have.
    pub(super) fn draw(random: &mut Rng, column: &str) -> Self {
        match column {
            "word" => Self::text(one(random, &WORDS)),
            "size" => match random.u8(..24) {
                0 => Self::Integer(one(random, &[i64::MIN, i64::MAX])),
                1 => Self::text("four"),
                _ => Self::Integer(random.i64(-3..4)),
            },
            "raw" => Self::Bytes(vec![random.u8(..3); random.usize(..3)]),
            TIMES => match random.u8(..12) {
                0 => Self::text("soon"),
                _ => Self::Integer(one(
                    random,
                    &[i64::MIN, -1, 0, 1_700_000_000_000_000_001, i64::MAX],
                )),
            },
            _ => match random.u8(..24) {
                0 => Self::Text("k".repeat(INDEXED_MAX)),
                1 => Self::Text("k".repeat(INDEXED_MAX + 1)),
                2..6 => Self::Integer(one(random, &[i64::MIN, 0, 2, i64::MAX])),
                6..11 => Self::Double(one(random, &[f64::MIN, -1.5, 0.0, 2.0, f64::MAX])),
                11..15 => Self::Truth(random.bool()),
                15..20 => Self::draw(random, "word"),
                _ => Self::draw(random, "raw"),
            },
        }
    }

    /// Whether it is more than a secondary index takes.
    pub(super) fn is_too_long(&self) -> bool {
        match self {
            Self::Text(text) => text.len() > INDEXED_MAX,
            Self::Bytes(bytes) => bytes.len() > INDEXED_MAX,
            Self::Integer(_) | Self::Double(_) | Self::Truth(_) => false,
        }
    }

    /// Compares values of one type; others have no order.
    pub(super) fn against(&self, other: &Self) -> Option<Ordering> {
        let is_same = std::mem::discriminant(self) == std::mem::discriminant(other);
        is_same.then(|| self.cmp(other))
    }

    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn wire(&self) -> Value {
        let kind = match self.clone() {
            Self::Text(text) => value::Kind::StringValue(text),
            Self::Integer(number) => value::Kind::IntValue(number),
            Self::Bytes(bytes) => value::Kind::BytesValue(bytes.into()),
            Self::Double(number) => value::Kind::DoubleValue(number),
            Self::Truth(truth) => value::Kind::BoolValue(truth),
        };
        Value { kind: Some(kind) }
    }

    /// A whole number as a time: nanoseconds since the Unix epoch.
    fn wire_time(&self) -> Value {
        let Self::Integer(nanos) = self else {
            return self.wire();
        };
        let time = Timestamp {
            seconds: nanos.div_euclid(1_000_000_000),
            nanos: i32::try_from(nanos.rem_euclid(1_000_000_000)).expect("below a second"),
        };
        Value {
            kind: Some(value::Kind::TimeValue(time)),
        }
    }

    /// As a writer gives the value of a column.
    pub(super) fn given(&self, column: &str) -> Value {
        match column {
            TIMES => self.wire_time(),
            _ => self.wire(),
        }
    }

    /// As answers have the value of a column.
    pub(super) fn told(&self, column: &str, has_times: bool) -> Value {
        match column {
            TIMES if has_times => self.wire_time(),
            _ => self.wire(),
        }
    }

    /// A value of the key of an answer.
    pub(super) fn of_key(given: &Value) -> Self {
        match &given.kind {
            Some(value::Kind::StringValue(text)) => Self::text(text),
            Some(value::Kind::IntValue(number)) => Self::Integer(*number),
            Some(value::Kind::BytesValue(bytes)) => Self::Bytes(bytes.to_vec()),
            other => panic!("no value of a key: {other:?}"),
        }
    }
}

pub(super) fn wire_key(key: &[Datum]) -> Vec<Value> {
    key.iter().map(Datum::wire).collect()
}

pub(super) fn key_told(key: &[Value]) -> Key {
    key.iter().map(Datum::of_key).collect()
}
