//! A service that is suspended, and one whose link loses 30 of 100 segments: calls end in their time, everything else goes on, what
//! was acknowledged stays, and soon after the fault nothing is left of it.
//!
//! The callers here have no clock of their own: what ends in time was ended by the gateway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::faults::Fault;
use souk_e2e::rejection::Rejection;
use souk_e2e::suite::{Faulty, Layout, Plan, Suite};
use souk_proto::media::v1::GetMediaRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{CreateShopRequest, GetShopRequest};
use tonic::body::Body;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt as _;

use crate::SOUK;

/// Times that calls are given, in milliseconds.
const TIMES_MS: [u64; 5] = [50, 100, 200, 400, 800];
/// How often each of them is given, one call after the other.
const ROUNDS: usize = 8;
/// How much later than its time a call may end: at the middle, which is the promise, and at most, on a machine that tests share.
const LATE_MEDIAN: Duration = Duration::from_millis(50);
const LATE_MAX: Duration = Duration::from_millis(500);
/// Within this time after the fault calls are answered again.
const RECOVERY_MAX: Duration = Duration::from_secs(5);

/// A client without a clock: tonic's own would end calls by itself.
fn clockless(suite: &Suite) -> anyhow::Result<ShopServiceClient<Client<HttpConnector, Body>>> {
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    Ok(ShopServiceClient::with_origin(client, suite.uri().parse()?))
}

fn get_within(time_ms: u64) -> anyhow::Result<Request<GetShopRequest>> {
    let mut request = Request::new(GetShopRequest {
        shop_id: "h00000000".to_owned(),
        min_sequence: 0,
    });
    let timeout = format!("{time_ms}m").parse()?;
    request.metadata_mut().insert("grpc-timeout", timeout);
    Ok(request)
}

/// By how much calls of all times missed theirs, and how many of them were answered.
async fn lateness(suite: &Suite) -> anyhow::Result<(Vec<Duration>, usize)> {
    let mut callers = tokio::task::JoinSet::new();
    for time_ms in TIMES_MS {
        let mut shops = clockless(suite)?;
        callers.spawn(async move {
            let (mut late, mut answered) = (Vec::new(), 0);
            for _ in 0..ROUNDS {
                let began = Instant::now();
                match shops.get_shop(get_within(time_ms)?).await {
                    Ok(_) => answered += 1,
                    Err(status) => assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}"),
                }
                late.push(began.elapsed().saturating_sub(Duration::from_millis(time_ms)));
            }
            anyhow::Ok((late, answered))
        });
    }
    let (mut late, mut answered) = (Vec::new(), 0);
    while let Some(ended) = callers.join_next().await {
        let (of_one, answers) = ended??;
        late.extend(of_one);
        answered += answers;
    }
    late.sort_unstable();
    Ok((late, answered))
}

