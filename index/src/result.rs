//! Search results: the page, the total, the aggregations.

mod aggregation;
mod profile;

pub use aggregation::{AggregationResult, Datum, Group, TopHit};
pub use profile::{Profile, ProfileNode, ProfiledSegment, SegmentAccess};

/// A value that a hit was sorted by.
#[derive(Clone, Debug, PartialEq)]
pub enum SortValue {
    /// The document has no value.
    Missing,
    /// Of a LONG.
    Long(i64),
    /// Of a DOUBLE, the mean or sum of numbers, a score, or a distance in metres.
    Double(f64),
    /// Of a BOOLEAN.
    Boolean(bool),
    /// Of a DATE: nanoseconds since the Unix epoch.
    Date(i64),
    /// Of a KEYWORD.
    String(String),
    /// Of an attribute.
    Bytes(Vec<u8>),
    /// The document's key.
    Key(Vec<u8>),
}

/// One found document.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The document's key.
    pub key: Vec<u8>,
    /// Its score, when the order asks for scores.
    pub score: Option<f32>,
    /// What it was sorted by, one value for each [`crate::Sort`] of the request.
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

/// The objects of one hit that a `nested` query matched.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerHitList {
    /// How many matched.
    pub total: u64,
    /// Those that were asked for, in order.
    pub hits: Vec<InnerHit>,
}

/// One object that matched.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerHit {
    /// The object's place in its list, from 0.
    pub offset: usize,
    /// The places of the objects around it, outermost first; empty for an object of the document itself.
    pub outer_offsets: Vec<usize>,
    /// Its score.
    pub score: f32,
    /// What it was sorted by, one value for each [`crate::Sort`].
    pub sort_values: Vec<SortValue>,
}
