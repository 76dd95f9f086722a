//! Coupons through a gateway with keys: whatever every service has, of a contract and a crate of some lines.

#![expect(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use prost_types::{FieldMask, Timestamp};
use serde_json::{Value, json};
use souk_access::{CredentialKeys, Reloaded, Role};
use souk_api::MessageResource as _;
use souk_api::testing::{Running, assert_round_trips, broken_rules, serve_guarded, updated};
use souk_chassis::config::ServerConfig;
use souk_chassis::server::{self, Listener};
use souk_chassis::telemetry::{Telemetry, TelemetryConfig, TelemetryGuard};
use souk_coupon_svc::coupon::v1::coupon_service_client::CouponServiceClient;
use souk_coupon_svc::coupon::v1::{
    BatchCreateCouponsRequest, BatchGetCouponsRequest, Coupon, CreateCouponRequest, DeleteCouponRequest,
    ExportCouponsRequest, GetCouponRequest, ListShopCouponsRequest, SearchCouponsRequest,
    UpdateCouponRequest, WatchCouponsRequest,
};
use souk_coupon_svc::{CouponDomain, CouponServices, Coupons, FILE_DESCRIPTOR_SET};
use souk_gateway::Gateway;
use souk_gateway::auth::make_key;
use souk_gateway::backend::{Backends, Target};
use souk_gateway::config::GatewayConfig;
use souk_proto::search::v1::{
    Aggregation, Query, Search, TermQuery, TermsAggregation, aggregation, aggregation_result, query,
};
use souk_proto::r#type::v1::{self as types, ChangeKind, value};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

type TestResult = Result<(), Box<dyn Error>>;

/// The file that the service is generated into.
const SERVICE: &str = include_str!("../proto/souk/coupon/v1/coupon_service.proto");

fn at(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos: 0 })
}

/// A coupon of a shop and a seller, good until `end`.
fn coupon(id: &str, shop: &str, seller: &str, end: i64) -> Coupon {
    Coupon {
        coupon_id: id.to_owned(),
        shop_id: shop.to_owned(),
        salesperson_id: seller.to_owned(),
        title: "新年 New Year".to_owned(),
        basis_points: Some(1_000),
        start_time: at(0),
        end_time: at(end),
        tags: vec!["new".to_owned()],
        ..Coupon::default()
    }
}

#[test]
fn the_service_is_what_the_resource_makes_of_it() -> TestResult {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/proto");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let mut compiler = protox::Compiler::new([own, shared])?;
    let file = "souk/coupon/v1/coupon.proto";
    compiler.include_imports(true).open_file(file)?;
    let (name, text) = souk_codegen::service::generate(&compiler.descriptor_pool(), file)?;
    assert_eq!(name, "souk/coupon/v1/coupon_service.proto");
    let advice = "run: cargo run -p souk-codegen -- e2e/coupon-svc/proto souk/coupon/v1/coupon.proto";
    assert!(text == SERVICE, "{name} is of another resource; {advice}");
    Ok(())
}

#[test]
fn coupons_come_back_from_rows_and_each_violation_is_named() {
    assert_round_trips::<Coupons>("souk.coupon.v1.Coupon", FILE_DESCRIPTOR_SET);
    let good = coupon("c1", "h1", "s1", 9);
    assert_eq!(broken_rules(&good, "coupon"), [""; 0]);
    let bad = Coupon {
        title: String::new(),
        basis_points: Some(0),
        end_time: None,
        tags: vec![String::new()],
        ..good.clone()
    };
    let fields = ["title", "basis_points", "end_time", "tags[0]"];
    assert_eq!(
        broken_rules(&bad, "coupon"),
        fields.map(|field| format!("coupon.{field}"))
    );
    let both = Coupon {
        amount_cents: Some(5),
        end_time: at(-1),
        ..good.clone()
    };
    let refused = updated::<Coupons>(
        good,
        both,
        &["amount_cents", "end_time"],
        &CouponDomain,
        Coupons::put,
    );
    let fields = ["basis_points", "end_time"].map(|field| format!("coupon.{field}"));
    assert_eq!(refused, Err(fields.to_vec()));
}

