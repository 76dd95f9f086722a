//! The whole suite in a temporary directory: started, stopped, killed and started again.

use std::path::{Path, PathBuf};

use souk_proto::media::v1::media_service_client::MediaServiceClient;
use souk_proto::order::v1::consumer_service_client::ConsumerServiceClient;
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::product_service_client::ProductServiceClient;
use souk_proto::order::v1::salesperson_service_client::SalespersonServiceClient;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

use crate::collector::Collector;
use crate::guard::Guard;
use crate::process::Process;

/// How the suite is spread over processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `souk serve`: gateway and services in one process.
    OneProcess,
    /// `souk demo` with little data: one process that loads it on its first start.
    Demo,
    /// A gateway and three services, each a process of its own.
    FourProcesses,
}

/// A running suite. Dropping it kills its processes and removes its directory.
pub struct Suite {
    layout: Layout,
    binary: String,
    environment: Vec<(String, String)>,
    guard: Option<Guard>,
    // The gateway comes last: it is stopped first.
    processes: Vec<Process>,
    directory: TempDir,
}

impl Suite {
    /// Starts an empty suite. `binary` is `env!("CARGO_BIN_EXE_souk-under-test")`.
    ///
    /// # Errors
    /// When a process doesn't start.
    pub async fn start(binary: &str, layout: Layout) -> anyhow::Result<Self> {
        Self::start_with(binary, layout, Vec::new()).await
    }

    /// Starts a suite with a small part of the demo data, loaded.
    ///
    /// # Errors
    /// When the process doesn't start.
    pub async fn start_demo(binary: &str) -> anyhow::Result<Self> {
        Self::start_with(binary, Layout::Demo, Vec::new()).await
    }

    /// Starts an empty suite that sends its spans to a collector.
    ///
    /// # Errors
    /// When a process doesn't start.
    pub async fn start_traced(binary: &str, layout: Layout, collector: &Collector) -> anyhow::Result<Self> {
        Self::start_with(binary, layout, traced(collector)).await
    }

    /// Starts an empty suite that lets in only callers with keys, and, when there is a collector, sends it its spans.
    ///
    /// # Errors
    /// When a process doesn't start.
    pub async fn start_guarded(
        binary: &str,
        layout: Layout,
        guard: Guard,
        collector: Option<&Collector>,
    ) -> anyhow::Result<Self> {
        let environment = collector.map(traced).unwrap_or_default();
        Self::start_as(binary, layout, environment, Some(guard)).await
    }

    async fn start_with(
        binary: &str,
        layout: Layout,
        environment: Vec<(String, String)>,
    ) -> anyhow::Result<Self> {
        Self::start_as(binary, layout, environment, None).await
    }

    async fn start_as(
        binary: &str,
        layout: Layout,
        environment: Vec<(String, String)>,
        guard: Option<Guard>,
    ) -> anyhow::Result<Self> {
        let mut suite = Self {
            layout,
            binary: binary.to_owned(),
            environment,
            guard,
            processes: Vec::new(),
            directory: tempfile::tempdir()?,
        };
        suite.launch().await?;
        Ok(suite)
    }

    async fn launch(&mut self) -> anyhow::Result<()> {
        match self.layout {
            Layout::OneProcess => {
                let arguments = self.arguments("serve", Some(self.directory.path()));
                self.launch_one(&arguments).await?;
            }
            Layout::Demo => {
                let mut arguments = self.arguments("demo", Some(self.directory.path()));
                arguments.extend(["--size".to_owned(), "small".to_owned()]);
                self.launch_one(&arguments).await?;
            }
            Layout::FourProcesses => {
                let mut gateway = self.arguments("gateway", None);
                for (role, flag) in [
                    ("order-svc", "order"),
                    ("shop-svc", "shop"),
                    ("meta-svc", "media"),
                ] {
                    let arguments = self.arguments(role, Some(&self.service_directory(flag)));
                    let address = self.launch_one(&arguments).await?;
                    gateway.extend([format!("--{flag}"), format!("http://{address}")]);
                }
                self.launch_one(&gateway).await?;
            }
        }
        self.wait_until_serving().await
    }

    fn arguments(&self, role: &str, data: Option<&Path>) -> Vec<String> {
        let mut arguments = vec![role.to_owned(), "--listen".to_owned(), "127.0.0.1:0".to_owned()];
        if let Some(data) = data {
            arguments.extend(["--data".to_owned(), data.display().to_string()]);
        }
        if let Some(guard) = &self.guard {
            arguments.extend(guard.arguments(role));
        }
        arguments
    }

    async fn launch_one(&mut self, arguments: &[String]) -> anyhow::Result<std::net::SocketAddr> {
        let log = self.guard.as_ref().map(Guard::log);
        let process = Process::start(&self.binary, arguments, &self.environment, log.as_deref()).await?;
        let address = process.address();
        self.processes.push(process);
        Ok(address)
    }

