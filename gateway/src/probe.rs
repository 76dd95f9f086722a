//! Probes whether the processes of a backend refuse calls without a credential.
//!
//! A service that was started without the shared credential key doesn't tell callers apart, and serves the rows of all. So a gateway
//! that authenticates has each process refuse a call before it counts as serving. The RPC doesn't exist: the call has no effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::CONTENT_TYPE;
use http::uri::PathAndQuery;
use http::{Request, Uri};
use souk_access::refusal::CALLER_UNPROVEN;
use souk_chassis::client::{CallError, Channel};
use souk_chassis::layers::deadline::GRPC_TIMEOUT;
use souk_chassis::status::{reason, status_in};
use tonic::body::Body;
use tonic::{Code, Status};
use tower::Service as _;

/// The RPC that is called, of a service of the backend.
const METHOD: &str = "ProbeWithoutCaller";
/// Longest time that a process may take to refuse the call, as the value of `grpc-timeout`.
const TIMEOUT: &str = "5S";

/// A process of a backend to probe, on the channel that its health is watched by.
pub(crate) struct Probe {
    pub(crate) backend: Arc<str>,
    pub(crate) address: Uri,
    pub(crate) channel: Channel,
    /// Whether the gateway authenticates callers: else it isn't probed.
    pub(crate) authenticates_callers: bool,
    /// Whether the last probe wasn't refused. Changes are logged.
    pub(crate) was_answered: AtomicBool,
}

impl Probe {
    /// Whether the process refuses calls without a credential; an error while it can't be reached or is too busy to answer.
    pub(crate) async fn refuses_unproven(&self, service: &str) -> Result<bool, Status> {
        let status = self.call(service).await?;
        let refused = match status.code() {
            Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted | Code::Cancelled => {
                return Err(status);
            }
            code => code == Code::Unauthenticated && reason(&status).as_deref() == Some(CALLER_UNPROVEN),
        };
        let (backend, address) = (&self.backend, &self.address);
        match (refused, self.was_answered.swap(!refused, Ordering::Relaxed)) {
            (false, false) => tracing::error!(
                %backend,
                %address,
                answer = ?status.code(),
                "this backend answers calls that prove no caller, and so counts as not serving: start it with the gateway's auth.credential_key"
            ),
            (true, true) => {
                tracing::info!(%backend, %address, "this backend refuses calls that prove no caller by now")
            }
            _ => {}
        }
        Ok(refused)
    }

    /// Sends the probe. Its status is that of the response headers, OK where they have none: refusals are headers alone.
    async fn call(&self, service: &str) -> Result<Status, Status> {
        let path = PathAndQuery::try_from(format!("/{service}/{METHOD}"));
        let path = path.map_err(|_| Status::internal("the service has no name for a path"))?;
        let request = Request::post(Uri::from(path))
            .header(CONTENT_TYPE, "application/grpc")
            .header(GRPC_TIMEOUT, TIMEOUT)
            .body(Body::empty())
            .map_err(|_| Status::internal("the request of the probe can't be made"))?;
        let answered = self.channel.clone().call(request).await;
        let response = answered.map_err(|error| match error {
            CallError::NoAnswer(status) | CallError::TimedOut(status) | CallError::Request(status) => status,
        })?;
        Ok(status_in(response.headers()).unwrap_or_else(|| Status::ok("")))
    }
}
