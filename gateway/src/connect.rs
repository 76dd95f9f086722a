//! The Connect protocol (<https://connectrpc.com/docs/protocol>), version 1: every RPC with a single request message, by POST under its own
//! path; unary ones without side effects by GET, too.
//!
//! Everything is read from the descriptors, and a request becomes a gRPC call to the stack, as with [`json`](crate::json). `request`:
//! headers and messages of requests; `answer`: responses.

use std::collections::HashMap;
use std::sync::Arc;

use http::header::{ALLOW, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode};
use prost_reflect::{MessageDescriptor, MethodDescriptor};
use souk_chassis::health;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::deadline::AnsweredWhole;
use tonic::body::Body;
use tower::ServiceExt as _;

mod answer;
mod request;

use crate::answer::empty;
use crate::behind::Behind;
use crate::json::rpc_path;
use crate::one_message::grpc_request;
use request::{Asked, Shape};

const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");

/// All RPCs that can be called by Connect. Clones share it.
#[derive(Clone)]
pub(crate) struct Connect {
    behind: Behind,
    /// By their paths.
    methods: Arc<HashMap<String, (PathAndQuery, MethodDescriptor)>>,
}

impl Connect {
    pub(crate) fn new(behind: Behind) -> Self {
        let services = behind.pool.services();
        let methods = services
            .flat_map(|service| service.methods().collect::<Vec<_>>())
            .filter(|method| !method.is_client_streaming())
            .filter_map(|method| Some((rpc_path(&method)?, method)))
            .map(|(path, method)| (path.to_string(), (path, method)));
        let methods = Arc::new(methods.collect());
        Self { behind, methods }
    }

    /// Whether `path` is that of an RPC: of one that [`Self::call`] serves, or of one of the stack that it refuses.
    pub(crate) fn knows(&self, path: &str) -> bool {
        self.methods.contains_key(path) || self.behind.stack.methods.known(path).is_some()
    }

    /// Serves a request to a path that it [`knows`](Self::knows).
    pub(crate) fn call(&self, mut request: Request<Body>) -> ResponseFuture {
        let Some((path, method)) = self.methods.get(request.uri().path()) else {
            // The RPC takes a stream of requests.
            return self.unsupported(request, StatusCode::UNSUPPORTED_MEDIA_TYPE, None);
        };
        let streams = method.is_server_streaming();
        let by_get = !streams && self.behind.stack.methods.of(path.as_str()).repeatable;
        let shape = match *request.method() {
            Method::POST => Shape::of(request.headers()),
            Method::GET if by_get => Shape::of_query(request.uri().query().unwrap_or_default()),
            _ => {
                let allowed = (ALLOW, if by_get { "GET, POST" } else { "POST" });
                return self.unsupported(request, StatusCode::METHOD_NOT_ALLOWED, Some(allowed));
            }
        };
        let Some(shape) = shape.filter(|shape| shape.streams == streams) else {
            let accepted = (ACCEPT_POST, request::media_types(streams));
            return self.unsupported(request, StatusCode::UNSUPPORTED_MEDIA_TYPE, Some(accepted));
        };
        // Health calls need no credentials, so their messages are small.
        let bytes_max = match health::is_path(path.as_str()) {
            true => health::MESSAGE_BYTES_MAX.min(self.behind.bytes_max),
            false => self.behind.bytes_max,
        };
        match Asked::read(shape, method.input(), &mut request, bytes_max) {
            Ok(asked) => {
                let bytes_max = bytes_max + asked.envelope_bytes();
                let (weighed, message) = (asked.clone(), asked.clone());
                let work = move |body: &[u8]| weighed.work(body);
                let read = move |body: &[u8]| message.message(body);
                let request = grpc_request(path.clone(), request, work, read, bytes_max);
                self.forward(method.output(), asked, request)
            }
            Err(status) => {
                let response = answer::error(&self.behind.pool, shape, &status);
                self.behind.refuse(request, &status, response)
            }
        }
    }

    /// Refuses a request by its HTTP code and a header alone.
    fn unsupported(
        &self,
        request: Request<Body>,
        code: StatusCode,
        header: Option<(HeaderName, &'static str)>,
    ) -> ResponseFuture {
        let mut response = empty(code);
        let header = header.map(|(name, value)| (name, HeaderValue::from_static(value)));
        response.headers_mut().extend(header);
        let message = "the method or the content type isn't one that the RPC is called by";
        self.behind.unsupported(request, response, message)
    }

    /// Passes the gRPC call to the stack, and translates its response, whose messages are of this `kind`.
    fn forward(&self, kind: MessageDescriptor, asked: Asked, mut request: Request<Body>) -> ResponseFuture {
        let behind = self.behind.clone();
        let ends = behind.times.ends(request.headers());
        if !asked.shape.streams {
            request.extensions_mut().insert(AnsweredWhole);
        }
        Box::pin(async move {
            let response = behind.stack.oneshot(request).await?;
            let (pool, bytes_max) = (behind.pool, behind.bytes_max);
            Ok(if asked.shape.streams {
                answer::stream(response, asked.shape, kind, pool, bytes_max)
            } else {
                answer::unary(response, &asked, kind, &pool, bytes_max, ends).await
            })
        })
    }
}

#[cfg(test)]
mod tests;
