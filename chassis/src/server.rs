//! skeleton
use std::convert::Infallible;
use std::net::SocketAddr;

use http::{Request, Response};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::Routes;
use tower::Service;
use tower::util::BoxCloneSyncService;

use crate::config::ServerConfig;
use crate::health::Health;
use crate::methods::DescriptorError;
use crate::reflection::{self, ReflectionError};

/// The services of one server.
#[derive(Debug)]
pub struct Services {
    routes: Routes,
    names: Vec<String>,
    descriptors: Vec<u8>,
}

impl Services {
    /// None yet.
    ///
    /// # Errors
    /// When the descriptors are damaged.
    pub fn new(descriptors: &[u8]) -> Result<Self, DescriptorError> {
        Ok(Self {
            routes: Routes::default(),
            names: Vec::new(),
            descriptors: descriptors.to_vec(),
        })
    }
    /// Adds a generated server.
    #[must_use]
    pub fn mount<S>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.names.push(S::NAME.to_owned());
        self.routes = self.routes.add_service(service);
        self
    }
}

/// Routes under all layers; one value for a listener and for calls in process.
#[derive(Clone, Debug)]
pub struct Stack {
    service: BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>,
}

/// Layers, health and reflection around `services`.
///
/// # Errors
/// When reflection can't be built.
pub fn stack(services: Services, health: &Health, config: &ServerConfig) -> Result<Stack, ReflectionError> {
    let _ = config;
    let mut names = services.names;
    names.push(crate::health::SERVICE_NAME.to_owned());
    let routes = services.routes.add_service(health.clone().into_service());
    let routes = reflection::mount(routes, &[&services.descriptors], &names)?;
    Ok(Stack {
        service: BoxCloneSyncService::new(routes),
    })
}

/// Binds.
///
/// # Errors
/// Names the address and what to do.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| BindError { address, source })
}

/// An address that can't be listened on.
#[derive(Debug, thiserror::Error)]
#[error("can't listen on {address}")]
pub struct BindError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Serves until `stop`.
pub async fn serve(
    listener: TcpListener,
    stack: Stack,
    config: &ServerConfig,
    stop: impl Future<Output = ()> + Send,
) {
    let _ = (listener, stack, config);
    stop.await;
}
