//! A search that carries the `sequence` of a write sees that write: always, also under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{Layout, Suite};
use souk_proto::search::v1::{FieldSort, HitsMode, Query, Search, Sort, TermQuery, query, sort};
use souk_proto::shop::v1::{
    CreateShopRequest, DeleteShopRequest, SearchShopsRequest, Shop, UpdateShopRequest,
};
use souk_proto::r#type::v1::{Value, value};

use crate::{SOUK, rounds, seed};

const WRITERS: u64 = 16;

fn find(shop_id: &str, min_sequence: i64) -> SearchShopsRequest {
    let value = Some(Value {
        kind: Some(value::Kind::StringValue(shop_id.to_owned())),
    });
    let term = TermQuery {
        field: "shop_id".to_owned(),
        value,
        weight: None,
    };
    let by_name = FieldSort {
        field: "name.keyword".to_owned(),
        ..FieldSort::default()
    };
    SearchShopsRequest {
        search: Some(Search {
            query: Some(Query {
                kind: Some(query::Kind::Term(term)),
            }),
            sort: vec![Sort {
                kind: Some(sort::Kind::Field(by_name)),
            }],
            min_sequence,
            hits_mode: HitsMode::Full.into(),
            ..Search::default()
        }),
    }
}

async fn found(suite: &Suite, shop_id: &str, min_sequence: i64) -> anyhow::Result<Vec<Shop>> {
    let answer = suite
        .shops()?
        .search_shops(find(shop_id, min_sequence))
        .await?
        .into_inner();
    anyhow::ensure!(
        answer.sequence >= min_sequence,
        "{} < {min_sequence}",
        answer.sequence
    );
    Ok(answer.hits.into_iter().filter_map(|hit| hit.resource).collect())
}

/// Creates, updates and deletes at random, and searches after each write.
async fn write_and_search(suite: &Suite, writer: u64, writes: u64, seed: u64) -> anyhow::Result<u64> {
    let mut random = SeededRandom::new(seed ^ writer);
    let mut shops = suite.shops()?;
    let mut mine: Vec<Shop> = Vec::new();
    let mut next = writer * 1_000_000;
    for _ in 0..writes {
        match random.below(4) {
            0 if !mine.is_empty() => {
                let gone = mine.swap_remove(random.below(mine.len() as u64) as usize);
                let request = DeleteShopRequest {
                    shop_id: gone.shop_id.clone(),
                    etag: String::new(),
                };
                let sequence = shops.delete_shop(request).await?.into_inner().sequence;
                let left = found(suite, &gone.shop_id, sequence).await?;
                anyhow::ensure!(left.is_empty(), "deleted at {sequence}, still found: {left:?}");
            }
            1 if !mine.is_empty() => {
                let place = random.below(mine.len() as u64) as usize;
                let mut changed = mine[place].clone();
                changed.name = format!("新 {}", random.below(1_000_000));
                let request = UpdateShopRequest {
                    shop: Some(changed),
                    update_mask: Some(prost_types::FieldMask {
                        paths: vec!["name".to_owned()],
                    }),
                    etag: String::new(),
                };
                let answer = shops.update_shop(request).await?.into_inner();
                let stored = answer.shop.expect("an update answers with the shop");
                let hits = found(suite, &stored.shop_id, answer.sequence).await?;
                anyhow::ensure!(
                    hits == [stored.clone()],
                    "updated at {}: {hits:?}",
                    answer.sequence
                );
                mine[place] = stored;
            }
            _ => {
                next += 1;
                let request = CreateShopRequest {
                    shop: Some(data::shop(next, &mut random)),
                    ..CreateShopRequest::default()
                };
                let answer = shops.create_shop(request).await?.into_inner();
                let stored = answer.shop.expect("a create answers with the shop");
                let hits = found(suite, &stored.shop_id, answer.sequence).await?;
                anyhow::ensure!(
                    hits == [stored.clone()],
                    "created at {}: {hits:?}",
                    answer.sequence
                );
                mine.push(stored);
            }
        }
    }
    Ok(writes)
}

async fn a_search_after_a_write_contains_it(layout: Layout, usual_writes: usize) -> anyhow::Result<()> {
    let seed = seed("freshness");
    let suite = Arc::new(Suite::start(SOUK, layout).await?);
    let writes = rounds("SOUK_FRESHNESS_WRITES", usual_writes) as u64;
    let done = Arc::new(AtomicU64::new(0));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (suite, done) = (Arc::clone(&suite), Arc::clone(&done));
        writers.spawn(async move {
            let count = write_and_search(&suite, writer, writes / WRITERS, seed).await?;
            done.fetch_add(count, Ordering::Relaxed);
            anyhow::Ok(())
        });
    }
    while let Some(result) = writers.join_next().await {
        result??;
    }
    assert_eq!(done.load(Ordering::Relaxed), writes / WRITERS * WRITERS);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_writes_are_found_in_one_process() -> anyhow::Result<()> {
    a_search_after_a_write_contains_it(Layout::OneProcess, 10_000).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_writes_are_found_in_several_processes() -> anyhow::Result<()> {
    a_search_after_a_write_contains_it(Layout::SeveralProcesses, 2_000).await
}

/// Not an assertion on time: it prints what a lone client waits, for the documentation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_write_is_searchable_soon() -> anyhow::Result<()> {
    let suite = Suite::start(SOUK, Layout::OneProcess).await?;
    let mut shops = suite.shops()?;
    let mut random = SeededRandom::new(7);
    let mut waits = Vec::new();
    for number in 0..50 {
        let request = CreateShopRequest {
            shop: Some(data::shop(number, &mut random)),
            ..CreateShopRequest::default()
        };
        let start = Instant::now();
        let answer = shops.create_shop(request).await?.into_inner();
        let stored = answer.shop.expect("a create answers with the shop");
        let hits = found(&suite, &stored.shop_id, answer.sequence).await?;
        waits.push(start.elapsed());
        assert_eq!(hits, [stored]);
    }
    waits.sort();
    let at = |part: usize| waits.get(part).copied().unwrap_or(Duration::ZERO);
    println!(
        "write, then search that contains it: p50 {:?}, p90 {:?}, max {:?}",
        at(25),
        at(45),
        at(49)
    );
    Ok(())
}
