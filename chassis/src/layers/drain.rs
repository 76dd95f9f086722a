//! Refuses new calls during a drain, and counts those in flight.
//!
//! Health checks pass: by them clients learn that the server is draining.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::Request;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;

use super::body::hold_until_dropped;
use super::{Answering, Around, Inner, refused};
use crate::health;
use crate::status::{RETRY_AFTER, StatusBuilder};

/// The layer, open at first. Clones share the gate.
#[derive(Clone, Debug, Default)]
pub struct DrainGate(Arc<Gate>);

/// Behind one pointer: a token's clone takes its lock, and each call clones the gate.
#[derive(Debug, Default)]
struct Gate {
    closed: CancellationToken,
    calls: TaskTracker,
}

impl DrainGate {
    /// Refuses new calls from now on.
    pub fn close(&self) {
        self.0.closed.cancel();
        self.0.calls.close();
    }

    /// Calls in flight, streams included, health checks not.
    pub fn in_flight(&self) -> usize {
        self.0.calls.len()
    }

    /// Waits until the gate is closed and no call is in flight.
    pub async fn drained(&self) {
        self.0.calls.wait().await;
    }
}

impl Around for DrainGate {
    fn call(&self, inner: &impl Inner, request: Request<Body>) -> impl Answering {
        // IMPORTANT: count first, look second; the other way round a call could slip in uncounted.
        let counted = (!health::is_path(request.uri().path())).then(|| self.0.calls.token());
        if counted.is_some() && self.0.closed.is_cancelled() {
            let message = "the server is shutting down; retry, another one will answer";
            let status = StatusBuilder::unavailable("DRAINING", message).retry_after(RETRY_AFTER);
            return Either::Right(refused(status));
        }
        let answer = inner.call(request);
        Either::Left(answer.map(|response| hold_until_dropped(response, counted)))
    }
}

#[cfg(test)]
mod tests;
