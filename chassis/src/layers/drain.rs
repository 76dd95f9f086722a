//! The gate that closes when the process goes down: new calls are turned away, those under way are counted.
//!
//! Health checks pass: they are how clients learn that the server is going.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tower::{Layer, Service};

use super::outcome::hold_until_end;
use super::{Inner, ResponseFuture, is_health, refuse};
use crate::status::StatusBuilder;

/// When a client that was turned away should come back: another process should have taken over by then.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The gate. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct DrainGate(Arc<Gate>);

/// Behind one pointer: a token's clone takes its lock, and each call clones the gate.
#[derive(Debug, Default)]
struct Gate {
    closed: CancellationToken,
    calls: TaskTracker,
}

impl DrainGate {
    /// An open gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns new calls away from now on.
    pub fn close(&self) {
        self.0.closed.cancel();
        self.0.calls.close();
    }

    /// Is it closed?
    pub fn is_closed(&self) -> bool {
        self.0.closed.is_cancelled()
    }

    /// Calls under way, streams among them; health checks aren't counted.
    pub fn in_flight(&self) -> usize {
        self.0.calls.len()
    }

    /// Waits until the gate is closed and no call is under way.
    pub async fn drained(&self) {
        self.0.calls.wait().await;
    }
}

/// Puts calls through a [`DrainGate`].
#[derive(Clone, Debug)]
pub struct DrainLayer(DrainGate);

impl DrainLayer {
    /// Calls go through `gate`.
    pub fn new(gate: DrainGate) -> Self {
        Self(gate)
    }
}

impl<S> Layer<S> for DrainLayer {
    type Service = Drain<S>;

    fn layer(&self, inner: S) -> Drain<S> {
        Drain {
            inner,
            gate: self.0.clone(),
        }
    }
}

/// See [`DrainLayer`].
#[derive(Clone, Debug)]
pub struct Drain<S> {
    inner: S,
    gate: DrainGate,
}

impl<S: Inner> Service<Request<Body>> for Drain<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        if is_health(request.uri().path()) {
            return Box::pin(self.inner.call(request));
        }
        // IMPORTANT: count first, look second; the other way round a call could slip in uncounted.
        let counted = self.gate.0.calls.token();
        if self.gate.is_closed() {
            let message = "the server is shutting down; retry, another one will answer";
            let status = StatusBuilder::unavailable("DRAINING", message).retry_after(RETRY_AFTER);
            return Box::pin(std::future::ready(Ok(refuse(status))));
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            Ok(hold_until_end(response, counted))
        })
    }
}

#[cfg(test)]
mod tests;
