//! Logs, OpenTelemetry traces and metrics of a process, and their flush at its end.
//!
//! Log lines go to stderr, each with its `trace_id` and `span_id`. Spans, metrics and log records go to an OTLP collector by gRPC when
//! one is configured. Unsampled calls, and all without a collector, have ids instead of spans, which correlate logs; see `sampling`.
//!
//! The `OTEL_` variables that are read are in `docs/TELEMETRY.md` and in `environment`: one that can't be honoured is refused or warned
//! of. Metrics can also be fetched, see [`prometheus`], and asked for within the process, see [`figures`]. [`instruments`] are this crate's.

use std::net::SocketAddr;

use opentelemetry::logs::LoggerProvider as _;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::propagation::TextMapCompositePropagator;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, global};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanExporter};
use serde::{Deserialize, Serialize};
use tracing::level_filters::LevelFilter;
use tracing::{Dispatch, Level};
use tracing_subscriber::filter::{EnvFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use uuid::Uuid;

use crate::config::{Problems, ServerConfig};
use crate::propagate;
use crate::tls::TlsError;

mod environment;
mod exemplar;
mod fields;
pub mod figures;
mod guard;
pub mod instrument;
pub mod instruments;
mod log;
mod log_records;
mod otlp;
mod process;
pub mod prometheus;
pub(crate) mod sampling;
mod service_role;
mod span_events;

pub use guard::TelemetryGuard;
pub use service_role::ServiceRole;

use environment::OtelEnvironment;
use guard::Providers;
use instrument::SCOPE;
use log::LogLayer;
use log_records::LogRecords;
use prometheus::{Reader, Scraper};
use sampling::{DecidedIds, Recorded};
use service_role::{ByRole, RoleMeters, RoleTracer};

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Settings of logs. What concerns OpenTelemetry is set by its own variables, see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// How log lines are written.
    pub log_format: LogFormat,
    /// What is logged, in the language of tracing: `info`, `info,souk_engine=debug`.
    pub log_filter: String,
    /// Where metrics are fetched from by HTTP, as `/metrics`; nowhere by default. Port 0 takes a free one.
    pub metrics_listen: Option<SocketAddr>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            log_format: LogFormat::Human,
            log_filter: "info".to_owned(),
            metrics_listen: None,
        }
    }
}

impl TelemetryConfig {
    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings. What
    /// `server` may do without TLS metrics may do, too.
    pub fn check(&self, path: &str, server: &ServerConfig, problems: &mut Problems) {
        let is_exposed = |address: SocketAddr| !address.ip().to_canonical().is_loopback();
        if self.metrics_listen.is_some_and(is_exposed) && !server.allow_plaintext {
            let message = "other machines can reach it, and metrics have neither TLS nor keys: listen on 127.0.0.1, or say \
                           --allow-plaintext where the network itself is trusted";
            problems.push_in(path, "metrics_listen", message);
        }
    }
}

