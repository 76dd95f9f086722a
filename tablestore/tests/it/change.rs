//! What writes and reads may say of a row.

use souk_tablestore::messages::OperationType;
use souk_tablestore::plainbuffer::encode;
use souk_tablestore::{
    CellChange, CellOperation, KeyColumn, KeyElement, KeyUse, PlainCell, PlainRow, PutCell, Reason,
    RowChange, Value, limits,
};

fn row(cells: Vec<PlainCell>) -> PlainRow {
    PlainRow {
        key: vec![KeyColumn::new("pk", "a")],
        cells,
        ..PlainRow::default()
    }
}

fn cell(operation: CellOperation, value: Option<Value>, timestamp: Option<i64>) -> PlainCell {
    PlainCell {
        name: "c".into(),
        value,
        operation: Some(operation),
        timestamp,
    }
}

fn decoded(kind: OperationType, row: &PlainRow) -> Result<RowChange, Reason> {
    RowChange::decode(kind, encode([row]))
}

#[test]
fn puts_updates_and_deletions_become_changes() {
    let key = vec![KeyColumn::new("pk", "a")];
    let put = PlainCell {
        timestamp: Some(7),
        ..PlainCell::new("b", 1)
    };
    let as_put = PutCell {
        column: "b".into(),
        value: Value::Integer(1),
        version: Some(7),
    };
    assert_eq!(
        decoded(OperationType::Put, &row(vec![put.clone()])),
        Ok(RowChange::Put {
            key: key.clone(),
            cells: vec![as_put.clone()]
        })
    );
    let cells = vec![
        put,
        cell(CellOperation::DeleteOneVersion, None, Some(9)),
        cell(CellOperation::DeleteAllVersions, None, None),
        cell(CellOperation::Increment, Some(Value::Integer(-3)), None),
    ];
    let change = decoded(OperationType::Update, &row(cells)).expect("an update");
    assert_eq!(change.key(), key);
    let column = || "c".into();
    assert_eq!(
        change,
        RowChange::Update {
            key: key.clone(),
            changes: vec![
                CellChange::Put(as_put),
                CellChange::DeleteVersion {
                    column: column(),
                    version: 9
                },
                CellChange::DeleteAll { column: column() },
                CellChange::Increment {
                    column: column(),
                    by: -3
                },
            ]
        }
    );
    let mut deletion = row(Vec::new());
    deletion.delete_marker = true;
    assert_eq!(
        decoded(OperationType::Delete, &deletion),
        Ok(RowChange::Delete { key })
    );
}

#[test]
fn writes_that_make_no_sense_are_refused_with_the_texts_of_the_original() {
    let name = || "c".into();
    let c = |value: Value| row(vec![PlainCell::new("c", value)]);
    let (put, update, delete) = (OperationType::Put, OperationType::Update, OperationType::Delete);
    let mut marked = row(Vec::new());
    marked.delete_marker = true;
    let mut marked_with_cells = c(Value::Integer(1));
    marked_with_cells.delete_marker = true;
    let one = CellOperation::DeleteOneVersion;
    let all = CellOperation::DeleteAllVersions;
    let increment = CellOperation::Increment;
    let number = || Some(Value::Integer(1));
    let named = |name: &str| row(vec![PlainCell::new(name, 1)]);
    let cases = [
        (put, c(Value::Double(f64::NAN)), Reason::NotANumber),
        (update, c(Value::Double(f64::NEG_INFINITY)), Reason::Infinity),
        (
            put,
            c(Value::Binary(vec![0; limits::MAX_VALUE_BYTES + 1].into())),
            Reason::ValueTooLong {
                name: name(),
                limit: limits::MAX_VALUE_BYTES,
                length: limits::MAX_VALUE_BYTES + 1,
            },
        ),
        (
            put,
            row(vec![PlainCell::new("c", 1); limits::MAX_COLUMNS_PER_WRITE + 1]),
            Reason::TooManyColumns {
                limit: limits::MAX_COLUMNS_PER_WRITE,
                count: limits::MAX_COLUMNS_PER_WRITE + 1,
            },
        ),
        (put, marked.clone(), Reason::DeleteMarkerUnexpected),
        (update, marked, Reason::DeleteMarkerUnexpected),
        (delete, row(Vec::new()), Reason::DeleteMarkerMissing),
        (delete, marked_with_cells, Reason::DeletionWithCells),
        (update, row(Vec::new()), Reason::UpdateWithoutCells),
        (
            put,
            row(vec![cell(increment, number(), None)]),
            Reason::PutOperation { name: name() },
        ),
        (
            update,
            row(vec![cell(one, None, None)]),
            Reason::DeletionTimestampMissing,
        ),
        (
            update,
            row(vec![cell(one, number(), Some(1))]),
            Reason::DeletionValue,
        ),
        (
            update,
            row(vec![cell(all, None, Some(1))]),
            Reason::DeletionTimestamp,
        ),
        (
            update,
            row(vec![cell(all, number(), None)]),
            Reason::DeletionValue,
        ),
        (
            update,
            row(vec![cell(increment, None, None)]),
            Reason::CellValueMissing { cell: name() },
        ),
        (
            update,
            row(vec![cell(increment, number(), Some(1))]),
            Reason::InvalidTimestamp { cell: name() },
        ),
        (
            update,
            row(vec![cell(increment, Some(Value::from("1")), None)]),
            Reason::InvalidAttributeType {
                kind: "STRING".into(),
            },
        ),
        (
            put,
            row(vec![PlainCell {
                value: None,
                ..PlainCell::new("c", 1)
            }]),
            Reason::NoColumnValue { name: name() },
        ),
        (
            put,
            row(vec![PlainCell {
                timestamp: Some(i64::MAX / 1000),
                ..PlainCell::new("c", 1)
            }]),
            Reason::TimestampOutOfRange,
        ),
        (put, named(""), Reason::NoColumnName),
        (put, named("1a"), Reason::InvalidColumnName { name: "1a".into() }),
        (
            put,
            named("a-b"),
            Reason::InvalidColumnName { name: "a-b".into() },
        ),
        (put, named("列"), Reason::InvalidColumnName { name: "列".into() }),
        (put, named("pk"), Reason::DuplicatedColumn { name: "pk".into() }),
    ];
    for (kind, row, reason) in cases {
        let shown = format!("{kind:?} {row:.200?}");
        assert_eq!(decoded(kind, &row), Err(reason), "{shown}");
    }
}

