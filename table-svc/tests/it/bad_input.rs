//! What can't be is refused with the field that is wrong, and nothing is written.

use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{
    BatchGetRowsRequest, BatchWriteRowsRequest, Cell, Condition, FilterList, GetRowRequest, Key,
    PutRowRequest, ReadOptions, RowDelete, RowPut, RowWrite, Table, UpdateRowRequest, ValueRule,
};
use souk_proto::table::v1::{ColumnFilter, Filter, filter};
use souk_proto::r#type::v1::{Value, value};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::{TestResult, columns, create, double, int, notes, open, put, refusal, text};

/// The fields that were refused.
pub(crate) fn fields(status: &Status) -> Vec<String> {
    let details = status.get_details_bad_request();
    let violations = details.into_iter().flat_map(|details| details.field_violations);
    violations.map(|violation| violation.field).collect()
}

fn note(key: Vec<Value>) -> PutRowRequest {
    PutRowRequest {
        key,
        ..put("ann", 1, Default::default())
    }
}

#[tokio::test]
async fn rows_that_cant_be_are_refused() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let flag = Value {
        kind: Some(value::Kind::BoolValue(true)),
    };
    for (request, path) in [
        (note(vec![]), "key"),
        (note(vec![text("ann"), flag]), "key[1]"),
        (note(vec![text("ann"), double(1.0)]), "key[1]"),
        (note(vec![text("ann"), Value::default()]), "key[1]"),
        (note(vec![text(&"x".repeat(1_025)), int(1)]), "key"),
        (put("ann", 1, columns([("", int(1))])), "columns[\"\"]"),
        (
            put("ann", 1, columns([("size", double(f64::NAN))])),
            "columns[\"size\"].double_value",
        ),
        (
            PutRowRequest {
                table: "no name".to_owned(),
                ..note(vec![text("ann"), int(1)])
            },
            "table",
        ),
        (
            PutRowRequest {
                cells: vec![Cell::default()],
                ..note(vec![text("ann"), int(1)])
            },
            "cells[0].column",
        ),
    ] {
        let status = client.put_row(request.clone()).await.expect_err(path);
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        let found = fields(&status);
        assert!(
            found.iter().any(|field| field == path),
            "{path}: {found:?} {status}"
        );
    }
    // What only the table knows has no path, and says what was expected.
    for (request, says) in [
        (note(vec![text("ann")]), "expected 2"),
        (note(vec![int(1), int(1)]), "must be of type String"),
        (put("ann", 1, columns([("person", text("bob"))])), "primary key"),
        (
            put("ann", 1, columns([("big", text(&"x".repeat((2 << 20) + 1)))])),
            "MAX_VALUE_BYTES",
        ),
    ] {
        let status = client.put_row(request).await.expect_err(says);
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(says), "{says}: {status}");
    }
    let read = GetRowRequest {
        table: "notes".to_owned(),
        key: vec![text("ann"), int(1)],
        ..GetRowRequest::default()
    };
    let refused = refusal(client.get_row(read).await);
    assert_eq!(
        refused,
        (Code::NotFound, "ROW_NOT_FOUND".to_owned()),
        "nothing was written"
    );
    Ok(())
}

