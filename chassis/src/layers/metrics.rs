//! `rpc.server.call.duration` and `rpc.client.call.duration`: how long calls take, by method and code, in seconds; and how
//! big responses are.
//!
//! The labels come from the descriptors and the list of codes, so their number is bounded whatever clients send.

use std::convert::Infallible;
use std::task::{Context, Poll};

use http::{Request, Response, Uri};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use tokio::time::Instant;
use tonic::Code;
use tonic::body::Body;
use tower::{Layer, Service};

use super::deadline::Deadline;
use super::outcome::{Observer, Outcome, Watch};
use super::trace::{METHOD_OTHER, code_name, is_server_fault};
use super::{Inner, ResponseFuture, take_ready};
use crate::methods::Methods;
use crate::telemetry::instrument::{Histogram, whole};
use crate::telemetry::instruments::{CLIENT_DURATION, RESPONSE_SIZE, SERVER_DURATION};

/// Measures calls. See the [module](self).
#[derive(Clone, Debug)]
pub struct MetricsLayer {
    duration: Histogram,
    side: Side,
    methods: Methods,
}

/// Which end of the calls is measured.
#[derive(Clone, Debug)]
enum Side {
    /// With the sizes of the responses.
    Server(Histogram),
    /// With where the calls go.
    Client(Vec<KeyValue>),
}

impl MetricsLayer {
    /// `rpc.server.call.duration` and `rpc.server.response.size` on `meter`.
    pub fn server(methods: Methods, meter: &Meter) -> Self {
        Self {
            duration: SERVER_DURATION.histogram(meter),
            side: Side::Server(RESPONSE_SIZE.histogram(meter)),
            methods,
        }
    }

    /// `rpc.client.call.duration` of calls to `peer`, on `meter`. For a peer in this process, any URI that names it.
    pub fn client(methods: Methods, peer: &Uri, meter: &Meter) -> Self {
        let mut labels = vec![KeyValue::new(
            "server.address",
            peer.host().unwrap_or_default().to_owned(),
        )];
        labels.extend(
            peer.port_u16()
                .map(|port| KeyValue::new("server.port", i64::from(port))),
        );
        Self {
            duration: CLIENT_DURATION.histogram(meter),
            side: Side::Client(labels),
            methods,
        }
    }
}

impl<S> Layer<S> for MetricsLayer {
    type Service = Metrics<S>;

    fn layer(&self, inner: S) -> Metrics<S> {
        Metrics {
            inner,
            layer: self.clone(),
        }
    }
}

/// See [`MetricsLayer`].
#[derive(Clone, Debug)]
pub struct Metrics<S> {
    inner: S,
    layer: MetricsLayer,
}

impl<S: Inner> Service<Request<Body>> for Metrics<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        let method = self
            .layer
            .methods
            .known(request.uri().path())
            .unwrap_or(METHOD_OTHER)
            .to_owned();
        let call = Call {
            layer: self.layer.clone(),
            method,
            started: Instant::now(),
            sent: 0,
        };
        let watch = match self.layer.side {
            Side::Server(_) => Watch::new(call),
            Side::Client(_) => Watch::within(call, Deadline::of(&request)),
        };
        let mut inner = take_ready(&mut self.inner);
        Box::pin(async move {
            let response = inner.call(request).await?;
            Ok(watch.follow(response))
        })
    }
}

/// A call under way.
struct Call {
    layer: MetricsLayer,
    method: String,
    started: Instant,
    /// Bytes of the response.
    sent: usize,
}

impl Observer for Call {
    fn sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes);
    }

    fn ended(self, outcome: Outcome) {
        let code = code_name(outcome.code);
        let mut labels = vec![
            KeyValue::new("rpc.system.name", "grpc"),
            KeyValue::new("rpc.method", self.method),
            KeyValue::new("rpc.status_code", code),
        ];
        let failed = match &self.layer.side {
            Side::Server(sizes) => {
                // A body is far below where a double stops being exact.
                sizes.record(whole(self.sent) as f64, labels.get(..2).unwrap_or_default());
                is_server_fault(outcome.code)
            }
            Side::Client(peer) => {
                labels.extend_from_slice(peer);
                outcome.code != Code::Ok
            }
        };
        if failed {
            labels.push(KeyValue::new("error.type", code));
        }
        self.layer
            .duration
            .record(self.started.elapsed().as_secs_f64(), &labels);
    }
}

#[cfg(test)]
mod tests;
