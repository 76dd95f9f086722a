//! The whole suite in a temporary directory: started, stopped, killed and started again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use souk_proto::media::v1::media_service_client::MediaServiceClient;
use souk_proto::order::v1::consumer_service_client::ConsumerServiceClient;
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::product_service_client::ProductServiceClient;
use souk_proto::order::v1::salesperson_service_client::SalespersonServiceClient;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::collector::Collector;
use crate::faults::link::Link;
use crate::guard::Guard;
use crate::process::{Process, Words};

mod faulty;
mod plan;

pub use faulty::Faulty;
pub use plan::{Layout, Plan};

/// The one that listens for clients.
pub const GATEWAY: &str = "gateway";

/// A running suite. Dropping it kills its processes and removes its directory.
pub struct Suite {
    plan: Plan,
    // The gateway comes last: it is stopped first.
    members: Vec<Member>,
    directory: TempDir,
}

/// One process of a suite.
struct Member {
    /// `order`, `shop`, `media`, `gateway`.
    name: &'static str,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    process: Option<Process>,
    /// The way to it that others take, where the plan has links.
    link: Option<Link>,
}

impl Member {
    /// Where others reach it.
    fn address(&self) -> Option<SocketAddr> {
        match (&self.link, &self.process) {
            (Some(link), _) => Some(link.address()),
            (None, process) => process.as_ref().map(Process::address),
        }
    }
}

impl Suite {
    /// Starts an empty suite. `binary` is `env!("CARGO_BIN_EXE_souk-under-test")`.
    ///
    /// # Errors
    /// When a process doesn't start.
    pub async fn start(binary: &str, layout: Layout) -> anyhow::Result<Self> {
        Plan::new(binary, layout).start().await
    }

    /// Starts a suite with a small part of the demo data, loaded.
    ///
    /// # Errors
    /// When the process doesn't start.
    pub async fn start_demo(binary: &str) -> anyhow::Result<Self> {
        Plan::new(binary, Layout::Demo).start().await
    }

    /// Starts an empty suite that sends its spans to a collector.
    ///
    /// # Errors
    /// When a process doesn't start.
    pub async fn start_traced(binary: &str, layout: Layout, collector: &Collector) -> anyhow::Result<Self> {
        Plan::new(binary, layout).traced(collector).start().await
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
        let plan = Plan::new(binary, layout).guarded(guard);
        match collector {
            Some(collector) => plan.traced(collector).start().await,
            None => plan.start().await,
        }
    }

