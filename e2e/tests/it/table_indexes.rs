//! A table that a user defines gets a second index with other fields, which takes all searches and outlives the first, and a
//! restart.

use anyhow::Context as _;
use serde_json::{Value, json};
use souk_e2e::dynamic::Dynamic;
use souk_e2e::suite::{Layout, Suite};
use tonic::{Code, Status};

use crate::SOUK;

const TABLES: &str = "souk.table.v1.TableService";
const INDEXES: &str = "souk.index.v1.IndexService";

/// The calls on the table and its indexes.
struct Visits(Dynamic);

impl Visits {
    fn of(suite: &Suite) -> anyhow::Result<Self> {
        Ok(Self(Dynamic::new(suite.channel()?)?))
    }

    /// Calls an RPC that has to answer.
    async fn call(&self, service: &str, method: &str, request: Value) -> anyhow::Result<Value> {
        let answer = self.0.call(&format!("{service}/{method}"), &request).await?;
        answer.with_context(|| format!("{method} {request}"))
    }

    /// How many rows an index finds by a field; an empty name is whichever takes the search.
    async fn count(&self, index: &str, field: &str, value: Value) -> anyhow::Result<Result<Value, Status>> {
        let search = json!({
            "table": "visits",
            "search": {
                "query": {"term": {"field": field, "value": value}},
                "total": {"exact": true},
                "index": index,
            },
        });
        let found = self.0.call(&format!("{TABLES}/SearchRows"), &search).await?;
        Ok(found.map(|found| found["total"]["value"].clone()))
    }

    async fn refuses(&self, index: &str, field: &str, value: Value, code: Code) -> anyhow::Result<()> {
        let refused = self.count(index, field, value).await?;
        let refused = refused.expect_err("a search by a field that isn't there, or of no index");
        anyhow::ensure!(refused.code() == code, "{index}: {refused:?}");
        Ok(())
    }
}

fn of_ann() -> Value {
    json!({"string_value": "Ann"})
}

fn of_five() -> Value {
    json!({"int_value": "5"})
}

async fn a_second_index_takes_the_place_of_the_first(layout: Layout) -> anyhow::Result<()> {
    let mut suite = Suite::start(SOUK, layout).await?;
    let visits = Visits::of(&suite)?;
    let table = json!({
        "name": "visits",
        "key": [{"name": "place", "type": "KEY_TYPE_STRING"}, {"name": "nth", "type": "KEY_TYPE_INTEGER", "auto_increment": true}],
        "search_index": {"fields": [{"field": "guest", "type": "INDEX_FIELD_TYPE_KEYWORD"}]},
    });
    visits
        .call(TABLES, "CreateTable", json!({"table": table}))
        .await?;
    let visit = |guest: &str| {
        json!({
            "table": "visits",
            "key": [{"string_value": "Oulu"}],
            "columns": {"guest": {"string_value": guest}, "tip": of_five()},
        })
    };
    let seeing = |put: &Value| json!({"table": "visits", "search": {"total": {"exact": true}, "min_sequence": put["sequence"]}});
    for (guest, rows) in [("Ann", "1"), ("Bob", "2"), ("Ann", "3")] {
        let put = visits.call(TABLES, "PutRow", visit(guest)).await?;
        let found = visits.call(TABLES, "SearchRows", seeing(&put)).await?;
        assert_eq!(found["total"]["value"], rows, "{found}");
    }

    let trial = json!({
        "index": "visits.trial",
        "changes": [{"add_field": {"field": "tip", "type": "INDEX_FIELD_TYPE_LONG", "source": "tip"}}],
    });
    let created = visits.call(INDEXES, "CreateIndex", trial).await?;
    assert_eq!(created["index"]["table"], "visits", "{created}");
    let found = loop {
        match visits.count("visits.trial", "tip", of_five()).await? {
            Ok(found) => break found,
            Err(status) => assert_eq!(status.code(), Code::Unavailable, "{status:?}"),
        }
    };
    assert_eq!(found, "3");
    let weigh = |visits: i32, trial: i32| {
        json!({
            "index": "visits",
            "weights": [{"index": "visits", "weight": visits}, {"index": "visits.trial", "weight": trial}],
        })
    };
    visits.call(INDEXES, "UpdateIndex", weigh(100, 0)).await?;
    assert_eq!(visits.count("", "guest", of_ann()).await??, "2");
    visits
        .refuses("", "tip", of_five(), Code::InvalidArgument)
        .await?;
    visits.call(INDEXES, "UpdateIndex", weigh(0, 100)).await?;
    assert_eq!(visits.count("", "tip", of_five()).await??, "3");
    visits
        .refuses("", "guest", of_ann(), Code::InvalidArgument)
        .await?;
    assert_eq!(visits.count("visits", "guest", of_ann()).await??, "2");

    visits
        .call(INDEXES, "DeleteIndex", json!({"index": "visits"}))
        .await?;
    visits
        .refuses("visits", "guest", of_ann(), Code::NotFound)
        .await?;
    suite.stop().await?;
    suite.restart().await?;
    let visits = Visits::of(&suite)?;
    assert_eq!(visits.count("", "tip", of_five()).await??, "3");
    visits
        .refuses("visits", "guest", of_ann(), Code::NotFound)
        .await?;
    let put = visits.call(TABLES, "PutRow", visit("Cleo")).await?;
    let found = visits.call(TABLES, "SearchRows", seeing(&put)).await?;
    assert_eq!(found["total"]["value"], "4", "{found}");
    let described = visits
        .call(TABLES, "GetTable", json!({"table": "visits"}))
        .await?;
    assert!(described["table"]["search_index"].is_null(), "{described}");
    let listed = visits.call(INDEXES, "ListIndexes", json!({})).await?;
    let listed = listed["indexes"].as_array().context("indexes")?.iter();
    let ours = listed.filter(|index| index["table"] == "visits");
    let ours: Vec<_> = ours.map(|index| index["index"].clone()).collect();
    assert_eq!(ours, ["visits.trial"]);
    visits
        .call(TABLES, "DeleteTable", json!({"table": "visits"}))
        .await?;
    let folders = suite.service_directory("table").join("index");
    assert!(!folders.join("visits.trial").exists());
    suite.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_of_a_user_changes_its_index_in_one_process() -> anyhow::Result<()> {
    a_second_index_takes_the_place_of_the_first(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_of_a_user_changes_its_index_behind_a_gateway() -> anyhow::Result<()> {
    a_second_index_takes_the_place_of_the_first(Layout::SeveralProcesses).await
}
