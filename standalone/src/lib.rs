//! The `souk` binary: every role in one program, the demo, and the loader.
//!
//! # Layout
//! - [`data`]: the tables that are built into the binary.
//! - [`generate`]: demo data, computed from a seed.

pub mod data;
pub mod generate;
