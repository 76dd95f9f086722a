//! The wire as a server meets it: golden bytes of the official Python package, damage, and that package itself.

#![expect(clippy::expect_used, reason = "these are tests")]

mod change;
mod filter;
mod messages;
mod plainbuffer;
mod python;
mod request;
mod rows;
mod search;
