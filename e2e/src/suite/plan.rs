//! What a suite is to be: how it is spread over processes, who hears its telemetry, where faults can be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use souk_standalone::services::{self, Registration};

use super::{GATEWAY, Suite};
use crate::collector::Collector;
use crate::faults::interposer::Interposer;
use crate::guard::Guard;
use crate::log::Log;

/// How the suite is spread over processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `souk serve`: gateway and services in one process.
    OneProcess,
    /// `souk demo` with little data: one process that loads it on its first start.
    Demo,
    /// A gateway and the services, each a process of its own.
    FourProcesses,
}

/// A suite to be.
#[derive(Clone)]
#[must_use = "nothing runs until start()"]
pub struct Plan {
    binary: String,
    layout: Layout,
    environment: Vec<(String, String)>,
    /// Further arguments and variables of one process.
    own: Vec<(String, Own)>,
    linked: bool,
    log: Option<Log>,
    guard: Option<Arc<Guard>>,
}

#[derive(Clone, Debug)]
enum Own {
    Setting(String),
    Variable(String, String),
    DataAt(PathBuf),
}

/// One process to be.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    /// Others that it is to call.
    pub(super) backends: Vec<&'static str>,
}

impl Plan {
    /// An empty suite. `binary` is `env!("CARGO_BIN_EXE_souk-under-test")`.
    pub fn new(binary: &str, layout: Layout) -> Self {
        Self {
            binary: binary.to_owned(),
            layout,
            environment: Vec::new(),
            own: Vec::new(),
            linked: false,
            log: None,
            guard: None,
        }
    }

    /// Sends its spans and metrics to a collector, soon.
    pub fn traced(self, collector: &Collector) -> Self {
        self.exporting_to(&collector.endpoint())
    }

    /// Sends its spans and metrics to an address, soon.
    pub fn exporting_to(self, endpoint: &str) -> Self {
        self.variable("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            .variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
            // Tests wait for spans and metrics: send them soon.
            .variable("OTEL_BSP_SCHEDULE_DELAY", "100")
            .variable("OTEL_METRIC_EXPORT_INTERVAL", "200")
    }

    /// Keeps what its processes say on standard error.
    pub fn heard(mut self, log: &Log) -> Self {
        self.log = Some(log.clone());
        self.variable("SOUK_TELEMETRY__LOG_FORMAT", "json")
    }

    /// Lets in only callers with keys.
    pub fn guarded(mut self, guard: Guard) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// Sets a variable of the environment of all processes.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a setting of one process, as `server.drain_deadline=5s`.
    pub fn setting(mut self, process: &str, setting: &str) -> Self {
        let setting = Own::Setting(setting.to_owned());
        self.own.push((process.to_owned(), setting));
        self
    }

    /// Keeps the data of a service at another place; only where services are processes of their own.
    pub fn data_at(mut self, service: &str, directory: &Path) -> Self {
        let directory = Own::DataAt(directory.to_owned());
        self.own.push((service.to_owned(), directory));
        self
    }

    /// Puts an interposer between a service and its system; the data is where the interposer wants it.
    pub fn interposed(self, process: &str, interposer: &Interposer) -> Self {
        let mut this = self.data_at(process, &interposer.data());
        let variables = interposer.environment().into_iter();
        let own = variables.map(|(name, value)| (process.to_owned(), Own::Variable(name, value)));
        this.own.extend(own);
        this
    }

    /// Puts a [link](crate::faults::link::Link) before every process, the gateway's clients included: processes may
    /// be restarted one by one, and ways be made bad.
    pub fn linked(mut self) -> Self {
        self.linked = true;
        self
    }

    /// Starts it, and waits until it serves.
    ///
    /// # Errors
    /// When a process doesn't start.
    pub async fn start(self) -> anyhow::Result<Suite> {
        Suite::of(self).await
    }

    /// What it says, where it is heard.
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

    /// Where a service's data is, in a suite with this directory.
    pub(super) fn data(&self, service: &str, directory: &Path) -> PathBuf {
        let elsewhere = self.own.iter().find_map(|(process, own)| match own {
            Own::DataAt(elsewhere) if process == service => Some(elsewhere.clone()),
            Own::DataAt(_) | Own::Setting(_) | Own::Variable(..) => None,
        });
        elsewhere.unwrap_or_else(|| directory.join(service))
    }

    /// Its processes in the order of their starts, the gateway last.
    pub(super) fn parts(&self, directory: &Path) -> Vec<Part> {
        match self.layout {
            Layout::OneProcess => vec![self.part(GATEWAY, "serve", Some(directory))],
            Layout::Demo => {
                let mut demo = self.part(GATEWAY, "demo", Some(directory));
                demo.arguments.extend(["--size".to_owned(), "small".to_owned()]);
                vec![demo]
            }
            Layout::FourProcesses => {
                let part = |service: &Registration| {
                    let data = self.data(service.name, directory);
                    self.part(service.name, service.command, Some(&data))
                };
                let mut parts: Vec<_> = services::ALL.iter().map(part).collect();
                let mut gateway = self.part(GATEWAY, GATEWAY, None);
                gateway.backends = services::ALL.iter().map(|service| service.name).collect();
                parts.push(gateway);
                parts
            }
        }
    }

    fn part(&self, name: &'static str, command: &str, data: Option<&Path>) -> Part {
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
        for (process, own) in &self.own {
            match own {
                _ if process != name => {}
                Own::Setting(setting) => arguments.extend(["--set".to_owned(), setting.clone()]),
                Own::Variable(name, value) => environment.push((name.clone(), value.clone())),
                Own::DataAt(_) => {}
            }
        }
        Part {
            name,
            arguments,
            environment,
            backends: Vec::new(),
        }
    }
}
