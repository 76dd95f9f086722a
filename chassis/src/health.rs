//! `grpc.health.v1.Health`: Check, List (gRFC A90), and Watch that really streams.
//!
//! Health is derived, never set: a service registers a `watch` channel with its state, and every answer is read from there. The overall
//! health, of the service named "", is SERVING only while all services are. Once draining, everything is NOT_SERVING and watches end.
//!
//! Anyone may call without credentials, so calls are bounded: messages are small, watches and calls limited in all and for each address,
//! and unknown names keep no state.
//!
//! The protocol is compiled here: tonic-health 0.14 has no List. Its client speaks the rest.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{self, FuturesUnordered, Stream, StreamExt as _};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use self::pb::health_check_response::ServingStatus;
use self::pb::health_server::{Health as HealthRpc, HealthServer};
use self::pb::{HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse};
use crate::callers::CallerKey;
use crate::callers::pool::{FullWords, Pool};
use crate::methods::service_of;
use crate::status::StatusBuilder;

#[expect(
    unreachable_pub,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated: the comments are in the .proto file"
)]
mod pb {
    tonic::include_proto!("grpc.health.v1");
}

/// Descriptors of the health service, as an encoded `FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/health.binpb"));

/// Most services of a List, by the protocol's specification.
pub const MAX_LISTED_SERVICES: usize = 100;

/// Full name of the health service.
pub const SERVICE_NAME: &str = "grpc.health.v1.Health";

/// Largest request message, in bytes, after decompression: names of services are shorter.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// Watches open at a time.
pub const WATCHES_MAX: usize = 4096;

/// Watches of an address (of IPv6, a /64 network) at a time: a gateway has one for each service.
pub const WATCHES_PER_ADDRESS_MAX: usize = 64;

/// Calls in flight at a time, watches included.
pub const CALLS_MAX: usize = 2 * WATCHES_MAX;

/// Calls of an address (of IPv6, a /64 network) in flight at a time: with all its watches open it may still call Check.
pub const CALLS_PER_ADDRESS_MAX: usize = 2 * WATCHES_PER_ADDRESS_MAX;

/// Whether this is the path of an RPC of the health service, which needs no credentials and passes a drain.
pub fn is_path(path: &str) -> bool {
    service_of(path) == SERVICE_NAME
}

/// The health of the services of one process. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The state of each service, by its full name: serving while all its channels hold `true`.
    services: watch::Sender<BTreeMap<String, Vec<watch::Receiver<bool>>>>,
    /// Cancelled when the drain begins.
    pub draining: CancellationToken,
}

impl Health {
    /// Registers a channel with the state of `service` (full name); a service may have several. It is SERVING while all of them hold `true`,
    /// and NOT_SERVING once the sender of one is dropped.
    pub fn register(&self, service: impl Into<String>, serving: watch::Receiver<bool>) {
        self.services.send_modify(|services| {
            services.entry(service.into()).or_default().push(serving);
        });
    }

    /// Whether `service`, or with "" all of them, is serving; `None` when it isn't registered.
    pub fn is_serving(&self, service: &str) -> Option<bool> {
        // A dropped sender can't vouch for its service any more.
        let serves = |serving: &watch::Receiver<bool>| *serving.borrow() && serving.has_changed().is_ok();
        let services = self.services.borrow();
        let serving = match service {
            "" => services.values().flatten().all(serves),
            service => services.get(service)?.iter().all(serves),
        };
        Some(serving && !self.draining.is_cancelled())
    }

    /// Streams [`Self::is_serving`]: its present value, then each change. Ends with the drain, after a `false`. A service that isn't
    /// registered gives `false`.
    pub fn subscribe(&self, service: &str) -> impl Stream<Item = bool> + Send + use<> {
        changes(self.clone(), service.to_owned()).map(|status| status == ServingStatus::Serving)
    }

    /// Makes everything NOT_SERVING for good; watches send that and end.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// The gRPC service. [`crate::server::stack`] mounts it.
    pub fn into_service(self) -> HealthServer<impl HealthRpc> {
        HealthServer::new(HealthService::new(self))
    }

    fn status(&self, service: &str) -> Option<ServingStatus> {
        self.is_serving(service).map(|serving| match serving {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        })
    }
}

