//! kill -9 in the middle of concurrent writes: every acknowledged write is there after the restart,
//! found by get and by search; nothing is half-written; the change log has no gap.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{Layout, Suite};
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::{
    BatchCreateOrdersRequest, BatchGetOrdersRequest, CreateOrderRequest, DeleteOrderRequest,
    ExportOrdersRequest, Order, SearchOrdersRequest, UpdateOrderRequest, WatchOrdersRequest,
};
use souk_proto::search::v1::{PrimaryKeySort, Query, Search, Sort, TermsQuery, query, sort};
use souk_proto::r#type::v1::{ChangeKind, Value, value};
use tokio::sync::Notify;
use tonic::transport::Channel;

use crate::{SOUK, rounds, seed};

const WRITERS: u64 = 8;

/// What one order may be after the crash: its state after the last acknowledged write and, when a
/// write was under way, its state after that one.
#[derive(Clone, Debug)]
struct Expected {
    acknowledged: Option<Order>,
    under_way: Option<Option<Order>>,
}

type Model = BTreeMap<String, Expected>;

/// An order without what the server adds, so that states can be compared.
fn content(mut order: Order) -> Order {
    order.create_time = None;
    order.update_time = None;
    order.revision = 0;
    order.etag = String::new();
    order
}

/// Acknowledged writes of a round, and the moment at which the suite is to be killed.
struct Round {
    acknowledged: AtomicU64,
    kill_after: u64,
    kill: Notify,
}

impl Round {
    fn acknowledge(&self) {
        if self.acknowledged.fetch_add(1, Ordering::Relaxed) + 1 == self.kill_after {
            self.kill.notify_one();
        }
    }
}

/// One writer with orders of its own: it writes until the suite is gone.
struct Writer {
    client: OrderServiceClient<Channel>,
    random: SeededRandom,
    next: u64,
    model: Model,
}

impl Writer {
    fn existing(&mut self) -> Option<Order> {
        let alive: Vec<_> = self
            .model
            .values()
            .filter_map(|e| e.acknowledged.as_ref())
            .collect();
        let count = alive.len() as u64;
        alive
            .get(self.random.below(count) as usize)
            .map(|order| (*order).clone())
    }

    fn fresh(&mut self) -> Order {
        self.next += 1;
        data::order(self.next, &mut self.random)
    }

    fn begin(&mut self, states: &[(String, Option<Order>)]) {
        for (id, state) in states {
            let expected = self.model.entry(id.clone()).or_insert(Expected {
                acknowledged: None,
                under_way: None,
            });
            expected.under_way = Some(state.clone());
        }
    }

    fn acknowledge(&mut self, states: Vec<(String, Option<Order>)>) {
        for (id, state) in states {
            self.model.insert(
                id,
                Expected {
                    acknowledged: state,
                    under_way: None,
                },
            );
        }
    }

    /// One write; an error means that the suite is gone.
    async fn write(&mut self) -> Result<(), tonic::Status> {
        match (self.random.below(6), self.existing()) {
            (0, Some(order)) => {
                let states = vec![(order.order_id.clone(), None)];
                self.begin(&states);
                let request = DeleteOrderRequest {
                    order_id: order.order_id,
                    etag: String::new(),
                };
                self.client.delete_order(request).await?;
                self.acknowledge(states);
            }
            (1 | 2, Some(mut order)) => {
                order.quantity += 1;
                order.product_name = format!("手机 {}", order.quantity);
                let states = vec![(order.order_id.clone(), Some(order.clone()))];
                self.begin(&states);
                let paths = vec!["quantity".to_owned(), "product_name".to_owned()];
                let request = UpdateOrderRequest {
                    order: Some(order),
                    update_mask: Some(prost_types::FieldMask { paths }),
                    etag: String::new(),
                };
                self.client.update_order(request).await?;
                self.acknowledge(states);
            }
            (3, _) => {
                let orders: Vec<_> = (0..20).map(|_| self.fresh()).collect();
                let states: Vec<_> = orders
                    .iter()
                    .map(|order| (order.order_id.clone(), Some(order.clone())))
                    .collect();
                self.begin(&states);
                let request = BatchCreateOrdersRequest {
                    orders,
                    ..Default::default()
                };
                self.client.batch_create_orders(request).await?;
                self.acknowledge(states);
            }
            _ => {
                let order = self.fresh();
                let states = vec![(order.order_id.clone(), Some(order.clone()))];
                self.begin(&states);
                let request = CreateOrderRequest {
                    order: Some(order),
                    ..Default::default()
                };
                self.client.create_order(request).await?;
                self.acknowledge(states);
            }
        }
        Ok(())
    }
}