    /// Waits until the gateway's health says SERVING for everything behind it.
    async fn wait_until_serving(&self) -> anyhow::Result<()> {
        use tonic_health::pb::health_check_response::ServingStatus;
        let mut health = tonic_health::pb::health_client::HealthClient::new(self.channel()?);
        let request = tonic_health::pb::HealthCheckRequest {
            service: String::new(),
        };
        let mut states = health.watch(request).await?.into_inner();
        while let Some(state) = states.message().await? {
            if state.status() == ServingStatus::Serving {
                return Ok(());
            }
        }
        anyhow::bail!("the health stream ended before the suite was serving")
    }

    /// Where the gateway listens, as a URI.
    #[must_use]
    pub fn uri(&self) -> String {
        self.processes
            .last()
            .map_or_else(String::new, |gateway| format!("http://{}", gateway.address()))
    }

    /// The directory of one service's data: `order`, `shop` or `media`.
    #[must_use]
    pub fn service_directory(&self, service: &str) -> PathBuf {
        self.directory.path().join(service)
    }

    /// Everything below this folder belongs to the suite.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A connection of its own to the gateway.
    ///
    /// # Errors
    /// When the suite is stopped.
    pub fn channel(&self) -> anyhow::Result<Channel> {
        Ok(Endpoint::from_shared(self.uri())?.connect_lazy())
    }

    /// The process that listens for clients.
    ///
    /// # Errors
    /// When the suite is stopped.
    pub fn gateway(&self) -> anyhow::Result<&Process> {
        self.processes
            .last()
            .ok_or_else(|| anyhow::anyhow!("the suite is stopped"))
    }

    /// The keys of a guarded suite.
    ///
    /// # Panics
    /// When the suite isn't guarded.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "for tests, which know how they started the suite"
    )]
    pub fn guard(&self) -> &Guard {
        self.guard.as_ref().expect("a guarded suite")
    }

    /// Where each process listens, the gateway last.
    #[must_use]
    pub fn addresses(&self) -> Vec<std::net::SocketAddr> {
        self.processes.iter().map(Process::address).collect()
    }

    /// Takes the processes out of the suite, the gateway last, for tests that end them by themselves.
    pub fn take_processes(&mut self) -> Vec<Process> {
        std::mem::take(&mut self.processes)
    }

    /// Kills every process with SIGKILL.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        for process in self.processes.drain(..).rev() {
            process.kill().await?;
        }
        Ok(())
    }

    /// Stops every process with SIGTERM, the gateway first.
    ///
    /// # Errors
    /// When one doesn't end with code 0.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        for process in self.processes.drain(..).rev() {
            process.stop().await?;
        }
        Ok(())
    }

    /// Starts a stopped or killed suite again on the same data; the gateway's address changes.
    ///
    /// # Errors
    /// When a process doesn't start.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        anyhow::ensure!(self.processes.is_empty(), "the suite is running");
        self.launch().await
    }

    /// A client of the orders.
    ///
    /// # Errors
    /// When the suite is stopped.
    pub fn orders(&self) -> anyhow::Result<OrderServiceClient<Channel>> {
        Ok(OrderServiceClient::new(self.channel()?))
    }

    /// A client of the consumers.
    ///
    /// # Errors
    /// When the suite is stopped.
    pub fn consumers(&self) -> anyhow::Result<ConsumerServiceClient<Channel>> {
        Ok(ConsumerServiceClient::new(self.channel()?))
    }

    /// A client of the salespersons.
    ///
    /// # Errors
    /// When the suite is stopped.
    pub fn salespersons(&self) -> anyhow::Result<SalespersonServiceClient<Channel>> {
        Ok(SalespersonServiceClient::new(self.channel()?))
    }

    /// A client of the products.
    ///
    /// # Errors
    /// When the suite is stopped.
    pub fn products(&self) -> anyhow::Result<ProductServiceClient<Channel>> {
        Ok(ProductServiceClient::new(self.channel()?))
    }

    /// A client of the shops.
    ///
    /// # Errors
    /// When the suite is stopped.
    pub fn shops(&self) -> anyhow::Result<ShopServiceClient<Channel>> {
        Ok(ShopServiceClient::new(self.channel()?))
    }

    /// A client of the media.
    ///
    /// # Errors
    /// When the suite is stopped.
    pub fn media(&self) -> anyhow::Result<MediaServiceClient<Channel>> {
        Ok(MediaServiceClient::new(self.channel()?))
    }
}

/// The variables of processes that send their spans to a collector.
fn traced(collector: &Collector) -> Vec<(String, String)> {
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc".to_owned()),
        // Tests wait for spans: send them soon.
        ("OTEL_BSP_SCHEDULE_DELAY", "100".to_owned()),
    ];
    environment.map(|(name, value)| (name.to_owned(), value)).to_vec()
}
