//! End-to-end suites of Souk: they start the whole suite, drive it through the gateway as a client
//! would, and assert on answers, on traces, and on what is left after a crash.
//!
//! Not a place for tests of one crate: those stand beside its code.
//!
//! # Layout
//! - [`suite`]: starts the suite in a temporary directory, as one process or as four, by a plan.
//! - [`guard`]: keys for a suite that lets in only those whom it knows.
//! - [`dynamic`]: calls by name and JSON, for tests of all RPCs.
//! - [`process`]: one real `souk` process that can be killed, and suspended.
//! - [`faults`]: what goes wrong, by name; which one it is, by telemetry alone.
//! - [`collector`]: an OpenTelemetry collector in the test's process; [`log`]: what processes say.
//! - [`caller`]: a client that traces; [`stand_in`]: a backend that keeps what arrives.
//! - [`spans`]: a trace as a tree of spans; [`laws`]: what holds for every one; [`schema`]: which spans there may be.
//! - [`cases`]: calls and what is expected of them, as files.
//! - [`data`]: orders, shops and media from a seed.
//! - [`scrape`]: metrics as Prometheus fetches them.
//! - [`rejection`]: what an error has to say.
//!
//! The tests stand in `tests/it`, one file for each promise.

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
