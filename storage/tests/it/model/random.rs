//! Random batches and reads over few keys, columns and values, so that they meet.

use bytes::Bytes;
use fastrand::Rng;
use souk_storage::{
    ColumnChange, ColumnSelection, Comparison, Condition, Durability, Existence, Filter, KeyBound, KeyKind,
    KeyValue, PrimaryKey, RequestRecord, RowOperation, Table, Value, WriteBatch,
};

const COLUMNS: [&str; 3] = ["color", "size", "note"];

pub(crate) fn key_value(random: &mut Rng, kind: KeyKind) -> KeyValue {
    match kind {
        KeyKind::String => KeyValue::from(*random.choice(&["", "a", "a\0", "ab"]).expect("one")),
        KeyKind::Integer => KeyValue::from(*random.choice(&[i64::MIN, -1, 0, 7]).expect("one")),
        KeyKind::Binary => KeyValue::from(Bytes::copy_from_slice(
            random.choice([&b""[..], b"\0", b"\0\xff", b"\xff"]).expect("one"),
        )),
    }
}

/// A key of the table's first columns.
fn key_prefix(random: &mut Rng, table: &Table, columns: usize) -> PrimaryKey {
    let schema = table.schema();
    let kinds = schema.key.iter().take(columns);
    let values = kinds.map(|(_, kind)| key_value(random, *kind)).collect();
    PrimaryKey::new(values).expect("a key")
}

pub(crate) fn key(random: &mut Rng, table: &Table) -> PrimaryKey {
    key_prefix(random, table, table.schema().key.len())
}

pub(crate) fn bound(random: &mut Rng, table: &Table) -> KeyBound {
    let columns = random.usize(1..=table.schema().key.len());
    match random.u8(0..4) {
        0 => KeyBound::Min,
        1 => KeyBound::Max,
        2 => KeyBound::Before(key_prefix(random, table, columns)),
        _ => KeyBound::After(key_prefix(random, table, columns)),
    }
}

pub(crate) fn value(random: &mut Rng) -> Value {
    match random.u8(0..8) {
        0 => Value::Double(*random.choice(&[-0.0, 1.5, -1e300]).expect("one")),
        1 => Value::Boolean(random.bool()),
        2 => Value::from(Bytes::from_static(b"\0\x01")),
        3 => Value::Integer(i64::MAX),
        4 | 5 => Value::Integer(random.i64(-2..3)),
        _ => Value::from(*random.choice(&["red", "green", "", "\0"]).expect("one")),
    }
}

fn column(random: &mut Rng) -> String {
    (*random.choice(&COLUMNS).expect("one")).to_owned()
}

pub(crate) fn selection(random: &mut Rng, table: &Table) -> ColumnSelection {
    match random.u8(0..4) {
        0 => ColumnSelection::Named(vec![column(random)]),
        1 => ColumnSelection::Named(vec![column(random), table.schema().key[0].0.clone()]),
        _ => ColumnSelection::All,
    }
}

pub(crate) fn filter(random: &mut Rng, depth: usize) -> Filter {
    let below = |random: &mut Rng| {
        (0..random.usize(0..3))
            .map(|_| filter(random, depth + 1))
            .collect()
    };
    match random.u8(0..8) {
        0 if depth < 3 => Filter::And(below(random)),
        1 if depth < 3 => Filter::Or(below(random)),
        2 if depth < 3 => Filter::Not(Box::new(filter(random, depth + 1))),
        3 => Filter::exists(column(random)),
        _ => Filter::Column {
            column: column(random),
            comparison: *random
                .choice(&[
                    Comparison::Equal,
                    Comparison::NotEqual,
                    Comparison::Greater,
                    Comparison::GreaterOrEqual,
                    Comparison::Less,
                    Comparison::LessOrEqual,
                ])
                .expect("one"),
            value: value(random),
            pass_if_missing: random.bool(),
            latest_version_only: random.bool(),
            rule: None,
        },
    }
}

/// A revision that is about right is given by the caller.
fn condition(random: &mut Rng, revision: Option<u64>) -> Condition {
    let mut condition = Condition::none();
    match random.u8(0..12) {
        0 => condition.existence = Existence::MustExist,
        1 => condition.existence = Existence::MustNotExist,
        2 => condition.revision = Some(random.u64(0..4)),
        3 | 4 => condition.revision = revision,
        5 => condition.columns = Some(filter(random, 0)),
        _ => {}
    }
    condition
}

/// `now`: milliseconds.
fn changes(random: &mut Rng, now: i64) -> Vec<ColumnChange> {
    let mut changes = Vec::new();
    for name in COLUMNS {
        let column = name.to_owned();
        let version = now + random.i64(-8..4);
        match random.u8(0..9) {
            0 | 1 => changes.push(ColumnChange::Put {
                column,
                value: value(random),
                version: None,
            }),
            2 | 3 => {
                changes.push(ColumnChange::Put {
                    column: column.clone(),
                    value: value(random),
                    version: Some(version),
                });
                changes.push(ColumnChange::DeleteVersion {
                    column,
                    version: version - 1,
                });
            }
            4 => changes.push(ColumnChange::DeleteVersion { column, version }),
            5 => changes.push(ColumnChange::DeleteAll { column }),
            6 => changes.push(ColumnChange::Increment {
                column,
                by: random.i64(-2..3),
            }),
            _ => {}
        }
    }
    changes
}

/// A batch; `revision` tells a row's present revision. `now`: milliseconds.
pub(crate) fn batch(
    random: &mut Rng,
    tables: &[Table],
    now: i64,
    revision: impl Fn(&Table, &PrimaryKey) -> Option<u64>,
) -> WriteBatch {
    let mut batch = WriteBatch::new().durability(Durability::Buffered);
    for _ in 0..random.usize(0..5) {
        let table = random.choice(tables).expect("one");
        let key = key(random, table);
        let condition = condition(random, revision(table, &key));
        let operation = match random.u8(0..8) {
            0 | 1 => RowOperation::Delete { key },
            2..=4 => RowOperation::Update {
                key,
                changes: changes(random, now),
            },
            _ => {
                let columns = COLUMNS.iter().filter(|_| random.u8(0..3) > 0);
                let columns: Vec<_> = columns.map(|name| (*name).to_owned()).collect();
                let columns = columns.into_iter().map(|name| (name, value(random))).collect();
                RowOperation::Put { key, columns }
            }
        };
        batch = batch.write(table, operation, condition);
    }
    if random.u8(0..4) == 0 {
        batch = batch.request(RequestRecord {
            id: [random.u8(..); 16],
            fingerprint: random.u64(0..2),
            reply: Bytes::copy_from_slice(&random.u64(..).to_be_bytes()),
        });
    }
    if random.bool() {
        batch = batch.trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    }
    batch
}
