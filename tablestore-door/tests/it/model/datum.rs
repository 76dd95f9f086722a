//! Values and keys as the oracle has them: with an order of their own.

use std::cmp::Ordering;

use fastrand::Rng;
use souk_tablestore::messages::PrimaryKeyType;
use souk_tablestore::{KeyElement, Value};

/// The columns that rows have, each with values of its type but for the last, which has any.
pub(super) const NAMES: [&str; 4] = ["mixed", "raw", "size", "word"];

/// A value. Those of one type have an order; keys have one type in each place.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) enum Datum {
    Integer(i64),
    Text(String),
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

const BYTES: [&[u8]; 4] = [&[], &[0], &[0, 255], &[255]];

/// A type of key columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Text,
    Bytes,
}

impl Kind {
    pub(super) fn wire(self) -> PrimaryKeyType {
        match self {
            Self::Integer => PrimaryKeyType::Integer,
            Self::Text => PrimaryKeyType::String,
            Self::Bytes => PrimaryKeyType::Binary,
        }
    }

    /// A value of it, of few, so that rows meet.
    pub(super) fn draw(self, random: &mut Rng) -> Datum {
        match self {
            Self::Integer => Datum::Integer(random.choice([i64::MIN, -1, 0, 1, 2, i64::MAX]).expect("one")),
            Self::Text => Datum::text(random.choice(["", "ann", "bob", "奶茶"]).expect("one")),
            Self::Bytes => Datum::Bytes(random.choice(BYTES).expect("one").to_vec()),
        }
    }
}

impl Datum {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// A value that a column may have.
    pub(super) fn draw(random: &mut Rng, column: &str) -> Self {
        match column {
            "word" => Self::text(random.choice(["", "tea", "Tea12", "手机7"]).expect("one")),
            "size" => Self::Integer(random.i64(-3..4)),
            "raw" => Self::Bytes(vec![random.u8(..3); random.usize(..3)]),
            _ => match random.u8(..5) {
                0 => Self::Integer(random.choice([i64::MIN, 0, 2, i64::MAX]).expect("one")),
                1 => Self::Double(random.choice([-1.5, 0.0, 2.0, f64::MAX]).expect("one")),
                2 => Self::Truth(random.bool()),
                3 => Self::draw(random, "word"),
                _ => Self::draw(random, "raw"),
            },
        }
    }

    /// Compares values of one type; others have no order.
    pub(super) fn against(&self, other: &Self) -> Option<Ordering> {
        let is_same = std::mem::discriminant(self) == std::mem::discriminant(other);
        is_same.then(|| self.cmp(other))
    }

    pub(super) fn wire(&self) -> Value {
        match self.clone() {
            Self::Integer(number) => Value::Integer(number),
            Self::Double(number) => Value::Double(number),
            Self::Truth(truth) => Value::Boolean(truth),
            Self::Text(text) => Value::String(text.into()),
            Self::Bytes(bytes) => Value::Binary(bytes.into()),
        }
    }

    pub(super) fn element(&self) -> KeyElement {
        match self.wire() {
            Value::Integer(number) => KeyElement::Integer(number),
            Value::String(text) => KeyElement::String(text),
            Value::Binary(bytes) => KeyElement::Binary(bytes),
            other => panic!("no value of a key: {other:?}"),
        }
    }
}
