//! Callers who do nothing wrong: each works in a closed loop, thinks for a while after each step, and connects anew now and
//! then. Each of their calls has to be answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::dynamic::Dynamic;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;
use tonic::transport::Endpoint;

use super::ground::{GOOD, ROWS, Target};
use super::ledger::Ledger;

/// Between two steps.
const THINKING: Duration = Duration::from_millis(20);
/// What a call has, as the header says it.
const TIME: &str = "20S";
/// When a call is over at the latest: the server has been given some time more to say so.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Steps on one connection.
const STEPS: u64 = 25;

const SHOPS: &str = "souk.shop.v1.ShopService";
const ORDERS: &str = "souk.order.v1.OrderService";
const CONSUMERS: &str = "souk.order.v1.ConsumerService";
const MEDIA: &str = "souk.media.v1.MediaService";

/// A call failed, which the ledger has.
#[derive(Debug)]
struct Failed;

type Step<T> = Result<T, Failed>;

/// One of them.
struct Good {
    id: &'static str,
    subject: &'static str,
    target: Target,
    client: Dynamic,
    ledger: Arc<Ledger>,
    random: SeededRandom,
    step: u64,
    /// Of the seller, who watches its own orders.
    watch: Option<Streaming<Value>>,
}

/// All of them, until `over`.
pub(super) fn begin(
    target: &Target,
    ledger: &Arc<Ledger>,
    over: &CancellationToken,
) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let mut all = JoinSet::new();
    for (at, (id, _, subject)) in GOOD.into_iter().enumerate() {
        let good = Good {
            id,
            subject,
            target: target.clone(),
            client: connect(target, id)?,
            ledger: Arc::clone(ledger),
            random: SeededRandom::new(at as u64),
            step: 0,
            watch: None,
        };
        all.spawn(good.work(over.clone()));
    }
    Ok(all)
}

fn connect(target: &Target, id: &str) -> anyhow::Result<Dynamic> {
    let channel = Endpoint::from_shared(format!("http://{}", target.address))?.connect_lazy();
    Dynamic::new(channel)?
        .with("x-api-key", target.key(id))?
        .with("grpc-timeout", TIME)
}

impl Good {
    async fn work(mut self, over: CancellationToken) -> anyhow::Result<()> {
        while !over.is_cancelled() {
            self.step += 1;
            if self.step.is_multiple_of(STEPS) {
                self.client = connect(&self.target, self.id)?;
                self.watch = None;
            }
            // What failed is in the ledger, and the next step is another.
            let _ = match self.id {
                "good-shops" => self.keep_shops().await,
                "good-orders" => self.keep_orders().await,
                "good-seller" => self.watch_own_orders().await,
                "good-buyer" => self.keep_itself().await,
                "good-finder" => self.find_own_orders().await,
                "good-user" => self.keep_media().await,
                "good-exporter" => self.export().await,
                _ => self.turn_pages().await,
            };
            tokio::time::sleep(THINKING).await;
        }
        Ok(())
    }

    /// Makes a call and notes how it ended.
    async fn call(&self, kind: &'static str, method: &str, request: Value) -> Step<Value> {
        self.timed(kind, method, async {
            Ok(self.client.call(method, &request).await??)
        })
        .await
    }

    async fn timed<T>(
        &self,
        kind: &'static str,
        what: &str,
        call: impl Future<Output = anyhow::Result<T>>,
    ) -> Step<T> {
        let began = Instant::now();
        let how = match tokio::time::timeout(TIME_MAX, call).await {
            Ok(Ok(answer)) => {
                self.ledger.answered(kind, began.elapsed());
                return Ok(answer);
            }
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => format!("not ended after {TIME_MAX:?}"),
        };
        self.ledger.failed(format!("{}: {what}: {how}", self.id));
        Err(Failed)
    }

    /// An answer that isn't what was asked for is no answer.
    fn hold(&self, holds: bool, what: &str, answer: &Value) -> Step<()> {
        if holds {
            return Ok(());
        }
        self.ledger.failed(format!("{}: {what}: {answer}", self.id));
        Err(Failed)
    }

