//! What makes inner hits invalid, and their order.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{Error, Reason, Violation, Violations};
use crate::join::ParentCache;
use crate::layout::Layout;
use crate::limits::{MAX_INNER_HIT_LISTS, MAX_INNER_HITS, MAX_PAGE_INNER_HITS};
use crate::plan::NestedClause;
use crate::request::InnerHits;
use crate::run::Run;
use crate::sort::Order;

/// The inner hits of a search, checked.
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
    parents: &Arc<ParentCache>,
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
            violations.push(Violation {
                path: format!("{at}.name"),
                reason: Reason::InvalidName,
                message: format!("two inner hits of the search are called `{name}`"),
                advice: "give each a name of its own; without one, the path is the name".to_owned(),
            });
        }
        if *size > MAX_INNER_HITS {
            let path = format!("{at}.size");
            violations.push(limit(
                path,
                "MAX_INNER_HITS",
                MAX_INNER_HITS,
                *size,
                "ask for fewer objects",
            ));
        }
        match Order::of_objects(layout, parents, run, sort, &clause.path, &format!("{at}.sort")) {
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
    if names.len() > MAX_INNER_HIT_LISTS {
        let path = "query".to_owned();
        let advice = "leave out some inner_hits";
        violations.push(limit(
            path,
            "MAX_INNER_HIT_LISTS",
            MAX_INNER_HIT_LISTS,
            names.len(),
            advice,
        ));
    }
    let of_page = lists.iter().map(|list| list.size.saturating_mul(page_size)).sum();
    if of_page > MAX_PAGE_INNER_HITS {
        let path = "page_size".to_owned();
        let advice = "ask for smaller pages, or for fewer inner hits";
        violations.push(limit(
            path,
            "MAX_PAGE_INNER_HITS",
            MAX_PAGE_INNER_HITS,
            of_page,
            advice,
        ));
    }
    if violations.is_empty() {
        Ok(Prepared { clauses, lists })
    } else {
        Err(Error::InvalidQuery(violations))
    }
}

fn limit(path: String, limit: &'static str, max: usize, actual: usize, advice: &str) -> Violation {
    Violation {
        path,
        reason: Reason::LimitExceeded {
            limit,
            max: max as u64,
            actual: actual as u64,
        },
        message: format!("{actual} is above the limit {limit} of {max}"),
        advice: advice.to_owned(),
    }
}
