//! Rows: put, updated, read and deleted; versions, conditions, filters, increments, numbers.

use bytes::Bytes;
use prost::Message as _;
use souk_tablestore::messages::{
    self as pb, ComparatorType, Condition, FilterType, LogicalOperator, PrimaryKeyType, ReturnType,
    RowExistenceExpectation,
};
use souk_tablestore::{CellOperation, KeyColumn, KeyElement, PlainCell, Value, variant};

use crate::client::{
    Client, Refused, cell, cells, deletion, expecting, get, ignore, key, plain, put, rows, table, update,
    versioned,
};
use crate::server::Server;

fn a() -> Vec<KeyColumn> {
    key([("id", "a".into())])
}

fn operation(name: &str, operation: CellOperation, timestamp: Option<i64>) -> PlainCell {
    PlainCell {
        name: name.into(),
        value: None,
        operation: Some(operation),
        timestamp,
    }
}

fn increment(name: &str, by: i64) -> PlainCell {
    PlainCell {
        operation: Some(CellOperation::Increment),
        ..cell(name, by)
    }
}

fn returning(kind: ReturnType, columns: &[&str]) -> Option<pb::ReturnContent> {
    Some(pb::ReturnContent {
        return_type: Some(kind.into()),
        return_column_names: columns.iter().map(|name| (*name).to_owned()).collect(),
    })
}

/// A comparison of a column, of rows that have it.
fn compare(column: &str, comparator: ComparatorType, value: Value) -> pb::Filter {
    let comparison = pb::SingleColumnValueFilter {
        comparator: comparator.into(),
        column_name: column.to_owned(),
        column_value: variant::encode(&value),
        filter_if_missing: true,
        latest_version_only: true,
        value_trans_rule: None,
    };
    pb::Filter {
        r#type: FilterType::SingleColumnValue.into(),
        filter: comparison.encode_to_vec().into(),
    }
}

fn bytes(filter: &pb::Filter) -> Option<Bytes> {
    Some(filter.encode_to_vec().into())
}

async fn updated(client: &mut Client, cells: Vec<PlainCell>) -> Result<pb::UpdateRowResponse, Refused> {
    client.call("UpdateRow", &update("notes", a(), cells)).await
}

#[tokio::test]
async fn a_row_holds_what_was_put_and_updated() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let all = vec![
        cell("city", "杭州"),
        cell("count", i64::MIN),
        cell("paid", Value::Boolean(true)),
        cell("price", Value::Double(-0.5)),
        cell("raw", Value::Binary(Bytes::from_static(b"\x00\xff"))),
    ];
    let written = client.put("notes", a(), all.clone()).await.expect("put");
    assert_eq!(written.consumed.capacity_unit.write, Some(1));
    assert_eq!(written.row, None);
    let found = client.get("notes", a()).await.expect("it");
    assert_eq!(found.key, a());
    let wanted: Vec<_> = all
        .iter()
        .map(|cell| (cell.name.as_str(), cell.value.clone().expect("one")))
        .collect();
    assert_eq!(cells(&found), wanted);
    assert!(
        found
            .cells
            .iter()
            .all(|cell| cell.timestamp.is_some_and(|at| at > 1_700_000_000_000))
    );

    let changes = vec![
        cell("city", "上海"),
        operation("raw", CellOperation::DeleteAllVersions, None),
        increment("price_cents", 5),
    ];
    updated(&mut client, changes).await.expect("updated");
    let found = client.get("notes", a()).await.expect("it");
    let (names, values): (Vec<_>, Vec<_>) = cells(&found).into_iter().unzip();
    assert_eq!(names, ["city", "count", "paid", "price", "price_cents"]);
    assert_eq!(
        (&values[0], &values[4]),
        (&Value::from("上海"), &Value::Integer(5))
    );

    // A put replaces the row as a whole.
    client
        .put("notes", a(), vec![cell("only", 1_i64)])
        .await
        .expect("put");
    assert_eq!(
        cells(&client.get("notes", a()).await.expect("it")),
        [("only", Value::Integer(1))]
    );
    // A row may have its key alone.
    client.put("notes", a(), Vec::new()).await.expect("put");
    assert_eq!(client.get("notes", a()).await.expect("it").cells, []);

    let delete = pb::DeleteRowRequest {
        table_name: "notes".to_owned(),
        primary_key: deletion(a()),
        condition: ignore(),
        ..pb::DeleteRowRequest::default()
    };
    for _ in 0..2 {
        let _: pb::DeleteRowResponse = client.call("DeleteRow", &delete).await.expect("deleted");
        assert_eq!(client.get("notes", a()).await, None);
    }
    let missing: pb::GetRowResponse = client
        .call("GetRow", &get("notes", a()))
        .await
        .expect("an answer");
    assert_eq!(
        (missing.row.len(), missing.consumed.capacity_unit.read),
        (0, Some(1))
    );
    server.end().await;
}

