//! The operations of search indexes.

mod aggregation;
mod columns;
mod fields;
mod figures;
mod find;
mod grouping;
mod highlight;
mod index_name;
mod lifecycle;
mod note;
mod query;
mod scan;
mod schema;
mod score;
mod sort;
mod token;

pub(crate) use find::search;
pub(crate) use lifecycle::{create_index, delete_index, describe_index, list_indexes, update_index};
pub(crate) use scan::{compute_splits, parallel_scan};
