//! The gRPC face of `souk-engine` that all services share: what turns requests into the engine's types, its answers and
//! errors into messages and statuses, and what hosts a service.
//!
//! A service has [`Resources`] for each of its tables. Their definitions, the way between messages and rows, and the RPCs that
//! every resource has are generated of the contract (`souk_codegen`), on what is here; the service adds what is true of its
//! domain alone. It is **not** where a domain's rules are, and keeps nothing.
//!
//! # Layout
//! Each module uses those above it only.
//!
//! | module | what it does |
//! |---|---|
//! | [`error`], [`status`] | what can go wrong in a call, and what a client is told of it |
//! | [`wire`] | what every service needs between messages and its domain |
//! | [`search`], `search_wire` | requests that search and their answers; between them and the index's queries and answers |
//! | [`indexes`] | indexes as their users see and change them |
//! | `export` | exports as requests ask for them |
//! | [`resources`] | the calls on one table, as RPCs make them |
//! | [`rows`] | the same on a table that its users defined |
//! | `contract_tables` | the tables that a contract declares |
//! | [`message`] | resources whose records are messages, and what is true of them beyond the rules of their fields |
//! | [`generated`] | what generated code is made of |
//! | [`metrics`] | what is measured of an engine |
//! | [`hosting`] | a service as a part of a process |

pub mod error;
pub mod generated;
pub mod hosting;
pub mod indexes;
pub mod message;
pub mod metrics;
pub mod resources;
pub mod rows;
pub mod search;
pub mod status;
#[cfg(feature = "testing")]
pub mod testing;
pub mod wire;

mod contract_tables;
mod export;
mod search_wire;

/// Includes the resources that the crate's build script generated.
#[macro_export]
macro_rules! include_resources {
    () => {
        include!(concat!(env!("OUT_DIR"), "/resources.rs"));
    };
}

pub use contract_tables::contract_tables;
pub use error::{Error, Result};
pub use export::ExportRequest;
pub use message::{Domain, MessageResource, NoDomain};
pub use metrics::open_measured;
pub use resources::{ListRequest, Resources};
pub use rows::Rows;
pub use search::{
    ClusterPage, ClusterRequest, ClusterSize, FoundCluster, FoundHit, FoundRow, NearPage, NearbyRequest,
    SearchPage, SuggestFields, SuggestOrder, SuggestPage, SuggestRequest, Suggestion,
};
