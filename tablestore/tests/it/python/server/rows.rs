//! Rows: one at a time, in batches, in ranges and in transactions.

use bytes::Bytes;
use souk_tablestore::messages::*;
use souk_tablestore::plainbuffer::encode;
use souk_tablestore::{
    Answer, CastType, CellChange, ColumnFilter, Comparator, KeyColumn, KeyElement, KeyUse, Operation,
    PutCell, ReadFilter, Reason, Returning, RowChange, RowCondition, RowExistence, ServiceError, TimeWindow,
    Value, ValueTransfer, VersionSelection,
};

use super::{Result, cell, found, key, read_message, same, stored};

fn capacity(read: i32, write: i32) -> ConsumedCapacity {
    ConsumedCapacity {
        capacity_unit: CapacityUnit {
            read: Some(read),
            write: Some(write),
        },
        capacity_data_size: None,
    }
}

pub(super) fn rows(operation: Operation, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    Ok(match operation {
        Operation::PutRow => put_row(read_message(body)?, wrong)?,
        Operation::UpdateRow => {
            let request: UpdateRowRequest = read_message(body)?;
            let put = |column: &str, value, version| {
                CellChange::Put(PutCell {
                    column: column.into(),
                    value,
                    version,
                })
            };
            let expected = RowChange::Update {
                key: key("o1", 7),
                changes: vec![
                    put("city", Value::from("上海"), None),
                    put("price", Value::Double(2.5), Some(1_700_000_000_001)),
                    CellChange::DeleteVersion {
                        column: "old".into(),
                        version: 1_700_000_000_000,
                    },
                    CellChange::DeleteAll {
                        column: "gone".into(),
                    },
                    CellChange::Increment {
                        column: "count".into(),
                        by: 5,
                    },
                ],
            };
            same(
                wrong,
                RowChange::decode(OperationType::Update, request.row_change)?,
                expected,
            );
            same(
                wrong,
                RowCondition::try_from(request.condition)?,
                RowCondition::default(),
            );
            same(
                wrong,
                Returning::try_from(request.return_content)?,
                Returning::Nothing,
            );
            Answer::ok(&UpdateRowResponse {
                consumed: capacity(0, 1),
                row: None,
            })
        }
        Operation::GetRow => get_row(read_message(body)?, wrong)?,
        _ => {
            let request: DeleteRowRequest = read_message(body)?;
            let change = RowChange::decode(OperationType::Delete, request.primary_key)?;
            same(wrong, change, RowChange::Delete { key: key("o1", 7) });
            Answer::ok(&DeleteRowResponse {
                consumed: capacity(0, 1),
                row: None,
            })
        }
    })
}

fn put_row(request: PutRowRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    if request.table_name == "people" {
        return Err(Reason::ConditionCheckFailed.into());
    }
    let put = |column: &str, value, version| PutCell {
        column: column.into(),
        value,
        version,
    };
    let expected = RowChange::Put {
        key: key("o1", KeyElement::AutoIncrement),
        cells: vec![
            put("city", Value::from("杭州"), None),
            put("price", Value::Double(1.5), Some(1_700_000_000_000)),
            put("paid", Value::Boolean(true), None),
            put("raw", Value::Binary(Bytes::from_static(&[0, 1])), None),
        ],
    };
    same(
        wrong,
        RowChange::decode(OperationType::Put, request.row)?,
        expected,
    );
    let column = |column: &str, comparator, value, latest_version_only, transfer| ColumnFilter::Column {
        column: column.into(),
        comparator,
        value,
        pass_if_missing: false,
        latest_version_only,
        transfer,
    };
    let rule = ValueTransfer {
        pattern: "v([0-9]+)".into(),
        cast: CastType::Integer,
    };
    let tag = column("tag", Comparator::Greater, Value::Integer(5), false, Some(rule));
    let expected = RowCondition {
        existence: RowExistence::NotExpected,
        columns: Some(ColumnFilter::And(vec![
            column("city", Comparator::Equal, Value::from("杭州"), true, None),
            ColumnFilter::Not(Box::new(tag)),
        ])),
    };
    same(wrong, RowCondition::try_from(request.condition)?, expected);
    same(
        wrong,
        Returning::try_from(request.return_content)?,
        Returning::Key,
    );
    Ok(Answer::ok(&PutRowResponse {
        consumed: capacity(0, 1),
        row: Some(encode([&stored(key("o1", 7), Vec::new())])),
    }))
}

fn get_row(request: GetRowRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    let wanted = KeyUse::Get.decode(request.primary_key)?;
    let versions = VersionSelection::new(request.time_range, request.max_versions)?;
    let mut row = Bytes::new();
    if wanted == key("none", 1) {
        let newest = VersionSelection {
            max_versions: Some(1),
            time: None,
        };
        same(wrong, versions, newest);
    } else {
        same(wrong, wanted, key("o1", 7));
        let within = VersionSelection {
            max_versions: Some(2),
            time: Some(TimeWindow {
                from: 1,
                to: 1_800_000_000_000,
            }),
        };
        same(wrong, versions, within);
        same(
            wrong,
            request.columns_to_get,
            vec!["city".to_owned(), "price".to_owned()],
        );
        let expected = ColumnFilter::Column {
            column: "price".into(),
            comparator: Comparator::GreaterOrEqual,
            value: Value::Integer(2),
            pass_if_missing: true,
            latest_version_only: false,
            transfer: None,
        };
        let filter = request.filter.map(ReadFilter::decode).transpose()?;
        same(wrong, filter, Some(ReadFilter::Rows(expected)));
        let cells = vec![
            cell("city", "上海", 1_700_000_000_002),
            cell("price", Value::Double(2.5), 1_700_000_000_001),
            cell("price", Value::Double(1.5), 1_700_000_000_000),
            cell("count", i64::MIN, 3),
            cell("paid", Value::Boolean(false), 0),
            cell("raw", Value::Binary(Bytes::from_static(&[255, 0])), 1),
        ];
        row = encode([&stored(key("o1", 7), cells)]);
    }
    Ok(Answer::ok(&GetRowResponse {
        consumed: capacity(1, 0),
        row,
        next_token: None,
    }))
}

