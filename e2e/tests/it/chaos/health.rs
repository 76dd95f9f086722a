//! Whether the suite's health tells the truth: it isn't SERVING while an index stands still that somebody waits for.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::Run;
use super::tables::{TABLES, index_call, number};

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(200);
/// So long an index may stand still while its service says that it serves.
const STANDSTILL_MAX: Duration = Duration::from_secs(10);
/// What one look has.
const LOOK_MAX: Duration = Duration::from_secs(2);

/// What is known of one table's index and its service's health.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The sequence that searches see, which is behind what was acknowledged, and since when it is that.
    stands: Option<(i64, Instant)>,
    /// Since when its service doesn't serve.
    down: Option<Instant>,
    told: bool,
}

/// Looks until the run ends.
pub(super) async fn watch(run: Arc<Run>) {
    let mut interval = tokio::time::interval(INTERVAL);
    let mut seen = [Seen::default(); TABLES.len()];
    while !run.has_ended() {
        interval.tick().await;
        for (table, seen) in seen.iter_mut().enumerate() {
            look(&run, table, seen).await;
        }
    }
}

/// Whether a table's service says that it serves.
pub(super) async fn serves(run: &Run, table: usize) -> bool {
    let request = HealthCheckRequest {
        service: TABLES[table].service(),
    };
    let mut health = HealthClient::new(run.channel.clone());
    let answer = tokio::time::timeout(LOOK_MAX, health.check(request)).await;
    matches!(answer, Ok(Ok(answer)) if answer.get_ref().status() == ServingStatus::Serving)
}

async fn look(run: &Run, table: usize, seen: &mut Seen) {
    // In this order: what was acknowledged before it said that it serves, and isn't seen after that, is hidden from searches.
    let acknowledged = run.model.sequence(table);
    let serves = serves(run, table).await;
    let (judge, now, items) = (&run.judge, Instant::now(), TABLES[table].items);
    match (seen.down, serves) {
        (None, false) => seen.down = Some(now),
        (Some(since), true) => {
            judge.count("health: intervals of not SERVING");
            judge.took("health: interval of not SERVING", since.elapsed());
            seen.down = None;
        }
        _ => {}
    }
    let request = json!({"index": items});
    let Ok(answer) = run.calls.call(&index_call("Get"), &request).await else {
        return;
    };
    judge.count("health: looks at an index");
    let sequence = number(&answer["index"]["sequence"]);
    let stood = seen.stands.filter(|(before, _)| *before == sequence);
    if sequence >= acknowledged {
        *seen = Seen {
            down: seen.down,
            ..Seen::default()
        };
        return;
    }
    let (_, since) = *seen.stands.insert(stood.unwrap_or((sequence, now)));
    judge.took(
        "an index behind what was acknowledged stood still",
        since.elapsed(),
    );
    if serves {
        judge.took("… while its service said SERVING", since.elapsed());
    }
    if serves && now.duration_since(since) > STANDSTILL_MAX && !seen.told {
        seen.told = true;
        judge.wrong(format_args!(
            "the service of {items} is SERVING, and its index stands at {sequence} of {acknowledged} for {:?}: {answer}",
            since.elapsed()
        ));
    }
}
