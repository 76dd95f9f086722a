//! The protocol of Connect (<https://connectrpc.com/docs/protocol>), version 1: every RPC with one request, by POST under
//! its own path; those without side effects by GET, too.
//!
//! Everything is read from the descriptors: no RPC is named here. A request becomes a gRPC call to the stack behind, so its
//! span, its limits and its errors are those of every call.
//!
//! - `request`: what a request says of itself, and its message.
//! - `answer`: messages, streams and errors.

use std::collections::HashMap;
use std::sync::Arc;

use http::header::{ALLOW, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use prost_reflect::{DescriptorPool, MethodDescriptor};
use souk_chassis::health;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::server::Stack;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::ServiceExt as _;

mod answer;
mod request;

use crate::answer::{done, empty, own, told};
use crate::one_message::grpc_request;
use request::{Asked, Message, Shape};

/// Says what a POST may be of.
const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");

/// All RPCs that can be called by Connect. Clones share it.
#[derive(Clone)]
pub(crate) struct Connect {
    stack: Stack,
    /// By their paths.
    methods: Arc<HashMap<String, MethodDescriptor>>,
    pool: DescriptorPool,
    bytes_max: usize,
}

impl Connect {
    /// Calls of the RPCs in `pool` to `stack`; requests and answers have at most `bytes_max` bytes.
    pub(crate) fn new(stack: Stack, pool: DescriptorPool, bytes_max: usize) -> Self {
        let methods = pool
            .services()
            .flat_map(|service| service.methods().collect::<Vec<_>>())
            .filter(|method| !method.is_client_streaming())
            .map(|method| {
                let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
                (path, method)
            })
            .collect();
        Self {
            stack,
            methods: Arc::new(methods),
            pool,
            bytes_max,
        }
    }

    /// Whether `path` is that of an RPC, of the contract or of the stack's own.
    pub(crate) fn knows(&self, path: &str) -> bool {
        self.methods.contains_key(path) || self.stack.methods().known(path).is_some()
    }

    /// Answers a request under the path of an RPC.
    pub(crate) fn call(&self, request: Request<Body>) -> ResponseFuture {
        let path = request.uri().path().to_owned();
        let Some(method) = self.methods.get(&path) else {
            // It takes a stream.
            return self.own(request, empty(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        };
        let by_get = !method.is_server_streaming() && self.stack.methods().is_repeatable(&path);
        let shape = match *request.method() {
            Method::POST => Shape::of(request.headers()),
            Method::GET if by_get => Shape::of_query(request.uri().query().unwrap_or_default()),
            _ => {
                let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
                let allowed = HeaderValue::from_static(if by_get { "GET, POST" } else { "POST" });
                response.headers_mut().insert(ALLOW, allowed);
                return self.own(request, response);
            }
        };
        let Some(shape) = shape.filter(|shape| shape.streams == method.is_server_streaming()) else {
            let mut response = empty(StatusCode::UNSUPPORTED_MEDIA_TYPE);
            let accepted = HeaderValue::from_static(request::media_types(method.is_server_streaming()));
            response.headers_mut().insert(ACCEPT_POST, accepted);
            return self.own(request, response);
        };
        let mut request = request;
        // Whoever may call is heard about health, so in few words.
        let bytes_max = match health::is_asked(&path) {
            true => health::MESSAGE_BYTES_MAX.min(self.bytes_max),
            false => self.bytes_max,
        };
        let read = Asked::read(shape, &mut request).and_then(|asked| {
            let message = Message::new(&asked, method.input(), &request, bytes_max)?;
            Ok((asked, message))
        });
        let refused = |status: &Status| answer::error(&self.pool, shape, status);
        match read {
            Ok((asked, message)) => {
                let bytes_max = bytes_max + asked.envelope_bytes();
                match grpc_request(&path, request, message, bytes_max) {
                    Ok(request) => self.forward(method.clone(), asked, request),
                    Err(status) => done(refused(&status)),
                }
            }
            Err(status) => {
                let response = refused(&status);
                // An encoding that isn't known here is the caller's choice, and no fault of the server.
                let told = Status::with_details(
                    Code::InvalidArgument,
                    status.message(),
                    status.details().to_vec().into(),
                );
                own(
                    &self.stack,
                    &self.pool,
                    request.into_parts().0,
                    Some(told),
                    response,
                )
            }
        }
    }

    /// An answer that its HTTP code says all of.
    fn own(&self, request: Request<Body>, response: Response<Body>) -> ResponseFuture {
        let told = told("the method or the content type isn't one that the RPC is called by");
        own(&self.stack, &self.pool, request.into_parts().0, told, response)
    }

    /// Sends a call on, and writes its answer.
    fn forward(&self, method: MethodDescriptor, asked: Asked, request: Request<Body>) -> ResponseFuture {
        let (stack, pool, bytes_max) = (self.stack.clone(), self.pool.clone(), self.bytes_max);
        Box::pin(async move {
            let response = stack.oneshot(request).await?;
            let kind = method.output();
            Ok(if asked.shape.streams {
                answer::stream(response, asked.shape, kind, pool, bytes_max)
            } else {
                answer::unary(response, &asked, kind, &pool, bytes_max).await
            })
        })
    }
}

#[cfg(test)]
mod tests;
