//! How a search was planned, and what it cost.

use std::time::Duration;

/// How one search was planned, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The query; its figures are sums over all segments.
    pub query: ProfileNode,
    /// The segments, in the order in which they were searched.
    pub segments: Vec<ProfiledSegment>,
    /// Time to check and plan query, order and aggregations.
    pub plan: Duration,
    /// Time to find, count and sort matches.
    pub search: Duration,
    /// Time of the aggregations.
    pub aggregate: Duration,
    /// Time to find inner hits.
    pub inner_hits: Duration,
    /// Peak memory, of the [`crate::limits::MAX_SEARCH_BYTES`] that a search may hold.
    pub peak_bytes: u64,
}

/// A clause of the query, with the clauses inside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileNode {
    /// What kind of clause, as in the contract: `term`, `bool`, ….
    pub kind: &'static str,
    /// What it looks for, in words.
    pub description: String,
    /// How many documents match it alone, deleted ones included: exact for posting lists, an estimate for what is checked
    /// document by document. Inside `nested`, objects are counted.
    pub candidates: u64,
    /// Time to make its scorers, its children's included.
    pub time: Duration,
    /// How many scorers were made of it: one for each segment and pass.
    pub opened: u64,
    /// The clauses inside it.
    pub children: Vec<ProfileNode>,
}

/// What one segment cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfiledSegment {
    /// Live documents and nested objects.
    pub documents: u64,
    /// Deleted documents and nested objects.
    pub deleted: u64,
    /// How its matches were collected.
    pub access: SegmentAccess,
    /// Time to make the scorers and to collect.
    pub time: Duration,
    /// The query's figures on this segment alone.
    pub query: ProfileNode,
}

/// How the matches of a segment were collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentAccess {
    /// Not at all: none could get onto the page.
    PassedOver,
    /// They were only counted.
    Counted,
    /// By blocks with the best values of the order's first key, as far as those were needed.
    BestValues,
    /// All of them; holds their number.
    AllMatches(u64),
}
