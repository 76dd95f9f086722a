//! Figures and groups over all documents that a search matches.
//!
//! The matches of a segment are listed once, and every grouping splits its list into one a group; figures read the
//! columns of the documents of their list. Segments are merged by value, so every count is exact.
//!
//! | module | what it knows |
//! |---|---|
//! | `check` | what makes a request's aggregations invalid |
//! | `column` | the values of a segment's documents |
//! | `collect` | from the matches of each segment to figures and groups |
//! | `gathered` | figures and groups while they grow, and their bounds |
//! | `conclude` | from what was gathered to results: order, size, what is left out |

mod check;
mod collect;
mod column;
mod conclude;
mod gathered;

use crate::query::QueryValue;

pub(crate) use check::prepare;
pub(crate) use collect::collect;

/// One figure or grouping over the documents that match.
#[derive(Clone, Debug, PartialEq)]
pub enum Aggregation {
    /// A figure over the values of a field; each value of an array counts.
    Figure {
        /// The field, on the document itself.
        field: String,
        /// Which figure.
        figure: Figure,
        /// The value of documents without one; absent leaves them out.
        missing: Option<QueryValue>,
    },
    /// A group for each value of a field. A document with several values is in several groups.
    Terms {
        /// The field: KEYWORD, LONG, DOUBLE, BOOLEAN or DATE.
        field: String,
        /// How many groups, 1 to [`crate::limits::MAX_TERMS_GROUPS`].
        size: usize,
        /// Leaves out groups with fewer documents.
        min_doc_count: u64,
        /// The order of the groups; empty is by count, highest first. Ties end in the key ascending.
        order: Vec<GroupOrder>,
        /// The value of documents without one; absent leaves them out.
        missing: Option<QueryValue>,
        /// Aggregations inside each group.
        aggregations: Vec<(String, Aggregation)>,
    },
    /// A group for each H3 cell with a point of the document, the fullest first.
    GeoCell {
        /// The GEO_POINT field.
        field: String,
        /// The H3 resolution, 0 to 15.
        resolution: u8,
        /// How many cells, 1 to [`crate::limits::MAX_CELL_GROUPS`].
        size: usize,
        /// Aggregations inside each group.
        aggregations: Vec<(String, Aggregation)>,
    },
}

/// What is told of the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// How many there are.
    Count,
    /// Their sum, of LONG or DOUBLE. Of LONG it is exact, and a double when it is beyond 64 bits. Of DOUBLE it stops
    /// at the greatest finite number.
    Sum,
    /// The lowest, of LONG, DOUBLE or DATE.
    Min,
    /// The highest, of LONG, DOUBLE or DATE.
    Max,
    /// The mean, of LONG, DOUBLE or DATE.
    Avg,
    /// All of the above.
    Stats,
    /// How many different ones there are: exact, within the memory of [`crate::limits::MAX_AGGREGATION_BYTES`].
    DistinctCount,
}

/// One key of the order of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOrder {
    /// By what.
    pub by: GroupOrderBy,
    /// Highest first. Groups without a figure are last either way.
    pub descending: bool,
}

/// What groups are ordered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupOrderBy {
    /// The group's key.
    Key,
    /// The number of documents.
    Count,
    /// The figure of the aggregation inside with this name; not `Stats`.
    Aggregation(String),
}

/// A value in a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// Of a LONG, or a count.
    Long(i64),
    /// Of a DOUBLE, a mean, or a sum beyond 64 bits.
    Double(f64),
    /// Of a BOOLEAN.
    Boolean(bool),
    /// Of a DATE: nanoseconds since the Unix epoch.
    Date(i64),
    /// Of a KEYWORD, or an H3 cell's index in hexadecimal.
    String(String),
}

/// The answer to one aggregation.
#[derive(Clone, Debug, PartialEq)]
pub enum AggregationResult {
    /// One figure; absent when no document has a value.
    Value(Option<Datum>),
    /// Several figures of one field.
    Stats {
        /// How many values there are.
        count: u64,
        /// Their sum; absent without values, and of DATE.
        sum: Option<Datum>,
        /// Their mean.
        avg: Option<Datum>,
        /// The lowest.
        min: Option<Datum>,
        /// The highest.
        max: Option<Datum>,
    },
    /// Groups.
    Groups {
        /// The groups, in order.
        groups: Vec<Group>,
        /// The sum of the counts of the groups that are not shown.
        other_count: u64,
    },
}

/// One group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What its documents share.
    pub key: Datum,
    /// How many documents are in it.
    pub count: u64,
    /// The aggregations inside it, in the order of the request.
    pub aggregations: Vec<(String, AggregationResult)>,
}