async fn write_until_killed(
    suite: &mut Suite,
    kill_after: u64,
    seed: u64,
    round: u64,
) -> anyhow::Result<Vec<Model>> {
    let state = Arc::new(Round {
        acknowledged: AtomicU64::new(0),
        kill_after,
        kill: Notify::new(),
    });
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..WRITERS {
        let mut writer = Writer {
            client: suite.orders()?,
            random: SeededRandom::new(seed ^ (round << 8) ^ number),
            next: (round * WRITERS + number) * 100_000,
            model: Model::new(),
        };
        let state = Arc::clone(&state);
        writers.spawn(async move {
            loop {
                match writer.write().await {
                    Ok(()) => state.acknowledge(),
                    Err(status) => break (writer.model, status),
                }
            }
        });
    }
    state.kill.notified().await;
    suite.kill().await?;
    let mut models = Vec::new();
    while let Some(ended) = writers.join_next().await {
        let (model, status) = ended?;
        // A broken connection is told by the client's transport, whose error is then the source; an answer has none.
        let hung_up = std::error::Error::source(&status).is_some();
        assert!(
            hung_up || status.code() == tonic::Code::Unavailable,
            "only the kill ends a writer: {status:?}"
        );
        models.push(model);
    }
    Ok(models)
}

async fn get(client: &mut OrderServiceClient<Channel>, ids: &[String]) -> anyhow::Result<(Vec<Order>, i64)> {
    let mut orders = Vec::new();
    let mut sequence = 0;
    for order_ids in ids.chunks(100) {
        let request = BatchGetOrdersRequest {
            order_ids: order_ids.to_vec(),
            min_sequence: 0,
        };
        let answer = client.batch_get_orders(request).await?.into_inner();
        orders.extend(answer.orders);
        sequence = answer.sequence;
    }
    Ok((orders, sequence))
}

async fn search(
    client: &mut OrderServiceClient<Channel>,
    ids: &[String],
    min_sequence: i64,
) -> anyhow::Result<Vec<Order>> {
    let mut orders = Vec::new();
    for ids in ids.chunks(1_000) {
        let text = |id: &String| Value {
            kind: Some(value::Kind::StringValue(id.clone())),
        };
        let values = ids.iter().map(text).collect();
        let terms = TermsQuery {
            field: "order_id".to_owned(),
            values,
            weight: None,
        };
        let search = Search {
            query: Some(Query {
                kind: Some(query::Kind::Terms(terms)),
            }),
            sort: vec![Sort {
                kind: Some(sort::Kind::PrimaryKey(PrimaryKeySort::default())),
            }],
            page_size: 1_000,
            min_sequence,
            ..Search::default()
        };
        let answer = client
            .search_orders(SearchOrdersRequest { search: Some(search) })
            .await?
            .into_inner();
        orders.extend(answer.hits.into_iter().filter_map(|hit| hit.resource));
    }
    Ok(orders)
}

