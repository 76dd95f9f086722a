//! Which objects of each hit to show.

use super::Sort;

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
