//! Secondary indexes, read as the tables that they are to clients.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use prost::Message as _;
use souk_engine::observer::Observer;
use souk_tablestore::messages::{
    self as pb, ComparatorType, DefinedColumnType, Direction, FilterType, IndexType, IndexUpdateMode,
    PrimaryKeyType, SingleColumnValueFilter,
};
use souk_tablestore::{KeyColumn, KeyElement, Value, variant};

use crate::client::{
    Client, Refused, cell, cells, deletion, get, ignore, key, put, row, rows, table, update, versioned,
};
use crate::server::Server;

fn index(name: &str, columns: &[&str], included: &[&str]) -> pb::IndexMeta {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    pb::IndexMeta {
        name: name.to_owned(),
        primary_key: owned(columns),
        defined_column: owned(included),
        index_update_mode: IndexUpdateMode::Async.into(),
        index_type: IndexType::Global.into(),
        index_sync_phase: None,
    }
}

fn orders(indexes: Vec<pb::IndexMeta>) -> pb::CreateTableRequest {
    let keys = [("id", PrimaryKeyType::String), ("nth", PrimaryKeyType::Integer)];
    let mut orders = table("orders", &keys, None);
    let columns = [
        ("city", DefinedColumnType::String),
        ("rank", DefinedColumnType::Integer),
        ("price", DefinedColumnType::Double),
    ];
    orders.table_meta.defined_column = columns
        .map(|(name, kind)| pb::DefinedColumnSchema {
            name: name.to_owned(),
            r#type: kind.into(),
        })
        .into();
    orders.index_metas = indexes;
    orders
}

async fn filled(client: &mut Client) {
    for (id, nth, city, rank) in [
        ("a", 1_i64, Some("杭州"), 3_i64),
        ("a", 2, Some("上海"), 1),
        ("b", 1, Some("上海"), 2),
        ("b", 2, None, 1),
        ("c", 1, Some("上海"), 1),
    ] {
        let mut columns = vec![cell("price", Value::Double(1.5)), cell("rank", rank)];
        columns.extend(city.map(|city| cell("city", city)));
        let there = key([("id", id.into()), ("nth", nth.into())]);
        client.put("orders", there, columns).await.expect("put");
    }
}

fn range(name: &str, start: Vec<KeyColumn>, end: Vec<KeyColumn>) -> pb::GetRangeRequest {
    pb::GetRangeRequest {
        table_name: name.to_owned(),
        direction: Direction::Forward.into(),
        max_versions: Some(1),
        inclusive_start_primary_key: row(start, Vec::new()),
        exclusive_end_primary_key: row(end, Vec::new()),
        ..pb::GetRangeRequest::default()
    }
}

/// City, id and number of all entries, and how many pages had them.
async fn read(client: &mut Client, mut request: pb::GetRangeRequest) -> (Vec<Vec<KeyElement>>, usize) {
    let (mut entries, mut pages) = (Vec::new(), 0);
    loop {
        let page: pb::GetRangeResponse = client.call("GetRange", &request).await.expect("a page");
        pages += 1;
        let keys = rows(&page.rows).into_iter();
        entries.extend(keys.map(|row| row.key.into_iter().map(|column| column.value).collect::<Vec<_>>()));
        match page.next_start_primary_key {
            Some(next) => request.inclusive_start_primary_key = next,
            None => return (entries, pages),
        }
    }
}

fn by_city(city: KeyElement, id: KeyElement, nth: KeyElement) -> Vec<KeyColumn> {
    key([("city", city), ("id", id), ("nth", nth)])
}

fn entry(city: &str, id: &str, nth: i64) -> Vec<KeyElement> {
    vec![city.into(), id.into(), nth.into()]
}

use KeyElement::{Maximum, Minimum};

