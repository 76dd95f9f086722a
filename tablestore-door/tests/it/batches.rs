//! Several rows in one request: each has an answer of its own, with HTTP 200.

use bytes::Bytes;
use prost::Message as _;
use souk_tablestore::messages::{
    self as pb, Condition, OperationType, RowExistenceExpectation, RowInBatchWriteRowRequest,
};
use souk_tablestore::{KeyColumn, KeyElement, Value, variant};

use crate::client::{Client, cell, cells, deletion, expecting, ignore, key, plain, row, rows};
use crate::server::Server;

fn there(id: &str) -> Vec<KeyColumn> {
    key([("id", id.into())])
}

fn putting(id: &str, number: i64, condition: Condition) -> RowInBatchWriteRowRequest {
    RowInBatchWriteRowRequest {
        r#type: OperationType::Put.into(),
        row_change: row(there(id), vec![cell("n", number)]),
        condition,
        return_content: None,
    }
}

fn updating(id: &str, number: i64) -> RowInBatchWriteRowRequest {
    RowInBatchWriteRowRequest {
        r#type: OperationType::Update.into(),
        row_change: row(there(id), vec![cell("m", number)]),
        condition: ignore(),
        return_content: None,
    }
}

fn deleting(id: &str) -> RowInBatchWriteRowRequest {
    RowInBatchWriteRowRequest {
        r#type: OperationType::Delete.into(),
        row_change: deletion(there(id)),
        condition: ignore(),
        return_content: None,
    }
}

fn batch<const N: usize>(tables: [(&str, Vec<RowInBatchWriteRowRequest>); N]) -> pb::BatchWriteRowRequest {
    let tables = tables
        .into_iter()
        .map(|(name, rows)| pb::TableInBatchWriteRowRequest {
            table_name: name.to_owned(),
            rows,
        });
    pb::BatchWriteRowRequest {
        tables: tables.collect(),
        ..pb::BatchWriteRowRequest::default()
    }
}

/// The codes of the rows of each table; nothing of one that was written.
async fn codes(client: &mut Client, request: &pb::BatchWriteRowRequest) -> Vec<Vec<String>> {
    let written: pb::BatchWriteRowResponse = client.call("BatchWriteRow", request).await.expect("an answer");
    let tables = written.tables.into_iter().map(|table| {
        let rows = table.rows.into_iter().map(|row| {
            assert_eq!(row.is_ok, row.error.is_none());
            row.error.map(|error| error.code).unwrap_or_default()
        });
        rows.collect()
    });
    tables.collect()
}

fn reading<const N: usize>(tables: [(&str, &[&str]); N]) -> pb::BatchGetRowRequest {
    let tables = tables
        .into_iter()
        .map(|(name, ids)| pb::TableInBatchGetRowRequest {
            table_name: name.to_owned(),
            primary_key: ids.iter().map(|id| row(there(id), Vec::new())).collect(),
            max_versions: Some(1),
            ..pb::TableInBatchGetRowRequest::default()
        });
    pb::BatchGetRowRequest {
        tables: tables.collect(),
    }
}

#[tokio::test]
async fn rows_of_a_batch_fail_alone() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    for name in ["notes", "others"] {
        client.create(&plain(name)).await;
    }
    let must = |expectation| expecting(expectation);
    let written = codes(
        &mut client,
        &batch([
            (
                "notes",
                vec![
                    putting("a", 1, ignore()),
                    putting("b", 1, must(RowExistenceExpectation::ExpectExist)),
                    updating("c", 3),
                    deleting("d"),
                ],
            ),
            ("none", vec![putting("a", 1, ignore())]),
            (
                "others",
                vec![putting("a", 1, must(RowExistenceExpectation::ExpectNotExist))],
            ),
        ]),
    )
    .await;
    let failed = "OTSConditionCheckFail";
    assert_eq!(
        written,
        [vec!["", failed, "", ""], vec!["OTSObjectNotExist"], vec![""]]
    );

    let found: pb::BatchGetRowResponse = client
        .call(
            "BatchGetRow",
            &reading([("notes", &["c", "b", "a"]), ("none", &["a"]), ("others", &["a"])]),
        )
        .await
        .expect("an answer");
    let notes = &found.tables[0].rows;
    assert!(notes.iter().all(|row| row.is_ok));
    let of = |nth: usize| rows(notes[nth].row.as_ref().expect("bytes"));
    assert_eq!(cells(&of(0)[0]), [("m", Value::Integer(3))]);
    assert_eq!((of(1).len(), of(2)[0].key.clone()), (0, there("a")));
    let missing = &found.tables[1].rows[0];
    assert_eq!(
        missing.error.as_ref().map(|error| error.code.as_str()),
        Some("OTSObjectNotExist")
    );
    assert!(!missing.is_ok && found.tables[2].rows[0].is_ok);
    server.end().await;
}

