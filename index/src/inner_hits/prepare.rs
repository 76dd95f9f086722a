//! What makes inner hits invalid, and their order.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{Checker, Error, Reason, Violations};
use crate::layout::Layout;
use crate::limits::limit;
use crate::plan::NestedClause;
use crate::request::InnerHits;
use crate::run::Run;
use crate::sort::Order;

#[derive(Debug)]
pub(crate) struct Prepared {
    /// The `nested` queries; one is listed after those around it.
    pub(super) clauses: Vec<NestedClause>,
    pub(super) lists: Vec<List>,
}

impl Prepared {
    /// Whether a list shows the clause, or one inside it.
    pub(super) fn needs(&self, clause: usize) -> bool {
        let outer = |clause: &usize| self.clauses.get(*clause)?.outer;
        let shown =
            |list: &List| std::iter::successors(Some(list.clause), outer).any(|around| around == clause);
        self.lists.iter().any(shown)
    }
}

/// One list that each hit has.
#[derive(Debug)]
pub(super) struct List {
    /// Which of the clauses it shows.
    pub(super) clause: usize,
    pub(super) name: String,
    pub(super) order: Order,
    pub(super) size: usize,
    pub(super) offset: usize,
}

/// Checks the inner hits of a search, given its `nested` queries.
///
/// # Errors
/// [`Error::InvalidQuery`] with every violation; what sorts can be refused for.
pub(crate) fn prepare(
    layout: &Layout,
    run: &Arc<Run>,
    clauses: Vec<NestedClause>,
    page_size: usize,
) -> Result<Prepared, Error> {
    let mut violations = Violations::default();
    let mut lists: Vec<List> = Vec::new();
    let mut names = HashSet::new();
    for (nth, clause) in clauses.iter().enumerate() {
        let Some(InnerHits {
            name,
            sort,
            size,
            offset,
        }) = &clause.inner_hits
        else {
            continue;
        };
        let at = format!("{}.inner_hits", clause.at);
        let name = name.clone().unwrap_or_else(|| clause.path.clone());
        if !names.insert(name.clone()) {
            let message = format!("two inner hits of the search are called `{name}`");
            let advice = "give each a name of its own; without one, the path is the name";
            violations.note(format!("{at}.name"), Reason::InvalidName, message, advice);
        }
        let advice = "ask for fewer objects";
        violations.at_most(format!("{at}.size"), limit!(MAX_INNER_HITS), *size, advice);
        match Order::of_objects(layout, run, sort, &clause.path, &format!("{at}.sort")) {
            Ok(order) => lists.push(List {
                clause: nth,
                name,
                order,
                size: *size,
                offset: *offset,
            }),
            Err(Error::InvalidQuery(more)) => violations.append(more),
            Err(other) => return Err(other),
        }
    }
    let advice = "leave out some inner_hits";
    violations.at_most("query", limit!(MAX_INNER_HIT_LISTS), names.len(), advice);
    let of_page = lists.iter().map(|list| list.size.saturating_mul(page_size)).sum();
    let advice = "ask for smaller pages, or for fewer inner hits";
    violations.at_most("page_size", limit!(MAX_PAGE_INNER_HITS), of_page, advice);
    violations.or(Prepared { clauses, lists })
}
