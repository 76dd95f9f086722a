//! Asks a running `souk` what other databases are asked, over the same rows, and times it. `e2e/peer.sh` starts it.
//!
//! `peer query http://127.0.0.1:50051 QUERIES OUT_JSON ANSWERS_TSV` answers every question once (checksum and answers),
//! warms up, and measures with 1 and with 4 clients in a closed loop, each with a connection and a thread of its own.
//! `peer await http://127.0.0.1:50051 orders LAST_ID ROWS` returns when searches see the last row, and all of them.
//!
//! The environment: `FETCH=ids` for hits with their ids alone, `CLASSES` as a comma list, `WARM_S`, `MEASURE_S`, `MAX_S`.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::media::v1::media_service_client::MediaServiceClient;
use souk_proto::media::v1::{GetMediaRequest, SearchMediaRequest};
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::{GetOrderRequest, SearchOrdersRequest};
use souk_proto::search::v1::{
    AggregationResult, Group, HitsMode, Search, Total, TotalRelation, TotalRequest, aggregation_result,
    total_request,
};
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{GetShopRequest, NearbyShopsRequest, SearchShopsRequest};
use souk_proto::r#type::v1::{Value, value};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// Calls that a measurement makes at least, unless `MAX_S` ends it.
const ENOUGH: usize = 200;
/// Clients at a time, one measurement each.
const CLIENTS: [usize; 2] = [1, 4];
/// Hits of a page while walking to a deep one.
const STRIDE: i32 = 1_000;
/// The name of the only aggregation, and of the sum inside it.
const AGGREGATION: (&str, &str) = ("brands", "total");

/// A call with its message.
#[derive(Clone)]
enum Call {
    GetOrder(GetOrderRequest),
    SearchOrders(SearchOrdersRequest),
    SearchShops(SearchShopsRequest),
    NearbyShops(NearbyShopsRequest),
    SearchMedia(SearchMediaRequest),
}

impl Call {
    /// The message of `rpc` (`package.Service/Method`) from its JSON.
    fn from_json(pool: &DescriptorPool, rpc: &str, request: &Json) -> anyhow::Result<Self> {
        let (service, method) = rpc.split_once('/').context("not Service/Method")?;
        let service = pool.get_service_by_name(service).context("no such service")?;
        let input = service.methods().find(|found| found.name() == method);
        let input = input.context("no such method")?.input();
        let message = DynamicMessage::deserialize(input, request)?;
        Ok(match method {
            "GetOrder" => Self::GetOrder(message.transcode_to()?),
            "SearchOrders" => Self::SearchOrders(message.transcode_to()?),
            "SearchShops" => Self::SearchShops(message.transcode_to()?),
            "NearbyShops" => Self::NearbyShops(message.transcode_to()?),
            "SearchMedia" => Self::SearchMedia(message.transcode_to()?),
            _ => anyhow::bail!("this client doesn't make such calls"),
        })
    }

    fn search_mut(&mut self) -> Option<&mut Search> {
        match self {
            Self::SearchOrders(request) => request.search.as_mut(),
            Self::SearchShops(request) => request.search.as_mut(),
            Self::SearchMedia(request) => request.search.as_mut(),
            Self::GetOrder(_) | Self::NearbyShops(_) => None,
        }
    }
}

/// One question of the file.
struct Question {
    class: String,
    n: u64,
    /// As written: equal texts have equal answers.
    text: String,
    call: Call,
}

impl Question {
    fn from_json(pool: &DescriptorPool, element: &Json) -> anyhow::Result<Self> {
        let text = |key| element[key].as_str().context("a question has class and rpc");
        let (class, rpc, request) = (text("class")?, text("rpc")?, &element["request"]);
        Ok(Self {
            class: class.to_owned(),
            n: element["n"].as_u64().context("a question has a number")?,
            text: request.to_string(),
            call: Call::from_json(pool, rpc, request).with_context(|| format!("{rpc} {request}"))?,
        })
    }

    fn failed(&self) -> String {
        format!("{} {}", self.class, self.n)
    }
}

/// What a call answered: ordered ids; or one count; or `key:count:sum` of each group.
struct Answer {
    items: Vec<String>,
    next_page_token: String,
}

