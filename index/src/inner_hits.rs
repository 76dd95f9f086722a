//! Inner hits: which objects of a hit a `nested` query matched.
//!
//! They are looked up for the hits of a page only. An object counts when it matches the query of its `nested`, and every
//! object around it matches the query of the `nested` around that, if there is one. What the document matches otherwise
//! doesn't matter: under a `must_not` no object counts, and in a `should` some may.

mod collect;
mod prepare;

pub(crate) use collect::collect;
pub(crate) use prepare::{PreparedInnerHits, prepare};
