//! Invariants of every trace, whatever the call was. Each gives an error that shows the tree of spans; [`all`] checks all that concern a
//! single trace.

use std::collections::BTreeSet;

use anyhow::Context as _;

use crate::schema::SpanSchema;
use crate::spans::{Span, SpanKind, Trace};

/// How much later a span may end than its parent, in nanoseconds: a span ends when its last reference is dropped, which may be after its last
/// byte was sent.
pub const SLACK_NS: u64 = 50_000_000;

/// Codes that are the server's fault: of a SERVER span, these alone are errors.
const SERVER_FAULTS: [&str; 6] = [
    "UNKNOWN",
    "DEADLINE_EXCEEDED",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
];

/// Codes that the client of a hop may have while the server has another one: it gave up, or got no response.
const GIVEN_UP: [&str; 3] = ["CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE"];

/// Checks every law of a single trace: it is whole, its spans are in the schema, hops agree, statuses follow from the codes.
///
/// # Errors
/// The first law that doesn't hold.
pub fn all(trace: &Trace, root: &str) -> anyhow::Result<()> {
    whole(trace, root)?;
    let schema = SpanSchema::souk()?;
    for span in trace.spans() {
        schema.check(span).with_context(|| trace.to_string())?;
        statuses(span).with_context(|| trace.to_string())?;
    }
    hops(trace)
}

/// Checks that there is one span directly below the caller's span `root`, no orphan, and no span twice.
///
/// # Errors
/// When one of these doesn't hold.
pub fn whole(trace: &Trace, root: &str) -> anyhow::Result<()> {
    let orphans = trace.orphans(root);
    anyhow::ensure!(orphans.is_empty(), "{} orphans:\n{trace}", orphans.len());
    let of_caller = |span: &&Span| span.parent_id.as_deref() == Some(root);
    let roots = trace.spans().iter().filter(of_caller).count();
    anyhow::ensure!(roots == 1, "{roots} roots:\n{trace}");
    let ids: BTreeSet<_> = trace.spans().iter().map(|span| &span.span_id).collect();
    anyhow::ensure!(ids.len() == trace.spans().len(), "spans come twice:\n{trace}");
    Ok(())
}

/// The edges of the trace's call graph: services by `service.name`, their stores as `store of …`, their indexes as `index of …`.
#[must_use]
pub fn edges(trace: &Trace) -> BTreeSet<(String, String)> {
    let part = |span: &Span| match (span.attribute("db.system.name"), span.kind) {
        ("", _) => span.service.clone(),
        (_, SpanKind::Client) => format!("store of {}", span.service),
        _ => format!("index of {}", span.service),
    };
    let edge = |span: &Span| {
        let parent = trace.parent(span)?;
        let (from, to) = (part(parent), part(span));
        (from != to).then_some((from, to))
    };
    trace.spans().iter().filter_map(edge).collect()
}

/// Checks the calls between processes: client and server have the same status, and the server's span lies within the client's.
///
/// # Errors
/// When one doesn't.
pub fn hops(trace: &Trace) -> anyhow::Result<()> {
    for server in trace.spans().iter().filter(|span| span.kind == SpanKind::Server) {
        let Some(client) = trace.parent(server) else {
            // The client is the test.
            continue;
        };
        anyhow::ensure!(
            client.kind == SpanKind::Client && client.name == server.name,
            "{} is answered to {:?} {}:\n{trace}",
            server.name,
            client.kind,
            client.name
        );
        let [at_client, at_server] = [client, server].map(|span| span.attribute("rpc.status_code"));
        anyhow::ensure!(
            at_client == at_server || GIVEN_UP.contains(&at_client),
            "{} is {at_client} at the client and {at_server} at the server:\n{trace}",
            server.name
        );
        let inside = client.start_ns <= server.start_ns
            && (GIVEN_UP.contains(&at_client) || server.end_ns <= client.end_ns + SLACK_NS);
        anyhow::ensure!(
            inside,
            "{} isn't inside the call that asked for it:\n{trace}",
            server.name
        );
    }
    Ok(())
}

/// Checks that a span of a call is an error when its code is one: at the client every code but OK, at the server the six that are its own
/// fault. `error.type` is the code then, and empty otherwise.
///
/// # Errors
/// When it isn't so.
pub fn statuses(span: &Span) -> anyhow::Result<()> {
    let code = span.attribute("rpc.status_code");
    if code.is_empty() {
        anyhow::ensure!(
            span.error == span.attributes.contains_key("error.type"),
            "{} says an error in one place alone: {span:?}",
            span.name
        );
        return Ok(());
    }
    let error = match span.kind {
        SpanKind::Server => SERVER_FAULTS.contains(&code),
        _ => code != "OK",
    };
    anyhow::ensure!(
        span.error == error,
        "{:?} {} with {code} is an error: {}",
        span.kind,
        span.name,
        span.error
    );
    let wanted = if error { code } else { "" };
    anyhow::ensure!(
        span.attribute("error.type") == wanted,
        "error.type of {} with {code} is `{}`",
        span.name,
        span.attribute("error.type")
    );
    Ok(())
}

/// The attempts of a call: CLIENT spans of the same method side by side below `parent`, by start time.
#[must_use]
pub fn attempts<'a>(trace: &'a Trace, parent: &str, method: &str) -> Vec<&'a Span> {
    let all = trace.named(method, SpanKind::Client).into_iter();
    all.filter(|span| span.parent_id.as_deref() == Some(parent))
        .collect()
}

/// Checks that none of `secrets` is in a text.
///
/// # Errors
/// When one is; the error shows both, since secrets of tests may be seen.
pub fn keeps_secrets<'a>(texts: impl IntoIterator<Item = &'a str>, secrets: &[&str]) -> anyhow::Result<()> {
    for text in texts {
        for secret in secrets {
            anyhow::ensure!(!text.contains(secret), "`{secret}` is in `{text}`");
        }
    }
    Ok(())
}

/// All texts in spans: names, attributes with their keys, and trace states.
pub fn words(spans: &[Span]) -> impl Iterator<Item = &str> {
    spans.iter().flat_map(|span| {
        let attributes = span.attributes.iter();
        let words = attributes.flat_map(|(key, value)| [key.as_str(), value.as_str()]);
        words.chain([span.name.as_str(), span.trace_state.as_str()])
    })
}

#[cfg(test)]
mod tests;
