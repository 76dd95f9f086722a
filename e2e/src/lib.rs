//! End-to-end suites of Souk: they start the whole suite, drive it through the gateway as a client
//! would, and assert on answers, on traces, and on what is left after a crash.
//!
//! Not a place for tests of one crate: those stand beside its code.
//!
//! # Layout
//! - [`suite`]: starts the suite in a temporary directory, as one process or as four.
//! - [`guard`]: keys for a suite that lets in only those whom it knows.
//! - [`dynamic`]: calls by name and JSON, for tests of all RPCs.
//! - [`process`]: one real `souk` process that can be killed.
//! - [`collector`]: an OpenTelemetry collector in the test's process.
//! - [`spans`]: a trace as a tree of spans.
//! - [`data`]: orders, shops and media from a seed.
//! - [`scrape`]: metrics as Prometheus fetches them.
//! - [`rejection`]: what an error has to say.
//!
//! The tests stand in `tests/it`, one file for each promise.

pub mod collector;
pub mod data;
pub mod dynamic;
pub mod guard;
pub mod process;
pub mod rejection;
pub mod scrape;
pub mod spans;
pub mod suite;