/// A gateway on a socket, over the service in this process.
struct House {
    address: String,
    keys: BTreeMap<Role, String>,
    _stop: DropGuard,
    _files: TempDir,
    _service: Running<CouponServices>,
}

impl House {
    async fn open() -> Result<Self, Box<dyn Error>> {
        recorder();
        let credentials = Reloaded::fixed(CredentialKeys::random()?);
        let service = serve_guarded::<CouponServices>(Some(credentials.clone())).await?;
        let files = tempfile::tempdir()?;
        let (mut keys, mut lines) = (BTreeMap::new(), String::new());
        for (role, subject) in [(Role::Operator, ""), (Role::Reader, ""), (Role::Seller, "s1")] {
            let made = make_key(role.word(), role, subject)?;
            lines += &format!("{}\n", made.line);
            keys.insert(role, made.key);
        }
        let mut config = GatewayConfig::default();
        config.auth.keys = files.path().join("keys");
        std::fs::write(&config.auth.keys, lines)?;
        let backends = Backends::of(FILE_DESCRIPTOR_SET).with("coupon", Target::Local(service.stack.clone()));
        let stack = Gateway::with_credentials(&config, backends, Some(credentials))?.stack;
        let server = ServerConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            ..ServerConfig::default()
        };
        let listener = Listener::bind(&server).await?;
        let address = listener.local_addr()?.to_string();
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move { server::serve(listener, stack, &server, stopped, Duration::ZERO).await });
        Ok(Self {
            address,
            keys,
            _stop: stop.drop_guard(),
            _files: files,
            _service: service,
        })
    }

    /// A client with the key of a role, whose calls are of a trace.
    async fn client(
        &self,
        role: Role,
        trace: &'static str,
    ) -> Result<
        CouponServiceClient<
            InterceptedService<
                Channel,
                impl FnMut(Request<()>) -> Result<Request<()>, Status> + Clone + use<>,
            >,
        >,
        Box<dyn Error>,
    > {
        let channel = Endpoint::from_shared(format!("http://{}", self.address))?
            .connect()
            .await?;
        let key: tonic::metadata::AsciiMetadataValue = self.keys[&role].parse()?;
        let with = move |mut request: Request<()>| {
            request.metadata_mut().insert("x-api-key", key.clone());
            let parent = format!("00-{trace}-00f067aa0ba902b7-01");
            let parent = parent.parse().map_err(|_| Status::internal("no trace"))?;
            request.metadata_mut().insert("traceparent", parent);
            Ok(request)
        };
        Ok(CouponServiceClient::with_interceptor(channel, with))
    }

    /// A call by HTTP/1.1 and JSON: the status and the body.
    async fn json(
        &self,
        role: Role,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value), Box<dyn Error>> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nx-api-key: {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.keys[&role],
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let status = answer.split(' ').nth(1).ok_or("no status")?.parse()?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("no body")?;
        let (from, to) = (body.find('{'), body.rfind('}'));
        let body = from.zip(to).and_then(|(from, to)| body.get(from..=to));
        Ok((status, serde_json::from_str(body.unwrap_or("null"))?))
    }
}

/// Keeps the names of all spans by their traces.
#[derive(Clone, Debug)]
struct Recorder(Arc<watch::Sender<Vec<(String, String)>>>);

impl SpanExporter for Recorder {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let named = batch
            .into_iter()
            .map(|span| (span.span_context.trace_id().to_string(), span.name.to_string()));
        self.0.send_modify(|spans| spans.extend(named));
        Ok(())
    }
}

fn recorder() -> &'static Recorder {
    static INSTALLED: OnceLock<(Recorder, TelemetryGuard)> = OnceLock::new();
    let (recorder, _) = INSTALLED.get_or_init(|| {
        let recorder = Recorder(Arc::new(watch::Sender::new(Vec::new())));
        let config = TelemetryConfig {
            log_filter: "off".to_owned(),
            ..TelemetryConfig::default()
        };
        let built = Telemetry::builder(config, "souk-gateway")
            .span_exporter(recorder.clone())
            .build();
        let guard = built
            .and_then(Telemetry::install)
            .expect("the first telemetry of this process");
        (recorder, guard)
    });
    recorder
}

