//! Callers who are limited to some partitions of a table: they meet the rows of these alone, by whatever way they ask.

use anyhow::Context as _;
use serde_json::{Value, json};
use souk_e2e::dynamic::Dynamic;
use souk_e2e::suite::Layout;
use tonic::{Code, Status};

use super::cells::{OWN, numbers};
use super::grants::{GROUPS, INDEXES, TABLES, of_created, of_tables, seeded, start};
use super::reason;

const TENANTS: &str = "tenants";

/// Partition keys, of which those that begin with `eu-` are granted.
const KEYS: [&str; 6] = ["Eu-1", "eu", "eu-", "eu-2", "eu.", "us-1"];
const GRANTED: [&str; 2] = ["eu-", "eu-2"];

fn tenants() -> Value {
    let fields = ["tenant", "city"].map(|field| json!({"field": field, "type": "INDEX_FIELD_TYPE_KEYWORD"}));
    json!({
        "name": TENANTS,
        "key": [{"name": "tenant", "type": "KEY_TYPE_STRING"}, {"name": "n", "type": "KEY_TYPE_INTEGER"}],
        "transactions": true,
        "indexes": [
            {"name": "by_tenant", "columns": ["tenant", "city"], "local": true},
            {"name": "by_city", "columns": ["city"]},
        ],
        "search_index": {"fields": fields},
    })
}

fn key(tenant: &str, n: i64) -> Value {
    json!([{"string_value": tenant}, {"int_value": n.to_string()}])
}

fn put(tenant: &str, n: i64) -> Value {
    json!({"key": key(tenant, n), "columns": {"city": {"string_value": tenant}}})
}

fn named(mut request: Value) -> Value {
    request["table"] = json!(TENANTS);
    request
}

async fn called(caller: &Dynamic, method: &str, request: Value) -> anyhow::Result<Result<Value, Status>> {
    caller.call(&format!("{TABLES}/{method}"), &named(request)).await
}

/// A table with two rows in each partition; how far its log is.
async fn with_tenants(admin: &Dynamic) -> anyhow::Result<Value> {
    admin
        .call(&format!("{TABLES}/CreateTable"), &json!({"table": tenants()}))
        .await??;
    let writes = KEYS
        .iter()
        .flat_map(|tenant| [1, 2].map(|n| json!({"put": put(tenant, n)})));
    let writes: Vec<Value> = writes.collect();
    let written = called(admin, "BatchWriteRows", json!({"writes": writes, "atomic": true})).await??;
    Ok(written["sequence"].clone())
}

/// The partition keys of the rows in all answers, in their order.
async fn read(caller: &Dynamic, method: &str, request: Value, field: &str) -> anyhow::Result<Vec<String>> {
    let method = format!("{TABLES}/{method}");
    let (answers, _) = caller.responses(&method, &named(request), |_| false).await?;
    let mut keys = Vec::new();
    for answer in answers? {
        for item in answer[field].as_array().into_iter().flatten() {
            let row = item.get("row").unwrap_or(item);
            let tenant = row["key"][0]["string_value"].as_str().context("a key")?;
            keys.push(tenant.to_owned());
        }
    }
    Ok(keys)
}

/// Each key, as its two rows have it.
fn twice(keys: impl IntoIterator<Item = &'static str>) -> Vec<String> {
    keys.into_iter()
        .flat_map(|key| [key.to_owned(), key.to_owned()])
        .collect()
}

