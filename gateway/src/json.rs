//! JSON over HTTP for every RPC with one request, by its option `google.api.http`; streams answer with server-sent events.
//!
//! Everything is read from the descriptors: no RPC is named here. A request becomes a gRPC call to the stack behind, so its
//! span, its limits and its errors are those of every call: JSON is read when the stack wants the message
//! ([`one_message`](crate::one_message)), and the answer is written when the stack has let it go.
//!
//! - `route`: the rules, and which paths they have; `template`: paths.
//! - `request`, `parameters`: JSON, path and query to a message; `natural`: values that are written plainly; `decoded`: what JSON
//!   takes in memory.
//! - `answer`, `events`: messages and streams to JSON.

use std::sync::Arc;

use http::header::{ACCEPT_ENCODING, ALLOW, HeaderValue};
use http::{Request, StatusCode};
use prost_reflect::DescriptorPool;
use souk_chassis::health;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::messages::Encoding;
use souk_chassis::status::StatusBuilder;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::ServiceExt as _;

mod answer;
mod decoded;
mod events;
mod natural;
mod parameters;
mod request;
mod route;
pub(crate) mod template;

pub use route::RouteError;

pub(crate) use answer::as_json;
pub(crate) use decoded::check as check_size;
pub(crate) use request::{is_json, parse};
pub(crate) use route::{BodyUse, Route, field_path, read_all, rpc_path};

use request::{Call, Form};

use crate::answer::error;
use crate::behind::Behind;
use crate::one_message::grpc_request;

/// The descriptors of a contract, of the details of errors, and of health.
///
/// # Errors
/// When they are damaged.
pub(crate) fn pool(contract: &[u8]) -> Result<DescriptorPool, RouteError> {
    let mut pool = DescriptorPool::decode(contract)?;
    pool.decode_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)?;
    pool.decode_file_descriptor_set(health::FILE_DESCRIPTOR_SET)?;
    Ok(pool)
}

/// All that can be called by HTTP. Clones share it.
#[derive(Clone)]
pub(crate) struct Json {
    behind: Behind,
    routes: Arc<[Arc<Route>]>,
}

impl Json {
    pub(crate) fn new(behind: Behind, routes: Vec<Route>) -> Self {
        let routes = routes.into_iter().map(Arc::new).collect();
        Self { behind, routes }
    }

    pub(crate) fn call(&self, request: Request<Body>) -> ResponseFuture {
        let status = match self.find(&request) {
            Ok(call) => return self.forward(call, request),
            Err(status) => status,
        };
        let mut response = error::response(&self.behind.pool, &status);
        if status.code() == Code::Unimplemented {
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            let methods = HeaderValue::try_from(self.methods(request.uri().path()));
            response
                .headers_mut()
                .extend(methods.map(|methods| (ALLOW, methods)));
        }
        self.behind.refuse(request, &status, response)
    }

    /// The call that a request is, or the refusal of what is none.
    fn find(&self, request: &Request<Body>) -> Result<Call, Box<Status>> {
        let path = request.uri().path();
        let routes = self.routes.iter().filter(|route| route.http == *request.method());
        let found = routes
            .into_iter()
            .find_map(|route| Some((route, route.template.matches(path)?)));
        let (route, variables) = found.ok_or_else(|| Box::new(self.unknown(request)))?;
        let mut variables: Vec<_> = variables
            .into_iter()
            .map(|(field, value)| (field.to_owned(), value))
            .collect();
        variables.extend(events::resumed(route, request.headers()));
        Ok(Call {
            route: Arc::clone(route),
            variables,
            query: request.uri().query().unwrap_or_default().to_owned(),
            form: Form::read(request.headers()).map_err(Box::new)?,
            bytes_max: self.behind.bytes_max,
        })
    }

    /// The methods of a path, with commas between them.
    fn methods(&self, path: &str) -> String {
        let routes = self.routes.iter();
        let of_path = routes.filter(|route| route.template.matches(path).is_some());
        of_path
            .map(|route| route.http.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The refusal of a path that there isn't, or not with this method.
    fn unknown(&self, request: &Request<Body>) -> Status {
        let (method, path) = (request.method().as_str(), request.uri().path());
        let allowed = self.methods(path);
        if allowed.is_empty() {
            let message = format!("there is no {method:?} {path:?}; /openapi.json says what there is");
            return StatusBuilder::not_found("PATH_UNKNOWN", message).build();
        }
        let message = format!("{path:?} has no {method:?}; it has {allowed}");
        StatusBuilder::unimplemented("HTTP_METHOD_UNKNOWN", message)
            .metadata("methods", &allowed)
            .build()
    }

    fn forward(&self, call: Call, request: Request<Body>) -> ResponseFuture {
        let encoding = Encoding::accepted(request.headers(), &ACCEPT_ENCODING);
        let (behind, route) = (self.behind.clone(), Arc::clone(&call.route));
        let request = grpc_request(route.path.clone(), request, call, behind.bytes_max);
        let ends = behind.times.ends(request.headers());
        Box::pin(async move {
            let response = behind.stack.oneshot(request).await?;
            let (pool, bytes_max) = (behind.pool, behind.bytes_max);
            Ok(if route.streams() {
                events::stream(response, &route, pool, bytes_max)
            } else {
                answer::unary(response, route.method.output(), &pool, bytes_max, encoding, ends).await
            })
        })
    }
}

#[cfg(test)]
mod tests;
