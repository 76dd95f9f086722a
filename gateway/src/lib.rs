//! The one front door of Souk: routes calls by path, without decoding them, to services in this process or elsewhere.
//!
//! Calls come by gRPC or, over HTTP/1.1 or HTTP/2, by gRPC-Web, by Connect or as JSON.
//!
//! Each call has a SERVER span by the layers of the chassis, as on every server, and a CLIENT span around what is
//! forwarded. The backend gets the caller's trace context, baggage, metadata and what is left of its time; the caller gets
//! the backend's answer byte for byte, streams, errors and trailers included. What the gateway answers itself are limits
//! (message size, concurrency, time), health and reflection of what it routes, and the calls that nobody serves.
//!
//! It is **not** a boundary of trust for content: it never looks into a message, but to write JSON as one. It holds no state. It repeats calls
//! that change nothing, and no others: whether those can be repeated is known to their callers.
//!
//! # Layout
//! Modules use those above them alone.
//! - [`metrics`]: what is measured.
//! - `contract`: which backends serve which services. [`backend`]: what the gateway routes to.
//! - `balance`: spreads the calls to a backend over its processes. [`retry`]: repeats safe calls that a backend refused or didn't answer.
//! - `probe`: whether backends refuse calls that prove no caller. `monitor`: follows their health.
//! - `one_message`, `answer`: bodies and answers that aren't passed on as they are.
//! - `ask`: asks for what any backend may hold. `stream_drain`: ends streams that outlive a drain. `forward`: chooses the backend of a call.
//! - [`auth`]: who calls, and whether they may. [`origins`]: which web pages may call; `hosts`: by which names.
//! - [`config`]: settings and command line.
//! - `behind`: the stack that all that isn't gRPC goes to.
//! - `json`: JSON over HTTP; `openapi`: the document about it. `connect`: the protocol of Connect. `grpc_web`: gRPC-Web, for browsers.
//! - `front`: takes other protocols than gRPC to the front stack.
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
//! let stack = Gateway::new(&GatewayConfig::default(), backends)?.stack();
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
mod contract;
mod forward;
mod front;
mod grpc_web;
mod hosts;
mod json;
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