    pub(crate) async fn of(plan: Plan) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut suite = Self {
            plan,
            members: Vec::new(),
            directory,
        };
        suite.launch().await?;
        Ok(suite)
    }

    async fn launch(&mut self) -> anyhow::Result<()> {
        self.members.clear();
        for process in self.plan.processes(self.directory.path()) {
            let mut arguments = process.arguments;
            for backend in process.backends {
                let behind = self.members.iter().find(|member| member.name == backend);
                let address = behind.and_then(Member::address);
                let address = address.with_context(|| format!("{backend} comes before the gateway"))?;
                arguments.extend(["--backend".to_owned(), format!("{backend}=http://{address}")]);
            }
            let link = match self.plan.is_linked() {
                true => Some(Link::bind().await?),
                false => None,
            };
            self.members.push(Member {
                name: process.name,
                arguments,
                environment: process.environment,
                process: None,
                link,
            });
            self.begin(process.name).await?;
        }
        self.wait_until_serving().await
    }

    /// Starts one process of the suite, on the data that it had.
    ///
    /// # Errors
    /// When it runs, doesn't start, or others wouldn't find it: only with [links](Plan::linked) they do, and in
    /// the suite's own start.
    pub async fn begin(&mut self, name: &str) -> anyhow::Result<()> {
        let runs = self.member(name)?.process.is_some();
        anyhow::ensure!(!runs, "{name} runs already");
        self.start_one(name).await
    }

    /// Starts another process in the place of one that runs, and gives the old one, to be stopped: others find the new one from now
    /// on. Not for processes with data, which only one can have.
    ///
    /// # Errors
    /// When there is none, or the new one doesn't start.
    pub async fn take_over(&mut self, name: &str) -> anyhow::Result<Process> {
        let old = self.take(name)?;
        self.start_one(name).await?;
        Ok(old)
    }

    async fn start_one(&mut self, name: &str) -> anyhow::Result<()> {
        let binary = self.plan.binary().to_owned();
        let (log, file) = (
            self.plan.log().cloned(),
            self.plan.guard().map(|guard| guard.log()),
        );
        let member = self.member_mut(name)?;
        let words = match (&log, &file) {
            (Some(log), _) => Words::Heard(log, member.name),
            (None, Some(file)) => Words::To(file),
            (None, None) => Words::Ours,
        };
        let process = Process::start_heard(&binary, &member.arguments, &member.environment, words).await?;
        if let Some(link) = &member.link {
            link.lead_to(process.address());
        }
        member.process = Some(process);
        Ok(())
    }

    fn member(&self, name: &str) -> anyhow::Result<&Member> {
        let member = self.members.iter().find(|member| member.name == name);
        member.with_context(|| format!("the suite has no process {name}"))
    }

    fn member_mut(&mut self, name: &str) -> anyhow::Result<&mut Member> {
        let member = self.members.iter_mut().find(|member| member.name == name);
        member.with_context(|| format!("the suite has no process {name}"))
    }

    /// A running process: `order`, `shop`, `media` or `gateway`.
    ///
    /// # Errors
    /// When there is none.
    pub fn process(&self, name: &str) -> anyhow::Result<&Process> {
        let process = self.member(name)?.process.as_ref();
        process.with_context(|| format!("{name} is stopped"))
    }

    /// Takes a running process out, to be ended; [`begin`](Self::begin) starts it again.
    ///
    /// # Errors
    /// When there is none.
    pub fn take(&mut self, name: &str) -> anyhow::Result<Process> {
        let process = self.member_mut(name)?.process.take();
        process.with_context(|| format!("{name} is stopped"))
    }

    /// The way that others take to a process.
    ///
    /// # Errors
    /// When the plan has no links.
    pub fn link(&self, name: &str) -> anyhow::Result<&Link> {
        let link = self.member(name)?.link.as_ref();
        link.context("the plan has no links")
    }

    /// Waits until the gateway's health says SERVING for everything behind it.
    ///
    /// # Errors
    /// When the stream of its health ends before.
    pub async fn wait_until_serving(&self) -> anyhow::Result<()> {
        self.wait_until(ServingStatus::Serving).await
    }

    /// Waits until the gateway's health, of everything behind it, is `wanted`.
    ///
    /// # Errors
    /// When the stream of its health ends before.
    pub async fn wait_until(&self, wanted: ServingStatus) -> anyhow::Result<()> {
        let mut health = HealthClient::new(self.channel()?);
        let request = tonic_health::pb::HealthCheckRequest {
            service: String::new(),
        };
        let mut states = health.watch(request).await?.into_inner();
        while let Some(state) = states.message().await? {
            if state.status() == wanted {
                return Ok(());
            }
        }
        anyhow::bail!("the health stream ended before the suite was {wanted:?}")
    }

    /// Where the gateway listens, as a URI.
    #[must_use]
    pub fn uri(&self) -> String {
        let address = self.members.last().and_then(Member::address);
        address.map_or_else(String::new, |address| format!("http://{address}"))
    }

    /// The directory of one service's data: `order`, `shop` or `media`.
    #[must_use]
    pub fn service_directory(&self, service: &str) -> PathBuf {
        self.plan.data(service, self.directory.path())
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
        let process = self.members.last().and_then(|member| member.process.as_ref());
        process.context("the suite is stopped")
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
        self.plan.guard().expect("a guarded suite")
    }

    /// Where each process listens, the gateway last.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().filter_map(Member::address).collect()
    }

    /// Takes the processes out of the suite, the gateway last, for tests that end them by themselves.
    pub fn take_processes(&mut self) -> Vec<Process> {
        let members = self.members.iter_mut();
        members.filter_map(|member| member.process.take()).collect()
    }

    /// Kills every process with SIGKILL.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        for process in self.take_processes().into_iter().rev() {
            process.kill().await?;
        }
        Ok(())
    }

    /// Stops every process with SIGTERM, the gateway first.
    ///
    /// # Errors
    /// When one doesn't end with code 0.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        for process in self.take_processes().into_iter().rev() {
            process.stop().await?;
        }
        Ok(())
    }

    /// Starts a stopped or killed suite again on the same data; the gateway's address changes.
    ///
    /// # Errors
    /// When a process doesn't start.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        let running = self.members.iter().any(|member| member.process.is_some());
        anyhow::ensure!(!running, "the suite is running");
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
