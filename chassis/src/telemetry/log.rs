//! Log lines, and records for a collector, each with the trace and the span it belongs to.
//!
//! A layer of its own, not `tracing_subscriber::fmt`: that one knows no ids of OpenTelemetry, and leaves out spans that the
//! log filter doesn't want to see.

use std::fmt::Write as _;
use std::io::Write as _;

use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use serde_json::{Map, Value};
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
    format: LogFormat,
    sink: Sink,
    /// `None` where no collector wants them.
    records: Option<LogRecords>,
}

impl LogLayer {
    pub(super) fn new(format: LogFormat, sink: Sink, records: Option<LogRecords>) -> Self {
        Self {
            format,
            sink,
            records,
        }
    }
}

/// The trace and span of the current context, in which spans of tracing are, too, as long as they are entered.
fn current_span() -> Option<SpanContext> {
    let span = opentelemetry::Context::map_current(|context| context.span().span_context().clone());
    span.is_valid().then_some(span)
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let span = current_span();
        if let Some(records) = &self.records {
            records.send(event.metadata(), span.as_ref(), &fields);
        }
        let line = Line {
            metadata: event.metadata(),
            ids: span.map(|span| (span.trace_id().to_string(), span.span_id().to_string())),
            fields,
        };
        let text = match self.format {
            LogFormat::Human => line.human(),
            LogFormat::Json => line.json(),
        };
        (self.sink)(text.as_bytes());
    }
}

struct Line {
    metadata: &'static Metadata<'static>,
    ids: Option<(String, String)>,
    fields: Fields,
}

/// The wall clock, as RFC 3339.
fn now() -> String {
    let mut time = String::new();
    // Writing to a String can't fail.
    let _ = SystemTime.format_time(&mut TimeWriter::new(&mut time));
    time
}

impl Line {
    fn human(self) -> String {
        let Self {
            metadata,
            ids,
            fields,
        } = self;
        let mut line = format!(
            "{} {:>5} {}: {}",
            now(),
            metadata.level(),
            metadata.target(),
            one_line(&fields.message)
        );
        for (name, value) in fields.others.iter().filter(|(_, value)| *value != "") {
            let _ = write!(line, " {name}={value}");
        }
        if let Some((trace, span)) = ids {
            let _ = write!(line, " trace_id={trace} span_id={span}");
        }
        line.push('\n');
        line
    }

    fn json(self) -> String {
        let Self {
            metadata,
            ids,
            fields,
        } = self;
        let mut line = Map::new();
        line.insert("timestamp".into(), now().into());
        line.insert("level".into(), metadata.level().as_str().into());
        line.insert("target".into(), metadata.target().into());
        line.insert("message".into(), fields.message.into());
        if let Some((trace, span)) = ids {
            line.insert("trace_id".into(), trace.into());
            line.insert("span_id".into(), span.into());
        }
        line.insert("fields".into(), Value::Object(fields.others));
        let mut line = Value::Object(line).to_string();
        line.push('\n');
        line
    }
}

/// A message can hold what a client sent: it must not be able to forge a line.
fn one_line(message: &str) -> String {
    message.replace(|c: char| c.is_control(), " ")
}
