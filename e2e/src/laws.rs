//! What holds for every trace, whatever the call was. Each law gives an error that shows the tree.
//!
//! [`all`] is what the tests of this package ask of each trace that they look at.

use std::collections::BTreeSet;

use anyhow::Context as _;

use crate::schema::SpanSchema;
use crate::spans::{Span, SpanKind, Trace};

/// How much later a span may end than the one around it, in nanoseconds: a span ends when the last that holds it lets it go, which is
/// after its last byte was sent.
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

/// Codes that the near end of a hop may have while the far end has another one: it gave up, or heard nothing.
const GIVEN_UP: [&str; 3] = ["CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE"];

/// Every law that concerns a single trace: it is whole, its spans are in the schema, hops agree, statuses are as the code says.
///
/// # Errors
/// That of the first law that doesn't hold.
pub fn all(trace: &Trace, root: &str) -> anyhow::Result<()> {
    whole(trace, root)?;
    let schema = SpanSchema::souk()?;
    for span in trace.spans() {
        schema.check(span).with_context(|| trace.to_string())?;
        statuses(span).with_context(|| trace.to_string())?;
    }
    hops(trace)
}

/// One root below the caller's span `root`, and nothing that belongs to nobody.
///
/// # Errors
/// When there are more or fewer roots, or a span's parent isn't there.
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

/// Who asks whom: services by `service.name`, their stores as `store of …`, their indexes as `index of …`.
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

/// The two ends of a call from process to process have one status, and the far end lies inside the near one.
///
/// # Errors
/// When they don't.
pub fn hops(trace: &Trace) -> anyhow::Result<()> {
    for server in trace.spans().iter().filter(|span| span.kind == SpanKind::Server) {
        let Some(client) = trace.parent(server) else {
            // Its near end is the test's own.
            continue;
        };
        anyhow::ensure!(
            client.kind == SpanKind::Client && client.name == server.name,
            "{} is answered to {:?} {}:\n{trace}",
            server.name,
            client.kind,
            client.name
        );
        let [near, far] = [client, server].map(|span| span.attribute("rpc.status_code"));
        anyhow::ensure!(
            near == far || GIVEN_UP.contains(&near),
            "{} is {near} for who asked and {far} for who answered:\n{trace}",
            server.name
        );
        let inside = client.start_ns <= server.start_ns
            && (GIVEN_UP.contains(&near) || server.end_ns <= client.end_ns + SLACK_NS);
        anyhow::ensure!(
            inside,
            "{} isn't inside the call that asked for it:\n{trace}",
            server.name
        );
    }
    Ok(())
}

/// A span of a call is an error as its code says: for who asked by every code but OK, for who answered by the six that are
/// the server's fault; `error.type` is the code, where it is one.
///
/// # Errors
/// When it isn't.
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

/// None of `secrets` is in a text.
///
/// # Errors
/// When one is, with the text, which tests may show.
pub fn keeps_secrets<'a>(texts: impl IntoIterator<Item = &'a str>, secrets: &[&str]) -> anyhow::Result<()> {
    for text in texts {
        for secret in secrets {
            anyhow::ensure!(!text.contains(secret), "`{secret}` is in `{text}`");
        }
    }
    Ok(())
}

/// Everything that spans say: names and attributes.
pub fn words(spans: &[Span]) -> impl Iterator<Item = &str> {
    spans.iter().flat_map(|span| {
        let attributes = span.attributes.iter();
        let words = attributes.flat_map(|(key, value)| [key.as_str(), value.as_str()]);
        words.chain([span.name.as_str(), span.trace_state.as_str()])
    })
}

#[cfg(test)]
mod tests;
