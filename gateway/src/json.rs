//! JSON over HTTP for every RPC with one request, by its option `google.api.http`; streams answer with server-sent events.
//!
//! Everything is read from the descriptors: no RPC is named here. A request becomes a gRPC call to the stack behind, so its
//! span, its limits and its errors are those of every call: JSON is read when the stack wants the message
//! ([`one_message`](crate::one_message)), and the answer is written when the stack has let it go.
//!
//! - `route`: the rules, and which paths they have; `template`: paths.
//! - `request`, `parameters`: JSON, path and query to a message; `decoded`: what JSON takes in memory.
//! - `answer`, `events`, `error`: messages, streams and errors to JSON.

use std::sync::Arc;

use http::{Method, Request, Response};
use prost_reflect::DescriptorPool;
use souk_chassis::health;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::server::Stack;
use souk_chassis::status::StatusBuilder;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::ServiceExt as _;

mod answer;
mod decoded;
pub(crate) mod error;
mod events;
mod parameters;
mod request;
mod route;
pub(crate) mod template;

pub use route::RouteError;

pub(crate) use answer::as_json;
pub(crate) use decoded::check as check_size;
pub(crate) use request::{is_json, parse};
pub(crate) use route::{BodyUse, Route, field_path, read_all};

use request::{Call, Form};

use crate::answer::{accepted, done, own};
use crate::one_message::grpc_request;

/// The descriptors of the contract, of the details of errors, and of health.
///
/// # Errors
/// When they are damaged.
pub(crate) fn pool() -> Result<DescriptorPool, RouteError> {
    let mut pool = DescriptorPool::decode(souk_proto::FILE_DESCRIPTOR_SET)?;
    pool.decode_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)?;
    pool.decode_file_descriptor_set(health::FILE_DESCRIPTOR_SET)?;
    Ok(pool)
}

/// What is answered to a request that is no call, and what the stack is told of it.
struct Refusal {
    told: Status,
    response: Response<Body>,
}

/// All that can be called by HTTP. Clones share it.
#[derive(Clone)]
pub(crate) struct Json {
    stack: Stack,
    routes: Arc<Vec<Arc<Route>>>,
    pool: DescriptorPool,
    bytes_max: usize,
}

impl Json {
    /// Calls of `routes` to `stack`; requests and answers have at most `bytes_max` bytes.
    pub(crate) fn new(stack: Stack, routes: Vec<Route>, pool: DescriptorPool, bytes_max: usize) -> Self {
        Self {
            stack,
            routes: Arc::new(routes.into_iter().map(Arc::new).collect()),
            pool,
            bytes_max,
        }
    }

    /// Answers a request.
    pub(crate) fn call(&self, request: Request<Body>) -> ResponseFuture {
        match self.find(&request) {
            Ok(call) => self.forward(call, request),
            Err(refusal) => {
                let Refusal { told, response } = *refusal;
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

    /// The call that a request is, or the refusal of what is none.
    fn find(&self, request: &Request<Body>) -> Result<Call, Box<Refusal>> {
        let path = request.uri().path();
        let mut others: Vec<&Method> = Vec::new();
        for route in self.routes.iter() {
            let Some(variables) = route.template.matches(path) else {
                continue;
            };
            if route.http != *request.method() {
                others.push(&route.http);
                continue;
            }
            let form = Form::read(request.headers()).map_err(|status| Box::new(self.refusal(status)))?;
            let mut variables: Vec<_> = variables
                .into_iter()
                .map(|(field, value)| (field.to_owned(), value))
                .collect();
            variables.extend(events::resumed(route, request.headers()));
            return Ok(Call {
                route: Arc::clone(route),
                variables,
                query: request.uri().query().unwrap_or_default().to_owned(),
                form,
                bytes_max: self.bytes_max,
            });
        }
        Err(Box::new(self.unknown(request, &others)))
    }

    /// The refusal of a path that there isn't, or not with this method.
    fn unknown(&self, request: &Request<Body>, others: &[&Method]) -> Refusal {
        let (method, path) = (request.method(), request.uri().path());
        if others.is_empty() {
            let message = format!(
                "there is no {:?} {path:?}; /openapi.json says what there is",
                method.as_str()
            );
            return self.refusal(StatusBuilder::not_found("PATH_UNKNOWN", message).build());
        }
        let allowed = others
            .iter()
            .map(|method| method.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let message = format!("{path:?} has no {:?}; it has {allowed}", method.as_str());
        let status = StatusBuilder::unimplemented("HTTP_METHOD_UNKNOWN", message)
            .metadata("methods", &allowed)
            .build();
        Refusal {
            response: error::allowing(error::response(&self.pool, &status), &allowed),
            // What doesn't exist here is asked for by its caller, and no fault of the server, as UNIMPLEMENTED would be.
            told: Status::with_details(
                Code::InvalidArgument,
                status.message(),
                status.details().to_vec().into(),
            ),
        }
    }

    fn refusal(&self, told: Status) -> Refusal {
        Refusal {
            response: error::response(&self.pool, &told),
            told,
        }
    }

    /// Sends a call on, and writes its answer.
    fn forward(&self, call: Call, request: Request<Body>) -> ResponseFuture {
        let encoding = accepted(request.headers());
        let route = Arc::clone(&call.route);
        let request = match grpc_request(&route.path, request, call, self.bytes_max) {
            Ok(request) => request,
            Err(status) => return done(error::response(&self.pool, &status)),
        };
        let (stack, pool, bytes_max) = (self.stack.clone(), self.pool.clone(), self.bytes_max);
        Box::pin(async move {
            let response = stack.oneshot(request).await?;
            Ok(if route.streams() {
                events::stream(response, &route, &pool, bytes_max)
            } else {
                answer::unary(response, route.method.output(), &pool, bytes_max, encoding).await
            })
        })
    }
}

#[cfg(test)]
mod tests;