#[tokio::test]
async fn batches_that_cant_be_are_refused_as_a_whole() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let delete = |number: i64| RowWrite {
        operation: Some(Operation::Delete(RowDelete {
            key: vec![text("ann"), int(number)],
        })),
        ..RowWrite::default()
    };
    let batch = |writes: Vec<RowWrite>| BatchWriteRowsRequest {
        table: "notes".to_owned(),
        writes,
        ..BatchWriteRowsRequest::default()
    };
    let wrong = RowWrite {
        operation: Some(Operation::Put(RowPut {
            key: vec![text("ann"), double(1.0)],
            ..RowPut::default()
        })),
        ..RowWrite::default()
    };
    for (request, path) in [
        (batch(Vec::new()), "writes"),
        (batch((0..201).map(delete).collect()), "writes"),
        (batch(vec![RowWrite::default()]), "writes[0].put"),
        (batch(vec![delete(1), wrong]), "writes[1].put.key[1]"),
        (
            BatchWriteRowsRequest {
                request_id: "6f1c9a7e-0f0e-4c57-9d5c-3b8f6a2b1c4d".to_owned(),
                ..batch(vec![delete(1)])
            },
            "request_id",
        ),
    ] {
        let status = client.batch_write_rows(request).await.expect_err(path);
        assert_eq!(fields(&status), [path], "{status}");
    }
    for atomic in [false, true] {
        let twice = BatchWriteRowsRequest {
            atomic,
            ..batch(vec![delete(1), delete(1)])
        };
        let status = client.batch_write_rows(twice).await.expect_err("twice");
        assert!(status.message().contains("a second time"), "{status}");
    }
    let twice = BatchGetRowsRequest {
        table: "notes".to_owned(),
        keys: vec![
            Key {
                values: vec![text("ann"), int(1)],
            };
            2
        ],
        ..BatchGetRowsRequest::default()
    };
    assert_eq!(
        client.batch_get_rows(twice).await.expect_err("twice").code(),
        Code::InvalidArgument
    );
    Ok(())
}

#[tokio::test]
async fn reads_and_changes_that_cant_be_are_refused() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let get = |read: ReadOptions| GetRowRequest {
        table: "notes".to_owned(),
        key: vec![text("ann"), int(1)],
        read: Some(read),
        ..GetRowRequest::default()
    };
    let pattern = |pattern: &str| ReadOptions {
        filter: Some(Filter {
            kind: Some(filter::Kind::Column(ColumnFilter {
                column: "word".to_owned(),
                value: Some(text("x")),
                rule: Some(ValueRule {
                    pattern: pattern.to_owned(),
                    ..ValueRule::default()
                }),
                ..ColumnFilter::default()
            })),
        }),
        ..ReadOptions::default()
    };
    for (request, path) in [
        (get(pattern("(")), "read.filter.column.rule.pattern"),
        (get(pattern(&"x".repeat(257))), "read.filter.column.rule.pattern"),
        (
            get(ReadOptions {
                filter: Some(Filter::default()),
                ..ReadOptions::default()
            }),
            "read.filter",
        ),
        (
            get(ReadOptions {
                skip_columns: 1,
                ..ReadOptions::default()
            }),
            "read.skip_columns",
        ),
        (
            GetRowRequest {
                transaction_id: "mine".to_owned(),
                ..get(ReadOptions::default())
            },
            "transaction_id",
        ),
        (
            GetRowRequest {
                transaction_id: "01".repeat(16),
                min_sequence: 1,
                ..get(ReadOptions::default())
            },
            "min_sequence",
        ),
    ] {
        let status = client.get_row(request).await.expect_err(path);
        assert_eq!(fields(&status), [path], "{status}");
    }
    client
        .put_row(put("ann", 1, columns([("word", text("tea"))])))
        .await?;
    let update = UpdateRowRequest {
        table: "notes".to_owned(),
        key: vec![text("ann"), int(1)],
        increment: [("word".to_owned(), 1)].into(),
        ..UpdateRowRequest::default()
    };
    let status = client
        .update_row(update.clone())
        .await
        .expect_err("an increment of text");
    assert!(status.message().contains("only INTEGER"), "{status}");
    let twice = UpdateRowRequest {
        delete: vec!["word".to_owned()],
        ..update
    };
    let status = client
        .update_row(twice)
        .await
        .expect_err("two changes of a column");
    assert!(status.message().contains("changed twice"), "{status}");
    Ok(())
}

