//! Decodes searches: the messages that are bytes within messages become trees. What is in a message without others stays in it.

mod aggregation;
mod query;

use bytes::Bytes;

use crate::error::Reason;
use crate::limits;
use crate::messages::SearchQuery;
use crate::strict::{Strict, decode_counted};

pub use self::aggregation::{AggregationBody, AggregationNode, GroupByBody, GroupByNode};
pub use self::query::QueryNode;

/// How many of the optional clauses have to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MinimumShouldMatch {
    /// This number.
    Count(i32),
    /// A number or percentage, as text.
    Text(String),
}

impl MinimumShouldMatch {
    /// Takes the text where both fields are set, as newer clients set them: it may be a percentage.
    #[must_use]
    pub fn new(count: Option<i32>, text: Option<&str>) -> Option<Self> {
        match text {
            Some(text) => Some(Self::Text(text.to_owned())),
            None => count.map(Self::Count),
        }
    }
}

/// Whether a search counts the rows that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TotalCount {
    /// It doesn't.
    Off,
    /// It counts up to this number of rows, and may stop there.
    UpTo(u32),
    /// It counts all.
    Exact,
}

impl TotalCount {
    /// What a search asks for, by either of the fields that clients have for it.
    #[must_use]
    pub fn of(search: &SearchQuery) -> Self {
        match (search.track_total_count, search.get_total_count) {
            (Some(i32::MAX), _) => Self::Exact,
            (Some(most), _) => u32::try_from(most).map_or(Self::Off, Self::UpTo),
            (None, Some(true)) => Self::Exact,
            (None, _) => Self::Off,
        }
    }
}

/// Counts the nodes of a tree, and their fields, against the limits.
#[derive(Default)]
struct SearchBudget {
    nodes: usize,
    /// Fields of the messages of all nodes: each is within the bytes of another, where nothing has counted it.
    fields: usize,
}

impl SearchBudget {
    /// Counts a node, and refuses too many, and one that is nested too deep.
    fn node(&mut self, depth: usize) -> Result<(), Reason> {
        self.nodes += 1;
        if self.nodes > limits::MAX_SEARCH_NODES {
            return Err(Reason::TooManySearchNodes {
                limit: limits::MAX_SEARCH_NODES,
            });
        }
        if depth > limits::MAX_SEARCH_DEPTH {
            return Err(Reason::SearchTooDeep {
                limit: limits::MAX_SEARCH_DEPTH,
            });
        }
        Ok(())
    }

    /// Decodes the message of a node; `part` is what the error calls it.
    fn body<M: Strict>(&mut self, bytes: Option<Bytes>, part: &str) -> Result<M, Reason> {
        let body = decode_counted(bytes.unwrap_or_default(), &mut self.fields);
        body.map_err(|_| Reason::MalformedSearch { part: part.into() })
    }
}
