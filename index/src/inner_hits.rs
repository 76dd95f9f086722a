//! Inner hits: which objects of a hit a `nested` query matched.
//!
//! They are looked up for the hits of a page only. An object counts when it matches the query of its `nested`, and every
//! object around it matches the query of the `nested` around that, if there is one. What the document matches otherwise
//! doesn't matter: under a `must_not` no object counts, and in a `should` some may.

mod collect;

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{Checker, Error, Reason, Refusals};
use crate::layout::Layout;
use crate::limits::limit;
use crate::plan::NestedClause;
use crate::run::Run;
use crate::sort::Order;

pub(crate) use collect::collect;

/// The inner hits of a search.
#[derive(Debug)]
pub(crate) struct PreparedInnerHits {
    /// All `nested` queries of the search, an outer one before those inside it.
    clauses: Vec<NestedClause>,
    /// One for each clause that asks for inner hits.
    lists: Vec<PreparedList>,
}

impl PreparedInnerHits {
    /// Whether a list shows the objects of the clause at this index, or of one inside it.
    fn needs(&self, clause: usize) -> bool {
        let outer = |clause: &usize| self.clauses.get(*clause)?.outer;
        let mut shown = self.lists.iter().map(|list| list.clause);
        shown.any(|shown| std::iter::successors(Some(shown), outer).any(|around| around == clause))
    }
}

/// A list of objects that each hit shows.
#[derive(Debug)]
struct PreparedList {
    /// Index among [`PreparedInnerHits::clauses`].
    clause: usize,
    name: String,
    order: Order,
    size: usize,
    offset: usize,
}

/// Prepares the inner hits of a search, given its `nested` queries and the most hits of a page.
pub(crate) fn prepare(
    layout: &Layout,
    run: &Arc<Run>,
    clauses: Vec<NestedClause>,
    page_size: usize,
) -> Result<PreparedInnerHits, Error> {
    let mut refusals = Refusals::default();
    let mut lists: Vec<PreparedList> = Vec::new();
    let mut names = HashSet::new();
    for (index, clause) in clauses.iter().enumerate() {
        let Some(asked) = &clause.inner_hits else {
            continue;
        };
        let at = format!("{}.inner_hits", clause.at);
        let name = asked.name.clone().unwrap_or_else(|| clause.path.clone());
        if !names.insert(name.clone()) {
            let message = format!("two inner hits of the search are called `{name}`");
            let advice = "give each a name of its own; without one, the path is the name";
            refusals.note(format!("{at}.name"), Reason::InvalidName, message, advice);
        }
        let advice = "ask for fewer objects";
        refusals.at_most(format!("{at}.size"), limit!(MAX_INNER_HITS), asked.size, advice);
        let order = Order::of_objects(layout, run, &asked.sort, &clause.path, &format!("{at}.sort"));
        lists.extend(refusals.answered(order).map(|order| PreparedList {
            clause: index,
            name,
            order,
            size: asked.size,
            offset: asked.offset,
        }));
    }
    let advice = "leave out some inner_hits";
    refusals.at_most("query", limit!(MAX_INNER_HIT_LISTS), names.len(), advice);
    let objects = lists.iter().map(|list| list.size.saturating_mul(page_size)).sum();
    let advice = "ask for smaller pages, or for fewer inner hits";
    refusals.at_most("page_size", limit!(MAX_PAGE_INNER_HITS), objects, advice);
    refusals.or(PreparedInnerHits { clauses, lists })
}
