//! Every metric and label in the queries of the dashboard and the alerts exists, and every instrument in the code is exposed.

use std::collections::BTreeSet;

use serde_json::Value;
use souk_chassis::telemetry::instrument::{Instrument, Kind};
use souk_chassis::telemetry::instruments;
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::scrape::Scrape;
use souk_proto::search::v1::Search;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{CreateShopRequest, SearchShopsRequest};

use super::souk::Souk;

const DASHBOARD: &str = include_str!("../../../../observability/grafana-dashboard.json");
const ALERTS: &str = include_str!("../../../../observability/prometheus-alerts.yaml");

/// Labels that Prometheus adds when it scrapes.
const OF_PROMETHEUS: [&str; 2] = ["job", "instance"];

/// Every instrument of every crate.
pub(super) fn all() -> Vec<Instrument> {
    let tables = [
        instruments::ALL,
        souk_api::metrics::ALL,
        souk_gateway::metrics::ALL,
    ];
    tables.into_iter().flatten().copied().collect()
}

/// Scrapes a process that has served a write and a search, so that every metric has a series.
async fn worked() -> anyhow::Result<Scrape> {
    let souk = Souk::start(&[], &[]).await?;
    let mut shops = ShopServiceClient::new(souk.channel()?);
    let shop = Some(data::shop(1, &mut SeededRandom::new(1)));
    let request = CreateShopRequest {
        shop,
        ..Default::default()
    };
    let sequence = shops.create_shop(request).await?.into_inner().sequence;
    let search = Some(Search {
        min_sequence: sequence,
        ..Default::default()
    });
    shops.search_shops(SearchShopsRequest { search }).await?;
    souk.wait_for("the call's own figures", |scrape| {
        let called = [("rpc_method", "souk.shop.v1.ShopService/SearchShops")];
        scrape.sum("rpc_server_call_duration_seconds_count", &called) == Some(2.0)
    })
    .await
}

/// The series of an instrument.
fn series(instrument: &Instrument) -> Vec<String> {
    let name = instrument.prometheus_name();
    match instrument.kind {
        Kind::Histogram(_) => ["bucket", "sum", "count"]
            .map(|part| format!("{name}_{part}"))
            .to_vec(),
        Kind::Counter | Kind::Gauge => vec![name],
    }
}

fn label(attribute: &str) -> String {
    attribute.replace('.', "_")
}

/// The metrics in a PromQL query, each with the labels in its matchers.
fn asked(query: &str) -> Vec<(String, Vec<String>)> {
    let prefixes = ["souk_", "rpc_", "db_", "process_", "target_"];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(start) = rest.find(is_word) {
        rest = &rest[start..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let matchers = after.strip_prefix('{').and_then(|text| text.split_once('}'));
        if prefixes.iter().any(|prefix| word.starts_with(prefix))
            && (matchers.is_some() || !is_grouping(query, word))
        {
            let labels = matchers
                .map(|(matchers, _)| matchers.split(','))
                .into_iter()
                .flatten();
            let labels = labels.filter_map(|matcher| matcher.split(['=', '!']).next());
            let labels = labels
                .map(|label| label.trim().to_owned())
                .filter(|label| !label.is_empty());
            found.push((word.to_owned(), labels.collect()));
        }
        if let Some((_, after)) = matchers {
            rest = after;
        }
    }
    found
}

/// Whether a word of a PromQL query is a label in `by (…)`, `on (…)` or the like, and no metric.
fn is_grouping(query: &str, word: &str) -> bool {
    let keywords = ["by", "without", "on", "ignoring", "group_left", "group_right"];
    let mut opened = query.match_indices('(');
    opened.any(|(at, _)| {
        let (before, inside) = query.split_at(at);
        let before = before.trim_end();
        let keyword = before
            .rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .next();
        let inside = inside[1..].split(')').next().unwrap_or_default();
        keyword.is_some_and(|keyword| keywords.contains(&keyword))
            && inside.split(',').any(|part| part.trim() == word)
    })
}

/// Adds all queries of the dashboard, its values of `expr`, to `queries`.
fn queries_of(value: &Value, queries: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("expr", Value::String(query)) => queries.push(query.clone()),
                    _ => queries_of(value, queries),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| queries_of(value, queries)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dashboard_and_alerts_ask_for_what_there_is() -> anyhow::Result<()> {
    let scrape = worked().await?;
    let names = scrape.names();
    let mut dashboard = Vec::new();
    queries_of(&serde_json::from_str(DASHBOARD)?, &mut dashboard);
    let alerts = ALERTS
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    let alerts: Vec<String> = alerts.map(str::to_owned).collect();
    assert!(
        dashboard.len() >= 20 && alerts.len() >= 10,
        "{} {}",
        dashboard.len(),
        alerts.len()
    );
    let mut used = BTreeSet::new();
    for query in dashboard.iter().chain(&alerts) {
        let metrics = asked(query);
        assert!(!metrics.is_empty(), "asks for nothing: {query}");
        for (name, labels) in metrics {
            assert!(
                names.contains(name.as_str()),
                "{name} is shown by nobody: {query}"
            );
            let known = scrape.labels(&name);
            for label in labels {
                let exists = known.contains(label.as_str()) || OF_PROMETHEUS.contains(&label.as_str());
                // An error's type is only on series of errors.
                assert!(
                    exists || label == "error_type",
                    "{name} has no {label}, but {known:?}: {query}"
                );
            }
            used.insert(name);
        }
    }
    assert!(used.len() >= 25, "{used:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_has_a_name_is_shown_and_nothing_else() -> anyhow::Result<()> {
    let scrape = worked().await?;
    let shown: BTreeSet<String> = scrape.names().into_iter().map(str::to_owned).collect();
    let mut named = BTreeSet::from(["target_info".to_owned()]);
    for instrument in all() {
        let mut attributes: BTreeSet<String> = instrument.attributes.iter().map(|name| label(name)).collect();
        attributes.extend(["service_name", "le"].map(str::to_owned));
        for series in series(&instrument) {
            let known = scrape.labels(&series);
            let more: Vec<_> = known
                .iter()
                .filter(|label| !attributes.contains(**label))
                .collect();
            assert!(
                more.is_empty(),
                "{series} has labels that nobody declared: {more:?}"
            );
            named.insert(series);
        }
    }
    let missing: Vec<_> = named.difference(&shown).collect();
    assert!(missing.is_empty(), "named, but never shown: {missing:?}");
    let unknown: Vec<_> = shown.difference(&named).collect();
    assert!(unknown.is_empty(), "shown, but in no table: {unknown:?}");
    Ok(())
}

#[test]
fn the_metrics_of_a_query_are_found() {
    let query = r#"sum by (souk_backend, le) (rate(rpc_server_x_bucket{service_name=~"$a", le!="1"}[5m])) / on (db_y) souk_z > 0"#;
    assert_eq!(
        asked(query),
        [
            (
                "rpc_server_x_bucket".to_owned(),
                vec!["service_name".to_owned(), "le".to_owned()]
            ),
            ("souk_z".to_owned(), Vec::new()),
        ]
    );
    assert_eq!(
        asked("sum by (souk_backend) (souk_a)"),
        [("souk_a".to_owned(), Vec::new())]
    );
}
