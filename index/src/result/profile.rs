//! How a search was planned, and what it cost.

use std::time::Duration;

/// How a search ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The query over all segments.
    pub query: ProfileNode,
    /// Each segment that was looked at, in the order in which it was.
    pub segments: Vec<ProfiledSegment>,
    /// Time to check and plan query, order and aggregations.
    pub plan: Duration,
    /// Time to find, count and sort matches.
    pub search: Duration,
    /// Time of the aggregations.
    pub aggregate: Duration,
    /// Time to look for inner hits.
    pub inner_hits: Duration,
    /// The most bytes of [`crate::limits::MAX_SEARCH_BYTES`] that it held at a time.
    pub peak_bytes: u64,
}

/// One clause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileNode {
    /// What kind of clause: `term`, `bool`.
    pub kind: &'static str,
    /// What it looks for, in words.
    pub description: String,
    /// How many documents it offers by itself, before other clauses and deletes take any away: exact for lists of terms,
    /// an estimate for what is only checked document by document. Objects are counted for what is inside `nested`.
    pub candidates: u64,
    /// Time to open its matches, those of its parts included.
    pub time: Duration,
    /// How often it was opened: once a segment and pass.
    pub opened: u64,
    /// Its parts.
    pub children: Vec<ProfileNode>,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfiledSegment {
    /// Its documents and objects, deleted ones left out.
    pub documents: u64,
    /// Its deleted documents and objects.
    pub deleted: u64,
    /// How its matches were looked at.
    pub access: Access,
    /// Time of that, opening included.
    pub time: Duration,
    /// The query on this segment.
    pub query: ProfileNode,
}

/// How the matches of a segment were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Not at all: none could get onto the page.
    PassedOver,
    /// They were only counted.
    Counted,
    /// Those with the best values of the order's first key.
    BestValues,
    /// All, so many.
    AllMatches(u64),
}