#[tokio::test]
async fn an_index_is_read_as_a_table() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client
        .create(&orders(vec![index("by_city", &["city"], &["price"])]))
        .await;
    filled(&mut client).await;
    let all = range(
        "by_city",
        by_city(Minimum, Minimum, Minimum),
        by_city(Maximum, Maximum, Maximum),
    );
    let expected = [
        entry("上海", "a", 2),
        entry("上海", "b", 1),
        entry("上海", "c", 1),
        entry("杭州", "a", 1),
    ];
    assert_eq!(read(&mut client, all.clone()).await, (expected.to_vec(), 1));
    let mut paged = all.clone();
    paged.limit = Some(3);
    assert_eq!(read(&mut client, paged).await, (expected.to_vec(), 2));
    let mut backward = range(
        "by_city",
        by_city(Maximum, Maximum, Maximum),
        by_city(Minimum, Minimum, Minimum),
    );
    (backward.direction, backward.limit) = (Direction::Backward.into(), Some(1));
    let reversed: Vec<_> = expected.iter().rev().cloned().collect();
    assert_eq!(read(&mut client, backward).await, (reversed, 4));
    let one = range(
        "by_city",
        by_city("上海".into(), "a".into(), KeyElement::Integer(3)),
        by_city("上海".into(), "c".into(), KeyElement::Integer(1)),
    );
    assert_eq!(read(&mut client, one).await.0, [entry("上海", "b", 1)]);

    // Entries that don't pass are read, and not told.
    let filter = SingleColumnValueFilter {
        comparator: ComparatorType::GreaterThan.into(),
        column_name: "price".to_owned(),
        column_value: variant::encode(&Value::Double(9.0)),
        filter_if_missing: true,
        latest_version_only: true,
        value_trans_rule: None,
    };
    let filter = pb::Filter {
        r#type: FilterType::SingleColumnValue.into(),
        filter: filter.encode_to_vec().into(),
    };
    let mut filtered = all;
    (filtered.filter, filtered.limit) = (Some(filter.encode_to_vec().into()), Some(1));
    assert_eq!(read(&mut client, filtered).await, (Vec::new(), 4));

    let found: pb::GetRowResponse = client
        .call(
            "GetRow",
            &get(
                "by_city",
                by_city("上海".into(), "b".into(), KeyElement::Integer(1)),
            ),
        )
        .await
        .expect("an entry");
    assert_eq!(cells(&rows(&found.row)[0]), [("price", Value::Double(1.5))]);
    let written = put(
        "by_city",
        by_city("x".into(), "b".into(), KeyElement::Integer(1)),
        Vec::new(),
    );
    let refused = client.refused("PutRow", &written).await;
    refused.is(400, "OTSParameterInvalid", "Can't write index table directly");
    server.end().await;
}

