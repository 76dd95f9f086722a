//! 1 to 4, 8 and 13: trees of spans, edges between services, names and attributes, hops, counts, links.

use std::collections::BTreeSet;

use souk_e2e::caller::Caller;
use souk_e2e::collector::Collector;
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::laws;
use souk_e2e::schema::SpanSchema;
use souk_e2e::spans::{SpanKind, Trace};
use souk_e2e::suite::{Layout, Plan, Suite};
use souk_proto::order::v1 as order;
use souk_proto::search::v1::Search;
use souk_proto::shop::v1 as shop;

use crate::SOUK;

/// Rows of a batch, and of a page.
const MANY: u64 = 100;

/// One call of each kind, with its trace: name, trace, and the edges that it has to have.
struct Walk {
    name: &'static str,
    caller: Caller,
    trace: Trace,
    edges: BTreeSet<(String, String)>,
}

fn edges(of: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    let edges = of.iter();
    edges
        .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
        .collect()
}

async fn walk(suite: &Suite, collector: &Collector) -> anyhow::Result<Vec<Walk>> {
    let mut walks = Vec::new();
    let mut shops = suite.shops()?;
    let mut random = SeededRandom::new(1);
    let mut push = async |name, caller: Caller, spans, of: &[(&str, &str)]| {
        let trace = caller.trace(collector, spans).await?;
        walks.push(Walk {
            name,
            caller,
            trace,
            edges: edges(of),
        });
        anyhow::Ok(())
    };
    let to_shop = ("souk-gateway", "souk-shop");
    let store = ("souk-shop", "store of souk-shop");
    let index = ("souk-shop", "index of souk-shop");

    let caller = Caller::new();
    let batch = shop::BatchCreateShopsRequest {
        shops: (0..MANY).map(|n| data::shop(n, &mut random)).collect(),
        ..Default::default()
    };
    let sequence = shops
        .batch_create_shops(caller.request(batch)?)
        .await?
        .into_inner()
        .sequence;
    // 8: one commit, however many rows.
    push("a batch of creations", caller, 4, &[to_shop, store]).await?;

    let caller = Caller::new();
    let get = shop::BatchGetShopsRequest {
        shop_ids: (0..MANY).map(|n| format!("h{n:08}")).collect(),
        ..Default::default()
    };
    shops.batch_get_shops(caller.request(get)?).await?;
    push("a batch of reads", caller, 4, &[to_shop, store]).await?;

    let caller = Caller::new();
    let search = shop::SearchShopsRequest {
        search: Some(Search {
            min_sequence: sequence,
            page_size: i32::try_from(MANY)?,
            ..Search::default()
        }),
    };
    let hits = shops
        .search_shops(caller.request(search)?)
        .await?
        .into_inner()
        .hits;
    assert_eq!(hits.len(), usize::try_from(MANY)?);
    push("a search", caller, 5, &[to_shop, store, index]).await?;

    let caller = Caller::new();
    let create = order::CreateOrderRequest {
        order: Some(data::order(1, &mut random)),
        ..Default::default()
    };
    suite.orders()?.create_order(caller.request(create)?).await?;
    let edges = [
        ("souk-gateway", "souk-order"),
        ("souk-order", "store of souk-order"),
    ];
    push("an order", caller, 4, &edges).await?;

    let caller = Caller::new();
    let wrong = shops.create_shop(caller.request(shop::CreateShopRequest::default())?);
    wrong.await.expect_err("there is no shop in it");
    push("a mistake", caller, 3, &[to_shop]).await?;
    Ok(walks)
}

async fn holds(layout: Layout) -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let suite = Plan::new(SOUK, layout).traced(&collector).start().await?;
    let walks = walk(&suite, &collector).await?;
    for walk in &walks {
        laws::all(&walk.trace, &walk.caller.span_id)?;
        assert_eq!(
            laws::edges(&walk.trace),
            walk.edges,
            "{}\n{}",
            walk.name,
            walk.trace
        );
    }
    // 13: what the index does later is linked to the commits, in traces of its own.
    let commits = walks.first().expect("the batch");
    let commit = commits.trace.named("commit shops", SpanKind::Client);
    let commit = commit.first().expect("a commit").span_id.clone();
    let apply = collector
        .wait_for(&commits.caller.trace_id, |collector| {
            let mut linking = collector.linking_to(&commits.caller.trace_id).into_iter();
            linking.find(|span| span.links.iter().any(|link| link.span_id == commit))
        })
        .await?;
    assert_eq!(apply.name, "index.apply");
    assert_ne!(apply.trace_id, commits.caller.trace_id);
    // Nothing else was exported than what the schema allows, background work included.
    let schema = SpanSchema::souk()?;
    for span in collector.spans() {
        schema.check(&span)?;
        laws::statuses(&span)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a01_to_04_08_13_trees_are_as_they_should_be_in_several_processes() -> anyhow::Result<()> {
    holds(Layout::SeveralProcesses).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a01_to_04_08_13_trees_are_as_they_should_be_in_one_process() -> anyhow::Result<()> {
    holds(Layout::OneProcess).await
}
