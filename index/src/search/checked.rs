//! The parts of a request, checked.

use std::sync::Arc;

use crate::error::{Checker, Error, Violations};
use crate::inner_hits;
use crate::layout::Layout;
use crate::limits::limit;
use crate::page::{self, PageOrigin};
use crate::plan::{self, QueryPlan};
use crate::request::SearchRequest;
use crate::run::Run;
use crate::sort::{Order, RawSortValue};

/// The plan of a request's query, and its inner hits.
pub(super) fn planned(
    layout: &Layout,
    run: &Arc<Run>,
    request: &SearchRequest,
) -> Result<(QueryPlan, inner_hits::PreparedInnerHits), Error> {
    let mut plan = plan::plan(layout, run, &request.query, "query")?;
    let clauses = std::mem::take(&mut plan.nested);
    let inner_hits = inner_hits::prepare(layout, run, clauses, request.page_size)?;
    Ok((plan, inner_hits))
}

/// Both results, or all violations of both.
pub(super) fn together<A, B>(one: Result<A, Error>, other: Result<B, Error>) -> Result<(A, B), Error> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(Error::InvalidQuery(mut violations)), Err(Error::InvalidQuery(more))) => {
            violations.append(more);
            Err(Error::InvalidQuery(violations))
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// Checks the numbers of a request.
pub(super) fn check_page(request: &SearchRequest) -> Result<(), Error> {
    let mut violations = Violations::default();
    let advice = "ask for a smaller page";
    violations.at_most("page_size", limit!(MAX_PAGE_SIZE), request.page_size, advice);
    violations.at_most("skip", limit!(MAX_SKIP), request.skip, "follow page tokens");
    violations.or(())
}

/// The position of a page token in the order of its request.
pub(super) fn position(origin: PageOrigin, order: &Order, token: &str) -> Result<Vec<RawSortValue>, Error> {
    let sort_values = page::decode(origin, token)?;
    if !order.accepts(&sort_values) {
        return Err(Error::PageTokenInvalid {
            detail: "it belongs to another order",
        });
    }
    Ok(sort_values)
}