#[tokio::test]
async fn an_index_is_created_described_and_dropped() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&orders(Vec::new())).await;
    filled(&mut client).await;
    // With columns of the table's key at its end, which are there anyway.
    let create = pb::CreateIndexRequest {
        main_table_name: "orders".to_owned(),
        index_meta: index("by_rank", &["rank", "id", "nth"], &["city"]),
        include_base_data: Some(true),
    };
    let _: pb::CreateIndexResponse = client.call("CreateIndex", &create).await.expect("created");
    let again = client.refused("CreateIndex", &create).await;
    again.is(409, "OTSObjectAlreadyExist", "Requested table already exists.");
    let describe = |name: &str| pb::DescribeTableRequest {
        table_name: name.to_owned(),
    };
    let told: pb::DescribeTableResponse = client
        .call("DescribeTable", &describe("orders"))
        .await
        .expect("it");
    assert_eq!(told.index_metas[0].name, "by_rank");
    assert_eq!(told.index_metas[0].primary_key, ["rank", "id", "nth"]);
    let told: pb::DescribeTableResponse = client
        .call("DescribeTable", &describe("by_rank"))
        .await
        .expect("it");
    let columns: Vec<_> = told
        .table_meta
        .primary_key
        .iter()
        .map(|column| (column.name.as_str(), column.r#type()))
        .collect();
    let expected = [
        ("rank", PrimaryKeyType::Integer),
        ("id", PrimaryKeyType::String),
        ("nth", PrimaryKeyType::Integer),
    ];
    assert_eq!(columns, expected);
    let listed: pb::ListTableResponse = client
        .call("ListTable", &pb::ListTableRequest {})
        .await
        .expect("a list");
    assert_eq!(listed.table_names, ["by_rank", "orders"]);
    server.indexed("demo__orders", "by_rank").await;
    let by_rank = |rank: KeyElement| key([("rank", rank), ("id", Minimum), ("nth", Minimum)]);
    let first = range("by_rank", by_rank(Minimum), by_rank(KeyElement::Integer(2)));
    assert_eq!(
        read(&mut client, first).await.0.len(),
        3,
        "rows from before are in it"
    );

    let drop = pb::DropIndexRequest {
        main_table_name: "orders".to_owned(),
        index_name: "by_rank".to_owned(),
    };
    let _: pb::DropIndexResponse = client.call("DropIndex", &drop).await.expect("dropped");
    assert_eq!(client.refused("DropIndex", &drop).await.code, "OTSObjectNotExist");
    let gone = client.refused("DescribeTable", &describe("by_rank")).await;
    assert_eq!(gone.code, "OTSObjectNotExist");
    let of_double = pb::CreateIndexRequest {
        index_meta: index("by_price", &["price"], &[]),
        ..create
    };
    let text = "Invalid column type, only STRING,INTEGER,BINARY is allowed.";
    client
        .refused("CreateIndex", &of_double)
        .await
        .is(400, "OTSParameterInvalid", text);
    server.end().await;
}

#[tokio::test]
async fn an_index_without_base_data_has_what_is_written_after_it() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&orders(Vec::new())).await;
    filled(&mut client).await;
    let by_city_of = |name: &str, include_base_data| pb::CreateIndexRequest {
        main_table_name: "orders".to_owned(),
        index_meta: index(name, &["city"], &["price"]),
        include_base_data,
    };
    for (name, include_base_data) in [
        ("without", Some(false)),
        ("with", Some(true)),
        ("by_default", None),
    ] {
        let create = by_city_of(name, include_base_data);
        let _: pb::CreateIndexResponse = client.call("CreateIndex", &create).await.expect("created");
        server.indexed("demo__orders", name).await;
    }
    let all = |name: &str| {
        range(
            name,
            by_city(Minimum, Minimum, Minimum),
            by_city(Maximum, Maximum, Maximum),
        )
    };
    let before = [
        entry("上海", "a", 2),
        entry("上海", "b", 1),
        entry("上海", "c", 1),
        entry("杭州", "a", 1),
    ];
    assert_eq!(read(&mut client, all("without")).await.0, Vec::<Vec<_>>::new());
    for name in ["with", "by_default"] {
        assert_eq!(read(&mut client, all(name)).await.0, before, "{name}");
    }
    let there = |id: &str, nth: i64| key([("id", id.into()), ("nth", nth.into())]);
    // Of a row from before, whose city stays; and a new one.
    let price = update("orders", there("b", 1), vec![cell("price", Value::Double(2.5))]);
    let _: pb::UpdateRowResponse = client.call("UpdateRow", &price).await.expect("updated");
    let columns = vec![cell("city", "北京")];
    client.put("orders", there("d", 1), columns).await.expect("put");
    let delete = pb::DeleteRowRequest {
        table_name: "orders".to_owned(),
        primary_key: deletion(there("a", 2)),
        condition: ignore(),
        ..pb::DeleteRowRequest::default()
    };
    let _: pb::DeleteRowResponse = client.call("DeleteRow", &delete).await.expect("deleted");
    let written = [entry("上海", "b", 1), entry("北京", "d", 1)];
    assert_eq!(read(&mut client, all("without")).await.0, written);
    let after = [
        entry("上海", "b", 1),
        entry("上海", "c", 1),
        entry("北京", "d", 1),
        entry("杭州", "a", 1),
    ];
    for name in ["with", "by_default"] {
        assert_eq!(read(&mut client, all(name)).await.0, after, "{name}");
    }
    server.end().await;
}

