//! Single rows: versions, times, parts, numbers of the server's, what is given back.

use std::time::{SystemTime, UNIX_EPOCH};

use souk_proto::table::v1::filter::Kind;
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{
    BatchWriteRowsRequest, Cell, CellVersion, ColumnFilter, ColumnType, Comparison, DefinedColumn, Filter,
    FilterList, GetRowRequest, KeyType, PutRowRequest, RangeRowsRequest, ReadOptions, ReturnRow, Returning,
    Row, RowDelete, RowPut, RowUpdate, RowWrite, Table, UpdateRowRequest, ValueCast, ValueRule,
    VersionSelection,
};
use souk_proto::r#type::v1::{Value, value};
use tonic::Code;

use crate::{
    TestResult, columns, create, double, int, key_column, notes, open, refusal, row, text, without_revision,
};

fn versioned() -> Table {
    Table {
        name: "versioned".to_owned(),
        key: vec![key_column("id", KeyType::String)],
        max_versions: 3,
        ..Table::default()
    }
}

/// Milliseconds since the Unix epoch.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
    i64::try_from(since.as_millis()).expect("a time")
}

fn cell(column: &str, value: Value, version: i64) -> Cell {
    Cell {
        column: column.to_owned(),
        value: Some(value),
        version: Some(version),
    }
}

fn get(table: &str, key: Vec<Value>, read: ReadOptions) -> GetRowRequest {
    GetRowRequest {
        table: table.to_owned(),
        key,
        read: Some(read),
        ..GetRowRequest::default()
    }
}

#[tokio::test]
async fn versions_are_kept_read_and_deleted_one_by_one() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, versioned()).await?;
    let now = now();
    let put = PutRowRequest {
        table: "versioned".to_owned(),
        key: vec![text("a")],
        cells: (0..4).map(|nth| cell("n", int(nth), now + nth)).collect(),
        ..PutRowRequest::default()
    };
    client.put_row(put).await?;
    let versions = |selection: VersionSelection| ReadOptions {
        versions: Some(selection),
        ..ReadOptions::default()
    };
    let cells = |row: Row| -> Vec<(Option<Value>, i64)> {
        let cells = row.cells.into_iter();
        cells
            .map(|cell| (cell.value, cell.version.expect("a version") - now))
            .collect()
    };
    for (selection, expected) in [
        (VersionSelection::default(), &[3, 2, 1][..]),
        (
            VersionSelection {
                max_versions: 2,
                ..VersionSelection::default()
            },
            &[3, 2],
        ),
        (
            VersionSelection {
                from_millis: Some(now + 1),
                to_millis: Some(now + 3),
                ..VersionSelection::default()
            },
            &[2, 1],
        ),
        (
            VersionSelection {
                to_millis: Some(now + 2),
                ..VersionSelection::default()
            },
            &[1],
        ),
    ] {
        let found = client
            .get_row(get("versioned", vec![text("a")], versions(selection)))
            .await?;
        let found = found.into_inner().row.expect("the row");
        assert!(found.columns.is_empty());
        let expected: Vec<_> = expected.iter().map(|nth| (Some(int(*nth)), *nth)).collect();
        assert_eq!(cells(found), expected, "{selection:?}");
    }
    let newest = client
        .get_row(get("versioned", vec![text("a")], ReadOptions::default()))
        .await?;
    let newest = newest.into_inner().row.expect("the row");
    assert_eq!(newest.columns, columns([("n", int(3))]));
    let update = UpdateRowRequest {
        table: "versioned".to_owned(),
        key: vec![text("a")],
        delete_versions: vec![CellVersion {
            column: "n".to_owned(),
            version: now + 3,
        }],
        put_cells: vec![cell("m", text("x"), now)],
        returning: Some(Returning {
            row: ReturnRow::Columns.into(),
            columns: vec!["n".to_owned()],
        }),
        ..UpdateRowRequest::default()
    };
    let updated = client
        .update_row(update)
        .await?
        .into_inner()
        .row
        .expect("the row");
    assert_eq!(updated.columns, columns([("n", int(2))]));
    let early = PutRowRequest {
        table: "versioned".to_owned(),
        key: vec![text("a")],
        cells: vec![cell("n", int(1), now - 2 * 86_400_000)],
        ..PutRowRequest::default()
    };
    let refused = refusal(client.put_row(early).await);
    assert_eq!(refused, (Code::InvalidArgument, "INVALID_ARGUMENT".to_owned()));
    Ok(())
}