/// Why telemetry couldn't start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `log_filter` isn't one.
    #[error("log_filter `{0}` can't be read; try `info` or `info,souk_engine=debug`")]
    Filter(String, #[source] tracing_subscriber::filter::ParseError),
    /// A variable of OpenTelemetry, by name, has a value that this process can't honour; what it can comes last.
    #[error("{0}=`{1}` isn't supported; {2}")]
    Variable(String, String, String),
    /// The exporter can't be made from the variables.
    #[error("the OTLP exporter can't be made; check the OTEL_EXPORTER_OTLP_ variables")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The collector's address or certificates can't be used.
    #[error(
        "the collector can't be spoken to by TLS; check OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_CERTIFICATE"
    )]
    Collector(#[source] TlsError),
    /// Another subscriber is in place already.
    #[error("the process has a tracing subscriber already; start telemetry once, and first")]
    Installed(#[from] tracing::dispatcher::SetGlobalDefaultError),
}

/// Telemetry that is built, and not yet installed.
#[derive(Debug)]
pub struct Telemetry {
    dispatch: Dispatch,
    providers: Providers,
    propagator: Option<TextMapCompositePropagator>,
    scraper: Option<Scraper>,
    /// Whether metrics are fetched by [`TelemetryConfig::metrics_listen`].
    fetched: bool,
    /// Whether they go to a collector.
    sent: bool,
    warnings: Vec<String>,
}

impl Telemetry {
    /// A builder of the telemetry of a process whose `service.name` is `service`.
    pub fn builder(config: TelemetryConfig, service: &'static str) -> TelemetryBuilder {
        TelemetryBuilder {
            config,
            service,
            roles: Vec::new(),
            variables: Vec::new(),
            add_span_exporter: None,
            add_log_exporter: None,
            log_sink: None,
        }
    }

    /// The subscriber, to be made a thread's default in tests.
    #[cfg(test)]
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Reads its metrics whenever somebody asks; `None` without [`TelemetryConfig::metrics_listen`].
    pub fn scraper(&self) -> Option<Scraper> {
        self.scraper.clone().filter(|_| self.fetched)
    }

    /// Makes it the telemetry of the process.
    ///
    /// # Errors
    /// When the process has a subscriber already.
    pub fn install(mut self) -> Result<TelemetryGuard, TelemetryError> {
        tracing::dispatcher::set_global_default(self.dispatch.clone())?;
        if let Some(propagator) = self.propagator.take() {
            propagate::install(propagator);
        }
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
        if let Some(meters) = &self.providers.meters {
            global::set_meter_provider(RoleMeters(meters.clone()));
            process::observe(&meters.of(None).meter(SCOPE));
        }
        if let Some(scraper) = self.scraper.take() {
            figures::install(scraper, self.fetched || self.sent);
        }
        Ok(TelemetryGuard(Some(self.providers)))
    }

    /// Parts with what is needed to flush it, without making it the process's; for [`Self::dispatch`] in tests.
    #[cfg(test)]
    pub fn into_guard(self) -> TelemetryGuard {
        TelemetryGuard(Some(self.providers))
    }
}

/// Collects the parts of [`Telemetry`].
#[must_use = "a builder does nothing until build()"]
pub struct TelemetryBuilder {
    config: TelemetryConfig,
    service: &'static str,
    roles: Vec<ServiceRole>,
    variables: Vec<(String, String)>,
    /// Adds the caller's span exporter to a provider.
    add_span_exporter: Option<Box<dyn Fn(TracersBuilder) -> TracersBuilder + Send>>,
    /// Adds the caller's exporter of log records to a provider.
    add_log_exporter: Option<Box<dyn Fn(LoggersBuilder) -> LoggersBuilder + Send>>,
    log_sink: Option<log::Sink>,
}

type TracersBuilder = opentelemetry_sdk::trace::TracerProviderBuilder;
type LoggersBuilder = opentelemetry_sdk::logs::LoggerProviderBuilder;

impl TelemetryBuilder {
    /// Further services in this process, each with a `service.name` of its own; see [`ServiceRole`].
    pub fn roles(mut self, roles: impl IntoIterator<Item = ServiceRole>) -> Self {
        self.roles.extend(roles);
        self
    }

    /// The variables that are read; none without this. (The SDK itself reads limits, batches, resource and headers from the process's.)
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.variables.extend(variables);
        self
    }

    /// Spans go to `exporter`, each as it ends, and not to what the environment names. Each role has a clone of it.
    pub fn span_exporter(mut self, exporter: impl SpanExporter + Clone + 'static) -> Self {
        self.add_span_exporter = Some(Box::new(move |builder| {
            builder.with_simple_exporter(exporter.clone())
        }));
        self
    }

    /// Log records go to `exporter`, each at once, and not to what the environment names. Each role has a clone of it.
    #[cfg(test)]
    pub fn log_exporter(
        mut self,
        exporter: impl opentelemetry_sdk::logs::LogExporter + Clone + 'static,
    ) -> Self {
        self.add_log_exporter = Some(Box::new(move |builder| {
            builder.with_simple_exporter(exporter.clone())
        }));
        self
    }

    /// Log lines go to `write`, a whole line at a time, and not to stderr.
    #[cfg(test)]
    pub fn log_lines(mut self, write: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        self.log_sink = Some(Box::new(write));
        self
    }

    /// Builds it. Where metrics are fetched, histograms of the process keep exemplars from now on.
    ///
    /// # Errors
    /// When settings or variables can't be honoured.
    pub fn build(self) -> Result<Telemetry, TelemetryError> {
        let mut environment = OtelEnvironment::read(&self.variables)?;
        if environment.disabled && self.config.metrics_listen.is_some() {
            let warning = "telemetry.metrics_listen has no effect: OTEL_SDK_DISABLED is set";
            environment.warnings.push(warning.to_owned());
        }
        let filter = &self.config.log_filter;
        let filter =
            EnvFilter::try_new(filter).map_err(|error| TelemetryError::Filter(filter.clone(), error))?;
        let instance = Uuid::new_v4().to_string();
        let (mut providers, mut scraper) = (Providers::default(), None);
        if !environment.disabled {
            let resource = |role: Option<ServiceRole>| resource(self.service, role, &instance, &environment);
            providers.tracers = Some(ByRole::try_new(&self.roles, |role| {
                let builder = SdkTracerProvider::builder()
                    .with_resource(resource(role))
                    .with_sampler(environment.sampler.clone())
                    .with_id_generator(DecidedIds::default());
                Ok(match (&self.add_span_exporter, &environment.traces) {
                    (Some(add), _) => add(builder).build(),
                    (None, Some(collector)) => builder.with_span_processor(otlp::spans(collector)?).build(),
                    (None, None) => builder.build(),
                })
            })?);
            if self.add_log_exporter.is_some() || environment.logs.is_some() {
                providers.loggers = Some(ByRole::try_new(&self.roles, |role| {
                    let builder = SdkLoggerProvider::builder().with_resource(resource(role));
                    Ok(match (&self.add_log_exporter, &environment.logs) {
                        (Some(add), _) => add(builder).build(),
                        (None, Some(collector)) => {
                            builder.with_batch_exporter(otlp::logs(collector)?).build()
                        }
                        (None, None) => builder.build(),
                    })
                })?);
            }
            if self.config.metrics_listen.is_some() {
                exemplar::keep(environment.exemplars);
            }
            let readers = ByRole::try_new(&self.roles, |_| Ok(Reader::default()))?;
            providers.meters = Some(ByRole::try_new(&self.roles, |role| {
                let builder = SdkMeterProvider::builder().with_resource(resource(role));
                let builder = builder.with_reader(readers.of(role).clone());
                Ok(match &environment.metrics {
                    Some(collector) => builder.with_periodic_exporter(otlp::metrics(collector)?).build(),
                    None => builder.build(),
                })
            })?);
            let readers = readers.iter().map(|(role, reader)| (role, reader.clone()));
            scraper = Some(Scraper::new(readers.collect()));
        }
        let spans = providers.tracers.as_ref().map(|providers| {
            let tracer = RoleTracer(providers.map(|provider| provider.tracer(SCOPE)));
            let layer = tracing_opentelemetry::layer().with_tracer(tracer.clone());
            // Code locations, modules, thread and busy times on every span would double its size and tell nothing.
            let layer = layer
                .with_location(false)
                .with_target(false)
                .with_threads(false)
                .with_tracked_inactivity(false);
            let recorded = Recorded {
                sampler: environment.sampler.clone(),
                tracer,
                exported: self.add_span_exporter.is_some() || environment.traces.is_some(),
            };
            layer
                .with_filter(targets(Level::INFO))
                .and_then(recorded.with_filter(targets(Level::INFO)))
        });
        let lines = LogLayer {
            format: self.config.log_format,
            sink: self.log_sink.unwrap_or_else(log::stderr),
            records: providers.loggers.as_ref().map(|providers| LogRecords {
                loggers: providers.map(|provider| provider.logger(SCOPE)),
                wanted: targets(Level::TRACE),
            }),
        };
        let subscriber = tracing_subscriber::registry()
            .with(spans)
            .with(lines.with_filter(filter));
        Ok(Telemetry {
            dispatch: Dispatch::new(subscriber),
            providers,
            propagator: (!environment.disabled).then_some(environment.propagator),
            scraper,
            fetched: self.config.metrics_listen.is_some(),
            sent: environment.metrics.is_some(),
            warnings: environment.warnings,
        })
    }
}

