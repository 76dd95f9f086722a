//! The search index of Souk.

pub mod analyze;
pub mod cancel;
pub mod document;
pub mod error;
pub mod geo;
pub mod index;
pub mod limits;
pub mod misfit;
pub mod page;
pub mod query;
pub mod request;
pub mod schema;
pub mod search;
pub mod sort;
pub mod writer;

mod bits;
mod cursor;
mod directory;
mod join;
mod layout;
mod merge;
mod plan;
mod run;
mod statistics;

pub use cancel::Cancellation;
pub use document::{Document, FieldValue, Object, Operation};
pub use error::{Error, Reason, Violation, Violations};
pub use geo::GeoPoint;
pub use index::{Index, IndexOptions};
pub use misfit::{Misfit, MisfitReason, MisfitReport};
pub use query::{Operator, Query, QueryValue, ScoreMode};
pub use request::{
    ArrayMode, Hit, Missing, NestedSort, Relation, SearchRequest, SearchResult, Sort, Total, TotalRequest,
};
pub use schema::{Analyzer, Field, FieldKind, ResolvedField, Schema};
pub use search::Searcher;
pub use sort::SortValue;
pub use writer::IndexWriter;
