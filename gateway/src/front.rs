//! In front of the stack: takes every protocol but gRPC itself to it, so that all calls have the same layers.
//!
//! A gRPC call passes untouched. What may come from a browser is under the rules of [`origins`](crate::origins), and while nobody has
//! to say who they are every request is under those of [`hosts`](crate::hosts). What is answered here is under the layers of the stack,
//! too.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use prost_reflect::DescriptorPool;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::server::Stack;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer as _, Service, ServiceExt as _};
use tower_http::cors::Cors;

use crate::answer::{JSON, empty, own, told, whole};
use crate::config::GatewayConfig;
use crate::connect::Connect;
use crate::grpc_web::{self, GrpcWeb};
use crate::hosts::Hosts;
use crate::json::{self, Json, RouteError, error};
use crate::openapi;

/// Where the OpenAPI document is.
const DOCUMENT: &str = "/openapi.json";

/// Chooses by what a request says it is. Clones share the ways: a clone of a stack is a clone of all its layers, and each
/// call clones what it goes by, no more.
#[derive(Clone)]
pub(crate) struct Front(Arc<Ways>);

struct Ways {
    stack: Stack,
    hosts: Hosts,
    pool: DescriptorPool,
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
            stack: stack.clone(),
            pool: pool.clone(),
            connect: Connect::new(stack.clone(), pool.clone(), config.server.message_bytes_max),
            json: Json::new(
                stack.clone(),
                routes,
                pool.clone(),
                config.server.message_bytes_max,
            ),
        };
        let hosts = match config.auth.knows_callers() {
            true => Hosts::any(),
            false => Hosts::named(&config.auth.hosts),
        };
        Ok(Self(Arc::new(Ways {
            stack,
            hosts,
            pool,
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
        if let Err(refusal) = self.0.hosts.check(&request) {
            return self.0.misled(request, refusal);
        }
        // Without trailers a gRPC call can't end; HTTP/1.1 has none that clients read.
        let grpc = Protocol::of(request.headers()) == Protocol::Grpc && request.version() == Version::HTTP_2;
        if grpc {
            self.0.stack.clone().call(request)
        } else if request.method() == Method::OPTIONS {
            self.0.preflight(request)
        } else {
            Box::pin(self.0.web.clone().oneshot(request))
        }
    }
}

impl Ways {
    /// The answer to a request that was sent to somebody else.
    fn misled(&self, request: Request<Body>, refusal: Status) -> ResponseFuture {
        let response = match Protocol::of(request.headers()) {
            Protocol::Grpc | Protocol::GrpcWeb => refusal.clone().into_http(),
            Protocol::Other => error::response(&self.pool, &refusal),
        };
        own(
            &self.stack,
            &self.pool,
            request.into_parts().0,
            Some(refusal),
            response,
        )
    }

    /// The answer to a browser that asks whether a page may call.
    fn preflight(&self, request: Request<Body>) -> ResponseFuture {
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head.clone(), body);
        let (stack, pool, web) = (self.stack.clone(), self.pool.clone(), self.web.clone());
        Box::pin(async move {
            let answer = web.oneshot(request).map(|Ok(answer)| answer);
            let answered = stack.own_answer(&head, None, answer).await;
            Ok(answered.unwrap_or_else(|refusal| error::response(&pool, &refusal)))
        })
    }
}

/// What may come from a browser.
#[derive(Clone)]
struct Web {
    stack: Stack,
    pool: DescriptorPool,
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
            return own(&self.stack, &self.pool, request.into_parts().0, None, response);
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
            Protocol::GrpcWeb => match grpc_web::refusal(&request) {
                None => self.grpc_web.call(request),
                Some(code) => {
                    let told = told("the method or the content type isn't one of gRPC-Web's");
                    own(&self.stack, &self.pool, request.into_parts().0, told, empty(code))
                }
            },
            Protocol::Grpc => {
                let told = told("gRPC was asked for by HTTP/1.1");
                let response = empty(StatusCode::HTTP_VERSION_NOT_SUPPORTED);
                own(&self.stack, &self.pool, request.into_parts().0, told, response)
            }
            Protocol::Other => self.other(request),
        }
    }
}