#[test]
fn names_of_columns_have_so_many_bytes() {
    let longest = "x".repeat(limits::MAX_NAME_BYTES);
    for kind in [OperationType::Put, OperationType::Update] {
        let named = |name: &str| decoded(kind, &row(vec![PlainCell::new(name, 1)])).map(|_| ());
        assert_eq!(named(&longest), Ok(()));
        // Told without the rest.
        let refused = Reason::InvalidColumnName {
            name: longest.as_str().into(),
        };
        assert_eq!(named(&format!("{longest}x")), Err(refused));
    }
}

#[test]
fn keys_are_what_they_are_for() {
    let key = |values: &[KeyElement]| -> Vec<KeyColumn> {
        let columns = values.iter().enumerate();
        columns
            .map(|(nth, value)| KeyColumn::new(format!("pk{nth}"), value.clone()))
            .collect()
    };
    let text = || KeyElement::from("a");
    let long = || KeyElement::String("x".repeat(limits::MAX_KEY_VALUE_BYTES + 1).into());
    let all = [KeyUse::Get, KeyUse::RangeEnd, KeyUse::Write, KeyUse::Delete];
    let numbered = KeyElement::AutoIncrement;
    for used in all {
        assert_eq!(used.check(&key(&[text(), KeyElement::Integer(1)])), Ok(()));
        assert_eq!(used.check(&[]), Err(Reason::KeyWithoutColumns));
        // Those of indexes are read alone.
        let limit = match used {
            KeyUse::Get | KeyUse::RangeEnd => 8,
            KeyUse::Write | KeyUse::Delete => 4,
        };
        assert_eq!(used.check(&key(&vec![text(); limit])), Ok(()));
        assert_eq!(
            used.check(&key(&vec![text(); limit + 1])),
            Err(Reason::KeyColumnCount { limit })
        );
        let repeated = [KeyColumn::new("a", 1), KeyColumn::new("a", 1)];
        assert_eq!(
            used.check(&repeated),
            Err(Reason::DuplicatedKeyColumn { name: "a".into() })
        );
        assert_eq!(used.check(&[KeyColumn::new("", 1)]), Err(Reason::NoKeyName));
        let too_long = Reason::KeyValueTooLong {
            name: "pk0".into(),
            limit: limits::MAX_KEY_VALUE_BYTES,
            length: limits::MAX_KEY_VALUE_BYTES + 1,
        };
        assert_eq!(used.check(&key(&[long()])), Err(too_long));
        let ends = key(&[KeyElement::Minimum, KeyElement::Maximum]);
        let refused = Reason::InvalidKeyType {
            kind: "VT_INF_MIN".into(),
        };
        assert_eq!(
            used.check(&ends),
            if used == KeyUse::RangeEnd {
                Ok(())
            } else {
                Err(refused)
            }
        );
        let appended = used.check(&key(&[text(), numbered.clone()]));
        let expected = match used {
            KeyUse::Write => Ok(()),
            KeyUse::Delete => Err(Reason::AutoIncrementDelete),
            KeyUse::Get | KeyUse::RangeEnd => Err(Reason::AutoIncrementRead),
        };
        assert_eq!(appended, expected);
    }
    assert_eq!(
        KeyUse::Write.check(&key(std::slice::from_ref(&numbered))),
        Err(Reason::FirstColumnAutoIncrement)
    );
    let twice = KeyUse::Write.check(&key(&[text(), numbered.clone(), numbered]));
    assert_eq!(twice, Err(Reason::AutoIncrementsInRow { count: 2 }));
}

#[test]
fn a_key_for_reading_is_a_key_alone() {
    let plain = row(Vec::new());
    assert_eq!(KeyUse::Get.decode(encode([&plain])), Ok(plain.key.clone()));
    assert_eq!(
        KeyUse::Get.decode(encode([&row(vec![PlainCell::new("c", 1)])])),
        Err(Reason::ReadColumns)
    );
    let marked = PlainRow {
        delete_marker: true,
        ..plain
    };
    assert_eq!(
        KeyUse::RangeEnd.decode(encode([&marked])),
        Err(Reason::ReadDeleteMarker)
    );
}
