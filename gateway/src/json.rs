//! JSON over HTTP for every RPC with one request, by its option `google.api.http`; streams answer with server-sent events.
//!
//! Everything is read from the descriptors: no RPC is named here. A request becomes a gRPC call to the stack, with the span, limits and
//! errors of every call. JSON is parsed when the stack polls the body (`one_message`).
//!
//! - `route`: the rules, and which paths they have; `template`: paths.
//! - `request`, `parameters`: JSON, path and query to a message; `natural`: values that are written plainly; `mistake`: what is
//!   wrong around these; `decoded`: what JSON takes in memory.
//! - `events`: streams to JSON.

use std::sync::Arc;

use http::header::{ACCEPT_ENCODING, ALLOW, HeaderValue};
use http::{Request, StatusCode};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use souk_chassis::health;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::deadline::AnsweredWhole;
use souk_chassis::layers::messages::Encoding;
use souk_chassis::status::StatusBuilder;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::ServiceExt as _;

mod decoded;
mod events;
mod mistake;
mod natural;
mod parameters;
mod request;
mod route;
pub(crate) mod template;

pub use request::parse;
pub use route::RouteError;

pub(crate) use decoded::{check as check_size, work};
pub(crate) use parameters::is_text;
pub(crate) use request::media_type;
pub(crate) use route::{BodyUse, Route, VERBS, field_path, read_all, rpc_path};

use request::{BodyForm, JsonCall};

use crate::answer::{JSON, Unary, error};
use crate::behind::Behind;
use crate::one_message::grpc_request;

/// The descriptors of a contract, of the details of errors, and of health.
pub(crate) fn pool(contract: &[u8]) -> Result<DescriptorPool, RouteError> {
    let mut pool = DescriptorPool::decode(contract)?;
    pool.decode_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)?;
    pool.decode_file_descriptor_set(health::FILE_DESCRIPTOR_SET)?;
    Ok(pool)
}

/// Decodes a message of a response, and writes it as JSON in one line.
///
/// # Errors
/// INTERNAL: `message` isn't one of this `kind`.
pub fn as_json(kind: MessageDescriptor, message: &[u8]) -> Result<(DynamicMessage, Vec<u8>), Status> {
    let message = DynamicMessage::decode(kind, message).map_err(|error| {
        StatusBuilder::internal_from("the answer of the service isn't of its contract", error)
    })?;
    let json = serde_json::to_vec(&message)
        .map_err(|error| StatusBuilder::internal_from("the answer can't be written as JSON", error))?;
    Ok((message, json))
}

/// Routes HTTP requests with JSON to RPCs. Clones share the routes.
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
            let allowed = methods.map(|methods| (ALLOW, methods));
            response.headers_mut().extend(allowed);
        }
        self.behind.refuse(request, &status, response)
    }

    /// The call that a request makes; the refusal of an unknown path or an unsupported body.
    fn find(&self, request: &Request<Body>) -> Result<JsonCall, Box<Status>> {
        let path = request.uri().path();
        let mut routes = self.routes.iter().filter(|route| route.http == *request.method());
        let found = routes.find_map(|route| Some((route, route.template.matches(path)?)));
        let (route, mut variables) = found.ok_or_else(|| Box::new(self.unknown(request)))?;
        variables.extend(events::resumed(route, request.headers()));
        Ok(JsonCall {
            route: Arc::clone(route),
            variables,
            query: request.uri().query().unwrap_or_default().to_owned(),
            form: BodyForm::read(request.headers()).map_err(Box::new)?,
            bytes_max: self.behind.bytes_max,
        })
    }

    /// The HTTP methods of a path, with commas between them.
    fn methods(&self, path: &str) -> String {
        let routes = self.routes.iter();
        let of_path = routes.filter(|route| route.template.matches(path).is_some());
        let methods: Vec<_> = of_path.map(|route| route.http.as_str()).collect();
        methods.join(", ")
    }

    /// The refusal of an unknown path (NOT_FOUND), or of a path that has other methods (UNIMPLEMENTED).
    fn unknown(&self, request: &Request<Body>) -> Status {
        let (method, path) = (request.method().as_str(), request.uri().path());
        let allowed = self.methods(path);
        if allowed.is_empty() {
            let message = format!("there is no {method:?} {path:?}; /openapi.json says what there is");
            return StatusBuilder::not_found("PATH_UNKNOWN", message).build();
        }
        let message = format!("{path:?} has no {method:?}; it has {allowed}");
        let refusal = StatusBuilder::unimplemented("HTTP_METHOD_UNKNOWN", message);
        refusal.metadata("methods", &allowed).build()
    }

    fn forward(&self, call: JsonCall, request: Request<Body>) -> ResponseFuture {
        let encoding = Encoding::accepted(request.headers(), &ACCEPT_ENCODING);
        let (behind, route) = (self.behind.clone(), Arc::clone(&call.route));
        let form = call.form;
        let work = move |body: &[u8]| form.work(body);
        let read = move |body: &[u8]| Ok(call.message(body)?.encode_to_vec());
        let mut request = grpc_request(route.path.clone(), request, work, read, behind.bytes_max);
        let ends = behind.times.ends(request.headers());
        if !route.streams() {
            request.extensions_mut().insert(AnsweredWhole);
        }
        Box::pin(async move {
            let response = behind.stack.oneshot(request).await?;
            let (pool, bytes_max) = (behind.pool, behind.bytes_max);
            if route.streams() {
                return Ok(events::stream(response, &route, pool, bytes_max));
            }
            let answer = Unary::read(response, bytes_max).await;
            let kind = route.method.output();
            let write = |message: &[u8]| Ok(as_json(kind, message)?.1);
            let refuse = |status: &Status| error::response(&pool, status);
            Ok(answer.rewritten(JSON, encoding, ends, write, refuse).await)
        })
    }
}

#[cfg(test)]
mod tests;