/// What becomes a span or a record: all down to `level`, but nothing of the exporter's own connection, which would trace itself.
fn targets(level: Level) -> Targets {
    let silent = "h2 hyper hyper_util tonic tower opentelemetry opentelemetry_sdk opentelemetry_otlp";
    let silent = silent.split(' ').map(|target| (target, LevelFilter::OFF));
    Targets::new().with_default(level).with_targets(silent)
}

/// Who is speaking: a role by its own name; the process by `OTEL_SERVICE_NAME`, then `OTEL_RESOURCE_ATTRIBUTES`, then
/// the name in code.
fn resource(
    service: &'static str,
    role: Option<ServiceRole>,
    instance: &str,
    environment: &OtelEnvironment,
) -> Resource {
    let builder = Resource::builder();
    let builder = match (role, &environment.service) {
        (Some(role), _) => builder.with_service_name(role.name()),
        (None, Some(name)) => builder.with_service_name(name.clone()),
        (None, None) if environment.names_service => builder,
        (None, None) => builder.with_service_name(service),
    };
    let builder = match environment.names_instance {
        true => builder,
        false => builder.with_attribute(KeyValue::new("service.instance.id", instance.to_owned())),
    };
    builder
        .with_attribute(KeyValue::new("service.namespace", "souk"))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

#[cfg(test)]
mod tests;
