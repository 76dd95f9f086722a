//! 12 and 14: log lines belong to traces, and nobody's name, key or token is in spans, logs or labels.

use std::collections::BTreeSet;

use souk_e2e::caller::Caller;
use souk_e2e::collector::Collector;
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::log::Log;
use souk_e2e::suite::{Layout, Plan};
use souk_proto::order::v1::{CreateConsumerRequest, CreateOrderRequest, SearchConsumersRequest};
use souk_proto::search::v1::{MatchQuery, Query, Search, query};
use souk_proto::shop::v1::{CreateShopRequest, SearchShopsRequest};

use super::{get_shop, keeps_secrets};
use crate::SOUK;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a12_every_line_of_a_call_has_its_trace() -> anyhow::Result<()> {
    let (collector, log) = (Collector::start().await?, Log::default());
    let suite = Plan::new(SOUK, Layout::SeveralProcesses)
        .traced(&collector)
        .heard(&log)
        .start()
        .await?;
    let before = log.lines().len();
    let mut shops = suite.shops()?;
    let mut traces = BTreeSet::new();
    for number in 0..10 {
        let caller = Caller::new();
        let reason = ["SHOP_NOT_FOUND", "INVALID_ARGUMENT"][number % 2];
        let refused = match number % 2 {
            0 => shops
                .get_shop(caller.request(get_shop("nowhere"))?)
                .await
                .map(drop),
            _ => shops
                .create_shop(caller.request(CreateShopRequest::default())?)
                .await
                .map(drop),
        };
        refused.expect_err("it can't be done");
        // Both processes have words for it, each with its own span of the trace.
        let mut spans = BTreeSet::new();
        for process in ["gateway", "shop"] {
            let mine = |line: &souk_e2e::log::LogLine| {
                line.process == process && line.trace_id.as_ref() == Some(&caller.trace_id)
            };
            let line = log.wait_for(mine).await?;
            assert_eq!(line.message, "call refused");
            assert!(!line.field("code").is_empty(), "{line:?}");
            assert_eq!(line.field("reason"), reason, "{line:?}");
            // The collector has the same, from the service itself.
            let record = collector
                .wait_for(&caller.trace_id, |collector| {
                    let mut records = collector.records();
                    records.retain(|record| Some(&record.span_id) == line.span_id.as_ref());
                    records.pop()
                })
                .await?;
            assert_eq!(record.service, format!("souk-{process}"));
            assert_eq!(record.trace_id, caller.trace_id);
            assert_eq!((&*record.severity, &*record.body), (&*line.level, &*line.message));
            assert_eq!(record.attributes.get("reason").map(String::as_str), Some(reason));
            spans.extend(line.span_id);
        }
        assert_eq!(spans.len(), 2);
        let trace = collector
            .wait_for(&caller.trace_id, |collector| {
                let trace = collector.trace(&caller.trace_id);
                let has = |id: &String| trace.spans().iter().any(|span| span.span_id == *id);
                spans.iter().all(has).then_some(trace)
            })
            .await?;
        assert!(!trace.spans().is_empty());
        traces.insert(caller.trace_id);
    }
    for line in log.lines().split_off(before) {
        let known = line.trace_id.as_ref().is_some_and(|trace| traces.contains(trace));
        assert!(known, "a line of no call: {line:?}");
    }
    Ok(())
}

/// What nobody may find in telemetry.
const SECRETS: [&str; 7] = [
    "Zebulon",
    "13800138000",
    "tok-5f2c",
    "key-77aa",
    "session-91",
    "Quetzal",
    "面馆秘密",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a14_no_name_key_or_token_is_in_telemetry() -> anyhow::Result<()> {
    let (collector, log) = (Collector::start().await?, Log::default());
    let suite = Plan::new(SOUK, Layout::SeveralProcesses)
        .traced(&collector)
        .heard(&log)
        .start()
        .await?;
    let caller = || {
        Caller::new()
            .with("authorization", "Bearer tok-5f2c")
            .with("x-api-key", "key-77aa")
            .with("cookie", "sid=session-91")
    };
    let mut sequence = 0;
    for name in ["Zebulon 13800138000", "Zebulon"] {
        let create = CreateConsumerRequest {
            // The second time its id is taken: a refusal has words, too.
            consumer: Some(data::person("c0001", name)),
            ..Default::default()
        };
        let created = suite
            .consumers()?
            .create_consumer(caller().request(create)?)
            .await;
        if let Ok(created) = created {
            sequence = created.into_inner().sequence;
        }
    }
    let of_name = |field: &str, text: &str| {
        Some(Query {
            kind: Some(query::Kind::Match(MatchQuery {
                field: field.to_owned(),
                text: text.to_owned(),
                ..MatchQuery::default()
            })),
        })
    };
    let find = SearchConsumersRequest {
        search: Some(Search {
            query: of_name("name", "Zebulon"),
            min_sequence: sequence,
            ..Search::default()
        }),
    };
    // Whether names can be searched so doesn't matter here: its words must not be kept either way.
    let _ = suite.consumers()?.search_consumers(caller().request(find)?).await;
    let mut shop = data::shop(1, &mut SeededRandom::new(1));
    shop.name = "Quetzal 面馆秘密".to_owned();
    let create = CreateShopRequest {
        shop: Some(shop),
        ..Default::default()
    };
    let created = suite.shops()?.create_shop(caller().request(create)?).await?;
    for field in ["name", "nowhere"] {
        let find = SearchShopsRequest {
            search: Some(Search {
                query: of_name(field, "Quetzal"),
                min_sequence: created.get_ref().sequence,
                ..Search::default()
            }),
        };
        let _ = suite.shops()?.search_shops(caller().request(find)?).await;
    }
    let mut order = data::order(1, &mut SeededRandom::new(1));
    order.consumer_name = "Zebulon".to_owned();
    let last = caller();
    let create = CreateOrderRequest {
        order: Some(order),
        ..Default::default()
    };
    let _ = suite.orders()?.create_order(last.request(create)?).await;
    last.trace(&collector, 4).await?;
    let shop_search = caller();
    let refused = suite
        .shops()?
        .get_shop(shop_search.request(get_shop("nowhere"))?)
        .await;
    refused.expect_err("there is none");
    shop_search.trace(&collector, 4).await?;

    keeps_secrets(&collector, &log, &SECRETS)
}
