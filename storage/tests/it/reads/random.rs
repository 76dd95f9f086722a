//! Random rows and read options over few columns and values, so that they meet.

use bytes::Bytes;
use fastrand::Rng;
use souk_storage::{
    Cast, ColumnChange, ColumnPage, ColumnSelection, Comparison, Filter, IndexBound, KeyKind, KeyValue,
    PrimaryKey, ReadOptions, Table, TimeRange, Value, ValueRule, VersionSelection,
};

const COLUMNS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "long_name", "z"];

pub(super) fn column(random: &mut Rng) -> String {
    (*random.choice(&COLUMNS).expect("one")).to_owned()
}

pub(super) fn key_value(random: &mut Rng, kind: KeyKind) -> KeyValue {
    match kind {
        KeyKind::String => KeyValue::from(*random.choice(&["", "a", "b"]).expect("one")),
        KeyKind::Integer => KeyValue::from(random.i64(-20..20)),
        KeyKind::Binary => KeyValue::from(Bytes::from(vec![random.u8(..)])),
    }
}

pub(super) fn key(random: &mut Rng, table: &Table) -> PrimaryKey {
    let values = table.schema().key.clone();
    let values = values.iter().map(|(_, kind)| key_value(random, *kind));
    PrimaryKey::new(values).expect("a key")
}

/// Different keys, about so many.
pub(super) fn keys(random: &mut Rng, table: &Table, most: usize) -> Vec<PrimaryKey> {
    let mut keys: Vec<_> = (0..most).map(|_| key(random, table)).collect();
    keys.sort();
    keys.dedup();
    random.shuffle(&mut keys);
    keys
}

pub(super) fn value(random: &mut Rng) -> Value {
    match random.u8(0..10) {
        0 => Value::Double(*random.choice(&[-0.0, 1.5, 3.0]).expect("one")),
        1 => Value::Boolean(random.bool()),
        2 => Value::from(Bytes::from(vec![random.u8(..); random.usize(0..4)])),
        3 | 4 => Value::Integer(random.i64(-2..4)),
        5 => Value::from("x".repeat(random.usize(0..900))),
        6 | 7 => Value::from(format!("n={},m={}.5;", random.i64(-2..4), random.i64(0..4))),
        _ => Value::from(*random.choice(&["red", "green", ""]).expect("one")),
    }
}

/// `now`: milliseconds.
pub(super) fn changes(random: &mut Rng, now: i64) -> Vec<ColumnChange> {
    let mut changes = Vec::new();
    let deletes = random.u8(0..4) == 0;
    for column in COLUMNS.map(str::to_owned) {
        match random.u8(0..6) {
            0..4 => changes.push(ColumnChange::Put {
                column,
                value: value(random),
                version: Some(now + random.i64(-30..2)),
            }),
            4 if deletes => changes.push(ColumnChange::DeleteAll { column }),
            _ => {}
        }
    }
    changes
}

fn comparison(random: &mut Rng) -> Comparison {
    let all = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
    ];
    *random.choice(&all).expect("one")
}

/// The patterns the oracle knows.
pub(super) const NUMBER: &str = "n=(-?[0-9]+)";
pub(super) const FRACTION: &str = r"[0-9]+\.[0-9]+";

pub(super) fn filter(random: &mut Rng, depth: usize) -> Filter {
    let below = |random: &mut Rng| {
        let parts = random.usize(0..3);
        (0..parts).map(|_| filter(random, depth + 1)).collect()
    };
    let (rule, value) = match random.u8(0..4) {
        0 => {
            let rule = ValueRule::new(NUMBER, Cast::Integer).expect("a rule");
            (Some(rule), Value::Integer(random.i64(-2..4)))
        }
        1 => {
            let rule = ValueRule::new(FRACTION, Cast::Double).expect("a rule");
            (
                Some(rule),
                Value::Double(*random.choice(&[0.5, 1.5]).expect("one")),
            )
        }
        _ => (None, value(random)),
    };
    match random.u8(0..9) {
        0 if depth < 3 => Filter::And(below(random)),
        1 if depth < 3 => Filter::Or(below(random)),
        2 if depth < 3 => Filter::Not(Box::new(filter(random, depth + 1))),
        3 => Filter::exists(column(random)),
        _ => Filter::Column {
            column: column(random),
            comparison: comparison(random),
            value,
            pass_if_missing: random.bool(),
            latest_version_only: random.bool(),
            rule,
        },
    }
}

fn selection(random: &mut Rng, table: &Table) -> ColumnSelection {
    let mut names: Vec<_> = (0..random.usize(1..5)).map(|_| column(random)).collect();
    match random.u8(0..4) {
        0 => {
            names.push(table.schema().key[0].0.clone());
            ColumnSelection::Named(names)
        }
        1 => ColumnSelection::Named(names),
        _ => ColumnSelection::All,
    }
}

/// `now`: milliseconds.
pub(crate) fn options(random: &mut Rng, table: &Table, now: i64) -> ReadOptions {
    let some = |random: &mut Rng| random.u8(0..3) == 0;
    let from = now + random.i64(-30..2);
    let time = match random.u8(0..6) {
        0 => Some(TimeRange::exact(from)),
        1 => Some(TimeRange {
            from,
            to: from + random.i64(1..30),
        }),
        _ => None,
    };
    let mut bounds = [column(random), column(random)];
    bounds.sort();
    let [start, end] = bounds;
    let end = if start == end { format!("{end}x") } else { end };
    ReadOptions {
        columns: selection(random, table),
        versions: VersionSelection {
            max_versions: some(random).then(|| random.u32(1..4)),
            time,
        },
        filter: random.bool().then(|| filter(random, 0)),
        start_column: some(random).then_some(start),
        end_column: some(random).then_some(end),
        column_page: some(random).then(|| ColumnPage {
            limit: random.usize(1..5),
            offset: random.usize(0..4),
        }),
    }
}

/// A cut in an index whose entries have these values, the key's behind them.
pub(crate) fn index_bound(random: &mut Rng, entries: &[Vec<Value>], key_columns: usize) -> IndexBound {
    let mut values = match random.choice(entries) {
        Some(values) => values.clone(),
        None => Vec::new(),
    };
    values.truncate(random.usize(0..=values.len()));
    if random.bool()
        && let Some(columns) = entries.first().map(|entry| entry.len() - key_columns)
    {
        // Something that may not be there; values of key columns keep their type.
        values.truncate(columns);
        values.pop();
        values.push(value(random));
    }
    match random.u8(0..6) {
        0 => IndexBound::Min,
        1 => IndexBound::Max,
        2 | 3 => IndexBound::Before(values),
        _ => IndexBound::After(values),
    }
}
