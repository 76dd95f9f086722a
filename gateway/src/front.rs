//! In front of the stack: takes every protocol but gRPC itself to it, so that all calls have the same layers.
//!
//! A gRPC call passes untouched. What may come from a browser is under the rules of [`origins`](crate::origins).

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use souk_chassis::layers::ResponseFuture;
use souk_chassis::server::Stack;
use tonic::body::Body;
use tower::{Layer as _, Service};
use tower_http::cors::Cors;

use crate::answer::{JSON, done, empty, whole};
use crate::config::GatewayConfig;
use crate::connect::Connect;
use crate::grpc_web::GrpcWeb;
use crate::json::{self, Json, RouteError};
use crate::openapi;

/// Where the OpenAPI document is.
const DOCUMENT: &str = "/openapi.json";

/// Chooses by what a request says it is. Clones share the ways: a clone of a stack is a clone of all its layers, and each
/// call clones what it goes by, no more.
#[derive(Clone)]
pub(crate) struct Front(Arc<Ways>);

struct Ways {
    stack: Stack,
    web: Cors<Web>,
}

impl Front {
    /// # Errors
    /// When the rules of the contract can't be used.
    pub(crate) fn new(stack: Stack, config: &GatewayConfig) -> Result<Self, RouteError> {
        let pool = json::pool()?;
        let routes = json::read_all(&pool)?;
        let web = Web {
            grpc_web: GrpcWeb::new(stack.clone()),
            document: openapi::document(&pool, &routes).to_string().into(),
            connect: Connect::new(stack.clone(), pool.clone(), config.server.message_bytes_max),
            json: Json::new(stack.clone(), routes, pool, config.server.message_bytes_max),
        };
        Ok(Self(Arc::new(Ways {
            stack,
            web: config.web.layer().layer(web),
        })))
    }
}

/// The protocols by which calls come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Grpc,
    GrpcWeb,
    Other,
}

impl Protocol {
    fn of(headers: &HeaderMap) -> Self {
        let content_type = headers
            .get(CONTENT_TYPE)
            .map_or(&[][..], |value| value.as_bytes());
        match content_type.strip_prefix(b"application/grpc") {
            Some(rest) if rest.starts_with(b"-web") => Self::GrpcWeb,
            Some(_) => Self::Grpc,
            None => Self::Other,
        }
    }
}

impl Service<Request<Body>> for Front {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Each call waits for what it goes to.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        // Without trailers a gRPC call can't end; HTTP/1.1 has none that clients read.
        let grpc = Protocol::of(request.headers()) == Protocol::Grpc && request.version() == Version::HTTP_2;
        if grpc {
            self.0.stack.clone().call(request)
        } else {
            Box::pin(tower::ServiceExt::oneshot(self.0.web.clone(), request))
        }
    }
}

/// What may come from a browser.
#[derive(Clone)]
struct Web {
    grpc_web: GrpcWeb,
    connect: Connect,
    json: Json,
    document: Bytes,
}

impl Web {
    /// The answer to what is neither gRPC nor gRPC-Web.
    fn other(&self, request: Request<Body>) -> ResponseFuture {
        let path = request.uri().path();
        if path == DOCUMENT && request.method() == Method::GET {
            let mut response = Response::new(whole(self.document.clone()));
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            return done(response);
        }
        if self.connect.knows(path) {
            return self.connect.call(request);
        }
        self.json.call(request)
    }
}

impl Service<Request<Body>> for Web {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        match Protocol::of(request.headers()) {
            Protocol::GrpcWeb => self.grpc_web.call(request),
            Protocol::Grpc => done(empty(StatusCode::HTTP_VERSION_NOT_SUPPORTED)),
            Protocol::Other => self.other(request),
        }
    }
}
