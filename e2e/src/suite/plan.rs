//! The plan of a suite: its processes and their options, where its telemetry goes, and where faults can be injected.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use souk_standalone::services::{self, Registration};

use super::{GATEWAY, Suite};
use crate::collector::Collector;
use crate::faults::interposer::Interposer;
use crate::guard::Guard;
use crate::log::Log;

/// How a suite is divided into processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `souk serve`: gateway and services in one process.
    OneProcess,
    /// `souk demo` with little data: one process that loads it on its first start.
    Demo,
    /// A gateway and the services, each a process of its own.
    SeveralProcesses,
}

/// The plan of a suite, a builder.
#[derive(Clone)]
#[must_use = "nothing runs until start()"]
pub struct Plan {
    binary: String,
    layout: Layout,
    environment: Vec<(String, String)>,
    /// Options of single processes, by their names.
    process_options: Vec<(String, ProcessOption)>,
    /// Whether there is a link before every process.
    linked: bool,
    /// Where the processes' standard error goes.
    log: Option<Log>,
    /// The callers that are let in; without it, all are.
    guard: Option<Arc<Guard>>,
}

#[derive(Clone, Debug)]
enum ProcessOption {
    Setting(String),
    Variable(String, String),
    DataAt(PathBuf),
}

/// The plan of one process.
pub(super) struct ProcessPlan {
    pub(super) name: &'static str,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    /// Names of the processes that it calls.
    pub(super) backends: Vec<&'static str>,
}

impl Plan {
    /// A plan without options. `binary` is `env!("CARGO_BIN_EXE_souk-under-test")`.
    pub fn new(binary: &str, layout: Layout) -> Self {
        Self {
            binary: binary.to_owned(),
            layout,
            environment: Vec::new(),
            process_options: Vec::new(),
            linked: false,
            log: None,
            guard: None,
        }
    }

    /// Exports spans and metrics to a collector, with short intervals.
    pub fn traced(self, collector: &Collector) -> Self {
        self.exporting_to(&collector.endpoint())
    }

    /// Exports spans and metrics to an OTLP/gRPC endpoint, with short intervals: tests wait for them.
    pub fn exporting_to(self, endpoint: &str) -> Self {
        self.variable("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            .variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
            .variable("OTEL_BSP_SCHEDULE_DELAY", "100")
            .variable("OTEL_METRIC_EXPORT_INTERVAL", "200")
    }

    /// Captures the standard error of all processes, as JSON lines.
    pub fn heard(mut self, log: &Log) -> Self {
        self.log = Some(log.clone());
        self.variable("SOUK_TELEMETRY__LOG_FORMAT", "json")
    }

    /// Authenticates callers.
    pub fn guarded(mut self, guard: Guard) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// Sets an environment variable of all processes.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a setting of one process, as `server.drain_deadline=5s`.
    pub fn setting(mut self, process: &str, setting: &str) -> Self {
        let setting = ProcessOption::Setting(setting.to_owned());
        self.process_options.push((process.to_owned(), setting));
        self
    }

    /// Sets the data directory of a service; only where services are processes of their own.
    pub fn data_at(mut self, service: &str, directory: &Path) -> Self {
        let directory = ProcessOption::DataAt(directory.to_owned());
        self.process_options.push((service.to_owned(), directory));
        self
    }

    /// Puts an interposer between a service and the operating system; it decides where the data is.
    pub fn interposed(self, process: &str, interposer: &Interposer) -> Self {
        let mut this = self.data_at(process, &interposer.data());
        let variables = interposer.environment().into_iter();
        let options =
            variables.map(|(name, value)| (process.to_owned(), ProcessOption::Variable(name, value)));
        this.process_options.extend(options);
        this
    }

    /// Puts a [link](crate::faults::link::Link) before every process, also between clients and the gateway, so that
    /// processes can be restarted one by one, and connections be disturbed.
    pub fn linked(mut self) -> Self {
        self.linked = true;
        self
    }

    /// Starts the suite, and waits until it serves.
    ///
    /// # Errors
    /// When a process doesn't start.
    pub async fn start(self) -> anyhow::Result<Suite> {
        Suite::from_plan(self).await
    }

    /// The captured standard error, if it is captured.
    #[must_use]
    pub fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    pub(super) fn guard(&self) -> Option<&Guard> {
        self.guard.as_deref()
    }

    pub(super) fn binary(&self) -> &str {
        &self.binary
    }

    pub(super) fn is_linked(&self) -> bool {
        self.linked
    }

    /// The data directory of a service, in a suite with this directory.
    pub(super) fn data(&self, service: &str, directory: &Path) -> PathBuf {
        let data_at = self
            .process_options
            .iter()
            .find_map(|(process, option)| match option {
                ProcessOption::DataAt(data) if process == service => Some(data.clone()),
                ProcessOption::DataAt(_) | ProcessOption::Setting(_) | ProcessOption::Variable(..) => None,
            });
        data_at.unwrap_or_else(|| directory.join(service))
    }

    /// The processes in the order in which they are started, the gateway last.
    pub(super) fn processes(&self, directory: &Path) -> Vec<ProcessPlan> {
        match self.layout {
            Layout::OneProcess => vec![self.process(GATEWAY, "serve", Some(directory))],
            Layout::Demo => {
                let mut demo = self.process(GATEWAY, "demo", Some(directory));
                demo.arguments.extend(["--size".to_owned(), "small".to_owned()]);
                vec![demo]
            }
            Layout::SeveralProcesses => {
                let process = |service: &Registration| {
                    let data = self.data(service.name, directory);
                    self.process(service.name, service.command, Some(&data))
                };
                let mut processes: Vec<_> = services::ALL.iter().map(process).collect();
                let mut gateway = self.process(GATEWAY, GATEWAY, None);
                gateway.backends = services::ALL.iter().map(|service| service.name).collect();
                processes.push(gateway);
                processes
            }
        }
    }

    fn process(&self, name: &'static str, command: &str, data: Option<&Path>) -> ProcessPlan {
        let mut arguments = vec![
            command.to_owned(),
            "--listen".to_owned(),
            "127.0.0.1:0".to_owned(),
        ];
        if let Some(data) = data {
            arguments.extend(["--data".to_owned(), data.display().to_string()]);
        }
        if let Some(guard) = &self.guard {
            arguments.extend(guard.arguments(command));
        }
        let mut environment = self.environment.clone();
        for (process, option) in &self.process_options {
            match option {
                _ if process != name => {}
                ProcessOption::Setting(setting) => arguments.extend(["--set".to_owned(), setting.clone()]),
                ProcessOption::Variable(name, value) => environment.push((name.clone(), value.clone())),
                ProcessOption::DataAt(_) => {}
            }
        }
        ProcessPlan {
            name,
            arguments,
            environment,
            backends: Vec::new(),
        }
    }
}
