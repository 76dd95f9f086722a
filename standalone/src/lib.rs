//! The `souk` binary: every role in one program, the demo, and the loader.
//!
//! It is **not** needed to run the services: each has a binary of its own, and this one only puts them together.
//!
//! # Layout
//! - [`data`]: the tables that are built into the binary.
//! - [`generate`]: demo data, computed from a seed.
//! - [`load`]: rows through the services' batch calls: retried, resumable, every refused row named.
//! - [`dataset`]: what is generated, by name and size, and the whole demo.
//! - [`mod@bench`]: how fast the parts are, each alone.
//! - [`services`]: the services of the suite, each registered once.
//! - `cli`: the command line.
//!
//! # Example
//! ```
//! use souk_standalone::generate::{SEED, shops};
//!
//! assert_eq!(shops::row(SEED, 7), shops::row(SEED, 7));
//! ```

pub mod bench;
mod cli;
pub mod data;
pub mod dataset;
pub mod generate;
pub mod load;
pub mod services;

pub use cli::main;