    /// A request id that isn't used again.
    fn request_id(&mut self) -> String {
        let bytes = std::array::from_fn(|_| self.random.below(256) as u8);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Creates a shop, reads it by that write, changes and deletes it.
    async fn keep_shops(&mut self) -> Step<()> {
        let id = format!("h-good-{}", self.step);
        let shop = json!({"shop_id": id, "name": "Tea", "position": {"latitude": 1.0, "longitude": 2.0}});
        let request = json!({"shop": shop, "request_id": self.request_id()});
        let created = self
            .call("create", &format!("{SHOPS}/CreateShop"), request)
            .await?;
        let get = json!({"shop_id": id, "min_sequence": created["sequence"]});
        let read = self.call("get", &format!("{SHOPS}/GetShop"), get).await?;
        self.hold(read["shop"] == created["shop"], "GetShop", &read)?;
        let request = json!({"shop": {"shop_id": id, "name": "Coffee"}, "update_mask": "name"});
        self.call("update", &format!("{SHOPS}/UpdateShop"), request)
            .await?;
        self.call("delete", &format!("{SHOPS}/DeleteShop"), json!({"shop_id": id}))
            .await?;
        Ok(())
    }

    /// Creates an order, repeats that, finds it by its id, and deletes it.
    async fn keep_orders(&mut self) -> Step<()> {
        let order = data::order(1_000_000 + self.step, &mut self.random);
        let Ok(mut order) = self.client.json("souk.order.v1.Order", &order) else {
            return Err(Failed);
        };
        order["salesperson_id"] = json!("s-good");
        let request = json!({"order": order, "request_id": self.request_id()});
        let create = format!("{ORDERS}/CreateOrder");
        let created = self.call("create", &create, request.clone()).await?;
        let again = self.call("create", &create, request).await?;
        self.hold(again == created, "CreateOrder again", &again)?;
        let id = &created["order"]["order_id"];
        let query = json!({"term": {"field": "order_id", "value": {"string_value": id}}});
        let search = json!({"search": {"query": query, "min_sequence": created["sequence"]}});
        let found = self
            .call("search", &format!("{ORDERS}/SearchOrders"), search)
            .await?;
        self.hold(
            found["hits"][0]["resource"] == created["order"],
            "SearchOrders",
            &found,
        )?;
        self.call(
            "delete",
            &format!("{ORDERS}/DeleteOrder"),
            json!({"order_id": id}),
        )
        .await?;
        Ok(())
    }

    /// Changes an own order, and is told of it by a watch.
    async fn watch_own_orders(&mut self) -> Step<()> {
        let (watch, update) = (format!("{ORDERS}/WatchOrders"), format!("{ORDERS}/UpdateOrder"));
        let name = format!("phone {}", self.step);
        let request =
            json!({"order": {"order_id": "o-good", "product_name": name}, "update_mask": "productName"});
        let updated = self.call("update", &update, request).await?;
        let mut changes = match self.watch.take() {
            Some(changes) => changes,
            None => {
                let sequence = updated["sequence"]
                    .as_str()
                    .and_then(|text| text.parse::<i64>().ok());
                let request = json!({"after_sequence": (sequence.unwrap_or_default() - 1).to_string()});
                let open = async { Ok(self.client.open_stream(&watch, &request).await??) };
                self.timed("open a watch", &watch, open).await?
            }
        };
        let told = async {
            loop {
                let change = changes.message().await?;
                let change = change.ok_or_else(|| anyhow::anyhow!("the watch has ended"))?;
                let order = |change: &Value| change["order"]["order_id"] == "o-good";
                let told = change["changes"]
                    .as_array()
                    .is_some_and(|changes| changes.iter().any(order));
                if told && change["sequence"] == updated["sequence"] {
                    return Ok(());
                }
            }
        };
        self.timed("watch", &watch, told).await?;
        self.watch = Some(changes);
        Ok(())
    }

    /// Reads and changes itself, and lists its orders.
    async fn keep_itself(&mut self) -> Step<()> {
        let region = format!("north {}", self.step);
        let request = json!({"consumer": {"id": self.subject, "region": region}, "update_mask": "region"});
        let updated = self
            .call("update", &format!("{CONSUMERS}/UpdateConsumer"), request)
            .await?;
        let get = json!({"id": self.subject, "min_sequence": updated["sequence"]});
        let read = self.call("get", &format!("{CONSUMERS}/GetConsumer"), get).await?;
        self.hold(read["consumer"]["region"] == json!(region), "GetConsumer", &read)?;
        let list = json!({"consumer_id": self.subject, "page_size": 10});
        self.call("list", &format!("{ORDERS}/ListConsumerOrders"), list)
            .await?;
        Ok(())
    }

    /// Finds its orders, one of them by its id, and shops nearby.
    async fn find_own_orders(&mut self) -> Step<()> {
        let query = json!({"term": {"field": "order_id", "value": {"string_value": "o-good"}}});
        let search = json!({"search": {"query": query}});
        let found = self
            .call("search", &format!("{ORDERS}/SearchOrders"), search)
            .await?;
        let id = &found["hits"][0]["resource"]["order_id"];
        self.hold(id == "o-good", "SearchOrders", &found)?;
        self.call(
            "get",
            &format!("{ORDERS}/GetOrder"),
            json!({"order_id": "o-good"}),
        )
        .await?;
        let nearby = json!({"center": {"latitude": 30.27, "longitude": 120.15}, "page_size": 5});
        self.call("search", &format!("{SHOPS}/NearbyShops"), nearby)
            .await?;
        Ok(())
    }

    /// Creates media, finds it by its id, and deletes it.
    async fn keep_media(&mut self) -> Step<()> {
        let id = format!("m-good-{}", self.step);
        let media = json!({"media_id": id, "user_id": self.subject, "type": "MEDIA_TYPE_IMAGE", "title": "sea", "uri": "file:///x"});
        let request = json!({"media": media, "request_id": self.request_id()});
        let created = self
            .call("create", &format!("{MEDIA}/CreateMedia"), request)
            .await?;
        let query = json!({"term": {"field": "media_id", "value": {"string_value": id}}});
        let search = json!({"search": {"query": query, "min_sequence": created["sequence"]}});
        let found = self
            .call("search", &format!("{MEDIA}/SearchMedia"), search)
            .await?;
        self.hold(
            found["hits"][0]["resource"] == created["media"],
            "SearchMedia",
            &found,
        )?;
        self.call("delete", &format!("{MEDIA}/DeleteMedia"), json!({"media_id": id}))
            .await?;
        Ok(())
    }

    /// Reads all orders.
    async fn export(&mut self) -> Step<()> {
        let method = format!("{ORDERS}/ExportOrders");
        let read = async {
            let mut blocks = self.client.open_stream(&method, &json!({})).await??;
            let mut orders = 0;
            while let Some(block) = blocks.message().await? {
                orders += block["orders"].as_array().map_or(0, Vec::len);
            }
            Ok(json!(orders))
        };
        let orders = self.timed("export", &method, read).await?;
        self.hold(orders.as_u64() >= Some(ROWS), &method, &orders)
    }

    /// Three pages of one view, the last one last.
    async fn turn_pages(&mut self) -> Step<()> {
        let (method, mut token) = (format!("{SHOPS}/SearchShops"), Value::Null);
        let range = json!({"range": {"field": "shop_id", "gte": {"string_value": "h00000000"}, "lt": {"string_value": "h00000025"}}});
        for page in 0..3 {
            let mut search =
                json!({"query": range, "sort": [{"primary_key": {}}], "page_size": 10, "keep_view": "30s"});
            if page > 0 {
                search["page_token"] = token;
            }
            let found = self
                .call("page of a view", &method, json!({"search": search}))
                .await?;
            let hits = found["hits"].as_array().map_or(0, Vec::len);
            self.hold(hits == [10, 10, 5][page], &method, &found)?;
            token = found["next_page_token"].clone();
        }
        Ok(())
    }
}