impl Answer {
    fn of_search(
        ids: Vec<String>,
        next_page_token: String,
        total: Option<Total>,
        aggregations: &BTreeMap<String, AggregationResult>,
    ) -> anyhow::Result<Self> {
        let items = match (aggregations.get(AGGREGATION.0), total) {
            (Some(result), _) => groups(result)?,
            (None, Some(total)) => {
                anyhow::ensure!(total.relation() == TotalRelation::Equal, "the count isn't exact");
                vec![total.value.to_string()]
            }
            (None, None) => ids,
        };
        Ok(Self {
            items,
            next_page_token,
        })
    }

    fn of_ids(ids: Vec<String>) -> Self {
        Self {
            items: ids,
            next_page_token: String::new(),
        }
    }
}

fn groups(result: &AggregationResult) -> anyhow::Result<Vec<String>> {
    let Some(aggregation_result::Kind::Groups(result)) = &result.kind else {
        anyhow::bail!("the aggregation's answer isn't groups");
    };
    let group = |group: &Group| {
        let key = text(group.keys.first()).context("a group without key")?;
        let sum = match group
            .aggregations
            .get(AGGREGATION.1)
            .and_then(|sum| sum.kind.as_ref())
        {
            Some(aggregation_result::Kind::Value(sum)) => text(sum.value.as_ref()),
            _ => None,
        };
        Ok(format!(
            "{key}:{}:{}",
            group.count,
            sum.context("a group without sum")?
        ))
    };
    result.groups.iter().map(group).collect()
}

fn text(value: Option<&Value>) -> Option<String> {
    match value?.kind.as_ref()? {
        value::Kind::StringValue(text) => Some(text.clone()),
        value::Kind::IntValue(number) => Some(number.to_string()),
        value::Kind::DoubleValue(number) => Some(number.to_string()),
        _ => None,
    }
}

/// One connection.
struct Session {
    orders: OrderServiceClient<Channel>,
    shops: ShopServiceClient<Channel>,
    media: MediaServiceClient<Channel>,
}

impl Session {
    async fn open(address: &str) -> anyhow::Result<Self> {
        let channel = Endpoint::from_shared(address.to_owned())?.connect().await?;
        Ok(Self {
            orders: OrderServiceClient::new(channel.clone()),
            shops: ShopServiceClient::new(channel.clone()),
            media: MediaServiceClient::new(channel),
        })
    }

    async fn ask(&mut self, call: Call) -> anyhow::Result<Answer> {
        match call {
            Call::GetOrder(request) => {
                let found = self.orders.get_order(request).await?.into_inner();
                Ok(Answer::of_ids(vec![found.order.unwrap_or_default().order_id]))
            }
            Call::SearchOrders(request) => {
                let found = self.orders.search_orders(request).await?.into_inner();
                let ids = found
                    .hits
                    .into_iter()
                    .map(|hit| hit.resource.unwrap_or_default().order_id);
                Answer::of_search(
                    ids.collect(),
                    found.next_page_token,
                    found.total,
                    &found.aggregations,
                )
            }
            Call::SearchShops(request) => {
                let found = self.shops.search_shops(request).await?.into_inner();
                let ids = found
                    .hits
                    .into_iter()
                    .map(|hit| hit.resource.unwrap_or_default().shop_id);
                Answer::of_search(
                    ids.collect(),
                    found.next_page_token,
                    found.total,
                    &found.aggregations,
                )
            }
            Call::NearbyShops(request) => {
                let found = self.shops.nearby_shops(request).await?.into_inner();
                let ids = found
                    .hits
                    .into_iter()
                    .map(|hit| hit.resource.unwrap_or_default().shop_id);
                Ok(Answer::of_ids(ids.collect()))
            }
            Call::SearchMedia(request) => {
                let found = self.media.search_media(request).await?.into_inner();
                let ids = found
                    .hits
                    .into_iter()
                    .map(|hit| hit.resource.unwrap_or_default().media_id);
                Answer::of_search(
                    ids.collect(),
                    found.next_page_token,
                    found.total,
                    &found.aggregations,
                )
            }
        }
    }

