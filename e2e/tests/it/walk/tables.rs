//! A table of one's own: from its creation to its end, with an index that others of the server's are beside.

use anyhow::Context as _;
use serde_json::{Value, json};
use souk_e2e::dynamic::Dynamic;
use souk_e2e::suite::Suite;

const TABLES: &str = "souk.table.v1.TableService";
const INDEXES: &str = "souk.index.v1.IndexService";

/// Calls an RPC that has to answer.
async fn call(client: &Dynamic, method: &str, request: Value) -> anyhow::Result<Value> {
    let answer = client.call(method, &request).await?;
    answer.with_context(|| format!("{method} {request}"))
}

fn text(text: &str) -> Value {
    json!({"string_value": text})
}

pub(super) async fn tables(suite: &Suite) -> anyhow::Result<()> {
    let client = Dynamic::new(suite.channel()?)?;
    let of_tables =
        async |method: &str, request: Value| call(&client, &format!("{TABLES}/{method}"), request).await;
    let table = json!({
        "name": "visits",
        "key": [{"name": "place", "type": "KEY_TYPE_STRING"}, {"name": "nth", "type": "KEY_TYPE_INTEGER", "auto_increment": true}],
        "transactions": true,
        "search_index": {"fields": [{"field": "guest", "type": "INDEX_FIELD_TYPE_KEYWORD"}]},
    });
    of_tables("CreateTable", json!({"table": table})).await?;
    for guest in ["Ann", "Bob", "Ann"] {
        let visit = json!({
            "table": "visits",
            "key": [text("Oulu")],
            "columns": {"guest": text(guest), "tip": {"int_value": "5"}},
            "returning": {"row": "RETURN_ROW_KEY"},
        });
        let put = of_tables("PutRow", visit).await?;
        assert_eq!(put["row"]["key"][0], text("Oulu"), "{put}");
    }
    let page = of_tables(
        "RangeRows",
        json!({"table": "visits", "range": {"prefix": {"values": [text("Oulu")]}}}),
    )
    .await?;
    let rows = page["rows"].as_array().context("rows")?;
    let guests: Vec<_> = rows.iter().map(|row| row["columns"]["guest"].clone()).collect();
    assert_eq!(guests, [text("Ann"), text("Bob"), text("Ann")]);
    let last = page["sequence"].clone();

    let of_ann = |min_sequence: Value| {
        json!({
            "table": "visits",
            "search": {
                "query": {"term": {"field": "guest", "value": text("Ann")}},
                "total": {"exact": true},
                "min_sequence": min_sequence,
            },
        })
    };
    let found = of_tables("SearchRows", of_ann(last)).await?;
    assert_eq!(found["total"]["value"], "2", "{found}");

    // Its index is one of the server's, and is changed as they are.
    let add = json!({
        "index": "visits",
        "changes": [{"add_field": {"field": "tip", "type": "INDEX_FIELD_TYPE_LONG", "source": "tip"}}],
    });
    call(&client, &format!("{INDEXES}/UpdateIndex"), add).await?;
    let tip = json!({"table": "visits", "search": {"query": {"term": {"field": "tip", "value": {"int_value": "5"}}}, "total": {"exact": true}}});
    loop {
        match client.call(&format!("{TABLES}/SearchRows"), &tip).await? {
            Ok(found) => {
                assert_eq!(found["total"]["value"], "3", "{found}");
                break;
            }
            // The field is being added.
            Err(status) => assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status}"),
        }
    }
    let index = call(
        &client,
        &format!("{INDEXES}/GetIndex"),
        json!({"index": "visits"}),
    )
    .await?;
    assert_eq!(index["index"]["documents"], "3", "{index}");

    let begin = json!({"table": "visits", "partition": text("Oulu")});
    let begun = of_tables("BeginTransaction", begin).await?;
    let id = begun["transaction_id"].clone();
    let key = rows[1]["key"].clone();
    of_tables(
        "DeleteRow",
        json!({"table": "visits", "key": key, "transaction_id": id}),
    )
    .await?;
    of_tables("GetRow", json!({"table": "visits", "key": key})).await?;
    let committed = of_tables(
        "CommitTransaction",
        json!({"table": "visits", "transaction_id": id}),
    )
    .await?;
    let gone = client
        .call(
            &format!("{TABLES}/GetRow"),
            &json!({"table": "visits", "key": key}),
        )
        .await?;
    assert_eq!(gone.expect_err("deleted").code(), tonic::Code::NotFound);
    let watch = json!({"table": "visits", "after_sequence": "0"});
    let last = committed["sequence"].clone();
    let is_last = |event: &Value| event["sequence"] == last;
    let (events, _) = client
        .responses(&format!("{TABLES}/WatchRows"), &watch, is_last)
        .await?;
    let kinds: Vec<String> = events?
        .iter()
        .flat_map(|event| event["changes"].as_array().into_iter().flatten())
        .map(|change| change["kind"].as_str().unwrap_or_default().to_owned())
        .collect();
    let put = "ROW_CHANGE_KIND_PUT";
    assert_eq!(kinds, [put, put, put, "ROW_CHANGE_KIND_DELETE"]);
    of_tables("DeleteTable", json!({"table": "visits"})).await?;
    Ok(())
}
