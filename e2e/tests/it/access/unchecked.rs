//! A service that can't check who calls, because it was started without the key that its gateway has.

use std::net::SocketAddr;

use serde_json::json;
use souk_access::Role;
use souk_e2e::dynamic::Dynamic;
use souk_e2e::guard::Guard;
use souk_e2e::log::Log;
use souk_e2e::process::{Process, Stderr};
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::cells::OTHER;
use super::{reason, subject};
use crate::SOUK;

const CREATE: &str = "souk.order.v1.ConsumerService/CreateConsumer";
const GET: &str = "souk.order.v1.ConsumerService/GetConsumer";

fn at(address: SocketAddr) -> anyhow::Result<Dynamic> {
    Dynamic::new(Endpoint::from_shared(format!("http://{address}"))?.connect_lazy())
}

fn arguments(command: &str, listen: &str, further: &[String]) -> Vec<String> {
    let first = [command, "--listen", listen].map(str::to_owned);
    first.into_iter().chain(further.iter().cloned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_the_key_shows_no_row_and_its_gateway_is_not_ready() -> anyhow::Result<()> {
    let (guard, folder, log) = (Guard::new(subject)?, tempfile::tempdir()?, Log::default());
    let json_log = [("SOUK_TELEMETRY__LOG_FORMAT".to_owned(), "json".to_owned())];
    let data = ["--data".to_owned(), folder.path().display().to_string()];
    let order = arguments("order-svc", "127.0.0.1:0", &data);
    let order = Process::start_with_stderr(SOUK, &order, &json_log, Stderr::Log(&log, "order")).await?;
    let address = order.address();
    // By itself it knows nobody, and answers everybody.
    let theirs = json!({"consumer": {"id": OTHER.consumer, "name": "Ann"}});
    at(address)?
        .call(CREATE, &theirs)
        .await?
        .map_err(|status| anyhow::anyhow!("{status}"))?;

    let mut behind = vec!["--backend".to_owned(), format!("order=http://{address}")];
    behind.extend(guard.arguments("gateway"));
    let gateway = arguments("gateway", "127.0.0.1:0", &behind);
    let gateway = Process::start_with_stderr(SOUK, &gateway, &json_log, Stderr::Log(&log, "gateway")).await?;
    let consumer = at(gateway.address())?.with("x-api-key", guard.key(Role::Consumer))?;
    let get = async || consumer.call(GET, &json!({"id": OTHER.consumer})).await;
    let status = get().await?.expect_err("somebody else's row");
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::Unavailable, "CALLER_UNCHECKED"),
        "{status}"
    );

    let said = log
        .wait_for(|line| line.process == "gateway" && line.message.contains("prove no caller"))
        .await?;
    assert_eq!(
        (said.level.as_str(), said.field("backend").as_str()),
        ("ERROR", "order")
    );
    assert!(said.field("address").contains(&address.to_string()), "{said:?}");
    assert!(said.message.contains("auth.credential_key"), "{said:?}");
    let mut health =
        HealthClient::new(Endpoint::from_shared(format!("http://{}", gateway.address()))?.connect_lazy());
    let whole = HealthCheckRequest::default();
    let state = health.check(whole.clone()).await?.into_inner().status();
    assert_eq!(state, ServingStatus::NotServing);

    // With the key, the same gateway takes it by itself.
    order.stop().await?;
    let with_key = [data.as_slice(), &guard.arguments("order-svc")].concat();
    let order = arguments("order-svc", &address.to_string(), &with_key);
    let _order = Process::start_with_stderr(SOUK, &order, &json_log, Stderr::Log(&log, "order")).await?;
    let mut states = health.watch(whole).await?.into_inner();
    while states.message().await?.map(|state| state.status()) != Some(ServingStatus::Serving) {}
    let status = get().await?.expect_err("somebody else's row");
    assert_eq!(status.code(), Code::NotFound, "{status}");
    Ok(())
}
