//! The `souk` binary: gateway and services as commands of one program, the demo, the loader, and tools for stores. Gateway and
//! services have binaries of their own, too, which need nothing of this crate.
//!
//! # Layout
//! - [`data`]: name lists and other source data that are built into the binary.
//! - [`generate`]: generators of demo data, from a seed.
//! - [`load`]: loads rows through the services' batch calls.
//! - [`dataset`]: data sets by name and size, and loading of the whole demo.
//! - [`mod@bench`]: benchmarks of parts, each alone.
//! - [`contract`]: messages as JSON. [`table`]: rows of users' tables from files, and to them.
//! - [`services`]: the registration of the services.
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
pub mod contract;
pub mod data;
pub mod dataset;
pub mod generate;
pub mod load;
pub mod services;
pub mod table;

pub use cli::main;
