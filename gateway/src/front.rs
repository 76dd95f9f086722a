//! The protocol router in front of the stack: translates every protocol but gRPC to gRPC, so that all calls have the same layers.
//!
//! Requests that a browser may send are checked by [`origins`](crate::origins), and, while callers aren't authenticated, all by
//! [`hosts`](crate::hosts). The files of the console go to everybody who found the host. Responses that are made here go through the
//! layers of the stack, too.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use souk_chassis::layers::deadline::DeadlineLayer;
use souk_chassis::layers::{ResponseFuture, TowerService};
use souk_chassis::server::Stack;
use tonic::Status;
use tonic::body::Body;
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::answer::{JSON, empty, error, whole};
use crate::behind::Behind;
use crate::config::GatewayConfig;
use crate::connect::Connect;
use crate::console::Console;
use crate::grpc_web::{self, GrpcWeb};
use crate::hosts::Hosts;
use crate::json::{self, Json, RouteError};
use crate::openapi;
use crate::origins::{AllowedOrigins, ConsoleMode};

const DOCUMENT: &str = "/openapi.json";

/// The protocol router: takes a request to `stack` by its content type and path.
pub(crate) fn front(
    stack: Stack,
    config: &GatewayConfig,
    contract: &[u8],
) -> Result<impl TowerService + use<>, RouteError> {
    let pool = json::pool(contract)?;
    let routes = json::read_all(&pool)?;
    let document = openapi::document(&pool, &routes).to_string().into();
    let behind = Behind {
        stack: stack.clone(),
        pool,
        bytes_max: config.server.message_bytes_max,
        times: DeadlineLayer::new(config.server.deadline_default, config.server.deadline_max),
    };
    let web = Arc::new(Web {
        grpc_web: GrpcWeb::new(stack),
        connect: Connect::new(behind.clone()),
        json: Json::new(behind.clone(), routes),
        document,
        behind: behind.clone(),
    });
    let web = service_fn(move |request| web.call(request));
    let asks_nobody = !config.auth.authenticates_callers();
    let allowed_origins = config.web.allowed_origins();
    let ways = Arc::new(Ways {
        behind,
        console: (config.web.console == ConsoleMode::On).then(Console::new),
        hosts: Hosts(asks_nobody.then(|| config.auth.hosts.clone())),
        web: BoxCloneSyncService::new(allowed_origins.layer().layer(web)),
        allowed_origins: asks_nobody.then_some(allowed_origins),
    });
    Ok(service_fn(move |request| ways.call(request)))
}

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

struct Ways {
    behind: Behind,
    hosts: Hosts,
    /// `None` when it is off.
    console: Option<Console>,
    /// The origins for whose pages a browser may call without having asked; `None` where callers say who they are, which it doesn't do for a page.
    allowed_origins: Option<AllowedOrigins>,
    web: BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>,
}

impl Ways {
    fn call(&self, request: Request<Body>) -> ResponseFuture {
        if let Err(refusal) = self.hosts.check(&request) {
            return self.misled(request, refusal);
        }
        // Without trailers a gRPC call can't end; HTTP/1.1 has none that clients read.
        let grpc = Protocol::of(request.headers()) == Protocol::Grpc && request.version() == Version::HTTP_2;
        if grpc {
            self.behind.stack.answer(request)
        } else if request.method() == Method::OPTIONS {
            self.preflight(request)
        } else if let Some(file) = self.console.as_ref().and_then(|console| console.answer(&request)) {
            self.behind.own(request.into_parts().0, None, ready(file))
        } else if let Some(refusal) = self
            .allowed_origins
            .as_ref()
            .and_then(|allowed| allowed.check(&request).err())
        {
            self.misled(request, refusal)
        } else {
            Box::pin(self.web.clone().oneshot(request))
        }
    }

    /// The answer to a request that was sent to somebody else, or for somebody else.
    fn misled(&self, request: Request<Body>, refusal: Status) -> ResponseFuture {
        let response = match Protocol::of(request.headers()) {
            Protocol::Grpc | Protocol::GrpcWeb => refusal.clone().into_http(),
            Protocol::Other => error::response(&self.behind.pool, &refusal),
        };
        let head = request.into_parts().0;
        self.behind.own(head, Some(refusal), ready(response))
    }

    /// The answer to a browser that asks whether a page may call.
    fn preflight(&self, request: Request<Body>) -> ResponseFuture {
        let (head, body) = request.into_parts();
        let answer = self.web.clone().oneshot(Request::from_parts(head.clone(), body));
        self.behind.own(head, None, answer.map(|Ok(answer)| answer))
    }
}

/// What may come from a browser.
struct Web {
    behind: Behind,
    grpc_web: GrpcWeb,
    connect: Connect,
    json: Json,
    document: Bytes,
}

impl Web {
    fn call(&self, request: Request<Body>) -> ResponseFuture {
        match Protocol::of(request.headers()) {
            Protocol::GrpcWeb => match grpc_web::refusal(&request) {
                None => self.grpc_web.call(request),
                Some(code) => {
                    let message = "the method or the content type isn't one of gRPC-Web's";
                    self.behind.unsupported(request, empty(code), message)
                }
            },
            Protocol::Grpc => {
                let response = empty(StatusCode::HTTP_VERSION_NOT_SUPPORTED);
                let message = "gRPC was asked for by HTTP/1.1";
                self.behind.unsupported(request, response, message)
            }
            Protocol::Other if request.uri().path() == DOCUMENT && request.method() == Method::GET => {
                let mut response = Response::new(whole(self.document.clone()));
                response.headers_mut().insert(CONTENT_TYPE, JSON);
                self.behind.own(request.into_parts().0, None, ready(response))
            }
            Protocol::Other if self.connect.knows(request.uri().path()) => self.connect.call(request),
            Protocol::Other => self.json.call(request),
        }
    }
}