#[tokio::test]
async fn of_two_changes_at_once_each_sees_the_other() {
    let server = Server::start().await;
    let (mut client, mut other) = (server.client("demo"), server.client("other"));
    for name in ["orders", "returns"] {
        let mut table = orders(Vec::new());
        table.table_meta.table_name = name.to_owned();
        client.create(&table).await;
    }
    let create = |table: &str| pb::CreateIndexRequest {
        main_table_name: table.to_owned(),
        index_meta: index("by_rank", &["rank"], &[]),
        include_base_data: Some(true),
    };
    let made = |made: Result<pb::CreateIndexResponse, Refused>| {
        made.map_or_else(|error| error.code, |_| String::new())
    };
    let (orders, returns) = (create("orders"), create("returns"));
    let (one, two) = tokio::join!(
        client.call("CreateIndex", &orders),
        other.call("CreateIndex", &returns)
    );
    let mut codes = [made(one), made(two)];
    let table = match codes[0].is_empty() {
        true => "orders",
        false => "returns",
    };
    codes.sort();
    assert_eq!(
        codes,
        ["", "OTSObjectAlreadyExist"],
        "an instance has a name once"
    );
    // Two tables with an index of one name.
    let with_index = |name: &str| {
        let mut table = self::orders(vec![index("by_city", &["city"], &[])]);
        table.table_meta.table_name = name.to_owned();
        table
    };
    let (one, two) = (with_index("sales"), with_index("gifts"));
    let (one, two): (
        Result<pb::CreateTableResponse, _>,
        Result<pb::CreateTableResponse, _>,
    ) = tokio::join!(client.call("CreateTable", &one), other.call("CreateTable", &two));
    assert_eq!(
        u8::from(one.is_ok()) + u8::from(two.is_ok()),
        1,
        "{one:?} {two:?}"
    );
    let drop = pb::DropIndexRequest {
        main_table_name: table.to_owned(),
        index_name: "by_rank".to_owned(),
    };
    let (one, two): (Result<pb::DropIndexResponse, _>, Result<pb::DropIndexResponse, _>) =
        tokio::join!(client.call("DropIndex", &drop), other.call("DropIndex", &drop));
    let refused = one.err().or(two.err()).expect("it is dropped once");
    assert_eq!(refused.code, "OTSObjectNotExist");
    server.end().await;
}

/// What reads of the store were told of.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<&'static str>>);

impl Observer for Seen {
    fn accessed(&self, operation: &'static str, _: &Arc<str>, _: Option<&'static str>, _: Duration) {
        self.0.lock().expect("a list").push(operation);
    }
}

#[tokio::test]
async fn reads_of_an_index_are_measured_with_the_time_until_they_begin() {
    let seen = Arc::new(Seen::default());
    let observer = Arc::clone(&seen);
    let server = Server::start_as(|config| config.observer = observer).await;
    let mut client = server.client("demo");
    client
        .create(&orders(vec![index("by_city", &["city"], &["price"])]))
        .await;
    filled(&mut client).await;
    seen.0.lock().expect("a list").clear();
    let entry = by_city("上海".into(), "b".into(), KeyElement::Integer(1));
    let found: pb::GetRowResponse = client
        .call("GetRow", &get("by_city", entry))
        .await
        .expect("an entry");
    assert_eq!(rows(&found.row).len(), 1);
    assert_eq!(*seen.0.lock().expect("a list"), ["view", "list"]);
    server.end().await;
}

#[tokio::test]
async fn an_index_has_more_key_columns_than_a_table() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let keys = ["a", "b", "c", "d"].map(|name| (name, PrimaryKeyType::String));
    let mut wide = table("orders", &keys, None);
    wide.table_meta.defined_column = orders(Vec::new()).table_meta.defined_column;
    wide.index_metas = vec![index("by_city_and_rank", &["city", "rank"], &["price"])];
    client.create(&wide).await;
    let of_table = || {
        key([
            ("a", "1".into()),
            ("b", "2".into()),
            ("c", "3".into()),
            ("d", "4".into()),
        ])
    };
    let columns = vec![
        cell("city", "上海"),
        cell("rank", 3_i64),
        cell("price", Value::Double(0.5)),
    ];
    client.put("orders", of_table(), columns).await.expect("put");
    let first = |city: KeyElement, rank: KeyElement| key([("city", city), ("rank", rank)]);
    let there = [first("上海".into(), 3_i64.into()), of_table()].concat();
    let found: pb::GetRowResponse = client
        .call("GetRow", &get("by_city_and_rank", there.clone()))
        .await
        .expect("an entry");
    let found = rows(&found.row).pop().expect("an entry");
    assert_eq!(
        (&found.key, cells(&found)),
        (&there, vec![("price", Value::Double(0.5))])
    );
    let end = |place: KeyElement| {
        let rest = of_table().into_iter();
        let rest = rest.map(|column| KeyColumn::new(column.name, place.clone()));
        first(place.clone(), place.clone())
            .into_iter()
            .chain(rest)
            .collect()
    };
    let all = range("by_city_and_rank", end(Minimum), end(Maximum));
    assert_eq!(read(&mut client, all).await.0.len(), 1);
    server.end().await;
}