fn assert_refused(refused: &Status, at: &str) {
    let told = (refused.code(), reason(refused));
    let expected = (Code::PermissionDenied, "PARTITION_NOT_ALLOWED".to_owned());
    assert_eq!(told, expected, "{at}: {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_reads_rows_tells_of_the_granted_partitions_alone() -> anyhow::Result<()> {
    let limits = ["tenants/eu-*", "logs_*,tenants/eu", "tenants,tenants/eu"];
    let (_suite, admin, [some, one, all]) = start(Layout::OneProcess, limits).await?;
    let sequence = with_tenants(&admin).await?;
    let from = |tenant: &str| json!({"range": {"gte": {"values": key(tenant, 1)}}});
    let back = |tenant: &str| json!({"range": {"lte": {"values": key(tenant, 2)}}, "descending": true});
    let search = json!({"search": {
        "min_sequence": sequence, "sort": [{"field": {"field": "tenant"}}], "total": {"exact": true}, "page_size": 100,
    }});
    for (method, request, field) in [
        ("RangeRows", json!({}), "rows"),
        ("RangeRows", json!({"descending": true}), "rows"),
        ("RangeRows", from("eu-"), "rows"),
        ("RangeRows", from("eu-2"), "rows"),
        ("RangeRows", from("eu."), "rows"),
        ("RangeRows", back("us-1"), "rows"),
        ("RangeRows", back("eu-"), "rows"),
        ("RangeRows", back("eu"), "rows"),
        ("RangeRows", back("Eu-1"), "rows"),
        ("StreamRows", json!({}), "rows"),
        ("ExportRows", json!({}), "rows"),
        ("RangeIndex", json!({"index": "by_tenant"}), "entries"),
        (
            "RangeIndex",
            json!({"index": "by_tenant", "descending": true}),
            "entries",
        ),
        ("SearchRows", search.clone(), "hits"),
    ] {
        let of_all = read(&admin, method, request.clone(), field).await?;
        let at = format!("{method} {request}");
        assert!(!of_all.is_empty(), "{at}");
        for (caller, granted) in [(&some, &GRANTED[..]), (&one, &["eu"][..]), (&all, &KEYS[..])] {
            let expected: Vec<&String> = of_all
                .iter()
                .filter(|tenant| granted.contains(&tenant.as_str()))
                .collect();
            let told = read(caller, method, request.clone(), field).await?;
            assert_eq!(told.iter().collect::<Vec<_>>(), expected, "{at}");
        }
    }
    let of_all = read(&admin, "SearchRows", search.clone(), "hits").await?;
    assert_eq!(of_all, twice(KEYS));
    let found = called(&some, "SearchRows", search).await??;
    assert_eq!(found["total"]["value"], "4", "{found}");

    let is_last = |answer: &Value| answer["sequence"] == sequence;
    let watch = named(json!({"after_sequence": "0"}));
    let (events, _) = some
        .responses(&format!("{TABLES}/WatchRows"), &watch, is_last)
        .await?;
    let events = events?.into_iter();
    let changes = events.flat_map(|event| event["changes"].as_array().cloned().unwrap_or_default());
    let mut told: Vec<String> = changes
        .filter_map(|change| Some(change["row"]["key"][0]["string_value"].as_str()?.to_owned()))
        .collect();
    told.sort();
    assert_eq!(told, twice(GRANTED));

    for (tenant, expected) in [
        ("eu-2", None),
        ("eu", Some("ROW_NOT_FOUND")),
        ("none", Some("ROW_NOT_FOUND")),
    ] {
        let got = called(&some, "GetRow", json!({"key": key(tenant, 1)})).await?;
        let told = got.as_ref().err().map(reason);
        assert_eq!(told.as_deref(), expected, "{tenant}: {got:?}");
    }
    let keys = ["us-1", "eu-2"].map(|tenant| json!({"values": key(tenant, 1)}));
    let got = called(&some, "BatchGetRows", json!({"keys": keys})).await??;
    let there: Vec<bool> = got["results"]
        .as_array()
        .context("results")?
        .iter()
        .map(|result| result["row"].is_object())
        .collect();
    assert_eq!(there, [false, true], "{got}");
    let (mut paged, mut token) = (Vec::new(), json!(""));
    loop {
        let asked = json!({"page_size": 1, "page_token": token});
        let page = called(&some, "RangeRows", asked).await??;
        let rows = page["rows"].as_array().into_iter().flatten();
        paged.extend(rows.filter_map(|row| Some(row["key"][0]["string_value"].as_str()?.to_owned())));
        token = page["next_page_token"].clone();
        if token.as_str().is_none_or(str::is_empty) {
            break;
        }
    }
    assert_eq!(paged, twice(GRANTED));
    let page = called(&admin, "RangeRows", json!({"page_size": 1})).await??;
    let behind = json!({"page_size": 1, "page_token": page["next_page_token"]});
    let refused = called(&some, "RangeRows", behind).await?;
    assert_eq!(
        reason(&refused.expect_err("of other credentials")),
        "PAGE_TOKEN_INVALID"
    );
    // Its entries don't tell their partition first.
    let refused = called(&some, "RangeIndex", json!({"index": "by_city"})).await?;
    assert_eq!(refused.expect_err("of all").code(), Code::InvalidArgument);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_writes_rows_writes_those_of_the_granted_partitions_alone() -> anyhow::Result<()> {
    let (_suite, admin, [some]) = start(Layout::OneProcess, ["tenants/eu-*"]).await?;
    with_tenants(&admin).await?;
    let delete = |tenant: &str| json!({"key": key(tenant, 1)});
    let increment = |tenant: &str| json!({"key": key(tenant, 1), "increment": {"visits": "1"}});
    let both = |tenant: &str| [json!({"put": put("eu-3", 1)}), json!({"delete": delete(tenant)})];
    let batch = |tenant: &str, atomic: bool| json!({"writes": both(tenant), "atomic": atomic});
    let begin = |tenant: &str| json!({"partition": {"string_value": tenant}});
    let writes = |tenant: &str| {
        [
            ("PutRow", put(tenant, 3)),
            ("UpdateRow", increment(tenant)),
            ("BatchWriteRows", batch(tenant, true)),
            ("BatchWriteRows", batch(tenant, false)),
            ("DeleteRow", delete(tenant)),
        ]
    };
    let before = read(&admin, "RangeRows", json!({}), "rows").await?;
    for tenant in ["us-1", "eu", "eu.", "none"] {
        let beginning = [("BeginTransaction", begin(tenant))];
        for (method, request) in writes(tenant).into_iter().chain(beginning) {
            let at = format!("{method} {request}");
            let refused = called(&some, method, request).await?;
            assert_refused(&refused.expect_err(&at), &at);
        }
    }
    assert_eq!(read(&admin, "RangeRows", json!({}), "rows").await?, before);
    for (method, request) in writes("eu-2") {
        let at = format!("{method} {request}");
        called(&some, method, request).await?.context(at)?;
    }
    let expected = ["eu-", "eu-", "eu-2", "eu-2", "eu-3"].map(str::to_owned);
    assert_eq!(read(&some, "RangeRows", json!({}), "rows").await?, expected);

    let begun = called(&some, "BeginTransaction", begin("eu-4")).await??;
    let id = &begun["transaction_id"];
    let mut written = put("eu-4", 1);
    written["transaction_id"] = id.clone();
    called(&some, "PutRow", written.clone()).await??;
    written["key"] = key("us-1", 1);
    let refused = called(&some, "PutRow", written).await?;
    assert_refused(&refused.expect_err("of another partition"), "in a transaction");
    let in_it = json!({"key": key("eu-4", 1), "transaction_id": id});
    called(&some, "GetRow", in_it).await??;
    called(&some, "CommitTransaction", json!({"transaction_id": id})).await??;
    called(&admin, "GetRow", json!({"key": key("eu-4", 1)})).await??;

    // Of the same caller by other credentials.
    let begun = called(&admin, "BeginTransaction", begin("us-1")).await??;
    let in_it = json!({"transaction_id": begun["transaction_id"]});
    for method in ["CommitTransaction", "AbortTransaction"] {
        let refused = called(&some, method, in_it.clone()).await?;
        assert_refused(&refused.expect_err(method), method);
    }
    called(&admin, "CommitTransaction", in_it).await??;
    let write = json!({
        "writes": [{"put": put("eu-2", 9), "returning": {"row": "RETURN_ROW_ALL"}}],
        "atomic": true,
        "request_id": "6f1c9a7e-0f0e-4c57-9d5c-3b8f6a2b1c4d",
    });
    called(&admin, "BatchWriteRows", write.clone()).await??;
    let refused = called(&some, "BatchWriteRows", write).await?;
    assert_eq!(
        reason(&refused.expect_err("of other credentials")),
        "REQUEST_ID_REUSED"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_about_a_whole_table_is_refused_to_who_is_granted_partitions() -> anyhow::Result<()> {
    let limits = ["notes_mine/mine*,left_mine/mine,new_0/x*,orders/o*"];
    let (_suite, admin, [limited]) = start(Layout::OneProcess, limits).await?;
    let sequences = seeded(&admin).await?;
    let mut refusals = 0;
    for cell in of_tables() {
        let name = cell.method.rsplit('/').next().unwrap_or_default();
        let is_whole = matches!(name, "UpdateTable" | "DeleteTable" | "GetSplitPoints");
        let is_listed = matches!(name, "ListTables" | "ListIndexes");
        let is_of_service = [GROUPS, INDEXES]
            .iter()
            .any(|service| cell.method.starts_with(service));
        if !is_whole && (is_listed || !is_of_service) {
            continue;
        }
        let request = of_created(&(cell.request)(&numbers(&OWN, &sequences, 0)))?;
        let refused = limited.call(cell.method, &request).await?;
        assert_refused(&refused.expect_err(cell.method), cell.method);
        refusals += 1;
    }
    assert_eq!(refusals, 17);

    let get = json!({"table": "notes_mine"});
    limited.call(&format!("{TABLES}/GetTable"), &get).await??;
    let indexes = limited
        .call(&format!("{INDEXES}/ListIndexes"), &json!({}))
        .await??;
    assert_eq!(indexes["indexes"].as_array().map_or(0, Vec::len), 0, "{indexes}");
    let listed = limited
        .call(&format!("{TABLES}/ListTables"), &json!({}))
        .await??;
    assert_eq!(listed["tables"].as_array().map_or(0, Vec::len), 2, "{listed}");
    for (method, request, why) in [
        // Its index has no field for the key.
        (
            "SearchRows",
            json!({"table": "notes_mine", "search": {}}),
            "OWNER_NOT_INDEXED",
        ),
        (
            "CreateTable",
            json!({"table": {"name": "new_0", "key": [{"name": "id", "type": "KEY_TYPE_STRING"}]}}),
            "TABLE_NOT_ALLOWED",
        ),
    ] {
        let refused = limited.call(&format!("{TABLES}/{method}"), &request).await?;
        assert_eq!(reason(&refused.expect_err(method)), why, "{method}");
    }
    // Tables of services are granted as a whole, or not.
    let order = json!({"order_id": "o1"});
    let refused = limited
        .call("souk.order.v1.OrderService/GetOrder", &order)
        .await?;
    assert_eq!(reason(&refused.expect_err("of a service")), "TABLE_NOT_ALLOWED");
    Ok(())
}
