//! The search index of Souk.

pub mod cancel;
pub mod document;
pub mod error;
pub mod geo;
pub mod limits;
pub mod page;
pub mod query;
pub mod request;
pub mod schema;
pub mod sort;

pub mod analyze;
mod bits;
mod join;
mod layout;
mod plan;
mod run;
mod statistics;

pub use cancel::Cancellation;
pub use document::{Document, FieldValue, Object, Operation};
pub use error::{Error, Reason, Violation, Violations};
pub use geo::GeoPoint;
pub use query::{Operator, Query, QueryValue, ScoreMode};
pub use request::{
    ArrayMode, Hit, Missing, NestedSort, Relation, SearchRequest, SearchResult, Sort, Total, TotalRequest,
};
pub use schema::{Analyzer, Field, FieldKind, ResolvedField, Schema};
pub use sort::SortValue;
