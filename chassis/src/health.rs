//! `grpc.health.v1.Health`: Check, List (gRFC A90), and Watch that really streams.
//!
//! Health is derived, never set: a service hands in what it knows about itself as a `watch` channel, and every answer is read from there. The overall health, of the service named "", is SERVING only while all services
//! are. Once draining, everything is NOT_SERVING and watches end.
//!
//! Whoever comes may ask, so little is kept for it: messages are small, watches have a number, in all and from each address, and nothing is
//! kept of a name that isn't known.
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
use crate::callers::pool::{Columns, Full, Pool};
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

/// Services that a list may tell of, as the protocol wants.
pub const MAX_LISTED_SERVICES: usize = 100;

/// Full name of the health service.
pub const SERVICE_NAME: &str = "grpc.health.v1.Health";

/// Largest message of a question for health, in bytes, after decompression: names of services are shorter.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// Watches at a time.
pub const WATCHES_MAX: usize = 4096;

/// Watches of an address (of IPv6, of 64 bits of one) at a time: a gateway has one for each service.
pub const WATCHES_PER_ADDRESS_MAX: usize = 64;

/// Questions being answered at a time, watches among them.
pub const QUESTIONS_MAX: usize = 2 * WATCHES_MAX;

/// Questions of an address (of IPv6, of 64 bits of one) being answered at a time: where it has all its watches, it may still ask by Check.
pub const QUESTIONS_PER_ADDRESS_MAX: usize = 2 * WATCHES_PER_ADDRESS_MAX;

/// Is this the path of a question for health? It passes where others are turned away, and is asked in few words.
pub fn is_asked(path: &str) -> bool {
    path.strip_prefix('/')
        .and_then(|path| path.strip_prefix(SERVICE_NAME))
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Whether each service is serving, by its full name: it is while all who serve it are.
type Services = BTreeMap<String, Vec<watch::Receiver<bool>>>;

/// The health of the services of one process. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    services: watch::Sender<Services>,
    draining: CancellationToken,
}

impl Health {
    /// No service yet; overall SERVING.
    pub fn new() -> Self {
        Self::default()
    }

    /// `service` (full name) is SERVING while the channel holds `true`, and NOT_SERVING once its sender is gone. A service with
    /// several channels is SERVING while it is by all of them.
    pub fn watch(&self, service: impl Into<String>, serving: watch::Receiver<bool>) {
        self.services.send_modify(|services| {
            services.entry(service.into()).or_default().push(serving);
        });
    }

    /// Is this service, or with "" are all, serving? `None` when there is no such service.
    pub fn is_serving(&self, service: &str) -> Option<bool> {
        // A sender that is gone can't vouch for its service any more.
        let serves = |serving: &watch::Receiver<bool>| *serving.borrow() && serving.has_changed().is_ok();
        let services = self.services.borrow();
        let serving = match service {
            "" => services.values().flatten().all(serves),
            service => services.get(service)?.iter().all(serves),
        };
        Some(serving && !self.draining.is_cancelled())
    }

    /// Whether `service`, or with "" all of them, is serving: as it is now, then each change. Ends with the drain, after
    /// a `false`; a service that isn't known is not serving.
    pub fn subscribe(&self, service: &str) -> impl Stream<Item = bool> + Send + use<> {
        changes(self.clone(), service.to_owned()).map(|status| status == ServingStatus::Serving)
    }

    /// Cancelled when the drain begins.
    pub fn draining(&self) -> CancellationToken {
        self.draining.clone()
    }

    /// From now on NOT_SERVING, for good; every watch says so and ends.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// The gRPC service. [`crate::server::stack`] mounts it.
    pub fn into_service(self) -> HealthServer<impl HealthRpc> {
        HealthServer::new(Endpoint::new(self))
    }

    fn status(&self, service: &str) -> Option<ServingStatus> {
        self.is_serving(service).map(|serving| match serving {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        })
    }
}

/// Changes of one service's health, starting with how it is now; ends with the drain.
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
                // What changes from now on is heard. A sender that is gone was heard of already.
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

struct Endpoint {
    health: Health,
    watches: Arc<Pool>,
}

impl Endpoint {
    fn new(health: Health) -> Self {
        let watches = Pool::with_each(WATCHES_MAX, WATCHES_PER_ADDRESS_MAX);
        Self { health, watches }
    }
}

fn too_many(full: Full) -> Status {
    let all = "the server is at its limit of watches of health; ask by Check, or retry with backoff";
    let share = "this address has its share of the server's watches of health; ask by Check, or end others";
    full.refusal(
        ("WATCHES_MAX", all, WATCHES_MAX),
        ("WATCHES_PER_ADDRESS_MAX", share, WATCHES_PER_ADDRESS_MAX),
    )
}

/// The only answer to a watch of a service that isn't known, and the end with the drain. The stream stays open, as the protocol wants: a client
/// whose watch ends begins another at once.
fn unknown(draining: CancellationToken) -> impl Stream<Item = ServingStatus> + Send {
    let never = stream::once(draining.cancelled_owned()).filter_map(|()| std::future::ready(None));
    stream::iter([ServingStatus::ServiceUnknown]).chain(never)
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}

#[tonic::async_trait]
impl HealthRpc for Endpoint {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        let status = self.health.status(service).ok_or_else(|| {
            let message = "no such service is served here; \"\" asks for all of them";
            StatusBuilder::not_found("SERVICE_UNKNOWN", message)
                .metadata("service", service)
                .build()
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
        Ok(Response::new(HealthListResponse {
            statuses: statuses.collect(),
        }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let watcher = CallerKey::probes(request.extensions());
        let watcher = watcher.as_ref().map(Columns::of);
        let taken = self.watches.take(watcher).map_err(too_many)?;
        let service = request.into_inner().service;
        let statuses = match self.health.status(&service) {
            Some(_) => changes(self.health.clone(), service).left_stream(),
            None => unknown(self.health.draining()).right_stream(),
        };
        Ok(Response::new(Box::pin(statuses.map(move |status| {
            let _held = &taken;
            Ok(answer(status))
        }))))
    }
}

#[cfg(test)]
mod tests;
