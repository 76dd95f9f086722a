//! The gateway over a real socket, in front of two small backends that are in the same process or behind sockets of
//! their own.

#![expect(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

mod abuse;
mod answers;
mod backends;
mod browser;
#[path = "../../../chassis/src/tls/testing.rs"]
mod certificates;
mod connect;
mod console;
mod deadlines;
mod drains;
mod exports;
mod health;
mod indexes;
mod issuer;
mod json;
mod limits;
mod outages;
mod process;
mod reflection;
mod service_config;
mod setting;
mod several;
mod strangers;
mod tls;
mod traces;
mod unproven;
mod web;