/// Creates shops one after the other until it is told to stop: each again with its request id until it is acknowledged.
async fn write(
    suite: &Suite,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<impl Future<Output = Vec<String>> + use<>> {
    let mut shops = suite.shops()?;
    let mut random = SeededRandom::new(7);
    Ok(async move {
        let mut acknowledged = Vec::new();
        for number in 1_000.. {
            let shop = data::shop(number, &mut random);
            let request_id = uuid::Uuid::new_v4().to_string();
            loop {
                if stop.load(Ordering::Relaxed) {
                    return acknowledged;
                }
                let mut request = Request::new(CreateShopRequest {
                    shop: Some(shop.clone()),
                    request_id: request_id.clone(),
                    ..Default::default()
                });
                request.set_timeout(Duration::from_millis(500));
                if shops.create_shop(request).await.is_ok() {
                    acknowledged.push(shop.shop_id.clone());
                    break;
                }
            }
        }
        acknowledged
    })
}

async fn endures(fault: Fault) -> anyhow::Result<()> {
    let plan = Plan::new(SOUK, Layout::SeveralProcesses);
    let Some(mut faulty) = Faulty::start(plan, "shop", fault).await? else {
        return Ok(());
    };
    let name = fault.name();
    let mut first = data::shop(0, &mut SeededRandom::new(0));
    first.shop_id = "h00000000".to_owned();
    let create = CreateShopRequest {
        shop: Some(first),
        ..Default::default()
    };
    faulty.suite.shops()?.create_shop(create).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(write(&faulty.suite, Arc::clone(&stop)).await?);

    faulty.begin().await?;
    let (late, answered) = lateness(&faulty.suite).await?;
    let median = late.get(late.len() / 2).copied().unwrap_or_default();
    let most = late.last().copied().unwrap_or_default();
    println!(
        "{name}: {} calls, {answered} answered; later than their time: {median:?} at the median, {most:?} at most",
        late.len()
    );
    assert!(median <= LATE_MEDIAN, "{median:?}");
    assert!(most <= LATE_MAX, "{most:?}");
    if fault == Fault::Pause {
        assert_eq!(answered, 0, "a suspended process answers nobody");
    }
    // Others don't notice.
    let mut media = faulty.suite.media()?;
    for _ in 0..20 {
        let mut get = Request::new(GetMediaRequest {
            media_id: "nothing".to_owned(),
            min_sequence: 0,
        });
        get.set_timeout(Duration::from_secs(2));
        let status = media.get_media(get).await.expect_err("there is none");
        assert_eq!(status.code(), Code::NotFound, "{status:?}");
    }

    faulty.end().await?;
    let began = Instant::now();
    let mut shops = clockless(&faulty.suite)?;
    while let Err(status) = shops.get_shop(get_within(500)?).await {
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        assert!(
            began.elapsed() < RECOVERY_MAX,
            "no answer {:?} later",
            began.elapsed()
        );
    }
    println!("{name}: answered again {:?} after its end", began.elapsed());
    stop.store(true, Ordering::Relaxed);
    let acknowledged = writer.await?;
    for shop_id in &acknowledged {
        let get = GetShopRequest {
            shop_id: shop_id.clone(),
            min_sequence: 0,
        };
        faulty.suite.shops()?.get_shop(get).await?;
    }
    println!("{name}: {} writes acknowledged, all there", acknowledged.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_service_costs_its_callers_no_more_than_their_time() -> anyhow::Result<()> {
    endures(Fault::Pause).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lossy_link_costs_its_callers_no_more_than_their_time() -> anyhow::Result<()> {
    endures(Fault::Loss).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_link_costs_its_callers_no_more_than_their_time() -> anyhow::Result<()> {
    endures(Fault::Silence).await
}

/// No RPC of Souk is answered from several services at once, so no answer is a partial one: the service that can't be reached is
/// named in the error, and in the health of what it serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cant_be_reached_is_named() -> anyhow::Result<()> {
    let plan = Plan::new(SOUK, Layout::SeveralProcesses);
    let Some(mut faulty) = Faulty::start(plan, "shop", Fault::Kill).await? else {
        return Ok(());
    };
    faulty.begin().await?;
    faulty.suite.wait_until(ServingStatus::NotServing).await?;
    let get = GetShopRequest {
        shop_id: "h00000000".to_owned(),
        min_sequence: 0,
    };
    let status: Status = faulty
        .suite
        .shops()?
        .get_shop(get)
        .await
        .expect_err("nobody is there");
    let rejection = Rejection::of(&status)?;
    assert_eq!(
        (rejection.code, rejection.reason.as_str()),
        (Code::Unavailable, "BACKEND_UNAVAILABLE")
    );
    assert!(rejection.has_retry_info, "{status:?}");
    let info = status.get_details_error_info().expect("it has one");
    assert_eq!(info.metadata.get("backend").map(String::as_str), Some("shop"));
    let mut health = HealthClient::new(faulty.suite.channel()?);
    let mut states = BTreeMap::new();
    for service in ["souk.shop.v1.ShopService", "souk.order.v1.OrderService", ""] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        states.insert(service, health.check(request).await?.into_inner().status());
    }
    let expected = [
        ("", ServingStatus::NotServing),
        ("souk.order.v1.OrderService", ServingStatus::Serving),
        ("souk.shop.v1.ShopService", ServingStatus::NotServing),
    ];
    assert_eq!(states, BTreeMap::from(expected));
    faulty.end().await?;
    faulty.suite.wait_until_serving().await
}