fn term(field: &str, text: &str) -> Query {
    let value = value::Kind::StringValue(text.to_owned());
    Query {
        kind: Some(query::Kind::Term(TermQuery {
            field: field.to_owned(),
            value: Some(types::Value { kind: Some(value) }),
            weight: None,
        })),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rpc_answers_through_the_gateway() -> TestResult {
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let house = House::open().await?;
    let mut coupons = house.client(Role::Operator, trace).await?;
    let first = coupon("c1", "h1", "s1", 10);
    let create = CreateCouponRequest {
        coupon: Some(first.clone()),
        ..CreateCouponRequest::default()
    };
    let created = coupons.create_coupon(create.clone()).await?.into_inner();
    let again = coupons.create_coupon(create).await.expect_err("the id is taken");
    assert_eq!(again.code(), Code::AlreadyExists);
    let etag = created.coupon.unwrap_or_default().etag;
    let batch = BatchCreateCouponsRequest {
        coupons: vec![
            coupon("c2", "h1", "s2", 30),
            coupon("c3", "h1", "s1", 20),
            coupon("c4", "h2", "s2", 5),
        ],
        ..BatchCreateCouponsRequest::default()
    };
    let sequence = coupons.batch_create_coupons(batch).await?.into_inner().sequence;
    let get = GetCouponRequest {
        coupon_id: "c1".to_owned(),
        min_sequence: sequence,
    };
    let read = coupons
        .get_coupon(get.clone())
        .await?
        .into_inner()
        .coupon
        .unwrap_or_default();
    assert_eq!((read.title, read.etag == etag), (first.title, true));
    let both = BatchGetCouponsRequest {
        coupon_ids: ["c4", "c9"].map(str::to_owned).to_vec(),
        ..BatchGetCouponsRequest::default()
    };
    let both = coupons.batch_get_coupons(both).await?.into_inner();
    assert_eq!((both.coupons.len(), both.missing_ids), (1, vec!["c9".to_owned()]));

    let list = ListShopCouponsRequest {
        shop_id: "h1".to_owned(),
        page_size: 2,
        ..ListShopCouponsRequest::default()
    };
    let page = coupons.list_shop_coupons(list.clone()).await?.into_inner();
    let ids = |coupons: Vec<Coupon>| {
        coupons
            .into_iter()
            .map(|coupon| coupon.coupon_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(page.coupons), ["c2", "c3"]);
    let rest = ListShopCouponsRequest {
        page_token: page.next_page_token,
        ..list
    };
    assert_eq!(
        ids(coupons.list_shop_coupons(rest).await?.into_inner().coupons),
        ["c1"]
    );

    let update = UpdateCouponRequest {
        coupon: Some(Coupon {
            coupon_id: "c3".to_owned(),
            combines: true,
            ..Coupon::default()
        }),
        update_mask: Some(FieldMask {
            paths: vec!["combines".to_owned()],
        }),
        etag: String::new(),
    };
    let updated = coupons.update_coupon(update).await?.into_inner();
    assert!(updated.coupon.unwrap_or_default().combines);
    let delete = DeleteCouponRequest {
        coupon_id: "c4".to_owned(),
        etag: String::new(),
    };
    let deleted = coupons.delete_coupon(delete).await?.into_inner().sequence;

    let by_shop = Aggregation {
        kind: Some(aggregation::Kind::Terms(TermsAggregation {
            field: "shop_id".to_owned(),
            ..TermsAggregation::default()
        })),
    };
    let search = Search {
        query: Some(term("title.keyword", "新年 New Year")),
        aggregations: BTreeMap::from([("shops".to_owned(), by_shop)]),
        min_sequence: deleted,
        ..Search::default()
    };
    let found = coupons
        .search_coupons(SearchCouponsRequest { search: Some(search) })
        .await?
        .into_inner();
    assert_eq!(found.hits.len(), 3);
    let shops = found
        .aggregations
        .get("shops")
        .and_then(|shops| shops.kind.clone());
    let Some(aggregation_result::Kind::Groups(shops)) = shops else {
        return Err(format!("{shops:?}").into());
    };
    assert_eq!(shops.groups.len(), 1);

    let mut export = coupons
        .export_coupons(ExportCouponsRequest::default())
        .await?
        .into_inner();
    let mut exported = Vec::new();
    while let Some(block) = export.message().await? {
        exported.extend(ids(block.coupons));
    }
    exported.sort();
    assert_eq!(exported, ["c1", "c2", "c3"]);
    let all = WatchCouponsRequest {
        after_sequence: Some(0),
    };
    let mut watch = coupons.watch_coupons(all).await?.into_inner();
    let mut kinds = Vec::new();
    while kinds.len() < 6 {
        let event = watch.message().await?.ok_or("the watch ended")?;
        kinds.extend(event.changes.iter().map(|change| change.kind()));
    }
    let created = [ChangeKind::Created; 4];
    assert_eq!(
        kinds,
        [&created[..], &[ChangeKind::Updated, ChangeKind::Deleted]].concat()
    );

    // One trace has the call, the way to the service, its commit.
    let mut spans = recorder().0.subscribe();
    let wanted = |spans: &Vec<(String, String)>| {
        let count = |name: &str| {
            spans
                .iter()
                .filter(|span| **span == (trace.to_owned(), name.to_owned()))
                .count()
        };
        count("souk.coupon.v1.CouponService/CreateCoupon") >= 3
            && spans
                .iter()
                .any(|(of, name)| of == trace && name.contains("commit"))
    };
    let traced = tokio::time::timeout(Duration::from_secs(10), spans.wait_for(wanted)).await;
    assert!(traced.is_ok(), "{:?}", *recorder().0.borrow());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_and_access_follow_from_the_contract() -> TestResult {
    let house = House::open().await?;
    let body = |id: &str, seller: &str| {
        json!({"coupon_id": id, "shop_id": "h1", "salesperson_id": seller, "title": "t", "amount_cents": "5",
            "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-02-01T00:00:00Z"})
    };
    let (status, answer) = house
        .json(Role::Operator, "POST", "/v1/coupons", &body("c1", "s2"))
        .await?;
    assert_eq!(
        (status, &answer["coupon"]["amountCents"]),
        (200, &json!("5")),
        "{answer}"
    );
    let list = "/v1/coupons:listShopCoupons?shop_id=h1";
    for (role, method, path, sent, expected) in [
        // A seller's own are its own alone, and a reader writes nothing.
        (Role::Seller, "POST", "/v1/coupons", body("c2", "s1"), 200),
        (Role::Seller, "POST", "/v1/coupons", body("c3", "s2"), 403),
        (Role::Seller, "GET", "/v1/coupons/c1", Value::Null, 404),
        (Role::Seller, "GET", "/v1/coupons/c2", Value::Null, 200),
        (Role::Reader, "GET", "/v1/coupons/c1", Value::Null, 200),
        (Role::Reader, "DELETE", "/v1/coupons/c1", Value::Null, 403),
        // A shop's coupons are several sellers': they aren't listed to one of them.
        (Role::Seller, "GET", list, Value::Null, 403),
        (Role::Reader, "GET", list, Value::Null, 200),
    ] {
        let (status, answer) = house.json(role, method, path, &sent).await?;
        assert_eq!(status, expected, "{role:?} {method} {path}: {answer}");
    }
    let (status, answer) = house
        .json(Role::Operator, "POST", "/v1/coupons", &json!({"coupon_id": "c4"}))
        .await?;
    assert_eq!(status, 400);
    let answer = answer.to_string();
    for field in ["shop_id", "title", "start_time", "end_time", "basis_points"] {
        assert!(answer.contains(&format!("coupon.{field}")), "{field} of {answer}");
    }
    let (status, document) = house
        .json(Role::Reader, "GET", "/openapi.json", &Value::Null)
        .await?;
    assert_eq!(status, 200);
    assert!(document["paths"]["/v1/coupons:listShopCoupons"].is_object());
    Ok(())
}
