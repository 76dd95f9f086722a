//! Figures and groups over all documents that a search matches.
//!
//! The walk that finds the page also feeds the aggregations, a block of documents at a time. Groups are numbered as they
//! appear; every aggregation inside a grouping takes documents with the number of their group, and keeps what it gathers
//! in arrays by these numbers. Within a segment values are numbers, ordinals of its dictionaries in place of strings; at
//! the end of a segment groups are named by their values and added to those of the segments before.
//!
//! How exact they are is said in docs/SEARCH.md. All memory is that of the search, taken before it is used.
//!
//! # Nested objects
//! An aggregation of a field inside NESTED takes the objects of the matching documents, all of them, whichever made the
//! document match; groups count objects then. Inside such a grouping aggregations are about the same objects, about
//! objects inside them or around them, or about the document itself, each of which is taken once a group. Objects of two
//! NESTED fields beside each other can't be mixed.

mod branch;
mod breadth_first;
mod budget;
mod calendar;
mod centroid;
mod check;
mod column;
mod composite;
mod conclude;
mod distinct;
mod gathered;
mod histogram;
mod keys;
mod node;
mod numbers;
mod quantiles;
mod ranges;
mod second_pass;
mod sketch;
mod slots;
mod step;
mod sum;
mod walk;

pub(crate) use check::prepare;
pub(crate) use walk::{AggregationWalk, SegmentWalk};
