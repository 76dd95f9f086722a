use std::time::Duration;

use futures_util::FutureExt as _;
use tonic::Code;

use super::*;
use crate::connection_info::ConnectionInfo;

fn requested(service: &str) -> Request<HealthCheckRequest> {
    Request::new(HealthCheckRequest {
        service: service.to_owned(),
    })
}

async fn check(health: &Health, service: &str) -> Result<ServingStatus, Status> {
    let answer = HealthService::new(health.clone())
        .check(requested(service))
        .await?;
    Ok(answer.get_ref().status())
}

/// Has a service that is always so.
fn always(health: &Health, service: impl Into<String>, is_serving: bool) {
    let (serving, seen) = watch::channel(is_serving);
    health.register(service, seen);
    // Nobody takes it back.
    std::mem::forget(serving);
}

#[tokio::test]
async fn the_whole_serves_while_all_services_do() {
    let health = Health::default();
    assert_eq!(
        check(&health, "").await.expect("always known"),
        ServingStatus::Serving
    );
    let (orders, seen) = watch::channel(true);
    health.register("souk.Orders", seen);
    always(&health, "souk.Shops", true);
    assert_eq!(check(&health, "").await.expect("known"), ServingStatus::Serving);
    orders.send_replace(false);
    assert_eq!(
        check(&health, "").await.expect("known"),
        ServingStatus::NotServing
    );
    assert_eq!(
        check(&health, "souk.Orders").await.expect("known"),
        ServingStatus::NotServing
    );
    assert_eq!(
        check(&health, "souk.Shops").await.expect("known"),
        ServingStatus::Serving
    );
    orders.send_replace(true);
    assert_eq!(check(&health, "").await.expect("known"), ServingStatus::Serving);
    drop(orders);
    assert_eq!(
        check(&health, "souk.Orders").await.expect("known"),
        ServingStatus::NotServing,
        "nobody vouches for it any more"
    );
}

#[tokio::test]
async fn an_unknown_service_is_an_error_to_check_and_a_state_to_watch() {
    let health = Health::default();
    let status = check(&health, "souk.Nobody").await.expect_err("unknown");
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(crate::status::reason(&status).as_deref(), Some("SERVICE_UNKNOWN"));
    let answer = HealthService::new(health.clone())
        .watch(requested("souk.Nobody"))
        .await
        .expect("a stream");
    let mut states = answer.into_inner();
    let state = states.next().await.expect("a state").expect("no error");
    assert_eq!(state.status(), ServingStatus::ServiceUnknown);
    // It stays open, and nothing is kept of the name: that is of nobody even when there is such a service.
    always(&health, "souk.Nobody", true);
    assert!(states.next().now_or_never().is_none());
    health.drain();
    assert!(states.next().await.is_none());
}

#[tokio::test]
async fn an_address_has_so_many_watches_and_each_is_given_back() {
    let endpoint = HealthService::new(Health::default());
    let watch = |address: &str| {
        let mut request = requested("");
        let info = ConnectionInfo::new(None, address.parse().expect("an address"));
        request.extensions_mut().insert(info);
        endpoint.watch(request)
    };
    let mut open = Vec::new();
    for _ in 0..WATCHES_PER_ADDRESS_MAX {
        open.push(watch("192.0.2.1:1").await.expect("a stream"));
    }
    let Err(status) = watch("192.0.2.1:2").await else {
        panic!("one too many");
    };
    assert_eq!(status.code(), Code::ResourceExhausted);
    let reason = crate::status::reason(&status);
    assert_eq!(reason.as_deref(), Some("WATCHES_PER_ADDRESS_MAX"));
    watch("192.0.2.2:1").await.expect("of another address");
    open.pop();
    watch("192.0.2.1:2").await.expect("there is room again");
}

#[tokio::test]
async fn a_service_that_several_serve_serves_while_all_do() {
    let health = Health::default();
    let (here, seen_here) = watch::channel(true);
    let (there, seen_there) = watch::channel(false);
    health.register("souk.Indexes", seen_here);
    health.register("souk.Indexes", seen_there);
    let mut states = Box::pin(health.subscribe("souk.Indexes"));
    assert_eq!(states.next().await, Some(false));
    there.send_replace(true);
    assert_eq!(states.next().await, Some(true));
    here.send_replace(false);
    assert_eq!(states.next().await, Some(false));
    assert_eq!(health.is_serving("souk.Indexes"), Some(false));
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_each_change_once_and_ends_with_the_drain() {
    let health = Health::default();
    let (serving, seen) = watch::channel(true);
    health.register("souk.Orders", seen);
    let answer = HealthService::new(health.clone())
        .watch(requested(""))
        .await
        .expect("a stream");
    let mut states = answer.into_inner();
    let mut next = async || {
        let state = states.next().await;
        state.map(|state| state.expect("no error").status())
    };
    assert_eq!(next().await, Some(ServingStatus::Serving));
    assert!(next().now_or_never().is_none(), "nothing changed");
    serving.send_replace(false);
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    serving.send_replace(false);
    assert!(next().now_or_never().is_none(), "the same again is no change");
    serving.send_replace(true);
    assert_eq!(next().await, Some(ServingStatus::Serving));
    health.drain();
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    assert_eq!(next().await, None);
    assert_eq!(
        check(&health, "souk.Orders").await.expect("known"),
        ServingStatus::NotServing
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_hears_of_services_that_come_and_of_senders_that_go_and_is_no_busy_loop() {
    let health = Health::default();
    let mut whole = Box::pin(health.subscribe(""));
    assert_eq!(whole.next().await, Some(true), "of nothing");
    let (serving, seen) = watch::channel(false);
    health.register("souk.Shops", seen);
    assert_eq!(whole.next().await, Some(false));
    serving.send_replace(true);
    assert_eq!(whole.next().await, Some(true));
    drop(serving);
    assert_eq!(whole.next().await, Some(false));
    let next = tokio::time::timeout(Duration::from_secs(100), whole.next()).await;
    assert!(next.is_err(), "it stays so");
}

#[tokio::test]
async fn a_list_tells_of_every_service_and_the_whole() {
    let health = Health::default();
    always(&health, "souk.Orders", false);
    always(&health, "souk.Shops", true);
    let list = || async {
        let answer = HealthService::new(health.clone())
            .list(Request::new(HealthListRequest {}))
            .await?;
        let statuses = answer.into_inner().statuses.into_iter();
        Ok::<_, Status>(statuses.map(|(name, of)| (name, of.status())).collect::<Vec<_>>())
    };
    let expected = [
        ("", ServingStatus::NotServing),
        ("souk.Orders", ServingStatus::NotServing),
        ("souk.Shops", ServingStatus::Serving),
    ];
    assert_eq!(
        list().await.expect("few"),
        expected.map(|(name, status)| (name.to_owned(), status))
    );
    for nth in 0..MAX_LISTED_SERVICES - 2 {
        always(&health, format!("souk.Another{nth}"), true);
    }
    assert_eq!(
        list().await.expect("as many as may be").len(),
        MAX_LISTED_SERVICES + 1
    );
    always(&health, "souk.OneMore", true);
    let status = list().await.expect_err("too many");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(
        crate::status::reason(&status).as_deref(),
        Some("MAX_LISTED_SERVICES")
    );
}
