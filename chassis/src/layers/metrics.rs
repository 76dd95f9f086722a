//! `rpc.server.call.duration` and `rpc.client.call.duration`: how long calls take, by method and code, in seconds.
//!
//! The labels come from the descriptors and the list of codes, so their number is bounded whatever clients send.

use std::convert::Infallible;
use std::task::{Context, Poll};

use http::{Request, Response};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};
use tokio::time::Instant;
use tonic::Code;
use tonic::body::Body;
use tower::{Layer, Service};

use super::outcome::{Observer, Outcome, Watch};
use super::trace::{METHOD_OTHER, code_name, is_server_fault};
use super::{Inner, ResponseFuture, take_ready};
use crate::methods::Methods;

/// Bucket bounds the conventions recommend, in seconds.
pub const BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

/// Measures calls. See the [module](self).
#[derive(Clone, Debug)]
pub struct MetricsLayer {
    duration: Histogram<f64>,
    server: bool,
    methods: Methods,
}

impl MetricsLayer {
    /// `rpc.server.call.duration` on `meter`.
    pub fn server(methods: Methods, meter: &Meter) -> Self {
        Self {
            duration: histogram(meter, "rpc.server.call.duration"),
            server: true,
            methods,
        }
    }

    /// `rpc.client.call.duration` on `meter`.
    pub fn client(methods: Methods, meter: &Meter) -> Self {
        Self {
            duration: histogram(meter, "rpc.client.call.duration"),
            server: false,
            methods,
        }
    }
}

fn histogram(meter: &Meter, name: &'static str) -> Histogram<f64> {
    let builder = meter
        .f64_histogram(name)
        .with_unit("s")
        .with_boundaries(BUCKETS.to_vec());
    builder
        .with_description("Duration of calls, from the first header to the end of the response")
        .build()
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
        let watch = Watch::new(Call {
            layer: self.layer.clone(),
            method,
            started: Instant::now(),
        });
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
}

impl Observer for Call {
    fn ended(self, outcome: Outcome) {
        let code = code_name(outcome.code);
        let mut labels = vec![
            KeyValue::new("rpc.system.name", "grpc"),
            KeyValue::new("rpc.method", self.method),
            KeyValue::new("rpc.status_code", code),
        ];
        let failed = if self.layer.server {
            is_server_fault(outcome.code)
        } else {
            outcome.code != Code::Ok
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