#[tokio::test]
async fn versions_are_kept_given_and_chosen() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let mut notes = plain("notes");
    let options = notes.table_options.as_mut().expect("options");
    (options.max_versions, options.deviation_cell_version_in_sec) = (Some(3), Some(i64::from(i32::MAX)));
    client.create(&notes).await;
    let cells = (1..=4)
        .map(|version| versioned("v", version * 10, version))
        .collect();
    client.put("notes", a(), cells).await.expect("put");
    let read = async |client: &mut Client, range: Option<pb::TimeRange>, most: Option<i32>| {
        let request = pb::GetRowRequest {
            time_range: range,
            max_versions: most,
            ..get("notes", a())
        };
        let found: Result<pb::GetRowResponse, Refused> = client.call("GetRow", &request).await;
        let row = found.map(|found| rows(&found.row).pop());
        row.map(|row| {
            let cells = row.map_or(Vec::new(), |row| row.cells);
            cells
                .into_iter()
                .map(|cell| cell.timestamp.expect("one"))
                .collect::<Vec<_>>()
        })
    };
    let range = |from, to| {
        Some(pb::TimeRange {
            start_time: Some(from),
            end_time: Some(to),
            specific_time: None,
        })
    };
    let exact = Some(pb::TimeRange {
        specific_time: Some(3),
        ..pb::TimeRange::default()
    });
    // The newest first; the fourth is more than the table keeps.
    assert_eq!(read(&mut client, None, Some(9)).await.expect("all"), [4, 3, 2]);
    assert_eq!(read(&mut client, None, Some(1)).await.expect("one"), [4]);
    assert_eq!(
        read(&mut client, range(2, 4), Some(9)).await.expect("some"),
        [3, 2]
    );
    assert_eq!(read(&mut client, range(2, 4), Some(1)).await.expect("one"), [3]);
    assert_eq!(read(&mut client, exact, None).await.expect("one"), [3]);
    assert_eq!(read(&mut client, range(9, 10), None).await.expect("none"), [0; 0]);
    let none = read(&mut client, None, None).await.expect_err("no versions");
    none.is(
        400,
        "OTSParameterInvalid",
        "No version condition is specified while querying row.",
    );

    let delete = vec![operation("v", CellOperation::DeleteOneVersion, Some(3))];
    updated(&mut client, delete).await.expect("deleted");
    assert_eq!(read(&mut client, None, Some(9)).await.expect("all"), [4, 2]);
    server.end().await;
}

