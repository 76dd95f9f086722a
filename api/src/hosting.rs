//! A service on an engine: its settings, what it gives, and the process around one of them.
//!
//! A [`Service`] is opened by [`start`], which ties it to the host of a process: health, drain and closing. A process
//! with one service is [`run`]; a process with several calls [`start`] for each and mounts them on one server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use souk_access::rules::RulesError;
use souk_access::{CredentialKeys, ProcessKind, Reloaded, Rules, ServiceGuard};
use souk_chassis::args::ServiceArgs;
use souk_chassis::config::ServerConfig;
use souk_chassis::health::Health as ServerHealth;
use souk_chassis::host::{CALLS_SHARE, Exit, Host};
use souk_chassis::methods::DescriptorError;
use souk_chassis::process::{Process, RunError};
use souk_chassis::server::{self, Services};
use souk_engine::{Engine, EngineConfig, EngineError, Health, Result};
use souk_proto::index::v1::index_service_server::{self, IndexServiceServer};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::indexes::IndexApi;

mod backups;
mod settings;

pub use backups::BackupSettings;
pub use settings::{BehindGateway, EngineSettings, Settings};

/// Part of the drain deadline that indexes may use, in percent; the rest after the calls is the store's.
const INDEXES_SHARE: u32 = (100 - CALLS_SHARE) / 2;

/// How long a process waits for its indexes before it says where it listens.
const SERVING_WAIT: Duration = Duration::from_secs(10);

/// What a service is to the process around it.
pub trait Service: Sized + Send + Sync + 'static {
    /// Its `service.name` in telemetry, for example `souk-order`.
    const NAME: &'static str;
    /// The folder of its data beside those of other services, for example `order`.
    const FOLDER: &'static str;
    /// Full names of its own gRPC services.
    const SERVICES: &'static [&'static str];

    /// Descriptors of the contract that they are in.
    const CONTRACT: &'static [u8] = souk_proto::FILE_DESCRIPTOR_SET;

    /// Opens its database. Streams that have no end by themselves end when `draining` is cancelled.
    ///
    /// # Errors
    /// What the engine refuses.
    fn open(config: EngineConfig, draining: CancellationToken) -> impl Future<Output = Result<Self>> + Send;

    /// The engine that it works on.
    fn engine(&self) -> &Engine;

    /// Adds its own gRPC services to a server; [`mounted`] has them all.
    fn mount(&self, services: Services) -> Services;
}

/// How a service knows the callers that a gateway let in; `None` where everybody may do everything.
pub type Credentials = Option<Arc<Reloaded<CredentialKeys>>>;

/// Opens a service in `directory` and ties it to a process: its health shows in `health`, `host` drains and closes it.
/// With `credentials`, mount it [`guarded`]: a call without a caller meets no row.
///
/// # Errors
/// What the engine refuses, for example a directory that another process has open.
pub async fn start<S: Service>(
    directory: &Path,
    settings: &EngineSettings,
    server: &ServerConfig,
    host: &mut Host,
    health: &ServerHealth,
    credentials: &Credentials,
) -> Result<S> {
    let mut config = settings.engine_config(directory);
    config.guarded = credentials.is_some();
    let service = S::open(config, host.draining.clone()).await?;
    let serving = follow(S::NAME, service.engine(), host);
    wait_until_serving(S::NAME, service.engine()).await;
    for name in S::SERVICES.iter().chain(&[index_service_server::SERVICE_NAME]) {
        health.register(*name, serving.clone());
    }
    let engine = service.engine().clone();
    backups::start(S::FOLDER, &engine, &settings.backup, host).map_err(|source| EngineError::Io {
        doing: "waiting for signals",
        source,
    })?;
    let for_indexes = server.drain_deadline.saturating_mul(INDEXES_SHARE) / 100;
    host.on_close(S::NAME, move || close(engine, for_indexes));
    Ok(service)
}

/// The gRPC services of a process with a service: its own, and that of its indexes, which every process has.
///
/// # Errors
/// When the contract's descriptors are damaged.
pub fn mounted<S: Service>(service: &S) -> std::result::Result<Services, DescriptorError> {
    let services = service.mount(Services::new(S::CONTRACT)?);
    let indexes = IndexApi(service.engine().clone());
    Ok(services.mount(IndexServiceServer::new(indexes)))
}

/// Lets in only whom a gateway with the same keys let in; without keys, only calls that carry no caller.
///
/// # Errors
/// When an RPC of the contract has no rule.
pub fn guarded<S: Service>(
    services: Services,
    credentials: Credentials,
) -> std::result::Result<Services, RulesError> {
    Ok(services.admission(ServiceGuard::new(Rules::read(S::CONTRACT)?, credentials)))
}

async fn close(
    engine: Engine,
    for_indexes: Duration,
) -> std::result::Result<(), souk_chassis::host::CloseError> {
    Ok(engine.close(Instant::now() + for_indexes).await?)
}

/// Waits until an engine serves, so that a process says where it listens when it answers everything. Indexes that have to
/// be built take longer than [`SERVING_WAIT`]: the log then says that searches have to wait for them, and the process
/// begins with all that doesn't.
async fn wait_until_serving(service: &'static str, engine: &Engine) {
    let mut health = engine.health();
    let serving = health.wait_for(Health::is_serving);
    if let Ok(Ok(_)) = tokio::time::timeout(SERVING_WAIT, serving).await {
        return;
    }
    if let Health::NotServing { reason } = engine.health().borrow().clone() {
        tracing::warn!(
            service,
            reason,
            "begins without its indexes: searches are refused until they are ready"
        );
    }
}

/// Whether an engine serves, from now until the process stops. The reasons why not go to the log.
fn follow(service: &'static str, engine: &Engine, host: &Host) -> watch::Receiver<bool> {
    let mut health = engine.health();
    let (sender, receiver) = watch::channel(health.borrow_and_update().is_serving());
    let stopping = host.stopping.clone();
    host.spawn("health", async move {
        let mut has_served = false;
        loop {
            tokio::select! {
                changed = health.changed() => if changed.is_err() { return },
                () = stopping.cancelled() => return,
            }
            let now = health.borrow_and_update().clone();
            match &now {
                Health::Serving => tracing::info!(service, "serving"),
                // Indexes that are being opened.
                Health::NotServing { reason } if !has_served => {
                    tracing::debug!(service, reason, "not serving yet")
                }
                Health::NotServing { reason } => tracing::warn!(service, reason, "not serving"),
            }
            has_served |= now.is_serving();
            sender.send_replace(now.is_serving());
        }
    });
    receiver
}

/// A process with one service, from its command line to its exit.
///
/// # Errors
/// Why it can't start.
pub async fn run<S: Service>(args: ServiceArgs) -> std::result::Result<Exit, RunError> {
    let BehindGateway(settings) = args.load()?;
    settings
        .auth
        .checked(ProcessKind::Service, settings.server.listen)?;
    Process::new(S::NAME)
        .run(&settings.telemetry, &settings.server, async |host| {
            let health = ServerHealth::default();
            let server = &settings.server;
            let credentials = settings.auth.credential_keys()?;
            if credentials.is_none() {
                tracing::warn!(
                    "authentication is off: whoever reaches this port may do everything; see docs/SECURITY.md"
                );
            }
            let engine = &settings.engine;
            let service = start::<S>(&settings.data, engine, server, host, &health, &credentials).await?;
            let services = guarded::<S>(mounted(&service)?, credentials)?;
            Ok(server::stack(services, &health, server)?)
        })
        .await
}
