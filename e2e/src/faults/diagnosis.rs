//! Which fault it is, and whose, by telemetry alone: spans, the times of exports, and log lines.
//!
//! | fault | what says it |
//! |---|---|
//! | `clock-jump` | SERVER spans that begin far from their CLIENT parents |
//! | `full-disk` | `commit` spans that fail: DISK_FULL, or with a line that says that the device is full |
//! | `slow-sync` | CLIENT spans of commits take long |
//! | `delay` | all SERVER spans are much shorter than their CLIENT parents |
//! | `loss` | a part of them is |
//! | `silence`, `pause` | CLIENT spans without a SERVER child that ran out of time; the service still exports, or doesn't |
//! | `kill`, `drop`, `reset` | CLIENT spans without a SERVER child, UNAVAILABLE; the service exports no more, or its connections are closed, or reset, as the gateway's log says |

use std::collections::BTreeMap;

use super::Fault;
use crate::log::LogLine;
use crate::spans::{Span, SpanKind};

/// Clocks differ where a SERVER span begins further than this from its parent; far less than [`CLOCK_JUMP`](super::CLOCK_JUMP).
const CLOCKS_APART_NS: u64 = 60_000_000_000;
/// Longest commit on a healthy disk; less than [`SLOW_SYNC`](super::SLOW_SYNC) adds to its fsync.
const COMMIT_NS: u64 = 250_000_000;
/// Longest time that a call spends in a healthy network, both ways; half of what [`DELAY`](super::DELAY) adds to it.
const NETWORK_NS: u64 = 150_000_000;
/// Share of late calls, in percent, from which all count as late: a delay.
const ALL_PERCENT: usize = 90;
/// Share of late calls, in percent, from which it is loss; fewer are late on a busy machine, too.
const SOME_PERCENT: usize = 20;

/// Telemetry of a span of time in which something was wrong.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The spans that were exported.
    pub spans: Vec<Span>,
    /// The log lines that were written.
    pub lines: Vec<LogLine>,
    /// `service.name`s that sent metrics near the end of that time.
    pub exporting: Vec<String>,
}

/// A fault, and the service that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The fault.
    pub fault: Fault,
    /// The service's `service.name`.
    pub service: String,
}

/// One call from process to process.
struct Hop<'a> {
    client: &'a Span,
    server: Option<&'a Span>,
}

impl Hop<'_> {
    /// Time in the network, both ways.
    fn network_ns(&self) -> Option<u64> {
        let server = self.server?;
        Some(self.client.duration_ns().saturating_sub(server.duration_ns()))
    }
}

/// Names the fault, if telemetry shows one. `service_of` gives the `service.name` that serves a method.
#[must_use]
pub fn diagnose(evidence: &Evidence, service_of: impl Fn(&str) -> String) -> Option<Finding> {
    let finding = |fault, service: String| Some(Finding { fault, service });
    let spans = &evidence.spans;
    let by_parent: BTreeMap<&str, &Span> = spans
        .iter()
        .filter(|span| span.kind == SpanKind::Server)
        .filter_map(|span| Some((span.parent_id.as_deref()?, span)))
        .collect();
    let is_call = |span: &&Span| span.kind == SpanKind::Client && span.attributes.contains_key("rpc.method");
    let hops: Vec<Hop<'_>> = spans
        .iter()
        .filter(is_call)
        .map(|client| Hop {
            client,
            server: by_parent.get(client.span_id.as_str()).copied(),
        })
        .collect();

    let apart = |hop: &&Hop<'_>| {
        hop.server
            .is_some_and(|server| server.start_ns.abs_diff(hop.client.start_ns) > CLOCKS_APART_NS)
    };
    if let Some(server) = hops.iter().find(apart).and_then(|hop| hop.server) {
        return finding(Fault::ClockJump, server.service.clone());
    }
    if let Some(service) = full(evidence) {
        return finding(Fault::FullDisk, service);
    }
    if let Some(service) = slow_to_commit(spans) {
        return finding(Fault::SlowSync, service);
    }
    unanswered(&hops, evidence, &service_of).or_else(|| late(&hops))
}

/// The service whose commits fail since its device is full: it refuses them before that, or its store met the error and logged it.
fn full(evidence: &Evidence) -> Option<String> {
    let is_commit = |span: &&Span| span.attribute("db.operation.name") == "commit";
    let mut failed = evidence.spans.iter().filter(is_commit).filter(|span| span.error);
    let logged = |service: &str| {
        evidence.lines.iter().any(|line| {
            let says = |field| line.field(field).contains("the device is full");
            service.ends_with(&line.process) && (says("cause") || says("reason"))
        })
    };
    let full = |span: &&Span| span.attribute("error.type") == "DISK_FULL" || logged(&span.service);
    failed.find(full).map(|span| span.service.clone())
}