#[tokio::test]
async fn a_write_happens_when_its_condition_holds() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let mut attempt = put("notes", a(), vec![cell("n", 1_i64)]);
    attempt.condition = expecting(RowExistenceExpectation::ExpectExist);
    let failed = ("OTSConditionCheckFail", "Condition check failed.");
    client
        .refused("PutRow", &attempt)
        .await
        .is(403, failed.0, failed.1);
    attempt.condition = expecting(RowExistenceExpectation::ExpectNotExist);
    let _: pb::PutRowResponse = client.call("PutRow", &attempt).await.expect("put");
    client
        .refused("PutRow", &attempt)
        .await
        .is(403, failed.0, failed.1);

    let mut change = update("notes", a(), vec![cell("n", 2_i64)]);
    let n_is = |number: i64| Condition {
        row_existence: RowExistenceExpectation::Ignore.into(),
        column_condition: bytes(&compare("n", ComparatorType::Equal, Value::Integer(number))),
    };
    change.condition = n_is(7);
    client
        .refused("UpdateRow", &change)
        .await
        .is(403, failed.0, failed.1);
    change.condition = n_is(1);
    let _: pb::UpdateRowResponse = client.call("UpdateRow", &change).await.expect("updated");
    let delete = pb::DeleteRowRequest {
        table_name: "notes".to_owned(),
        primary_key: deletion(a()),
        condition: n_is(1),
        ..pb::DeleteRowRequest::default()
    };
    client
        .refused("DeleteRow", &delete)
        .await
        .is(403, failed.0, failed.1);
    assert_eq!(
        cells(&client.get("notes", a()).await.expect("it")),
        [("n", Value::Integer(2))]
    );
    server.end().await;
}

#[tokio::test]
async fn a_read_has_what_its_filter_and_its_columns_let_through() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let there = vec![
        cell("a", "v7"),
        cell("b", 2_i64),
        cell("c", 3_i64),
        cell("d", 4_i64),
    ];
    client.put("notes", a(), there).await.expect("put");
    let read = async |client: &mut Client, change: &dyn Fn(&mut pb::GetRowRequest)| {
        let mut request = get("notes", a());
        change(&mut request);
        let found: pb::GetRowResponse = client.call("GetRow", &request).await.expect("an answer");
        let row = rows(&found.row).pop();
        row.map(|row| {
            row.cells
                .iter()
                .map(|cell| cell.name.to_string())
                .collect::<Vec<_>>()
        })
    };
    let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let equal = |column: &str, number: i64| compare(column, ComparatorType::Equal, Value::Integer(number));
    let all = ["a", "b", "c", "d"];
    let both = |operator: LogicalOperator, parts: Vec<pb::Filter>| pb::Filter {
        r#type: FilterType::CompositeColumnValue.into(),
        filter: pb::CompositeColumnValueFilter {
            combinator: operator.into(),
            sub_filters: parts,
        }
        .encode_to_vec()
        .into(),
    };
    let cases: [(pb::Filter, bool); 7] = [
        (equal("b", 2), true),
        (equal("b", 3), false),
        (equal("none", 3), false),
        (
            both(LogicalOperator::And, vec![equal("b", 2), equal("c", 2)]),
            false,
        ),
        (
            both(LogicalOperator::Or, vec![equal("b", 2), equal("c", 2)]),
            true,
        ),
        (both(LogicalOperator::Not, vec![equal("b", 2)]), false),
        (compare("c", ComparatorType::GreaterThan, Value::Integer(2)), true),
    ];
    for (filter, passes) in cases {
        let found = read(&mut client, &|request| request.filter = bytes(&filter)).await;
        assert_eq!(
            found.as_deref(),
            passes.then_some(all.map(str::to_owned).as_slice()),
            "{filter:?}"
        );
    }
    // A part of a text as a number.
    let part = pb::SingleColumnValueFilter {
        comparator: ComparatorType::GreaterThan.into(),
        column_name: "a".to_owned(),
        column_value: variant::encode(&Value::Integer(6)),
        filter_if_missing: true,
        latest_version_only: true,
        value_trans_rule: Some(pb::ValueTransferRule {
            regex: "v([0-9]+)".to_owned(),
            cast_type: Some(pb::VariantType::Integer.into()),
        }),
    };
    let part = pb::Filter {
        r#type: FilterType::SingleColumnValue.into(),
        filter: part.encode_to_vec().into(),
    };
    assert!(
        read(&mut client, &|request| request.filter = bytes(&part))
            .await
            .is_some()
    );
    // Columns.
    let found = read(&mut client, &|request| {
        request.columns_to_get = columns(&["d", "b", "none"])
    })
    .await;
    assert_eq!(found, Some(columns(&["b", "d"])));
    let found = read(&mut client, &|request| {
        request.columns_to_get = columns(&["none"])
    })
    .await;
    assert_eq!(found, None, "it has none of them");
    let found = read(&mut client, &|request| {
        request.start_column = Some("b".to_owned());
        request.end_column = Some("d".to_owned());
    })
    .await;
    assert_eq!(found, Some(columns(&["b", "c"])));
    let page = pb::Filter {
        r#type: FilterType::ColumnPagination.into(),
        filter: pb::ColumnPaginationFilter { offset: 1, limit: 2 }
            .encode_to_vec()
            .into(),
    };
    let found = read(&mut client, &|request| request.filter = bytes(&page)).await;
    assert_eq!(found, Some(columns(&["b", "c"])));
    // And goes on there.
    let mut request = get("notes", a());
    request.filter = bytes(&page);
    let first: pb::GetRowResponse = client.call("GetRow", &request).await.expect("a page");
    request.token = first.next_token;
    assert!(request.token.is_some());
    let second: pb::GetRowResponse = client.call("GetRow", &request).await.expect("a page");
    assert_eq!(cells(&rows(&second.row)[0]), [("d", Value::Integer(4))]);
    assert_eq!(second.next_token, None);
    server.end().await;
}

