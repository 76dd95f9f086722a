//! `rpc.server.call.duration` and `rpc.client.call.duration`: how long calls take, by method and code, in seconds; and how
//! big responses are.
//!
//! The labels come from the descriptors and the list of codes, so their number is bounded whatever clients send.

use std::sync::Arc;

use futures_util::FutureExt as _;
use http::{Request, Uri};
use opentelemetry::metrics::Meter;
use opentelemetry::{KeyValue, StringValue};
use rustc_hash::FxHashMap;
use tokio::time::Instant;
use tonic::Code;
use tonic::body::Body;

use super::deadline::Deadline;
use super::outcome::{CallObserver, Outcome, Watch, code_of};
use super::{Answering, Around, Inner, peer_attributes};
use crate::methods::{METHOD_OTHER, Methods};
use crate::status::{code_name, is_server_fault};
use crate::telemetry::instrument::{Histogram, whole};
use crate::telemetry::instruments::{CLIENT_DURATION, RESPONSE_SIZE, SERVER_DURATION};

/// Measures calls. See the [module](self).
#[derive(Clone, Debug)]
pub struct MetricsLayer(Arc<Measured>);

#[derive(Debug)]
struct Measured {
    duration: Histogram,
    /// The sizes of the responses, where we answer; `None` where we ask.
    sizes: Option<Histogram>,
    /// What every call has behind its own labels.
    peer: Vec<KeyValue>,
    methods: Methods,
    /// The labels of the answer OK, by method: almost all calls have them.
    usual: FxHashMap<Arc<str>, Vec<KeyValue>>,
}

/// Labels in front that all calls of a method have.
const OF_THE_METHOD: usize = 2;

fn labels(method: StringValue, code: Code, peer: &[KeyValue]) -> Vec<KeyValue> {
    let mut labels = vec![
        KeyValue::new("rpc.system.name", "grpc"),
        KeyValue::new("rpc.method", method),
        KeyValue::new("rpc.status_code", code_name(code)),
    ];
    labels.extend_from_slice(peer);
    labels
}

impl MetricsLayer {
    /// `rpc.server.call.duration` and `rpc.server.response.size` on `meter`.
    pub fn server(methods: Methods, meter: &Meter) -> Self {
        let sizes = Some(RESPONSE_SIZE.histogram(meter));
        Self::new(SERVER_DURATION.histogram(meter), sizes, Vec::new(), methods)
    }

    /// `rpc.client.call.duration` of calls to `peer`, on `meter`. For a peer in this process, any URI that names it.
    pub fn client(methods: Methods, peer: &Uri, meter: &Meter) -> Self {
        let peer = peer_attributes(peer);
        Self::new(CLIENT_DURATION.histogram(meter), None, peer, methods)
    }

    fn new(duration: Histogram, sizes: Option<Histogram>, peer: Vec<KeyValue>, methods: Methods) -> Self {
        let usual = |name: &Arc<str>| (Arc::clone(name), labels(Arc::clone(name).into(), Code::Ok, &peer));
        let usual = methods.names().map(usual).collect();
        Self(Arc::new(Measured {
            duration,
            sizes,
            peer,
            methods,
            usual,
        }))
    }
}

impl Around for MetricsLayer {
    fn call(&self, inner: &impl Inner, request: Request<Body>) -> impl Answering {
        let measured = &self.0;
        let call = MeasuredCall {
            measured: Arc::clone(measured),
            method: measured.methods.known(request.uri().path()).cloned(),
            started: Instant::now(),
            sent: 0,
        };
        let is_client = measured.sizes.is_none();
        let watch = Watch::new(call, is_client.then(|| Deadline::of(&request)).flatten());
        inner.call(request).map(|response| watch.follow(response))
    }
}

struct MeasuredCall {
    measured: Arc<Measured>,
    /// `None` of what no descriptor knows.
    method: Option<Arc<str>>,
    started: Instant,
    sent: usize,
}

impl CallObserver for MeasuredCall {
    fn sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes);
    }

    fn ended(self, outcome: Outcome) {
        let measured = &*self.measured;
        let code = code_of(&outcome);
        let usual = self.method.as_ref().filter(|_| code == Code::Ok);
        if let Some(labels) = usual.and_then(|method| measured.usual.get(method)) {
            return self.record(labels);
        }
        let method = self.method.clone().map_or(METHOD_OTHER.into(), StringValue::from);
        let mut labels = labels(method, code, &measured.peer);
        let failed = match &measured.sizes {
            Some(_) => is_server_fault(code),
            None => code != Code::Ok,
        };
        if failed {
            labels.push(KeyValue::new("error.type", code_name(code)));
        }
        self.record(&labels);
    }
}

impl MeasuredCall {
    fn record(&self, labels: &[KeyValue]) {
        if let Some(sizes) = &self.measured.sizes {
            let labels = labels.get(..OF_THE_METHOD).unwrap_or_default();
            // A body is far below where a double stops being exact.
            sizes.record(whole(self.sent) as f64, labels);
        }
        let took = self.started.elapsed().as_secs_f64();
        self.measured.duration.record(took, labels);
    }
}

#[cfg(test)]
mod tests;
