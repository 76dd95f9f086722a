//! A whole search: the query, the order of its hits, the page, and what comes back.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::aggregate::{Aggregation, AggregationResult};
use crate::geo::GeoPoint;
use crate::inner_hits::InnerHitList;
use crate::profile::Profile;
use crate::query::{Query, QueryValue};
use crate::sort::SortValue;

/// Which value of an array sorts a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayMode {
    /// The lowest.
    Min,
    /// The highest.
    Max,
    /// The mean, as a double.
    Avg,
    /// The sum, as a double.
    Sum,
}

/// Where documents without a value are sorted.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Missing {
    /// Before all others, in either direction.
    First,
    /// After all others, in either direction.
    #[default]
    Last,
    /// As if they had this value.
    Value(QueryValue),
}

/// Which nested objects a sort by one of their fields looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedSort {
    /// The path of the NESTED field.
    pub path: String,
    /// Only objects that match this; all when absent.
    pub filter: Option<Query>,
}

/// One key of the order of hits.
#[derive(Clone, Debug, PartialEq)]
pub enum Sort {
    /// By a field's value.
    Field {
        /// The field: KEYWORD, LONG, DOUBLE, BOOLEAN or DATE.
        field: String,
        /// Highest first.
        descending: bool,
        /// Which value of several; when absent, `Min` ascending and `Max` descending.
        mode: Option<ArrayMode>,
        /// Where documents without a value go.
        missing: Missing,
        /// For a field inside a NESTED field: the objects to look at.
        nested: Option<NestedSort>,
    },
    /// By score, highest first unless ascending.
    Score {
        /// Lowest first.
        ascending: bool,
    },
    /// By the document's key.
    PrimaryKey {
        /// Highest first.
        descending: bool,
    },
    /// By the distance of the field's nearest point to the nearest of some points.
    GeoDistance {
        /// The field.
        field: String,
        /// The points.
        points: Vec<GeoPoint>,
        /// Farthest first.
        descending: bool,
    },
}

impl Sort {
    /// A [`Sort::Field`] with everything else at its default.
    #[must_use]
    pub fn field(field: impl Into<String>, descending: bool) -> Self {
        Self::Field {
            field: field.into(),
            descending,
            mode: None,
            missing: Missing::Last,
            nested: None,
        }
    }
}

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
    #[must_use]
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

    /// The same search, telling how it ran.
    #[must_use]
    pub fn profiled(mut self) -> Self {
        self.profile = true;
        self
    }

    /// The same search with one hit for each value of a field.
    #[must_use]
    pub fn collapse(mut self, field: impl Into<String>) -> Self {
        self.collapse = Some(field.into());
        self
    }

    /// A number that is the same for equal queries with equal orders: what a page token belongs to.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        struct Feed(Xxh3);
        impl fmt::Write for Feed {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.update(text.as_bytes());
                Ok(())
            }
        }
        let mut feed = Feed(Xxh3::new());
        // Debug of these types is a complete and unambiguous spelling; writing to a hash can't fail.
        let _ = fmt::write(&mut feed, format_args!("{:?}|{:?}", self.query, self.sort));
        if let Some(field) = &self.collapse {
            let _ = fmt::write(&mut feed, format_args!("|{field:?}"));
        }
        feed.0.digest()
    }
}

/// One found document.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The document's key.
    pub key: Vec<u8>,
    /// Its score, when the order asks for scores.
    pub score: Option<f32>,
    /// What it was sorted by, one value for each [`Sort`] of the request.
    pub sort_values: Vec<SortValue>,
    /// The objects that `nested` queries with [`crate::InnerHits`] matched, by the lists' names.
    pub inner_hits: Vec<(String, InnerHitList)>,
}

/// How a total relates to the true number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It is the number.
    Equal,
    /// There are at least so many.
    AtLeast,
}

/// How many documents match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// The number.
    pub value: u64,
    /// How exact it is.
    pub relation: Relation,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The page.
    pub hits: Vec<Hit>,
    /// The token of the next page; absent on the last one.
    pub next_page_token: Option<String>,
    /// How many match, when asked for.
    pub total: Option<Total>,
    /// The aggregations that were asked for, in the order of the request.
    pub aggregations: Vec<(String, AggregationResult)>,
    /// The sequence that the view includes.
    pub sequence: u64,
    /// How the search ran, if that was asked for.
    pub profile: Option<Profile>,
}
