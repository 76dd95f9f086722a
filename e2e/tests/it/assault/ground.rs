//! Where it happens: `souk serve` with a key for each caller, a rate for each, and some rows.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};
use souk_access::Role;
use souk_e2e::collector::Collector;
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::dynamic::Dynamic;
use souk_e2e::guard::Guard;
use souk_e2e::suite::{GATEWAY, Layout, Plan, Suite};

use crate::SOUK;

/// Callers who do nothing wrong: id of the key, role, subject.
pub(super) const GOOD: [(&str, Role, &str); 8] = [
    ("good-shops", Role::Operator, "o-shops"),
    ("good-orders", Role::Operator, "o-orders"),
    ("good-seller", Role::Seller, "s-good"),
    ("good-buyer", Role::Consumer, "c-good"),
    ("good-finder", Role::Consumer, "c-finder"),
    ("good-user", Role::User, "u-good"),
    ("good-exporter", Role::Reader, "r-exporter"),
    ("good-reader", Role::Reader, "r-reader"),
];

/// Callers who attack, each attack by one of its own.
const BAD: [(&str, Role, &str); 9] = [
    ("bad-watcher", Role::Consumer, "c-watcher"),
    ("bad-waiter", Role::Consumer, "c-waiter"),
    ("bad-silent", Role::Consumer, "c-silent"),
    ("bad-batches", Role::User, "u-bad"),
    ("bad-clauses", Role::Consumer, "c-clauses"),
    ("bad-json", Role::Consumer, "c-json"),
    ("bad-exporter", Role::Seller, "s-bad"),
    ("bad-views", Role::Consumer, "c-views"),
    ("bad-flood", Role::Consumer, "c-flood"),
];

/// Calls a second of each caller and of each address. Good callers think for a while after each call, and stay far below.
const RATE: u32 = 200;
/// Calls at once: enough for each attack to take all places of before.
const BURST: u32 = 2_000;

/// Shops, and orders of the seller who attacks: several blocks of an export.
pub(super) const ROWS: u64 = 1_600;
/// Rows of a batch.
const BATCH: u64 = 200;

/// The suite, and what it tells others.
pub(super) struct Ground {
    pub(super) suite: Suite,
    pub(super) collector: Collector,
    pub(super) target: Target,
}

/// Where the suite is, and the keys of all callers.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    keys: BTreeMap<&'static str, String>,
}

impl Target {
    /// The API key with this id.
    pub(super) fn key(&self, id: &str) -> &str {
        self.keys.get(id).expect("a caller of the lists above")
    }
}

impl Ground {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let collector = Collector::start().await?;
        let mut guard = Guard::new(|role| match role {
            Role::Consumer | Role::Seller | Role::User => "nobody",
            Role::Admin | Role::Operator | Role::Reader => "",
        })?;
        let mut keys = BTreeMap::new();
        for (id, role, subject) in GOOD.into_iter().chain(BAD) {
            keys.insert(id, guard.add_caller(id, role, subject)?);
        }
        let plan = Plan::new(SOUK, Layout::OneProcess)
            .traced(&collector)
            // Nobody's calls are to be recorded: what is then is a stranger's wish.
            .variable("OTEL_TRACES_SAMPLER", "parentbased_always_off")
            .variable("SOUK_TELEMETRY__LOG_FILTER", "error")
            .setting(GATEWAY, &format!("server.rate.caller_calls_per_second={RATE}"))
            .setting(GATEWAY, &format!("server.rate.caller_burst={BURST}"))
            // What good callers write fills memory, too: little of it, and soon.
            .setting(GATEWAY, "engine.memory_bytes=16777216")
            .setting(GATEWAY, "engine.index_memory_bytes=16777216");
        let suite = plan.guarded(guard).start().await?;
        let admin = Dynamic::new(suite.channel()?)?.with("x-api-key", suite.guard().key(Role::Admin))?;
        load(&admin).await?;
        let address = suite.gateway()?.address();
        Ok(Self {
            suite,
            collector,
            target: Target { address, keys },
        })
    }
}

/// Makes the rows.
async fn load(admin: &Dynamic) -> anyhow::Result<()> {
    let mut random = SeededRandom::new(1);
    for first in (0..ROWS).step_by(BATCH as usize) {
        let (mut shops, mut orders) = (Vec::new(), Vec::new());
        for number in first..first + BATCH {
            shops.push(admin.json("souk.shop.v1.Shop", &data::shop(number, &mut random))?);
            let mut order = admin.json("souk.order.v1.Order", &data::order(number, &mut random))?;
            order["salesperson_id"] = json!("s-bad");
            orders.push(order);
        }
        create(
            admin,
            "souk.shop.v1.ShopService/BatchCreateShops",
            json!({"shops": shops}),
        )
        .await?;
        create(
            admin,
            "souk.order.v1.OrderService/BatchCreateOrders",
            json!({"orders": orders}),
        )
        .await?;
    }
    for id in ["c-good", "c-finder"] {
        let consumer = json!({"id": id, "name": id});
        create(
            admin,
            "souk.order.v1.ConsumerService/CreateConsumer",
            json!({"consumer": consumer}),
        )
        .await?;
    }
    let mut order = admin.json("souk.order.v1.Order", &data::order(ROWS, &mut random))?;
    (order["order_id"], order["salesperson_id"]) = (json!("o-good"), json!("s-good"));
    (order["consumer_id"], order["consumer_name"]) = (json!("c-finder"), json!("c-finder"));
    let order = create(
        admin,
        "souk.order.v1.OrderService/CreateOrder",
        json!({"order": order}),
    )
    .await?;
    // Good callers look for it at once.
    let search = json!({"search": {"min_sequence": order["sequence"]}});
    admin
        .call("souk.order.v1.OrderService/SearchOrders", &search)
        .await??;
    Ok(())
}

async fn create(admin: &Dynamic, method: &str, request: Value) -> anyhow::Result<Value> {
    Ok(admin.call(method, &request).await??)
}
