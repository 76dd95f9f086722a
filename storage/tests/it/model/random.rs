//! Random batches and reads over few keys, columns and values, so that they meet.

use bytes::Bytes;
use fastrand::Rng;
use souk_storage::{
    CellPut, ColumnChange, ColumnName, Comparison, Condition, Durability, Existence, Filter, KeyBound,
    KeyKind, KeyValue, PrimaryKey, RequestRecord, ReturnRow, RowOperation, RowWrite, SecondaryIndexSchema,
    Table, Value, WriteBatch,
};

use super::oracle::State;
use super::row::millis;

/// Columns that the options of the tests of reads name, too.
const COLUMNS: [&str; 3] = ["a", "b", "c"];

pub(super) fn key_value(random: &mut Rng, kind: KeyKind) -> KeyValue {
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
    let columns = schema.key.iter().enumerate().take(columns);
    let values = columns.map(|(place, (_, kind))| {
        if schema.auto_increment == Some(place) {
            return KeyValue::from(random.i64(0..20));
        }
        key_value(random, *kind)
    });
    PrimaryKey::new(values).expect("a key")
}

pub(super) fn partition(random: &mut Rng, table: &Table) -> KeyValue {
    key_prefix(random, table, 1).values()[0].clone()
}

/// A key of a table, of a partition if one is given; often of a row that is there.
pub(super) fn key(
    random: &mut Rng,
    state: &State,
    table: &Table,
    partition: Option<&KeyValue>,
) -> PrimaryKey {
    let rows = state.tables.get(&table.id().0).into_iter().flatten();
    let fits = |key: &&PrimaryKey| partition.is_none_or(|partition| key.values()[0] == *partition);
    let there: Vec<_> = rows.map(|(key, _)| key).filter(fits).collect();
    if random.bool()
        && let Some(key) = random.choice(&there)
    {
        return (*key).clone();
    }
    let mut values = key_prefix(random, table, table.schema().key.len()).into_values();
    if let Some(partition) = partition {
        values[0] = partition.clone();
    }
    PrimaryKey::new(values).expect("a key")
}

pub(super) fn bound(random: &mut Rng, table: &Table) -> KeyBound {
    let columns = random.usize(1..=table.schema().key.len());
    match random.u8(0..4) {
        0 => KeyBound::Min,
        1 => KeyBound::Max,
        2 => KeyBound::Before(key_prefix(random, table, columns)),
        _ => KeyBound::After(key_prefix(random, table, columns)),
    }
}

pub(super) fn value(random: &mut Rng) -> Value {
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

pub(super) fn filter(random: &mut Rng, depth: usize) -> Filter {
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

/// Cells with versions. `now`: milliseconds.
fn cells(random: &mut Rng, now: i64) -> Vec<CellPut> {
    let mut cells = Vec::new();
    for column in COLUMNS {
        let versions: &[Option<i64>] = match random.u8(0..4) {
            0 => &[None],
            1 => &[Some(-1)],
            2 => &[Some(-6), Some(2), Some(0), Some(-2)],
            _ => &[],
        };
        cells.extend(versions.iter().map(|version| CellPut {
            column: column.to_owned(),
            value: value(random),
            version: version.map(|offset| now + offset),
        }));
    }
    if random.u8(0..100) == 0 {
        let version = Some(now + 1_000_000_000);
        let (column, value) = ("d".to_owned(), value(random));
        cells.push(CellPut {
            column,
            value,
            version,
        });
    }
    cells
}

fn columns(random: &mut Rng) -> Vec<(ColumnName, Value)> {
    let columns = COLUMNS.iter().filter(|_| random.u8(0..3) > 0);
    let columns: Vec<_> = columns.map(ColumnName::new).collect();
    columns.into_iter().map(|name| (name, value(random))).collect()
}

pub(super) fn returning(random: &mut Rng) -> ReturnRow {
    match random.u8(0..5) {
        0 => ReturnRow::Key,
        1 => ReturnRow::AfterModify(vec![column(random), "absent".to_owned()]),
        2 => ReturnRow::All,
        _ => ReturnRow::None,
    }
}

/// A write to a table, inside of a partition if one is given; what the table refuses is rare. `now`: nanoseconds.
pub(super) fn write(
    random: &mut Rng,
    state: &State,
    table: &Table,
    partition: Option<&KeyValue>,
    now: i64,
) -> RowWrite {
    let schema = table.schema();
    let key = key(random, state, table, partition);
    let stored = state.stored(table, &key);
    let mut condition = condition(random, stored.map(|row| row.revision));
    let now = millis(now);
    let many = state
        .tables
        .get(&table.id().0)
        .is_some_and(|rows| rows.len() > 40);
    let wrong = random.u8(0..100) == 0;
    let numbered = schema.auto_increment.is_some();
    let operation = match random.u8(0..10) {
        0 | 1 => RowOperation::Delete { key },
        _ if many && numbered => RowOperation::Delete { key },
        2..=4 if numbered != wrong => {
            condition = Condition::none();
            let partition = key.values()[0].clone();
            RowOperation::Append {
                key: vec![partition],
                columns: columns(random),
            }
        }
        5..=7 if schema.allow_update != wrong => RowOperation::Update {
            key,
            changes: changes(random, now),
        },
        8 => RowOperation::PutCells {
            key,
            cells: cells(random, now),
        },
        _ => RowOperation::Put {
            key,
            columns: columns(random),
        },
    };
    let creates = !matches!(
        operation,
        RowOperation::Delete { .. } | RowOperation::Append { .. }
    );
    if numbered && creates && !wrong {
        condition.existence = Existence::MustExist;
    }
    RowWrite::new(table, operation, condition).returning(returning(random))
}

/// Writes to random tables. `now`: nanoseconds.
pub(super) fn batch(random: &mut Rng, state: &State, tables: &[Table], now: i64) -> WriteBatch {
    let mut batch = WriteBatch::new().durability(Durability::Buffered);
    for _ in 0..random.usize(0..6) {
        let table = random.choice(tables).expect("one");
        let write = write(random, state, table, None, now);
        let again = |other: &RowWrite| {
            let key = other.operation.key();
            key.is_some() && (other.table.id(), key) == (write.table.id(), write.operation.key())
        };
        if random.u8(0..20) == 0 || !batch.writes.iter().any(again) {
            batch = batch.row(write);
        }
    }
    if random.u8(0..4) == 0 {
        batch = batch.request(RequestRecord {
            id: random.u128(0..1000).to_be_bytes(),
            fingerprint: random.u64(0..2),
            reply: Bytes::copy_from_slice(&random.u64(..).to_be_bytes()),
        });
    }
    if random.bool() {
        batch = batch.trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    }
    batch
}

/// An index under one of a few names.
pub(super) fn index(random: &mut Rng, table: &Table) -> SecondaryIndexSchema {
    let name = format!("extra{}", random.u8(0..2));
    let (first, second, third) = match random.u8(0..3) {
        0 => ("a", "b", "c"),
        1 => ("b", "c", "a"),
        _ => ("c", "a", "b"),
    };
    let key = table.schema().key[0].0.clone();
    match random.u8(0..3) {
        0 => SecondaryIndexSchema::new(name, [first]).include([second, third]),
        1 => SecondaryIndexSchema::new(name, [first, second]),
        _ => SecondaryIndexSchema::new(name, [key.as_str(), first])
            .local()
            .include([second]),
    }
}
