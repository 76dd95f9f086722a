//! Inner hits: which objects of a hit a `nested` query matched.
//!
//! They are looked up for the hits of a page only. An object counts when it matches the query of its `nested`, and every
//! object around it matches the query of the `nested` around that, if there is one. What the document matches otherwise
//! doesn't matter: under a `must_not` no object counts, and in a `should` some may.
//!
//! | module | what it knows |
//! |---|---|
//! | `prepare` | what makes inner hits invalid, and their order |
//! | `collect` | from the hits of a page to their objects |

mod collect;
mod prepare;

pub(crate) use collect::collect;
pub(crate) use prepare::{Prepared, prepare};
