//! The sixteen assertions that a traced suite makes: docs/TELEMETRY.md lists them, each with its test here.

mod attempts;
mod context;
mod exports;
mod numbers;
mod personal;
mod shape;
mod statuses;
mod words;

use souk_e2e::collector::Collector;
use souk_e2e::laws;
use souk_e2e::log::Log;
use souk_e2e::process::{Process, Stderr};
use souk_e2e::stand_in::StandIn;
use souk_proto::shop::v1::GetShopRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tonic::transport::{Channel, Endpoint};

use crate::SOUK;

const GET_SHOP: &str = "souk.shop.v1.ShopService/GetShop";

fn get_shop(shop_id: &str) -> GetShopRequest {
    GetShopRequest {
        shop_id: shop_id.to_owned(),
        min_sequence: 0,
    }
}

/// No words of spans, log lines and labels, of which there are some of each, hold one of the secrets.
fn keeps_secrets(collector: &Collector, log: &Log, secrets: &[&str]) -> anyhow::Result<()> {
    let (spans, lines, series) = (collector.spans(), log.lines(), collector.series());
    let counts = (spans.len(), lines.len(), series.len());
    anyhow::ensure!(
        counts.0 > 20 && counts.1 > 0 && counts.2 > 0,
        "{counts:?} spans, lines and series"
    );
    laws::keeps_secrets(laws::words(&spans), secrets)?;
    let lines: Vec<_> = lines
        .iter()
        .map(|line| format!("{} {:?}", line.message, line.fields))
        .collect();
    laws::keeps_secrets(lines.iter().map(String::as_str), secrets)?;
    let records: Vec<_> = collector
        .records()
        .iter()
        .map(|record| format!("{record:?}"))
        .collect();
    laws::keeps_secrets(records.iter().map(String::as_str), secrets)?;
    let labels: Vec<_> = series.iter().map(|series| format!("{series:?}")).collect();
    laws::keeps_secrets(labels.iter().map(String::as_str), secrets)
}

/// A real gateway before a backend that stands in for the shops.
struct Gateway {
    shops: ShopServiceClient<Channel>,
    _process: Process,
}

impl Gateway {
    async fn before(backend: &StandIn, collector: &Collector, settings: &[&str]) -> anyhow::Result<Self> {
        let shop = format!("shop={}", backend.uri());
        let mut arguments = vec!["gateway", "--listen", "127.0.0.1:0", "--backend", &shop];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", *setting]));
        let arguments: Vec<_> = arguments.into_iter().map(str::to_owned).collect();
        let environment = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint()),
            ("OTEL_BSP_SCHEDULE_DELAY", "100".to_owned()),
            ("SOUK_TELEMETRY__LOG_FORMAT", "json".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        let log = Log::default();
        let process =
            Process::start_with_stderr(SOUK, &arguments, &environment, Stderr::Log(&log, "gateway")).await?;
        let channel = Endpoint::from_shared(format!("http://{}", process.address()))?.connect_lazy();
        Ok(Self {
            shops: ShopServiceClient::new(channel),
            _process: process,
        })
    }
}