#[tokio::test]
async fn an_increment_tells_its_sum() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    for sum in [5_i64, 10] {
        let mut change = update("notes", a(), vec![increment("n", 5), cell("other", "x")]);
        change.return_content = returning(ReturnType::AfterModify, &["n"]);
        let changed: pb::UpdateRowResponse = client.call("UpdateRow", &change).await.expect("updated");
        let returned = rows(&changed.row.expect("a row")).pop().expect("one");
        assert_eq!(cells(&returned), [("n", Value::Integer(sum))]);
    }
    let wrong = updated(&mut client, vec![increment("other", 1)])
        .await
        .expect_err("a text");
    assert_eq!((wrong.status, wrong.code.as_str()), (400, "OTSParameterInvalid"));
    server.end().await;
}

#[tokio::test]
async fn a_row_is_numbered_by_the_server() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let keys = [("id", PrimaryKeyType::String), ("nth", PrimaryKeyType::Integer)];
    client.create(&table("messages", &keys, Some("nth"))).await;
    let there = |number: KeyElement| key([("id", "a".into()), ("nth", number)]);
    let mut numbers = Vec::new();
    for text in ["one", "two"] {
        let mut request = put(
            "messages",
            there(KeyElement::AutoIncrement),
            vec![cell("text", text)],
        );
        request.return_content = returning(ReturnType::Pk, &[]);
        let written: pb::PutRowResponse = client.call("PutRow", &request).await.expect("put");
        let returned = rows(&written.row.expect("its key")).pop().expect("one");
        let KeyElement::Integer(number) = returned.key[1].value else {
            panic!("{returned:?}");
        };
        numbers.push(number);
    }
    assert!(numbers[0] < numbers[1], "{numbers:?}");
    let found = client
        .get("messages", there(numbers[1].into()))
        .await
        .expect("it");
    assert_eq!(cells(&found), [("text", Value::from("two"))]);
    // What has a number is put again under the condition that it is there.
    let mut again = put("messages", there(numbers[1].into()), vec![cell("text", "three")]);
    let refused = client.refused("PutRow", &again).await;
    let text = "Invalid expect: IGNORE when modify a specific row for table with pk auto increment";
    refused.is(400, "OTSParameterInvalid", text);
    again.condition = expecting(RowExistenceExpectation::ExpectExist);
    let _: pb::PutRowResponse = client.call("PutRow", &again).await.expect("put");
    let mut conditional = put("messages", there(KeyElement::AutoIncrement), Vec::new());
    conditional.condition = expecting(RowExistenceExpectation::ExpectNotExist);
    let refused = client.refused("PutRow", &conditional).await;
    let text = "Invalid expect:EXPECT_NOT_EXIST when modify row with pk auto increment";
    refused.is(400, "OTSParameterInvalid", text);
    server.end().await;
}