#[tokio::test]
async fn a_row_may_be_in_a_batch_again_without_conditions() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let again = batch([(
        "notes",
        vec![
            putting("a", 1, ignore()),
            updating("a", 2),
            putting("b", 3, ignore()),
        ],
    )]);
    assert_eq!(codes(&mut client, &again).await, [["", "", ""]]);
    let found = client.get("notes", there("a")).await.expect("it");
    assert_eq!(
        cells(&found),
        [("m", Value::Integer(2)), ("n", Value::Integer(1))],
        "in their order"
    );
    let conditional = batch([(
        "notes",
        vec![
            putting("a", 1, expecting(RowExistenceExpectation::ExpectExist)),
            updating("a", 2),
        ],
    )]);
    let text = "Repeated rows do not support row exist expectation check in BatchModify.";
    client
        .refused("BatchWriteRow", &conditional)
        .await
        .is(400, "OTSParameterInvalid", text);
    let twice = reading([("notes", &["a", "b", "a"])]);
    let text = "Duplicate rows detected in MultiGet.";
    client
        .refused("BatchGetRow", &twice)
        .await
        .is(400, "OTSParameterInvalid", text);
    let table_twice = batch([
        ("notes", vec![updating("a", 1)]),
        ("notes", vec![updating("b", 1)]),
    ]);
    let text = "Duplicated table name: 'notes'.";
    client
        .refused("BatchWriteRow", &table_twice)
        .await
        .is(400, "OTSParameterInvalid", text);
    server.end().await;
}

#[tokio::test]
async fn a_batch_has_rows_and_not_too_many() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let ids: Vec<String> = (0..201).map(|nth| format!("{nth:03}")).collect();
    let many = |count: usize| {
        let rows = ids.iter().take(count).map(|id| putting(id, 1, ignore()));
        batch([("notes", rows.collect())])
    };
    let written = codes(&mut client, &many(200)).await;
    assert!(written[0].len() == 200 && written[0].iter().all(String::is_empty));
    let text = "Rows count exceeds the upper limit: 200.";
    client
        .refused("BatchWriteRow", &many(201))
        .await
        .is(400, "OTSParameterInvalid", text);
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    let found: pb::BatchGetRowResponse = client
        .call("BatchGetRow", &reading([("notes", &all[..100])]))
        .await
        .expect("an answer");
    assert!(
        found.tables[0]
            .rows
            .iter()
            .all(|row| row.row.as_ref().is_some_and(|row| !row.is_empty()))
    );
    let text = "Rows count exceeds the upper limit: 100.";
    let refused = client
        .refused("BatchGetRow", &reading([("notes", &all[..101])]))
        .await;
    refused.is(400, "OTSParameterInvalid", text);
    let text = "No row is specified in BatchWriteRow.";
    client
        .refused("BatchWriteRow", &batch([]))
        .await
        .is(400, "OTSParameterInvalid", text);
    let text = "No operation is specified for table:notes.";
    client
        .refused("BatchWriteRow", &batch([("notes", Vec::new())]))
        .await
        .is(400, "OTSParameterInvalid", text);
    // What is wrong with one row is wrong with the request.
    let mut wrong = many(2);
    wrong.tables[0].rows[1].row_change = row(there("x"), vec![cell("n", Value::Double(f64::NAN))]);
    let text = "NaN can't be set to double value.";
    client
        .refused("BatchWriteRow", &wrong)
        .await
        .is(400, "OTSParameterInvalid", text);
    server.end().await;
}

#[tokio::test]
async fn an_atomic_batch_happens_as_a_whole() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let atomic = |rows| pb::BatchWriteRowRequest {
        is_atomic: Some(true),
        ..batch([("notes", rows)])
    };
    // Of one row several times.
    let rows = vec![putting("a", 1, ignore()), updating("a", 2), updating("a", 3)];
    assert_eq!(codes(&mut client, &atomic(rows)).await, [["", "", ""]]);
    let found = client.get("notes", there("a")).await.expect("it");
    assert_eq!(
        cells(&found),
        [("m", Value::Integer(3)), ("n", Value::Integer(1))]
    );
    let rows = vec![putting("a", 9, ignore()), putting("b", 9, ignore())];
    assert_eq!(
        codes(&mut client, &atomic(rows)).await,
        [["OTSDataOutOfRange"; 2]],
        "two partitions"
    );
    let found = client.get("notes", there("a")).await.expect("it");
    assert_eq!(cells(&found)[1], ("n", Value::Integer(1)), "none was written");
    server.end().await;
}