#[tokio::test]
async fn what_no_index_is_is_refused() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let keys = [("id", PrimaryKeyType::String), ("nth", PrimaryKeyType::Integer)];
    let names: Vec<String> = (0..40).map(|nth| format!("c{nth}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wide = |name: &str, indexes: Vec<pb::IndexMeta>| {
        let mut wide = table(name, &keys, Some("nth"));
        let column = |name: &&str| pb::DefinedColumnSchema {
            name: (*name).to_owned(),
            r#type: DefinedColumnType::Integer.into(),
        };
        wide.table_meta.defined_column = names.iter().map(column).collect();
        wide.index_metas = indexes;
        wide
    };
    let some = |name: &str, count: usize| -> Vec<_> {
        let of = |nth| index(&format!("{name}_{nth}"), &[names[nth]], &[]);
        (0..count).map(of).collect()
    };
    // As much as one may have, and as many as a table may have.
    let mut full = some("full", 15);
    full.push(index("full", &names[..4], &names[4..36]));
    client.create(&wide("full_table", full)).await;
    for (indexes, text) in [
        (some("many", 17), "17 exceeds MAX_INDEXES, which is 16."),
        (
            vec![index("long", &names[..5], &[])],
            "5 exceeds MAX_INDEX_COLUMNS, which is 4.",
        ),
        (
            vec![index("broad", &names[..1], &names[1..34])],
            "33 exceeds MAX_INCLUDED_COLUMNS, which is 32.",
        ),
        (
            vec![index("numbered", &["nth"], &[])],
            "PkAutoIncr cannot be set as first pk column",
        ),
        (vec![index("unknown", &["x"], &[])], "Column does not exist:x."),
    ] {
        let refused = client.refused("CreateTable", &wide("refused", indexes)).await;
        refused.is(400, "OTSParameterInvalid", text);
    }
    server.end().await;
}

#[tokio::test]
async fn an_index_has_no_stream() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client
        .create(&orders(vec![index("by_city", &["city"], &[])]))
        .await;
    let describe = |name: &str| pb::DescribeTableRequest {
        table_name: name.to_owned(),
    };
    for (name, is_streamed) in [("orders", true), ("by_city", false)] {
        let told: pb::DescribeTableResponse =
            client.call("DescribeTable", &describe(name)).await.expect("it");
        assert_eq!(told.stream_details.is_some(), is_streamed, "{name}");
    }
    let list = pb::ListStreamRequest {
        table_name: Some("by_city".to_owned()),
    };
    let refused = client.refused("ListStream", &list).await;
    refused.is(404, "OTSObjectNotExist", "Requested table does not exist.");
    let tunnel = pb::tunnel::CreateTunnelRequest {
        tunnel: pb::tunnel::Tunnel {
            table_name: "by_city".to_owned(),
            tunnel_name: "copy".to_owned(),
            tunnel_type: pb::tunnel::TunnelType::Stream.into(),
            ..pb::tunnel::Tunnel::default()
        },
    };
    let refused = client.refused("tunnel/create", &tunnel).await;
    refused.is(404, "OTSObjectNotExist", "Requested table does not exist.");
    server.end().await;
}

#[tokio::test]
async fn an_index_has_the_newest_version_of_each_column() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let mut table = orders(vec![index("by_city", &["city"], &[])]);
    let options = table.table_options.as_mut().expect("options");
    // With versions, updates and a time to live.
    (options.max_versions, options.time_to_live) = (Some(3), Some(86_400));
    client.create(&table).await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = i64::try_from(now.expect("after it").as_millis()).expect("a time");
    let there = || key([("id", "a".into()), ("nth", 1_i64.into())]);
    for (city, version) in [("上海", now - 2), ("杭州", now - 1), ("北京", now - 3)] {
        let change = update("orders", there(), vec![versioned("city", city, version)]);
        let _: pb::UpdateRowResponse = client.call("UpdateRow", &change).await.expect("updated");
    }
    let all = range(
        "by_city",
        by_city(Minimum, Minimum, Minimum),
        by_city(Maximum, Maximum, Maximum),
    );
    assert_eq!(read(&mut client, all).await.0, [entry("杭州", "a", 1)]);
    server.end().await;
}