/// A filter by a pattern.
fn by_pattern(pattern: &str) -> Filter {
    Filter {
        kind: Some(filter::Kind::Column(ColumnFilter {
            column: "word".to_owned(),
            value: Some(text("x")),
            rule: Some(ValueRule {
                pattern: pattern.to_owned(),
                ..ValueRule::default()
            }),
            ..ColumnFilter::default()
        })),
    }
}

fn any_of(filters: Vec<Filter>) -> Filter {
    Filter {
        kind: Some(filter::Kind::AnyOf(FilterList { filters })),
    }
}

/// What is told of each violation.
pub(crate) fn told(status: &Status) -> String {
    let details = status.get_details_bad_request();
    let violations = details.into_iter().flat_map(|details| details.field_violations);
    let told: Vec<_> = violations.map(|violation| violation.description).collect();
    told.join("\n")
}

#[tokio::test]
async fn filters_are_counted_before_their_patterns_are_compiled() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let get = |filter: Filter| GetRowRequest {
        table: "notes".to_owned(),
        key: vec![text("ann"), int(1)],
        read: Some(ReadOptions {
            filter: Some(filter),
            ..ReadOptions::default()
        }),
        ..GetRowRequest::default()
    };
    let broken = by_pattern("(");
    let deep = (1..17).fold(broken.clone(), |below, _| any_of(vec![below]));
    let halves = any_of(vec![any_of(vec![broken.clone(); 31]); 2]);
    for (given, says) in [
        (
            any_of(vec![broken.clone(); 64]),
            "is 65, above the limit MAX_FILTER_NODES of 64",
        ),
        (halves, "is 65, above the limit MAX_FILTER_NODES of 64"),
        (deep, "is 17, above the limit MAX_FILTER_DEPTH of 16"),
    ] {
        let status = client.get_row(get(given)).await.expect_err(says);
        assert_eq!(fields(&status), ["read.filter"], "{status}");
        assert!(told(&status).contains(says), "{status}");
    }
    let status = client.get_row(get(any_of(vec![broken; 65]))).await;
    let refused = fields(&status.expect_err("a list above its limit"));
    assert!(
        refused.contains(&"read.filter.any_of.filters".to_owned()),
        "{refused:?}"
    );
    let all = any_of(vec![by_pattern("x+"); 63]);
    assert_eq!(refusal(client.get_row(get(all)).await).0, Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn the_patterns_of_a_batch_count_together() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let batch = |numbers: std::ops::Range<i64>| BatchWriteRowsRequest {
        table: "notes".to_owned(),
        writes: numbers
            .map(|number| RowWrite {
                operation: Some(Operation::Delete(RowDelete {
                    key: vec![text("ann"), int(number)],
                })),
                condition: Some(Condition {
                    columns: Some(by_pattern("x+")),
                    ..Condition::default()
                }),
                ..RowWrite::default()
            })
            .collect(),
        ..BatchWriteRowsRequest::default()
    };
    let answer = client.batch_write_rows(batch(0..64)).await?.into_inner();
    assert_eq!(answer.results.len(), 64);
    let status = client.batch_write_rows(batch(0..65)).await.expect_err("too many");
    assert_eq!(fields(&status), ["writes"], "{status}");
    assert!(
        told(&status).contains("is 65, above the limit VALUE_RULES_MAX of 64"),
        "{status}"
    );
    Ok(())
}

#[tokio::test]
async fn times_above_292_years_are_refused() -> TestResult {
    let (_running, mut client) = open().await?;
    let length = |seconds: i64| Some(prost_types::Duration { seconds, nanos: 0 });
    for (table, path) in [
        (
            Table {
                time_to_live: length(9_223_372_037),
                ..notes()
            },
            "table.time_to_live",
        ),
        (
            Table {
                max_version_offset: length(9_223_372_037),
                ..notes()
            },
            "table.max_version_offset",
        ),
    ] {
        let status = create(&mut client, table).await.expect_err(path);
        assert_eq!(fields(&status), [path], "{status}");
    }
    Ok(())
}
