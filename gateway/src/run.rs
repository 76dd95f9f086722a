//! The gateway: its front stack over its backends, and its process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use souk_access::{CredentialKeys, Reloaded};
use souk_chassis::client::ClientError;
use souk_chassis::config::ServerConfig;
use souk_chassis::health::Health;
use souk_chassis::host::{Exit, calls_deadline};
use souk_chassis::methods::{DescriptorError, Methods};
use souk_chassis::private_files::warn_of_readers;
use souk_chassis::process::{Process, RunError};
use souk_chassis::reflection::ReflectionError;
use souk_chassis::server::{self, Services, Stack};
use souk_chassis::telemetry::instrument::meter;
use tokio_util::sync::CancellationToken;

use crate::ask::Ask;
use crate::auth::{AuthError, GatewayGuard};
use crate::backend::{Backends, Target};
use crate::balance::Balance;
use crate::config::{GatewayArgs, GatewayConfig};
use crate::contract::{self, ServedBy};
use crate::figures;
use crate::forward::{Destination, Forward};
use crate::front::front;
use crate::json::RouteError;
use crate::monitor;
use crate::retry::{Retry, RetryConfig};
use crate::stream_drain::StreamDrain;

/// `service.name` of a gateway.
const SERVICE: &str = "souk-gateway";

/// Time for open streams at a drain before they are closed; at most half of the time for calls.
const STREAM_GRACE: Duration = Duration::from_secs(5);

/// Why a gateway couldn't be made.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The contract's descriptors are damaged.
    #[error(transparent)]
    Descriptors(#[from] DescriptorError),
    /// The contract's options can't be read.
    #[error(transparent)]
    Contract(#[from] prost_reflect::DescriptorError),
    /// The contract's descriptors lack something.
    #[error(transparent)]
    Reflection(#[from] ReflectionError),
    /// The contract's rules for HTTP can't be used.
    #[error(transparent)]
    Routes(#[from] RouteError),
    /// Callers can't be authenticated.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The address of a backend, by its name, can't be used.
    #[error("backend {0}")]
    Backend(Arc<str>, #[source] ClientError),
}

/// A gateway over its backends.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// The front stack, to be served. Monitors of backends and key files run until its last clone is dropped.
    pub stack: Stack,
}

impl Gateway {
    /// A gateway to `backends`. Of `config`, the limits of the server, the settings of the client, of web pages and of callers
    /// are used. Make it in the runtime: it follows the health of its backends, and the files of keys.
    ///
    /// # Errors
    /// When the address of a backend or a file of keys can't be used.
    pub fn new(config: &GatewayConfig, backends: Backends) -> Result<Self, GatewayError> {
        let credentials = config.auth.credential_keys().map_err(AuthError::from)?;
        Self::with_credentials(config, backends, credentials)
    }

    /// [`Gateway::new`], with other credential keys than those of the settings.
    ///
    /// # Errors
    /// As [`Gateway::new`].
    pub fn with_credentials(
        config: &GatewayConfig,
        backends: Backends,
        credentials: Option<Arc<Reloaded<CredentialKeys>>>,
    ) -> Result<Self, GatewayError> {
        let descriptors = backends.contract;
        let contract = contract::services(descriptors)?;
        let backends = backends.resolve(&contract);
        let names: BTreeSet<String> = backends
            .iter()
            .flat_map(|backend| backend.services.clone())
            .collect();
        let tells_figures = contract.get(figures::NAME) == Some(&ServedBy::Gateway);
        let is_served = |name: &str| names.contains(name) || (tells_figures && name == figures::NAME);
        let methods = Methods::read(&[descriptors], is_served)?;
        if config.client.tls.has_certificate() {
            warn_of_readers(&config.client.tls.key);
        }
        let guard = GatewayGuard::new(&config.auth, credentials, methods.clone(), descriptors)?;
        let health = Health::default();
        let stop = CancellationToken::new();
        let meter = meter();
        let mut monitors = Vec::new();
        let mut routes = BTreeMap::new();
        for backend in &backends {
            let unusable = |error| GatewayError::Backend(Arc::clone(&backend.name), error);
            let clients = backend.target.clients(&backend.name, &config.client, &methods);
            let clients = clients.map_err(unusable)?;
            let retry = match &backend.target {
                // A refusal of a stack in this process is final.
                Target::Local(_) => RetryConfig::none(),
                Target::Remote(_) => config.retry.clone(),
            };
            let balance = Balance::new(clients, &backend.name, &meter);
            let retry = Retry::new(balance, methods.clone(), retry, &backend.name, &meter);
            for service in &backend.services {
                let Some(ServedBy::All(sharing)) = contract.get(service) else {
                    routes.insert(service.clone(), Destination::Backend(retry.clone()));
                    continue;
                };
                let ask = || Ask {
                    sharing: sharing.clone(),
                    bytes_max: config.server.message_bytes_max,
                    backends: Vec::new(),
                };
                let shared = routes.entry(service.clone());
                if let Destination::Shared(ask) = shared.or_insert_with(|| Destination::Shared(ask())) {
                    ask.backends.push(retry.clone());
                }
            }
            let authenticates_callers = config.auth.authenticates_callers();
            let monitor = monitor::follow(backend, &config.client, authenticates_callers, &health, &stop);
            monitors.push(monitor.map_err(unusable)?);
        }
        monitor::observe(monitors, &meter);
        guard.observe(&meter);
        let forward = Forward {
            routes,
            stream_drain: Arc::new(StreamDrain {
                draining: health.draining.clone(),
                grace: grace(&config.server),
            }),
            _monitors: stop.drop_guard(),
        };
        let mut services = Services::new(descriptors)?;
        if tells_figures {
            let (service, serving) = figures::service();
            health.register(figures::NAME, serving);
            services = services.mount(service);
        }
        let services = services
            .forward(names.into_iter().collect(), forward)
            .believing(guard.clone())
            .admission(guard);
        let stack = server::stack(services, &health, &config.server)?;
        let front = front(stack.clone(), config, descriptors)?;
        Ok(Self {
            stack: stack.behind(front),
        })
    }
}

/// Time for open streams at a drain.
fn grace(config: &ServerConfig) -> Duration {
    STREAM_GRACE.min(calls_deadline(config.drain_deadline) / 2)
}

/// A gateway as a process, from its settings to its drain.
///
/// # Errors
/// When settings are wrong, the address is taken, or telemetry can't start.
pub async fn run(args: GatewayArgs) -> Result<Exit, RunError> {
    let config = args.load()?;
    Process::new(SERVICE)
        .run(&config.telemetry, &config.server, async |_| {
            let backends = config.backends()?;
            tracing::info!(?backends, "routing");
            Ok(Gateway::new(&config, backends)?.stack)
        })
        .await
}