pub(super) fn batches(operation: Operation, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    Ok(match operation {
        Operation::BatchGetRow => {
            let request: BatchGetRowRequest = read_message(body)?;
            let mut keys = Vec::new();
            for table in request.tables {
                for primary_key in table.primary_key {
                    keys.push(KeyUse::Get.decode(primary_key)?);
                }
            }
            same(wrong, keys, vec![key("o1", 1), key("o2", 2)]);
            let failed = RowInBatchGetRowResponse {
                error: Some(ServiceError::from(Reason::OperationTimeout).to_message()),
                ..RowInBatchGetRowResponse::default()
            };
            let row = RowInBatchGetRowResponse {
                is_ok: true,
                consumed: Some(capacity(1, 0)),
                row: Some(found()),
                ..RowInBatchGetRowResponse::default()
            };
            Answer::ok(&BatchGetRowResponse {
                tables: vec![TableInBatchGetRowResponse {
                    table_name: "orders".to_owned(),
                    rows: vec![row, failed],
                }],
            })
        }
        Operation::BatchWriteRow => batch_write(read_message(body)?, wrong)?,
        _ => get_range(read_message(body)?, wrong)?,
    })
}

fn batch_write(request: BatchWriteRowRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    same(wrong, request.transaction_id.as_deref(), Some("t-1"));
    let mut changes = Vec::new();
    for row in request.tables.into_iter().flat_map(|table| table.rows) {
        let kind = OperationType::try_from(row.r#type).map_err(|_| Reason::InvalidRowType)?;
        changes.push(RowChange::decode(kind, row.row_change)?);
    }
    let put = |city: &str| PutCell {
        column: "city".into(),
        value: Value::from(city),
        version: None,
    };
    let expected = vec![
        RowChange::Put {
            key: key("o1", 1),
            cells: vec![put("杭州")],
        },
        RowChange::Update {
            key: key("o2", 2),
            changes: vec![CellChange::Put(put("上海"))],
        },
        RowChange::Delete { key: key("o3", 3) },
    ];
    same(wrong, changes, expected);
    let written = RowInBatchWriteRowResponse {
        is_ok: true,
        consumed: Some(capacity(0, 1)),
        ..RowInBatchWriteRowResponse::default()
    };
    let failed = RowInBatchWriteRowResponse {
        error: Some(ServiceError::from(Reason::ConditionCheckFailed).to_message()),
        ..RowInBatchWriteRowResponse::default()
    };
    Ok(Answer::ok(&BatchWriteRowResponse {
        tables: vec![TableInBatchWriteRowResponse {
            table_name: "orders".to_owned(),
            rows: vec![written.clone(), failed, written],
        }],
    }))
}

fn get_range(request: GetRangeRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    let ends = |value: KeyElement| vec![KeyColumn::new("id", value.clone()), KeyColumn::new("nth", value)];
    let (start, end) = (ends(KeyElement::Minimum), ends(KeyElement::Maximum));
    let from = KeyUse::RangeEnd.decode(request.inclusive_start_primary_key)?;
    let to = KeyUse::RangeEnd.decode(request.exclusive_end_primary_key)?;
    if Direction::try_from(request.direction) == Ok(Direction::Backward) {
        same(wrong, (from, to), (end, start));
        return Ok(Answer::ok(&GetRangeResponse {
            consumed: capacity(1, 0),
            ..GetRangeResponse::default()
        }));
    }
    same(wrong, (from, to), (start, end));
    same(wrong, request.limit, Some(2));
    let rows = [
        stored(key("o1", 1), vec![cell("city", "杭州", 5)]),
        stored(key("o2", 2), Vec::new()),
    ];
    Ok(Answer::ok(&GetRangeResponse {
        consumed: capacity(2, 0),
        rows: encode(&rows),
        next_start_primary_key: Some(encode([&stored(key("o3", 3), Vec::new())])),
        next_token: None,
    }))
}

pub(super) fn transactions(operation: Operation, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    Ok(match operation {
        Operation::StartLocalTransaction => {
            let request: StartLocalTransactionRequest = read_message(body)?;
            same(
                wrong,
                KeyUse::Get.decode(request.key)?,
                vec![KeyColumn::new("id", "o1")],
            );
            Answer::ok(&StartLocalTransactionResponse {
                transaction_id: "t-1".to_owned(),
            })
        }
        Operation::CommitTransaction => {
            let request: CommitTransactionRequest = read_message(body)?;
            same(wrong, request.transaction_id.as_str(), "t-1");
            Answer::ok(&CommitTransactionResponse {})
        }
        _ => {
            let request: AbortTransactionRequest = read_message(body)?;
            same(wrong, request.transaction_id.as_str(), "t-1");
            Answer::ok(&AbortTransactionResponse {})
        }
    })
}
