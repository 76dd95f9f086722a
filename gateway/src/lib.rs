//! The one front door of Souk: routes calls by path, without decoding them, to services in this process or elsewhere.
//!
//! Calls come by gRPC or, over HTTP/1.1 or HTTP/2, by gRPC-Web, by Connect or as JSON.
//!
//! Each call has a SERVER span by the layers of the chassis, and a CLIENT span around what is forwarded. The backend gets the
//! caller's trace context, baggage, metadata and remaining time; the caller gets the backend's response byte for byte. The gateway
//! itself answers calls beyond its limits, health and reflection of what it routes, and calls without a backend.
//!
//! It is **not** a boundary of trust for content: it decodes messages only to translate JSON. It holds no state. It retries safe
//! calls alone: whether others can be repeated is known to their callers.
//!
//! # Layout
//! Modules use those above them alone.
//! - [`metrics`]: what is measured.
//! - `contract`: which backends serve which services. [`backend`]: what the gateway routes to.
//! - `balance`: load balancing over the processes of a backend. [`retry`]: retries of safe calls.
//! - `probe`: whether backends refuse calls without a credential. `monitor`: follows their health.
//! - `one_message`, `answer`: requests and responses in other forms than gRPC's.
//! - `figures`: what this process measures, as a service.
//! - `ask`: asks all backends. `stream_drain`: closes streams that outlive a drain. `forward`: routes a call to its backend.
//! - [`auth`]: authentication and authorization. [`origins`]: CORS; `hosts`: allowed host names.
//! - [`config`]: settings and command line.
//! - `behind`: the stack that all that isn't gRPC goes to.
//! - [`json`]: JSON over HTTP; `openapi`: the document about it. `connect`: the protocol of Connect. `grpc_web`: gRPC-Web, for browsers.
//! - `console`: the page at `/`. `front`: takes other protocols than gRPC to the front stack.
//! - [`run`]: the process, and the [`Gateway`]: the front stack over its backends.
//!
//! # Example
//! ```no_run
//! use souk_gateway::backend::{Backends, Target};
//! use souk_gateway::config::GatewayConfig;
//! use souk_gateway::Gateway;
//!
//! # async fn demo(order: souk_chassis::server::Stack) -> Result<(), Box<dyn std::error::Error>> {
//! let backends = Backends::default()
//!     .with("order", Target::Local(order))
//!     .with("shop", Target::remote("http://127.0.0.1:50052")?);
//! let stack = Gateway::new(&GatewayConfig::default(), backends)?.stack;
//! # let _ = stack; Ok(()) }
//! ```

mod answer;
mod ask;
pub mod auth;
pub mod backend;
mod balance;
mod behind;
pub mod config;
mod connect;
mod console;
mod contract;
mod figures;
mod forward;
mod front;
mod grpc_web;
mod hosts;
pub mod json;
pub mod metrics;
mod monitor;
mod one_message;
mod openapi;
pub mod origins;
mod probe;
pub mod retry;
mod run;
mod stream_drain;

pub use json::RouteError;
pub use run::{Gateway, GatewayError, run};