#[tokio::test]
async fn many_rows_are_imported_and_exported() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let ids: Vec<String> = (0..501).map(|nth| format!("{nth:03}")).collect();
    let mut rows: Vec<_> = ids
        .iter()
        .map(|id| pb::RowInBulkImportRequest {
            r#type: OperationType::Put.into(),
            row_change: row(there(id), vec![cell("n", 1_i64)]),
        })
        .collect();
    rows.push(pb::RowInBulkImportRequest {
        r#type: OperationType::Delete.into(),
        row_change: deletion(there("500")),
    });
    let import = pb::BulkImportRequest {
        table_name: "notes".to_owned(),
        rows,
    };
    let imported: pb::BulkImportResponse = client.call("BulkImport", &import).await.expect("an answer");
    assert!(imported.rows.len() == 502 && imported.rows.iter().all(|row| row.is_ok));
    let mut export = pb::BulkExportRequest {
        table_name: "notes".to_owned(),
        inclusive_start_primary_key: row(key([("id", KeyElement::Minimum)]), Vec::new()),
        exclusive_end_primary_key: row(key([("id", KeyElement::Maximum)]), Vec::new()),
        ..pb::BulkExportRequest::default()
    };
    let mut exported = Vec::new();
    loop {
        let page: pb::BulkExportResponse = client.call("BulkExport", &export).await.expect("a page");
        assert_eq!(page.data_block_type(), pb::DataBlockType::PlainBuffer);
        exported.extend(crate::client::rows(&page.rows).into_iter().map(|row| row.key));
        match page.next_start_primary_key {
            Some(next) => export.inclusive_start_primary_key = next,
            None => break,
        }
    }
    let expected: Vec<_> = ids[..500].iter().map(|id| there(id)).collect();
    assert_eq!(exported, expected);
    server.end().await;
}

#[tokio::test]
async fn rows_behind_a_full_answer_are_to_be_read_again() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let large = "x".repeat(1_600_000);
    for name in ["notes", "others", "more"] {
        let mut table = plain(name);
        table.table_meta.defined_column = vec![pb::DefinedColumnSchema {
            name: "n".to_owned(),
            r#type: pb::DefinedColumnType::Integer.into(),
        }];
        table.index_metas = vec![pb::IndexMeta {
            name: format!("{name}_by_n"),
            primary_key: vec!["n".to_owned()],
            index_type: pb::IndexType::Global.into(),
            ..pb::IndexMeta::default()
        }];
        client.create(&table).await;
        let cells = vec![cell("n", 1_i64), cell("text", large.as_str())];
        client.put(name, there("a"), cells).await.expect("put");
    }
    let all = reading([
        ("notes", &["a", "b"]),
        ("others", &["a"]),
        ("more", &["a"]),
        ("notes_by_n", &["a"]),
    ]);
    let mut by_tokens = all.clone();
    by_tokens.tables[1].token = vec![Bytes::from_static(b"n")];
    let mut of_index = all;
    of_index.tables[3].primary_key = vec![row(key([("n", 1_i64.into()), ("id", "a".into())]), Vec::new())];
    for request in [by_tokens, of_index] {
        let found: pb::BatchGetRowResponse = client.call("BatchGetRow", &request).await.expect("an answer");
        let codes = found.tables.iter().flat_map(|table| &table.rows).map(|row| {
            let error = row.error.as_ref();
            error.map_or("", |error| error.code.as_str())
        });
        let busy = "OTSServerBusy";
        assert_eq!(codes.collect::<Vec<_>>(), ["", "", busy, busy, busy]);
        let row = found.tables[0].rows[0].row.as_ref().expect("bytes");
        assert_eq!(rows(row).len(), 1);
    }
    server.end().await;
}

/// A condition with so many value transfer rules.
fn transferring(rules: usize) -> Bytes {
    let comparison = pb::SingleColumnValueFilter {
        comparator: pb::ComparatorType::Equal.into(),
        column_name: "n".to_owned(),
        column_value: variant::encode(&Value::Integer(1)),
        filter_if_missing: false,
        latest_version_only: true,
        value_trans_rule: Some(pb::ValueTransferRule {
            regex: "([0-9]+)".to_owned(),
            cast_type: Some(pb::VariantType::Integer.into()),
        }),
    };
    let comparison = pb::Filter {
        r#type: pb::FilterType::SingleColumnValue.into(),
        filter: comparison.encode_to_vec().into(),
    };
    let all = pb::CompositeColumnValueFilter {
        combinator: pb::LogicalOperator::And.into(),
        sub_filters: vec![comparison; rules],
    };
    let all = pb::Filter {
        r#type: pb::FilterType::CompositeColumnValue.into(),
        filter: all.encode_to_vec().into(),
    };
    all.encode_to_vec().into()
}

#[tokio::test]
async fn the_filters_of_a_request_have_so_many_patterns_together() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    for name in ["notes", "others"] {
        client.create(&plain(name)).await;
    }
    let text = "The filters of the request have more than 64 value transfer rules.";
    let get = |rules: usize| {
        let mut request = reading([("notes", &["a"]), ("others", &["a"])]);
        for table in &mut request.tables {
            table.filter = Some(transferring(rules));
        }
        request
    };
    let found: pb::BatchGetRowResponse = client.call("BatchGetRow", &get(32)).await.expect("an answer");
    assert!(found.tables.iter().all(|table| table.rows[0].is_ok));
    client
        .refused("BatchGetRow", &get(33))
        .await
        .is(400, "OTSParameterInvalid", text);
    let write = |rules: usize| {
        let condition = Condition {
            column_condition: Some(transferring(rules)),
            ..ignore()
        };
        batch([
            ("notes", vec![putting("a", 1, condition.clone())]),
            ("others", vec![putting("a", 1, condition)]),
        ])
    };
    assert_eq!(codes(&mut client, &write(32)).await, [[""], [""]]);
    client
        .refused("BatchWriteRow", &write(33))
        .await
        .is(400, "OTSParameterInvalid", text);
    server.end().await;
}
