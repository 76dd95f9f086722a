//! Typed collections with search.

pub mod collection;
pub mod columns;
pub mod engine;
pub mod error;
pub mod export;
pub mod hosting;
pub mod key;
pub mod resource;
pub mod search;
#[cfg(feature = "testing")]
pub mod testing;
pub mod watch;
pub mod wire;

mod build;
mod deadline;
mod etag;
mod health;
mod index_state;
mod pump;
mod search_pool;
mod search_wire;
mod status;
mod stored;
mod table;
mod token;
mod turns;

pub use collection::{Collection, ListPage, ListRequest};
pub use columns::{ColumnReader, Columns, CorruptRow};
pub use engine::{Engine, EngineConfig, Health, Tables};
pub use error::{EngineError, Result};
pub use export::{ExportBlock, ExportRequest};
pub use resource::{Found, Resource, Stored, Written};
pub use search::{FoundHit, NearPage, NearbyRequest, SearchPage};
/// The searchable types that resources are declared with.
pub use souk_index as index;
/// The table types that resources are declared with.
pub use souk_storage as storage;
pub use watch::{ResourceChange, WatchEvent};
pub use wire::RequestId;
