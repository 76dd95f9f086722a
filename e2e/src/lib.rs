//! End-to-end tests of Souk: they start the gateway and all services, a suite, drive it through the gateway as a client
//! would, and assert on answers, on traces, and on what is left after a crash.
//!
//! Not a place for tests of one crate: those are next to its code.
//!
//! # Layout
//! - [`suite`]: starts the suite in a temporary directory, as one process or as several, by a plan.
//! - [`guard`]: API keys for a suite that authenticates its callers.
//! - [`dynamic`]: calls by name and JSON, for tests of all RPCs.
//! - [`process`]: one real `souk` process that can be killed, and suspended.
//! - [`faults`]: fault injection, by name; diagnosis of a fault by telemetry alone.
//! - [`collector`]: an OpenTelemetry collector in the test's process; [`log`]: the processes' log lines.
//! - [`caller`]: a tracing client; [`stand_in`]: a backend that records the requests it gets.
//! - [`spans`]: a trace as a tree of spans; [`laws`]: invariants of every trace; [`schema`]: which spans there may be.
//! - [`cases`]: calls and their expected responses, as files.
//! - [`data`]: orders, shops and media from a seed.
//! - [`scrape`]: metrics as Prometheus fetches them.
//! - [`rejection`]: the details that an error has to have.
//!
//! The tests are in `tests/it`, one file for each promise.

pub mod caller;
pub mod cases;
pub mod collector;
pub mod data;
pub mod dynamic;
pub mod faults;
pub mod guard;
pub mod laws;
pub mod log;
pub mod process;
pub mod rejection;
pub mod schema;
pub mod scrape;
pub mod spans;
pub mod stand_in;
pub mod suite;