    /// A call that leaves out hits asks for the page with the token of the page before instead.
    async fn walk(&mut self, call: &mut Call) -> anyhow::Result<()> {
        let mut page = call.clone();
        let (Some(search), Some(walking)) = (call.search_mut(), page.search_mut()) else {
            return Ok(());
        };
        let mut left = std::mem::take(&mut search.skip);
        walking.skip = 0;
        walking.set_hits_mode(HitsMode::Keys);
        while left > 0 {
            let Some(walking) = page.search_mut() else { break };
            walking.page_size = left.min(STRIDE);
            left -= walking.page_size;
            let token = self.ask(page.clone()).await?.next_page_token;
            anyhow::ensure!(!token.is_empty(), "the hits end {left} before the page");
            if let Some(walking) = page.search_mut() {
                walking.page_token.clone_from(&token);
            }
            search.page_token = token;
        }
        Ok(())
    }
}

fn runtime() -> anyhow::Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// A setting from the environment.
fn setting<T: FromStr>(name: &str, otherwise: T) -> anyhow::Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    std::env::var(name).map_or(Ok(otherwise), |value| value.parse().context(name.to_owned()))
}

/// A closed loop against one address.
struct Bench {
    address: String,
    max: Duration,
}

impl Bench {
    /// The time of each call, sorted. Ends after `least` and `enough` calls, or after the longest time allowed.
    fn measure(
        &self,
        questions: &[Question],
        clients: usize,
        least: Duration,
        enough: usize,
    ) -> anyhow::Result<Vec<Duration>> {
        let one = |client: usize| {
            runtime()?.block_on(async {
                let mut session = Session::open(&self.address).await?;
                let mut times = Vec::new();
                let mut turn = questions.iter().cycle().skip(client * questions.len() / clients);
                let start = Instant::now();
                let mut now = start;
                while now - start < self.max && (now - start < least || times.len() * clients < enough) {
                    let question = turn.next().context("no questions")?;
                    let call = question.call.clone();
                    let began = Instant::now();
                    session.ask(call).await.with_context(|| question.failed())?;
                    now = Instant::now();
                    times.push(now - began);
                }
                anyhow::Ok(times)
            })
        };
        let mut all = thread::scope(|scope| {
            let clients: Vec<_> = (0..clients)
                .map(|client| scope.spawn(move || one(client)))
                .collect();
            let mut all = Vec::new();
            for client in clients {
                all.extend(
                    client
                        .join()
                        .map_err(|_| anyhow::anyhow!("a client panicked"))??,
                );
            }
            anyhow::Ok(all)
        })?;
        all.sort();
        Ok(all)
    }

    /// Every question once. The checksum covers all answers in their order, the file keeps them.
    fn answer_all(&self, questions: &mut [Question], answers: &mut impl Write) -> anyhow::Result<String> {
        let mut hash = Sha256::new();
        let mut known: HashMap<String, String> = HashMap::new();
        runtime()?.block_on(async {
            let mut session = Session::open(&self.address).await?;
            for question in questions {
                session
                    .walk(&mut question.call)
                    .await
                    .with_context(|| question.failed())?;
                let answer = match known.get(&question.text) {
                    Some(answer) => answer.clone(),
                    None => {
                        let answer = session.ask(question.call.clone()).await;
                        answer.with_context(|| question.failed())?.items.join(",")
                    }
                };
                writeln!(answers, "{}\t{}\t{answer}", question.class, question.n)?;
                hash.update(format!("{answer}\n"));
                known.insert(question.text.clone(), answer);
            }
            anyhow::Ok(())
        })?;
        answers.flush()?;
        Ok(hash
            .finalize()
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}

fn row(
    peer: &str,
    class: &str,
    clients: usize,
    times: &[Duration],
    elapsed: Duration,
    checksum: &str,
) -> Json {
    let tenths = |number: f64| (number * 10.0).round() / 10.0;
    let percentile = |percent: usize| {
        let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        tenths(times.get(at).copied().unwrap_or_default().as_secs_f64() * 1e6)
    };
    json!({
        "peer": peer, "class": class, "clients": clients, "p50_us": percentile(50), "p95_us": percentile(95),
        "p99_us": percentile(99), "qps": tenths(times.len() as f64 / elapsed.as_secs_f64()),
        "samples": times.len(), "hits_checksum": checksum,
    })
}

/// The questions by class, in the file's order.
fn read(queries: &str) -> anyhow::Result<Vec<Vec<Question>>> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET)?;
    let elements: Vec<Json> = serde_json::from_reader(BufReader::new(File::open(queries)?))?;
    let ids_only = setting("FETCH", String::new())? == "ids";
    let only = setting("CLASSES", String::new())?;
    let mut classes: Vec<Vec<Question>> = Vec::new();
    for element in &elements {
        let mut question = Question::from_json(&pool, element)?;
        if !only.is_empty() && !only.split(',').any(|class| class == question.class) {
            continue;
        }
        if let Some(search) = question
            .call
            .search_mut()
            .filter(|search| ids_only && search.hits_mode() == HitsMode::Unspecified)
        {
            search.set_hits_mode(HitsMode::Keys);
        }
        let same = |class: &&mut Vec<Question>| class.first().is_some_and(|q| q.class == question.class);
        match classes.iter_mut().find(same) {
            Some(class) => class.push(question),
            None => classes.push(vec![question]),
        }
    }
    Ok(classes)
}

