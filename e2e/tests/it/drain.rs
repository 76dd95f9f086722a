//! SIGTERM under load: health says NOT_SERVING first, calls in flight finish, new ones get
//! UNAVAILABLE, the process ends in time with code 0, and nothing acknowledged is lost.

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::rejection::Rejection;
use souk_e2e::suite::{Layout, Suite};
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::{CreateOrderRequest, GetOrderRequest};
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::SOUK;
use crate::never_sent::never_sent;

const WRITERS: u64 = 16;

/// Creates orders until the suite refuses; returns the acknowledged ids and the refusal.
async fn write_until_refused(channel: Channel, writer: u64) -> (Vec<String>, tonic::Status) {
    let mut client = OrderServiceClient::new(channel);
    let mut random = SeededRandom::new(writer);
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let order = data::order(writer * 1_000_000 + number, &mut random);
        let id = order.order_id.clone();
        match client
            .create_order(CreateOrderRequest {
                order: Some(order),
                ..Default::default()
            })
            .await
        {
            Ok(_) => acknowledged.push(id),
            // Sent again it meets the drain.
            Err(status) if never_sent(&status) => {}
            Err(status) => return (acknowledged, status),
        }
    }
    unreachable!("the loop ends by a refusal")
}

async fn drains(layout: Layout) -> anyhow::Result<()> {
    let mut suite = Suite::start(SOUK, layout).await?;
    let mut states = HealthClient::new(suite.channel()?)
        .watch(HealthCheckRequest {
            service: String::new(),
        })
        .await?
        .into_inner();
    let first = states.message().await?.expect("a state at once");
    assert_eq!(first.status(), ServingStatus::Serving);

    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        // A connection of its own: each has to learn of the end by itself.
        writers.spawn(write_until_refused(suite.channel()?, writer));
    }
    // The load is on once the first order of every writer is there.
    let mut probe = suite.orders()?;
    for writer in 0..WRITERS {
        let order_id = format!("o{:010}", writer * 1_000_000);
        while probe
            .get_order(GetOrderRequest {
                order_id: order_id.clone(),
                min_sequence: 0,
            })
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    }

    suite.gateway()?.terminate().await?;
    let state = states.message().await;
    let state = state.map(|state| state.map(|state| state.status()));
    assert!(
        matches!(state, Ok(Some(ServingStatus::NotServing))),
        "before it ends it says so: {state:?}"
    );
    drop(states);

    let mut acknowledged = Vec::new();
    while let Some(ended) = writers.join_next().await {
        let (ids, status) = ended?;
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        // A refusal by the server says when to try again; a refused connection has no words.
        if let Ok(rejection) = Rejection::of(&status) {
            assert!(rejection.has_retry_info, "{rejection:?}");
        }
        assert!(!ids.is_empty());
        acknowledged.extend(ids);
    }
    let mut processes = suite.take_processes();
    let gateway = processes.pop().expect("a gateway");
    assert_eq!(gateway.wait().await?.code(), Some(0));
    for process in processes {
        process.stop().await?;
    }

    suite.restart().await?;
    let mut client = suite.orders()?;
    for order_id in acknowledged {
        client
            .get_order(GetOrderRequest {
                order_id,
                min_sequence: 0,
            })
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_load_drains_one_process() -> anyhow::Result<()> {
    drains(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_load_drains_several_processes() -> anyhow::Result<()> {
    drains(Layout::SeveralProcesses).await
}
