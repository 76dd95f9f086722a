//! Log lines, and records for a collector, each with the trace and the span it belongs to.
//!
//! `tracing_subscriber::fmt` knows no ids of OpenTelemetry, and omits spans that the log filter disables.

use std::fmt::Write as _;
use std::io::Write as _;

use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use serde_json::json;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer as TimeWriter;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::Context;

use super::LogFormat;
use super::fields::Fields;
use super::log_records::LogRecords;

/// Where whole lines go.
pub(super) type Sink = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Lines to stderr, each in one write. A log that can't be written must not stop the process.
pub(super) fn stderr() -> Sink {
    Box::new(|line| {
        let _ = std::io::stderr().lock().write_all(line);
    })
}

/// Writes events as lines, and sends them.
pub(super) struct LogLayer {
    pub(super) format: LogFormat,
    pub(super) sink: Sink,
    /// `None` where no collector wants them.
    pub(super) records: Option<LogRecords>,
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let fields = Fields::of(event);
        // Spans of tracing are in the current context, too, as long as they are entered.
        let span = opentelemetry::Context::map_current(|context| context.span().span_context().clone());
        let span = Some(span).filter(SpanContext::is_valid);
        if let Some(records) = &self.records {
            records.send(event.metadata(), span.as_ref(), &fields);
        }
        let ids = span.map(|span| {
            [
                ("trace_id", span.trace_id().to_string()),
                ("span_id", span.span_id().to_string()),
            ]
        });
        let ids = ids.into_iter().flatten();
        let mut line = match self.format {
            LogFormat::Human => human(event.metadata(), &fields, ids),
            LogFormat::Json => json(event.metadata(), fields, ids),
        };
        line.push('\n');
        (self.sink)(line.as_bytes());
    }
}

/// The wall clock, as RFC 3339.
fn now() -> String {
    let mut time = String::new();
    // Writing to a String can't fail.
    let _ = SystemTime.format_time(&mut TimeWriter::new(&mut time));
    time
}

fn human(
    metadata: &Metadata<'_>,
    fields: &Fields,
    ids: impl Iterator<Item = (&'static str, String)>,
) -> String {
    let (level, target) = (metadata.level(), metadata.target());
    // A message can hold what a client sent: it must not be able to forge a line.
    let message = fields.message.replace(|c: char| c.is_control(), " ");
    let mut line = format!("{} {level:>5} {target}: {message}", now());
    for (name, value) in fields.others.iter().filter(|(_, value)| *value != "") {
        let _ = write!(line, " {name}={value}");
    }
    for (name, id) in ids {
        let _ = write!(line, " {name}={id}");
    }
    line
}

fn json(
    metadata: &Metadata<'_>,
    fields: Fields,
    ids: impl Iterator<Item = (&'static str, String)>,
) -> String {
    let mut line = json!({
        "timestamp": now(),
        "level": metadata.level().as_str(),
        "target": metadata.target(),
        "message": fields.message,
    });
    for (name, id) in ids {
        line[name] = id.into();
    }
    line["fields"] = fields.others.into();
    line.to_string()
}
