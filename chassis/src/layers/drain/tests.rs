use std::time::Duration;

use futures_util::FutureExt as _;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tower::Layer as _;

use super::*;
use crate::layers::refuse;
use crate::layers::testing::{CHECK, NON_HEALTH, answering, call, read_to_end, request, stream};

fn service(gate: &DrainGate) -> impl Inner {
    gate.clone().layer(answering(|_| {
        std::future::ready(stream(1, Duration::ZERO, Code::Ok))
    }))
}

#[tokio::test]
async fn a_closed_gate_turns_calls_away_with_the_time_to_come_back() {
    let gate = DrainGate::default();
    let service = service(&gate);
    gate.close();
    let (_, status) = read_to_end(call(&service, request(NON_HEALTH)).await).await;
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(crate::status::reason(&status).as_deref(), Some("DRAINING"));
    let retry = status.get_details_retry_info().and_then(|info| info.retry_delay);
    assert_eq!(retry, Some(RETRY_AFTER));

    let (_, health) = read_to_end(call(&service, request(CHECK)).await).await;
    assert_eq!(health.code(), Code::Ok, "health tells that it goes");
}

#[tokio::test]
async fn it_is_drained_when_the_last_stream_has_ended() {
    let gate = DrainGate::default();
    let service = service(&gate);
    let (one, other) = (
        call(&service, request(NON_HEALTH)).await,
        call(&service, request(NON_HEALTH)).await,
    );
    assert_eq!(gate.in_flight(), 2);
    gate.close();
    assert!(gate.drained().now_or_never().is_none());
    assert_eq!(
        read_to_end(one).await.1.code(),
        Code::Ok,
        "what was under way goes on"
    );
    assert_eq!(gate.in_flight(), 1);
    drop(other);
    gate.drained().await;
}

#[tokio::test]
async fn an_open_gate_is_never_drained() {
    let gate = DrainGate::default();
    assert!(gate.drained().now_or_never().is_none());
    let answered = gate
        .clone()
        .layer(answering(|_| async { refuse(Status::ok("")) }));
    call(&answered, request(NON_HEALTH)).await;
    assert_eq!(gate.in_flight(), 0);
}
