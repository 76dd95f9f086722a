//! The endpoint over a real socket: by the wire's own encoding, and by the official Python package.

#![expect(clippy::expect_used, reason = "these are tests")]

mod batches;
mod client;
mod indexes;
mod limits;
mod model;
mod python;
mod ranges;
mod refusals;
mod rows;
mod search;
mod server;
mod streams;
mod tables;
mod transactions;
mod tunnels;
