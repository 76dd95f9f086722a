//! What is answered.

use super::SortValue;
use crate::geo::GeoPoint;

/// A value in a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// Of a LONG, or a count.
    Long(i64),
    /// Of a DOUBLE, a mean, a distance, or a sum beyond 64 bits.
    Double(f64),
    /// Of a BOOLEAN.
    Boolean(bool),
    /// Of a DATE: nanoseconds since the Unix epoch.
    Date(i64),
    /// Of an attribute.
    Bytes(Vec<u8>),
    /// Of a KEYWORD, or an H3 cell's index in hexadecimal.
    String(String),
}

/// The answer to one aggregation.
#[derive(Clone, Debug, PartialEq)]
pub enum AggregationResult {
    /// One figure, exact, and rounded once where it is a double; absent when no document has a value.
    Value(Option<Datum>),
    /// One figure that was estimated.
    Estimate {
        /// The figure.
        value: Datum,
        /// By what part of itself it is off at most, in 997 of 1,000 cases.
        error_bound: f64,
    },
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
    /// Percentiles.
    Percentiles {
        /// A value for each percentage, in that order; none when no document has a value.
        values: Vec<Datum>,
        /// How many values there are.
        count: u64,
        /// 0 when the values are exact; otherwise each stands at a place among all values that is off by at most this
        /// part of their number. It is a bound, not an estimate.
        rank_error_bound: f64,
    },
    /// The point in the middle of others.
    Centroid {
        /// The point; absent without points, and where they cancel each other out, like the two poles.
        point: Option<GeoPoint>,
        /// How many points there are.
        count: u64,
    },
    /// The first documents of a group, in order.
    TopHits(Vec<TopHit>),
    /// Groups.
    Groups {
        /// The groups, in order.
        groups: Vec<Group>,
        /// The sum of the counts of the groups that are not shown. Not known of a composite: 0.
        other_count: u64,
        /// Which groups are shown is decided by counts that are at most this much too low: 0 when all are exact, as the
        /// counts that are shown always are. Other counts only belong to `terms` by count of fields with more different
        /// values than [`crate::limits::MAX_AGGREGATION_GROUPS`].
        count_error_bound: u64,
        /// Of a composite: the token of the next page; absent on the last one.
        next_page_token: Option<String>,
    },
}

/// One group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What its documents share: one key; the two ends of a range, absent where open; nothing of a filter; or the keys of
    /// a composite, absent where its documents have no value.
    pub keys: Vec<Option<Datum>>,
    /// How many documents are in it; objects, where it is made of nested objects.
    pub count: u64,
    /// The aggregations inside it, in the order of the request.
    pub aggregations: Vec<(String, AggregationResult)>,
}

/// One document of [`AggregationResult::TopHits`].
#[derive(Clone, Debug, PartialEq)]
pub struct TopHit {
    /// The document's key.
    pub key: Vec<u8>,
    /// Its score, when the order asks for scores.
    pub score: Option<f32>,
    /// What it was sorted by, one value for each sort.
    pub sort_values: Vec<SortValue>,
}