/// The service of which most commits take long.
fn slow_to_commit(spans: &[Span]) -> Option<String> {
    let commits = || {
        let commits = spans.iter();
        commits.filter(|span| span.attribute("db.operation.name") == "commit")
    };
    let slow = |span: &&Span| span.duration_ns() > COMMIT_NS;
    let service = &commits().find(slow)?.service;
    let of_service = || commits().filter(|span| span.service == *service);
    let most = of_service().filter(slow).count() * 2 > of_service().count();
    most.then(|| service.clone())
}

/// Calls that nobody answered.
fn unanswered(hops: &[Hop<'_>], evidence: &Evidence, service_of: impl Fn(&str) -> String) -> Option<Finding> {
    let lost = |code: &str| {
        let mut lost = hops.iter().filter(|hop| hop.server.is_none());
        let lost = lost.find(|hop| hop.client.attribute("rpc.status_code") == code)?;
        Some(service_of(lost.client.attribute("rpc.method")))
    };
    let exports = |service: &String| evidence.exporting.contains(service);
    if let Some(service) = lost("UNAVAILABLE") {
        // The call that met the reset has the operating system's words; later ones on the connection have those of its error kind.
        let reset = |line: &LogLine| {
            let cause = line.field("cause");
            cause.contains("reset by peer") || cause.contains("connection reset")
        };
        let fault = if !exports(&service) {
            Fault::Kill
        } else if evidence.lines.iter().any(reset) {
            Fault::Reset
        } else {
            Fault::Drop
        };
        return Some(Finding { fault, service });
    }
    let service = lost("DEADLINE_EXCEEDED")?;
    let fault = if exports(&service) {
        Fault::Silence
    } else {
        Fault::Pause
    };
    Some(Finding { fault, service })
}

/// Calls that were long in the network: of the services that answered too large a share of theirs late, the one with most of them.
fn late(hops: &[Hop<'_>]) -> Option<Finding> {
    // The late calls of each service, and all that it answered.
    let mut services: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for hop in hops {
        if let (Some(server), Some(network_ns)) = (hop.server, hop.network_ns()) {
            let (late, answered) = services.entry(server.service.as_str()).or_default();
            *late += usize::from(network_ns > NETWORK_NS);
            *answered += 1;
        }
    }
    let shares = services.into_iter();
    let (_, percent, service) = shares
        .map(|(service, (late, answered))| (late, late * 100 / answered, service))
        .filter(|(_, percent, _)| *percent >= SOME_PERCENT)
        .max()?;
    let fault = match percent {
        ALL_PERCENT.. => Fault::Delay,
        _ => Fault::Loss,
    };
    Some(Finding {
        fault,
        service: service.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY: &str = "souk-gateway";
    const MEDIA: &str = "souk-media";
    const SHOP: &str = "souk-shop";

    fn span(service: &str, kind: SpanKind, id: String, parent_id: Option<String>, end_ns: u64) -> Span {
        Span {
            service: service.to_owned(),
            name: String::new(),
            kind,
            trace_id: String::new(),
            span_id: id,
            parent_id,
            start_ns: 0,
            end_ns,
            attributes: BTreeMap::from([("rpc.method".to_owned(), String::new())]),
            error: false,
            links: Vec::new(),
            trace_state: String::new(),
        }
    }

    /// The spans of answered calls to a service, which spent this time in the network.
    fn calls(service: &str, count: usize, network_ns: u64) -> Vec<Span> {
        let call = |number| {
            let client = format!("{service} {network_ns} {number}");
            let server = format!("{client} answered");
            [
                span(GATEWAY, SpanKind::Client, client.clone(), None, network_ns),
                span(service, SpanKind::Server, server, Some(client), 0),
            ]
        };
        (0..count).flat_map(call).collect()
    }

    #[test]
    fn late_calls_are_counted_for_each_service() {
        for (services, found) in [
            ([(MEDIA, 0, 10), (SHOP, 24, 0)], Some((Fault::Delay, SHOP))),
            // A single late one of a busy machine, before those that were lost.
            ([(MEDIA, 1, 9), (SHOP, 8, 16)], Some((Fault::Loss, SHOP))),
            ([(MEDIA, 1, 0), (SHOP, 8, 16)], Some((Fault::Loss, SHOP))),
            // More late ones in number, but not for how many there are.
            ([(MEDIA, 15, 85), (SHOP, 10, 0)], Some((Fault::Delay, SHOP))),
            ([(MEDIA, 1, 9), (SHOP, 1, 9)], None),
        ] {
            let spans = services.iter().flat_map(|(service, late, in_time)| {
                [calls(service, *late, 2 * NETWORK_NS), calls(service, *in_time, 0)]
            });
            let evidence = Evidence {
                spans: spans.flatten().collect(),
                ..Evidence::default()
            };
            let found = found.map(|(fault, service)| Finding {
                fault,
                service: service.to_owned(),
            });
            assert_eq!(diagnose(&evidence, str::to_owned), found, "{services:?}");
        }
    }
}
