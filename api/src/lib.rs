//! The gRPC face of `souk-engine` that all services share: what turns requests into the engine's types, its answers and
//! errors into messages and statuses, and what hosts a service.
//!
//! A service has [`Resources`] for each of its tables, and writes down what of a message is which part of its domain type;
//! [`wire`] has what every one needs for that. It is **not** where a domain's rules are, and keeps nothing.
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
//! | [`resources`] | the calls on one table, as RPCs make them |
//! | [`metrics`] | what is measured of an engine |
//! | [`hosting`] | a service as a part of a process |

pub mod error;
pub mod hosting;
pub mod indexes;
pub mod metrics;
pub mod resources;
pub mod search;
pub mod status;
#[cfg(feature = "testing")]
pub mod testing;
pub mod wire;

mod search_wire;

pub use error::{Error, Result};
pub use metrics::open_measured;
pub use resources::{ExportRequest, ListRequest, Resources};
pub use search::{
    ClusterPage, ClusterRequest, ClusterSize, FoundCluster, FoundHit, NearPage, NearbyRequest, SearchPage,
    SuggestFields, SuggestOrder, SuggestPage, SuggestRequest, Suggestion,
};