/// Compares a writer's orders with what get and search give; returns what is there.
async fn verify(suite: &Suite, model: &Model) -> anyhow::Result<BTreeMap<String, Order>> {
    let mut client = suite.orders()?;
    let ids: Vec<_> = model.keys().cloned().collect();
    let (stored, sequence) = get(&mut client, &ids).await?;
    let by_id = |orders: Vec<Order>| -> BTreeMap<_, _> {
        orders
            .into_iter()
            .map(|order| (order.order_id.clone(), order))
            .collect()
    };
    let stored = by_id(stored);
    let searched = by_id(search(&mut client, &ids, sequence).await?);
    anyhow::ensure!(
        stored == searched,
        "get and search differ: {stored:?}\n{searched:?}"
    );
    for (id, expected) in model {
        let there = stored.get(id).cloned().map(content);
        let acknowledged = there == expected.acknowledged;
        let completed = expected.under_way.as_ref().is_some_and(|state| *state == there);
        anyhow::ensure!(
            acknowledged || completed,
            "order {id}: expected {expected:?}, there is {there:?}"
        );
    }
    // A batch that was under way is there as a whole or not at all.
    let fresh: Vec<_> = model
        .iter()
        .filter(|(_, e)| e.acknowledged.is_none() && matches!(e.under_way, Some(Some(_))))
        .collect();
    let there = fresh.iter().filter(|(id, _)| stored.contains_key(*id)).count();
    anyhow::ensure!(
        there == 0 || there == fresh.len(),
        "{there} of {} orders of a batch",
        fresh.len()
    );
    Ok(stored)
}

/// Reads the change log from its start: it is dense, and replaying it gives the stored orders.
async fn verify_log(suite: &Suite, expected: &BTreeMap<String, Order>) -> anyhow::Result<u64> {
    let mut client = suite.orders()?;
    let last = {
        let request = BatchGetOrdersRequest {
            order_ids: vec!["o".to_owned()],
            min_sequence: 0,
        };
        client.batch_get_orders(request).await?.into_inner().sequence
    };
    let mut events = client
        .watch_orders(WatchOrdersRequest {
            after_sequence: Some(0),
        })
        .await?
        .into_inner();
    let mut replayed = BTreeMap::new();
    let mut previous: Option<i64> = None;
    let mut count = 0;
    while let Some(event) = events.message().await? {
        if let Some(previous) = previous {
            anyhow::ensure!(
                event.sequence == previous + 1,
                "{previous} is followed by {}",
                event.sequence
            );
        }
        previous = Some(event.sequence);
        count += 1;
        for change in event.changes {
            let kind = change.kind();
            let order = change.order.expect("a change names its order");
            match kind {
                ChangeKind::Deleted => replayed.remove(&order.order_id),
                ChangeKind::Created | ChangeKind::Updated | ChangeKind::Unspecified => {
                    replayed.insert(order.order_id.clone(), order)
                }
            };
        }
        if event.sequence >= last {
            break;
        }
    }
    anyhow::ensure!(&replayed == expected, "replaying the log gives other orders");
    Ok(count)
}

async fn export(suite: &Suite) -> anyhow::Result<BTreeMap<String, Order>> {
    let mut blocks = suite
        .orders()?
        .export_orders(ExportOrdersRequest::default())
        .await?
        .into_inner();
    let mut orders = BTreeMap::new();
    while let Some(block) = blocks.message().await? {
        for order in block.orders {
            let again = orders.insert(order.order_id.clone(), order);
            anyhow::ensure!(again.is_none(), "exported twice: {again:?}");
        }
    }
    Ok(orders)
}

async fn kill_nine_in_the_middle_of_writes(layout: Layout, usual_rounds: usize) -> anyhow::Result<()> {
    let seed = seed("crash");
    let mut random = SeededRandom::new(seed);
    let mut suite = Suite::start(SOUK, layout).await?;
    let mut all = BTreeMap::new();
    let rounds = rounds("SOUK_CRASH_ROUNDS", usual_rounds) as u64;
    let mut acknowledged = 0;
    for round in 0..rounds {
        let kill_after = 20 + random.below(400);
        acknowledged += kill_after;
        let models = write_until_killed(&mut suite, kill_after, seed, round).await?;
        suite.restart().await?;
        for model in &models {
            all.extend(verify(&suite, model).await?);
        }
    }
    anyhow::ensure!(
        export(&suite).await? == all,
        "the export differs from what get gave"
    );
    let changes = verify_log(&suite, &all).await?;
    println!("{rounds} kills, at least {acknowledged} acknowledged writes, {changes} changes without a gap");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_process_loses_nothing_that_was_acknowledged() -> anyhow::Result<()> {
    kill_nine_in_the_middle_of_writes(Layout::OneProcess, 50).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_all_processes_loses_nothing_that_was_acknowledged() -> anyhow::Result<()> {
    kill_nine_in_the_middle_of_writes(Layout::SeveralProcesses, 10).await
}