/// Streams the status of one service, or with "" of all: the present one, then each change. Ends with the drain.
fn changes(health: Health, service: String) -> impl Stream<Item = ServingStatus> + Send {
    let known = health.services.subscribe();
    stream::unfold((known, None), move |(mut known, last)| {
        let (health, service) = (health.clone(), service.clone());
        async move {
            loop {
                let draining = health.draining.is_cancelled();
                let mut watched: Vec<watch::Receiver<bool>> = {
                    let services = known.borrow_and_update();
                    let chosen = services
                        .iter()
                        .filter(|(name, _)| service.is_empty() || **name == service);
                    chosen.flat_map(|(_, serving)| serving.clone()).collect()
                };
                // Before the status is read, so that no later change is missed. Dropped senders are left out: `changed` would return at once.
                watched.retain_mut(|serving| {
                    serving.mark_unchanged();
                    serving.has_changed().is_ok()
                });
                let now = health.status(&service).unwrap_or(ServingStatus::ServiceUnknown);
                if last != Some(now) {
                    return Some((now, (known, Some(now))));
                }
                if draining {
                    return None;
                }
                let changed = watched.iter_mut().map(|serving| Box::pin(serving.changed()));
                let mut changed = changed.collect::<FuturesUnordered<_>>();
                tokio::select! {
                    Some(_) = changed.next() => {}
                    _ = known.changed() => {}
                    () = health.draining.cancelled() => {}
                }
            }
        }
    })
}

struct HealthService {
    health: Health,
    watches: Arc<Pool>,
}

impl HealthService {
    fn new(health: Health) -> Self {
        let watches = Pool::with_each(WATCHES_MAX, WATCHES_PER_ADDRESS_MAX);
        Self { health, watches }
    }
}

const TOO_MANY_WATCHES: FullWords = [
    (
        "WATCHES_MAX",
        "the server is at its limit of watches of health; ask by Check, or retry with backoff",
    ),
    (
        "WATCHES_PER_ADDRESS_MAX",
        "this address has its share of the server's watches of health; ask by Check, or end others",
    ),
];

/// Sends SERVICE_UNKNOWN once and ends with the drain. All services are registered before a server listens, so nothing else can follow; the
/// stream stays open, since a client whose watch ends begins another at once.
fn unknown(draining: CancellationToken) -> impl Stream<Item = ServingStatus> + Send {
    let never = stream::once(draining.cancelled_owned()).filter_map(|()| std::future::ready(None));
    stream::iter([ServingStatus::ServiceUnknown]).chain(never)
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    let status = status.into();
    HealthCheckResponse { status }
}

#[tonic::async_trait]
impl HealthRpc for HealthService {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        let status = self.health.status(service).ok_or_else(|| {
            let message = "no such service is served here; \"\" asks for all of them";
            let refusal = StatusBuilder::not_found("SERVICE_UNKNOWN", message);
            refusal.metadata("service", service).build()
        })?;
        Ok(Response::new(answer(status)))
    }

    async fn list(&self, _: Request<HealthListRequest>) -> Result<Response<HealthListResponse>, Status> {
        let mut names: Vec<String> = self.health.services.borrow().keys().cloned().collect();
        if names.len() > MAX_LISTED_SERVICES {
            let message = format!(
                "{} services are served here, a list tells of {MAX_LISTED_SERVICES} at most; ask for each by Check",
                names.len()
            );
            return Err(StatusBuilder::resource_exhausted("MAX_LISTED_SERVICES", message).build());
        }
        names.push(String::new());
        let statuses = names.into_iter().filter_map(|name| {
            let status = self.health.status(&name)?;
            Some((name, answer(status)))
        });
        let statuses = statuses.collect();
        Ok(Response::new(HealthListResponse { statuses }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let watcher = CallerKey::probes(request.extensions());
        let taken = self.watches.admit(watcher, TOO_MANY_WATCHES)?;
        let service = request.into_inner().service;
        let statuses = match self.health.status(&service) {
            Some(_) => changes(self.health.clone(), service).left_stream(),
            None => unknown(self.health.draining.clone()).right_stream(),
        };
        Ok(Response::new(Box::pin(statuses.map(move |status| {
            // The watch counts until its stream is dropped.
            let _taken = &taken;
            Ok(answer(status))
        }))))
    }
}

#[cfg(test)]
mod tests;