#[tokio::test]
async fn appended_rows_are_numbered_within_their_partition() -> TestResult {
    let (_running, mut client) = open().await?;
    let mut numbered = key_column("nth", KeyType::Integer);
    numbered.auto_increment = true;
    let log = Table {
        name: "log".to_owned(),
        key: vec![key_column("topic", KeyType::String), numbered],
        ..Table::default()
    };
    create(&mut client, log).await?;
    let mut last = 0;
    for nth in 0..3 {
        let put = PutRowRequest {
            table: "log".to_owned(),
            key: vec![text("news")],
            columns: columns([("n", int(nth))]),
            returning: Some(Returning {
                row: ReturnRow::Key.into(),
                columns: Vec::new(),
            }),
            ..PutRowRequest::default()
        };
        let written = client.put_row(put).await?.into_inner().row.expect("the key");
        let Some(Value {
            kind: Some(value::Kind::IntValue(number)),
        }) = written.key.get(1)
        else {
            panic!("a number: {written:?}");
        };
        assert!(*number > last, "{number} after {last}");
        last = *number;
    }
    let range = RangeRowsRequest {
        table: "log".to_owned(),
        ..RangeRowsRequest::default()
    };
    let page = client.range_rows(range).await?.into_inner();
    let written: Vec<_> = page.rows.iter().map(|row| row.columns["n"].clone()).collect();
    assert_eq!(written, [int(0), int(1), int(2)]);
    let placed = PutRowRequest {
        table: "log".to_owned(),
        key: vec![text("news"), int(9)],
        ..PutRowRequest::default()
    };
    let refused = client
        .put_row(placed)
        .await
        .expect_err("a number of the writer's");
    assert!(refused.message().contains("auto-increment"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn every_type_of_value_comes_back_and_times_as_declared() -> TestResult {
    let (_running, mut client) = open().await?;
    let times = Table {
        columns: vec![DefinedColumn {
            name: "at".to_owned(),
            r#type: ColumnType::Time.into(),
        }],
        ..notes()
    };
    create(&mut client, times).await?;
    let kind = |kind: value::Kind| Value { kind: Some(kind) };
    let at = kind(value::Kind::TimeValue(prost_types::Timestamp {
        seconds: 3,
        nanos: 7,
    }));
    let given = columns([
        ("text", text("奶茶")),
        ("int", int(i64::MIN)),
        ("double", double(-0.5)),
        ("bool", kind(value::Kind::BoolValue(false))),
        ("bytes", kind(value::Kind::BytesValue(vec![0, 255].into()))),
        ("at", at.clone()),
        ("undeclared", at),
    ]);
    client.put_row(crate::put("ann", 1, given.clone())).await?;
    let found = client
        .get_row(get("notes", vec![text("ann"), int(1)], ReadOptions::default()))
        .await?;
    let found = without_revision(found.into_inner().row.expect("the row"));
    let mut expected = given;
    expected.insert("undeclared".to_owned(), int(3_000_000_007));
    assert_eq!(found, row(vec![text("ann"), int(1)], expected));
    Ok(())
}

#[tokio::test]
async fn wide_rows_are_read_by_pieces() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let wide: Vec<(String, Value)> = (0..1_000).map(|nth| (format!("c{nth:04}"), int(nth))).collect();
    client
        .put_row(crate::put("ann", 1, wide.iter().cloned().collect()))
        .await?;
    let mut found = Vec::new();
    let mut start = "c0100".to_owned();
    loop {
        let read = ReadOptions {
            start_column: start,
            end_column: "c0350".to_owned(),
            max_columns: 90,
            ..ReadOptions::default()
        };
        let answer = client
            .get_row(get("notes", vec![text("ann"), int(1)], read))
            .await?
            .into_inner();
        found.extend(answer.row.expect("the row").columns);
        if answer.next_column.is_empty() {
            break;
        }
        start = answer.next_column;
    }
    assert_eq!(found, wide[100..350]);
    let skipping = ReadOptions {
        max_columns: 2,
        skip_columns: 3,
        ..ReadOptions::default()
    };
    let answer = client
        .get_row(get("notes", vec![text("ann"), int(1)], skipping))
        .await?
        .into_inner();
    let names: Vec<String> = answer.row.expect("the row").columns.into_keys().collect();
    assert_eq!(names, ["c0003", "c0004"]);
    Ok(())
}

#[tokio::test]
async fn filters_see_any_version_parts_of_texts_and_what_is_missing() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, versioned()).await?;
    let now = now();
    let put = PutRowRequest {
        table: "versioned".to_owned(),
        key: vec![text("a")],
        cells: vec![
            cell("n", int(1), now),
            cell("n", int(2), now + 1),
            cell("code", text("order-0042"), now),
        ],
        ..PutRowRequest::default()
    };
    client.put_row(put).await?;
    let column = |of: ColumnFilter| Filter {
        kind: Some(Kind::Column(of)),
    };
    let compared = |name: &str, comparison: Comparison, value: Value| ColumnFilter {
        column: name.to_owned(),
        comparison: comparison.into(),
        value: Some(value),
        ..ColumnFilter::default()
    };
    let list = |filters: Vec<Filter>| FilterList { filters };
    let exists = |name: &str| Filter {
        kind: Some(Kind::Exists(name.to_owned())),
    };
    let rule = |comparison: Comparison, value: i64| {
        column(ColumnFilter {
            rule: Some(ValueRule {
                pattern: "-([0-9]+)".to_owned(),
                cast: ValueCast::Integer.into(),
            }),
            ..compared("code", comparison, int(value))
        })
    };
    let kind = |kind: Kind| Filter { kind: Some(kind) };
    for (filter, passes) in [
        (column(compared("n", Comparison::Equal, int(2))), true),
        (column(compared("n", Comparison::Equal, int(1))), false),
        (
            column(ColumnFilter {
                any_version: true,
                ..compared("n", Comparison::Equal, int(1))
            }),
            true,
        ),
        (column(compared("n", Comparison::NotEqual, text("2"))), true),
        (column(compared("none", Comparison::Less, int(2))), false),
        (
            column(ColumnFilter {
                pass_if_missing: true,
                ..compared("none", Comparison::Less, int(2))
            }),
            true,
        ),
        (rule(Comparison::Equal, 42), true),
        (rule(Comparison::Greater, 42), false),
        (kind(Kind::AllOf(list(vec![exists("n"), exists("code")]))), true),
        (kind(Kind::AllOf(list(vec![exists("n"), exists("none")]))), false),
        (kind(Kind::AnyOf(list(vec![exists("n"), exists("none")]))), true),
        (kind(Kind::AnyOf(list(Vec::new()))), false),
        (kind(Kind::NoneOf(list(vec![exists("none")]))), true),
        (kind(Kind::NoneOf(list(vec![exists("none"), exists("n")]))), false),
    ] {
        let read = ReadOptions {
            filter: Some(filter.clone()),
            versions: Some(VersionSelection::default()),
            ..ReadOptions::default()
        };
        let found = client.get_row(get("versioned", vec![text("a")], read)).await;
        assert_eq!(found.is_ok(), passes, "{filter:?}: {found:?}");
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_given_back_of_a_row_that_isnt_there() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let key = |number: i64| vec![text("ann"), int(number)];
    let update = |number: i64| {
        Operation::Update(RowUpdate {
            key: key(number),
            delete: vec!["word".to_owned()],
            ..RowUpdate::default()
        })
    };
    let put = Operation::Put(RowPut {
        key: key(0),
        ..RowPut::default()
    });
    let delete = |number: i64| Operation::Delete(RowDelete { key: key(number) });
    for (operation, asked, is_told) in [
        (put, ReturnRow::Key, true),
        (update(1), ReturnRow::All, false),
        (update(1), ReturnRow::Columns, false),
        (update(0), ReturnRow::Columns, true),
        (update(0), ReturnRow::None, false),
        (delete(1), ReturnRow::All, false),
        (delete(0), ReturnRow::Key, false),
    ] {
        let write = RowWrite {
            operation: Some(operation.clone()),
            returning: Some(Returning {
                row: asked.into(),
                columns: match asked {
                    ReturnRow::Columns => vec!["word".to_owned()],
                    _ => Vec::new(),
                },
            }),
            ..RowWrite::default()
        };
        let batch = BatchWriteRowsRequest {
            table: "notes".to_owned(),
            writes: vec![write],
            ..BatchWriteRowsRequest::default()
        };
        let answer = client.batch_write_rows(batch).await?.into_inner();
        let result = &answer.results[0];
        assert_eq!(result.error, None, "{operation:?}");
        assert_eq!(result.row.is_some(), is_told, "{operation:?} {asked:?}");
    }
    Ok(())
}
