//! Search requests: the query, the order of its hits, the page, the aggregations.
//!
//! A query may order its inner hits, an order may filter objects by a query, and an aggregation has both: these values need
//! each other, and nothing of what runs them.

mod aggregation;
mod calendar;
mod class;
mod inner_hits;
mod minimum;
pub mod query;
mod sort;

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

pub use aggregation::{
    Aggregation, CompositeSource, GroupOrder, GroupOrderBy, MetricKind, SourceKind, ValueRange,
};
pub use calendar::{CalendarUnit, NoTimeZone, TimeZone};
pub use inner_hits::InnerHits;
pub use minimum::Minimum;
pub use query::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, Function, FunctionScore, FunctionScoreMode,
    Fuzziness, Modifier, Operator, Query, QueryValue, ScoreFunction, ScoreMode,
};
pub use sort::{ArrayMode, Missing, NestedSort, Sort};

/// Whether, and how exactly, all matches are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TotalRequest {
    /// Not at all.
    #[default]
    None,
    /// Exactly.
    Exact,
    /// Exactly up to this number; beyond it, only that there are at least as many.
    AtLeast(u64),
}

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchRequest {
    /// What to find.
    pub query: Query,
    /// The order; empty means by score descending. Ties always end in the key ascending.
    pub sort: Vec<Sort>,
    /// Hits of the page, at most [`crate::limits::MAX_PAGE_SIZE`]. 0 finds nothing: for counting.
    pub page_size: usize,
    /// The token of the page before.
    pub after: Option<String>,
    /// Hits to pass over, at most [`crate::limits::MAX_SKIP`].
    pub skip: usize,
    /// Whether to count all matches.
    pub total: TotalRequest,
    /// Figures and groups over all matches, by names of the caller's; the page doesn't change them.
    pub aggregations: Vec<(String, Aggregation)>,
    /// Of the matches with the same value of this KEYWORD, LONG or DOUBLE, only the first in the order is a hit. The
    /// total and the aggregations are over all matches. A group is shown on one page only: where tokens are followed, on
    /// that of its first hit.
    pub collapse: Option<String>,
    /// Whether to tell how the search ran.
    pub profile: bool,
}

impl SearchRequest {
    /// The first ten hits of a query, best first.
    pub fn new(query: Query) -> Self {
        Self {
            query,
            sort: Vec::new(),
            page_size: 10,
            after: None,
            skip: 0,
            total: TotalRequest::None,
            aggregations: Vec::new(),
            collapse: None,
            profile: false,
        }
    }

    /// The same search in another order.
    #[must_use]
    pub fn sorted(mut self, sort: Vec<Sort>) -> Self {
        self.sort = sort;
        self
    }

    /// The same search with another page size.
    #[must_use]
    pub fn page_size(mut self, page_size: usize) -> Self {
        self.page_size = page_size;
        self
    }

    /// The same search, behind a page token.
    #[must_use]
    pub fn after(mut self, token: Option<String>) -> Self {
        self.after = token;
        self
    }

    /// The same search, counting.
    #[must_use]
    pub fn total(mut self, total: TotalRequest) -> Self {
        self.total = total;
        self
    }

    /// The same search with aggregations.
    #[must_use]
    pub fn aggregations(mut self, aggregations: Vec<(String, Aggregation)>) -> Self {
        self.aggregations = aggregations;
        self
    }

    /// A number that is the same for equal queries with equal orders: what a page token belongs to.
    pub fn fingerprint(&self) -> u64 {
        let spelt = format_args!("{:?}|{:?}", self.query, self.sort);
        match &self.collapse {
            Some(field) => fingerprint(format_args!("{spelt}|{field:?}")),
            None => fingerprint(spelt),
        }
    }
}

/// A number that is the same for the same text. Debug of the types of a request is a complete and unambiguous spelling.
pub(crate) fn fingerprint(text: fmt::Arguments<'_>) -> u64 {
    struct FingerprintWriter(Xxh3);
    impl fmt::Write for FingerprintWriter {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut writer = FingerprintWriter(Xxh3::new());
    // Writing to a hash can't fail.
    let _ = fmt::write(&mut writer, text);
    writer.0.digest()
}