fn query(address: &str, queries: &str, out: &str, answers: &str) -> anyhow::Result<()> {
    let seconds = |name, otherwise| setting(name, otherwise).map(Duration::from_secs_f64);
    let (warm, least) = (seconds("WARM_S", 2.0)?, seconds("MEASURE_S", 3.0)?);
    let bench = Bench {
        address: address.to_owned(),
        max: seconds("MAX_S", 12.0)?,
    };
    let peer = Path::new(out).file_stem().context("a name of the result")?;
    let peer = peer.to_string_lossy();
    let mut answers = BufWriter::new(File::create(answers)?);
    let mut rows = Vec::new();
    for mut questions in read(queries)? {
        let class = questions.first().context("no questions")?.class.clone();
        let checksum = match bench.answer_all(&mut questions, &mut answers) {
            Ok(checksum) => checksum,
            Err(error)
                if error
                    .downcast_ref::<Status>()
                    .is_some_and(|s| s.code() == Code::Unimplemented) =>
            {
                eprintln!("{class} is left out, this version doesn't answer it: {error:#}");
                continue;
            }
            Err(error) => return Err(error),
        };
        bench.measure(&questions, 1, warm, 0)?;
        for clients in CLIENTS {
            let began = Instant::now();
            let times = bench.measure(&questions, clients, least, ENOUGH)?;
            let row = row(&peer, &class, clients, &times, began.elapsed(), &checksum);
            eprintln!("{row}");
            rows.push(row);
        }
    }
    Ok(fs::write(out, serde_json::to_string_pretty(&rows)?)?)
}

/// Reads the last row from the store, then searches with the sequence of that read, which waits for the index.
async fn wait(address: &str, kind: &str, last: &str, rows: &str) -> anyhow::Result<()> {
    let mut session = Session::open(address).await?;
    let id = last.to_owned();
    let count = |min_sequence| {
        Some(Search {
            total: Some(TotalRequest {
                kind: Some(total_request::Kind::Exact(true)),
            }),
            hits_mode: HitsMode::None.into(),
            min_sequence,
            ..Search::default()
        })
    };
    let call = match kind {
        "orders" => {
            let get = GetOrderRequest {
                order_id: id,
                ..Default::default()
            };
            let sequence = session.orders.get_order(get).await?.into_inner().sequence;
            Call::SearchOrders(SearchOrdersRequest {
                search: count(sequence),
            })
        }
        "shops" => {
            let get = GetShopRequest {
                shop_id: id,
                ..Default::default()
            };
            let sequence = session.shops.get_shop(get).await?.into_inner().sequence;
            Call::SearchShops(SearchShopsRequest {
                search: count(sequence),
            })
        }
        "media" => {
            let get = GetMediaRequest {
                media_id: id,
                ..Default::default()
            };
            let sequence = session.media.get_media(get).await?.into_inner().sequence;
            Call::SearchMedia(SearchMediaRequest {
                search: count(sequence),
            })
        }
        _ => anyhow::bail!("orders, shops or media, not {kind}"),
    };
    let found = session.ask(call).await?.items.join(",");
    anyhow::ensure!(found == rows, "searches see {found} {kind} of {rows}");
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["query", address, queries, out, answers] => query(address, queries, out, answers),
        ["await", address, kind, last, rows] => runtime()?.block_on(wait(address, kind, last, rows)),
        _ => anyhow::bail!(
            "usage: peer query ADDRESS QUERIES OUT_JSON ANSWERS_TSV | peer await ADDRESS KIND LAST_ID ROWS"
        ),
    }
}
