use std::convert::Infallible;

use futures_util::FutureExt as _;
use souk_chassis::config::ClientConfig;
use souk_chassis::methods::Methods;
use souk_chassis::status::StatusBuilder;
use tokio::sync::Notify;
use tower::service_fn;

use super::*;
use crate::metrics::testing::TestMeter;

fn methods() -> Methods {
    Methods::read(&[souk_proto::FILE_DESCRIPTOR_SET], |_| true).expect("our own descriptors")
}

fn request() -> Request<Body> {
    let path = "/souk.shop.v1.ShopService/GetShop";
    Request::builder()
        .uri(path)
        .body(Body::empty())
        .expect("a request")
}

/// A process that answers with this status.
fn answering(status: impl Fn() -> Status + Clone + Send + Sync + 'static) -> Client {
    let backend =
        service_fn(move |_: Request<Body>| std::future::ready(Ok::<_, Infallible>(status().into_http())));
    Client::local(backend, "shop", methods())
}

/// A process that isn't there.
fn absent() -> Client {
    let uri = "http://127.0.0.1:9".parse().expect("an address");
    Client::remote("shop", &uri, &ClientConfig::default(), methods()).expect("an address")
}

fn good() -> Client {
    answering(|| Status::ok(""))
}

fn spread<const N: usize>(clients: [Client; N]) -> Balance {
    measured(clients, &TestMeter::new())
}

fn measured<const N: usize>(clients: [Client; N], measured: &TestMeter) -> Balance {
    Balance::new(clients.into_iter().enumerate(), &"shop".into(), &measured.meter())
}

async fn picked(balance: &Balance) -> usize {
    balance.call(request(), None).await.1
}

#[tokio::test]
async fn one_that_doesnt_answer_is_left_out_at_once() {
    let told = TestMeter::new();
    let balance = measured([absent(), good()], &told);
    let mut silent = 0;
    for _ in 0..100 {
        silent += usize::from(picked(&balance).await == 0);
    }
    assert!(silent <= 2, "{silent}");
    assert!(told.sum(&EJECTED).is_some_and(|out| out <= 1));
    assert_eq!(told.sum(&EJECTIONS), Some(silent as u64));
    // The attempt after a silent one goes elsewhere.
    let balance = spread([absent(), good()]);
    for _ in 0..20 {
        assert_eq!(balance.call(request(), Some(0)).await.1, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_refuses_is_left_out_for_longer_and_longer_until_it_answers() {
    let refuses = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let seen = Arc::clone(&refuses);
    let moody = answering(move || match seen.load(Ordering::Relaxed) {
        true => Status::unavailable("not now"),
        false => Status::ok(""),
    });
    let balance = spread([moody, good()]);
    let picks = async |calls: u32| {
        let mut count = 0;
        for _ in 0..calls {
            count += u32::from(picked(&balance).await == 0);
        }
        count
    };
    assert_eq!(picks(200).await, REFUSALS_MAX, "then it is out");
    tokio::time::advance(EJECTION_MIN).await;
    assert_eq!(
        picks(200).await,
        REFUSALS_MAX,
        "in again, and out for twice the time"
    );
    tokio::time::advance(EJECTION_MIN).await;
    assert_eq!(picks(200).await, 0);
    refuses.store(false, Ordering::Relaxed);
    tokio::time::advance(EJECTION_MIN).await;
    assert!(picks(200).await > 50, "it answers again");
}

#[tokio::test]
async fn what_isnt_available_of_a_process_says_nothing_of_the_process() {
    let building = answering(|| {
        let status = StatusBuilder::unavailable("INDEX_BUILDING", "search again later");
        status.resource("index", "shops", "is being built").build()
    });
    let told = TestMeter::new();
    let balance = measured([building, good()], &told);
    let mut picks = 0;
    for _ in 0..200 {
        picks += usize::from(picked(&balance).await == 0);
    }
    assert!(picks > 50, "{picks}");
    assert_eq!(told.sum(&EJECTIONS), Some(0));
}

#[tokio::test]
async fn who_gives_a_call_too_little_time_says_nothing_of_a_process() {
    // Takes connections, and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let address = silent.local_addr().expect("an address");
    let uri = format!("http://{address}").parse().expect("an address");
    let client = Client::remote("shop", &uri, &ClientConfig::default(), methods()).expect("an address");
    let told = TestMeter::new();
    let balance = measured([client], &told);
    let mut hurried = request();
    hurried
        .headers_mut()
        .insert("grpc-timeout", "10m".parse().expect("a value"));
    let (response, _) = balance.call(hurried, None).await;
    assert_eq!(code_in(response.headers()), Some(Code::DeadlineExceeded));
    assert_eq!(told.sum(&EJECTIONS), Some(0));
}

#[tokio::test]
async fn when_all_are_out_all_are_in() {
    let balance = spread([absent(), absent()]);
    let mut picks = [0; 2];
    for _ in 0..50 {
        let index = picked(&balance).await;
        picks[index] += 1;
    }
    assert!(picks.iter().all(|count| *count > 5), "{picks:?}");
}

#[tokio::test]
async fn the_less_busy_of_two_gets_the_call() {
    let go = Arc::new(Notify::new());
    let waits = Arc::clone(&go);
    let slow = service_fn(move |_: Request<Body>| {
        let waits = Arc::clone(&waits);
        async move {
            waits.notified().await;
            Ok::<_, Infallible>(Status::ok("").into_http())
        }
    });
    let balance = spread([Client::local(slow, "shop", methods()), good()]);
    // Until one hangs at the slow one.
    let stuck = loop {
        let call = balance.clone();
        let mut call = Box::pin(async move { call.call(request(), None).await.1 });
        let ended = call.as_mut().now_or_never();
        if ended.is_none() {
            break call;
        }
    };
    let mut slow_ones = 0;
    for _ in 0..100 {
        slow_ones += usize::from(balance.call(request(), None).now_or_never().is_none());
    }
    assert_eq!(slow_ones, 0, "it has a call under way, and the other has none");
    drop(stuck);
    drop(go);
}

#[tokio::test]
async fn connections_to_one_process_are_one() {
    let (name, meter) = ("shop".into(), TestMeter::new().meter());
    let balance = Balance::new([(0, good()), (0, good())], &name, &meter);
    assert!(!balance.has_others());
    assert_eq!(balance.call(request(), Some(0)).await.1, 0);
    let balance = Balance::new([(0, good()), (0, good()), (1, good())], &name, &meter);
    assert!(balance.has_others());
    for _ in 0..20 {
        assert_eq!(balance.call(request(), Some(0)).await.1, 1);
    }
}
