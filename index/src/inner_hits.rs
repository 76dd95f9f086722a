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

use crate::request::Sort;
use crate::sort::SortValue;

pub(crate) use collect::collect;
pub(crate) use prepare::{Prepared, prepare};

/// How many objects a hit shows when nobody says.
const DEFAULT_SIZE: usize = 3;

/// Asks for the objects that a `nested` query matches.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerHits {
    /// What the list is called in hits; the path of the `nested` query when absent. No two lists of a search may have
    /// one name.
    pub name: Option<String>,
    /// The order, by fields of the objects, distance or score; empty is by score, highest first. Ties end in the order of
    /// the objects in the document.
    pub sort: Vec<Sort>,
    /// How many objects, at most [`crate::limits::MAX_INNER_HITS`].
    pub size: usize,
    /// How many to pass over.
    pub offset: usize,
}

impl Default for InnerHits {
    fn default() -> Self {
        Self {
            name: None,
            sort: Vec::new(),
            size: DEFAULT_SIZE,
            offset: 0,
        }
    }
}

/// The objects of one hit that a `nested` query matched.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerHitList {
    /// How many matched.
    pub total: u64,
    /// Those that were asked for, in order.
    pub hits: Vec<InnerHit>,
}

/// One object that matched.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerHit {
    /// The object's place in its list, from 0.
    pub offset: usize,
    /// The places of the objects around it, outermost first; empty for an object of the document itself.
    pub outer_offsets: Vec<usize>,
    /// Its score.
    pub score: f32,
    /// What it was sorted by, one value for each [`Sort`].
    pub sort_values: Vec<SortValue>,
}
