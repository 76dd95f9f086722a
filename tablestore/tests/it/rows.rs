//! Random rows.

use bytes::Bytes;
use fastrand::Rng;
use souk_tablestore::{CellOperation, KeyColumn, KeyElement, PlainCell, PlainRow, SequenceInfo, Value};

const TEXTS: [&str; 6] = [
    "",
    "a",
    "订单",
    "\u{0}",
    "a much longer text than fits inline, 中华人民共和国",
    "\u{10ffff}",
];

fn text(random: &mut Rng) -> &'static str {
    TEXTS[random.usize(..TEXTS.len())]
}

fn integer(random: &mut Rng) -> i64 {
    [0, -1, 1, i64::MIN, i64::MAX, random.i64(..)][random.usize(..6)]
}

fn binary(random: &mut Rng) -> Bytes {
    (0..random.usize(..40)).map(|_| random.u8(..)).collect()
}

pub(crate) fn value(random: &mut Rng) -> Value {
    match random.u8(..5) {
        0 => Value::Integer(integer(random)),
        1 => Value::Double([0.0, -0.0, 1.5, f64::MAX, f64::MIN_POSITIVE, random.f64()][random.usize(..6)]),
        2 => Value::Boolean(random.bool()),
        3 => Value::String(text(random).into()),
        _ => Value::Binary(binary(random)),
    }
}

fn key_element(random: &mut Rng, special: bool) -> KeyElement {
    match random.u8(..if special { 6 } else { 3 }) {
        0 => KeyElement::Integer(integer(random)),
        1 => KeyElement::String(text(random).into()),
        2 => KeyElement::Binary(binary(random)),
        3 => KeyElement::Minimum,
        4 => KeyElement::Maximum,
        _ => KeyElement::AutoIncrement,
    }
}

pub(crate) fn key(random: &mut Rng, special: bool) -> Vec<KeyColumn> {
    let columns = 1..=random.usize(1..=4);
    columns
        .map(|nth| KeyColumn::new(format!("pk{nth}"), key_element(random, special)))
        .collect()
}

/// A row that a put carries.
pub(crate) fn put(random: &mut Rng) -> PlainRow {
    let cells = (0..random.usize(..6)).map(|nth| PlainCell {
        timestamp: random.bool().then(|| random.i64(0..i64::MAX)),
        ..PlainCell::new(format!("c{nth}"), value(random))
    });
    PlainRow {
        cells: cells.collect(),
        key: key(random, false),
        ..PlainRow::default()
    }
}

/// The kinds of changes in an update, in the order in which Python's client is given them.
pub(crate) const KINDS: [Option<CellOperation>; 4] = [
    None,
    Some(CellOperation::DeleteOneVersion),
    Some(CellOperation::DeleteAllVersions),
    Some(CellOperation::Increment),
];

/// A row that an update carries, its changes by kind.
pub(crate) fn update(random: &mut Rng) -> PlainRow {
    let mut row = PlainRow {
        key: key(random, false),
        ..PlainRow::default()
    };
    for operation in KINDS {
        for _ in 0..random.usize(..3) {
            let (value, timestamp) = match operation {
                None => (
                    Some(value(random)),
                    random.bool().then(|| random.i64(0..i64::MAX)),
                ),
                Some(CellOperation::DeleteOneVersion) => (None, Some(random.i64(0..i64::MAX))),
                Some(CellOperation::DeleteAllVersions) => (None, None),
                Some(CellOperation::Increment) => (Some(Value::Integer(integer(random))), None),
            };
            row.cells.push(PlainCell {
                name: format!("c{}", row.cells.len()).into(),
                value,
                operation,
                timestamp,
            });
        }
    }
    row
}

/// Any row, whether a request has such a one or not.
pub(crate) fn any(random: &mut Rng) -> PlainRow {
    let mut row = if random.bool() {
        put(random)
    } else {
        update(random)
    };
    row.key = key(random, true);
    row.delete_marker = random.u8(..4) == 0;
    row.sequence = (random.u8(..4) == 0).then(|| SequenceInfo {
        epoch: random.u32(..),
        timestamp: random.i64(..),
        row_index: random.u32(..),
    });
    row
}
