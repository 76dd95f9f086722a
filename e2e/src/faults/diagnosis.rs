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

/// Clocks differ where a SERVER span begins further than this from its parent.
const CLOCKS_APART_NS: u64 = 60_000_000_000;
/// Longest commit on a healthy disk.
const COMMIT_NS: u64 = 250_000_000;
/// Longest time that a call spends in a healthy network, both ways.
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

/// Calls that were long in the network.
fn late(hops: &[Hop<'_>]) -> Option<Finding> {
    let answered: Vec<_> = hops
        .iter()
        .filter_map(|hop| Some((hop.server?, hop.network_ns()?)))
        .collect();
    let late: Vec<_> = answered
        .iter()
        .filter(|(_, network_ns)| *network_ns > NETWORK_NS)
        .collect();
    let (server, _) = late.first()?;
    let of_service = answered.iter().filter(|(of, _)| of.service == server.service);
    let percent = late.len() * 100 / of_service.count().max(1);
    let fault = match percent {
        ALL_PERCENT.. => Fault::Delay,
        SOME_PERCENT.. => Fault::Loss,
        _ => return None,
    };
    Some(Finding {
        fault,
        service: server.service.clone(),
    })
}
