//! Log records for a collector, by the log data model of OpenTelemetry: what a line has, with the resource of its service.

use std::time::SystemTime;

use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, Severity};
use opentelemetry::trace::SpanContext;
use opentelemetry_sdk::logs::SdkLogger;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::Targets;

use super::fields::{Fields, attribute};
use super::service_role::{ByRole, ServiceRole};

pub(super) struct LogRecords {
    /// Records go to the logger of the role that they are logged in.
    pub(super) loggers: ByRole<SdkLogger>,
    /// What may be sent: what the exporter itself logs would be sent in turn, for ever.
    pub(super) wanted: Targets,
}

impl LogRecords {
    pub(super) fn send(
        &self,
        metadata: &'static Metadata<'static>,
        span: Option<&SpanContext>,
        fields: &Fields,
    ) {
        if !self.wanted.would_enable(metadata.target(), metadata.level()) {
            return;
        }
        let logger = self.loggers.of(ServiceRole::current());
        let mut record = logger.create_log_record();
        let now = SystemTime::now();
        record.set_timestamp(now);
        record.set_observed_timestamp(now);
        record.set_severity_number(severity(metadata.level()));
        record.set_severity_text(metadata.level().as_str());
        record.set_target(metadata.target());
        record.set_body(fields.message.clone().into());
        let attributes = fields.others.iter().filter(|(_, value)| *value != "");
        record.add_attributes(attributes.map(|(name, value)| (name.clone(), attribute::<AnyValue>(value))));
        if let Some(span) = span {
            record.set_trace_context(span.trace_id(), span.span_id(), Some(span.trace_flags()));
        }
        logger.emit(record);
    }
}

fn severity(level: &Level) -> Severity {
    match *level {
        Level::TRACE => Severity::Trace,
        Level::DEBUG => Severity::Debug,
        Level::INFO => Severity::Info,
        Level::WARN => Severity::Warn,
        Level::ERROR => Severity::Error,
    }
}
