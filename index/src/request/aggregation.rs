//! What is asked of the documents that match.

use super::{CalendarUnit, Query, QueryValue, Sort, TimeZone};
use crate::geo::GeoPoint;

/// One figure or grouping over the documents that match.
#[expect(
    missing_docs,
    reason = "fields and aggregations inside are what their names say"
)]
#[derive(Clone, Debug, PartialEq)]
pub enum Aggregation {
    /// A figure over the values of a field; each value of an array counts.
    Figure {
        field: String,
        figure: MetricKind,
        /// The value of documents without one; absent leaves them out.
        missing: Option<QueryValue>,
    },
    /// For each percentage the lowest value that at least so many of all values are not above; for 0 the lowest. A
    /// percentage counts as the shortest decimal that reads as the double: 99.9 % of 1,000 values are 999.
    Percentiles {
        /// The field: LONG, DOUBLE or DATE.
        field: String,
        /// From 0 to 100, at most [`crate::limits::MAX_PERCENTAGES`].
        percentages: Vec<f64>,
        /// The value of documents without one; absent leaves them out.
        missing: Option<QueryValue>,
    },
    /// The point in the middle: the direction of the sum of all points, as directions from the centre of the globe. Each
    /// point of an array counts.
    GeoCentroid { field: String },
    /// The first documents in an order of their own.
    TopHits {
        /// How many, 1 to [`crate::limits::MAX_TOP_HITS`].
        size: usize,
        /// The order; empty means by score descending. Ties end in the key ascending.
        sort: Vec<Sort>,
    },
    /// A group for each value of a field. A document with several values is in several groups.
    Terms {
        /// The field: KEYWORD, LONG, DOUBLE, BOOLEAN, DATE, or an attribute.
        field: String,
        /// How many groups, 1 to [`crate::limits::MAX_TERMS_GROUPS`].
        size: usize,
        /// Leaves out groups with fewer documents.
        min_doc_count: u64,
        /// The order of the groups; empty is by count, highest first. Ties end in the key ascending.
        order: Vec<GroupOrder>,
        /// The value of documents without one; absent leaves them out.
        missing: Option<QueryValue>,
        aggregations: Vec<(String, Aggregation)>,
    },
    /// A group for each range, in their order, empty ones too. A document is in every range that holds one of its values.
    Range {
        /// The field: LONG, DOUBLE or DATE.
        field: String,
        /// The ranges, 1 to [`crate::limits::MAX_RANGES`].
        ranges: Vec<ValueRange>,
        aggregations: Vec<(String, Aggregation)>,
    },
    /// A group for each filter, in their order, empty ones too. Inside a grouping of nested objects the filters are about
    /// those objects.
    Filters {
        /// The filters, 1 to [`crate::limits::MAX_RANGES`].
        filters: Vec<Query>,
        aggregations: Vec<(String, Aggregation)>,
    },
    /// A group for each range of distances, in their order, empty ones too. The nearest point of a document counts.
    GeoDistance {
        field: String,
        /// Where distances are measured from.
        origin: GeoPoint,
        /// The ranges in metres, lower end included and upper end not, 1 to [`crate::limits::MAX_RANGES`].
        ranges: Vec<(Option<f64>, Option<f64>)>,
        aggregations: Vec<(String, Aggregation)>,
    },
    /// A group for each interval of a number.
    Histogram {
        /// The field: LONG or DOUBLE.
        field: String,
        /// The width of a group; positive.
        interval: f64,
        /// Where a group begins, modulo the interval.
        offset: f64,
        /// Leaves out groups with fewer documents. With 0, and both ends of `bounds`, empty groups are shown.
        min_doc_count: u64,
        /// The value of documents without one; absent leaves them out.
        missing: Option<QueryValue>,
        /// Leaves out groups that don't overlap this, as ranges of real numbers whatever the field's numbers are.
        bounds: ValueRange,
        /// The order of the groups; empty is by key ascending.
        order: Vec<GroupOrder>,
        aggregations: Vec<(String, Aggregation)>,
    },
    /// A group for each interval of time.
    DateHistogram {
        field: String,
        /// How many units wide a group is, from 1.
        interval: u32,
        unit: CalendarUnit,
        /// The zone in which days, and what is longer, begin.
        time_zone: TimeZone,
        /// Groups begin so many nanoseconds later.
        offset: i64,
        /// Leaves out groups with fewer documents. With 0, and both ends of `bounds`, empty groups are shown.
        min_doc_count: u64,
        /// The value of documents without one; absent leaves them out.
        missing: Option<QueryValue>,
        /// Leaves out groups that don't overlap this.
        bounds: ValueRange,
        /// The order of the groups; empty is by key ascending.
        order: Vec<GroupOrder>,
        aggregations: Vec<(String, Aggregation)>,
    },
    /// A group for each H3 cell with a point of the document, the fullest first.
    GeoCell {
        field: String,
        /// The H3 resolution, 0 to 15.
        resolution: u8,
        /// How many cells, 1 to [`crate::limits::MAX_CELL_GROUPS`].
        size: usize,
        aggregations: Vec<(String, Aggregation)>,
    },
    /// A group for each geohash with a point of the document, the fullest first: cells as [`crate::geo::geohash`] has them.
    GeoHash {
        field: String,
        /// Characters of the geohash, 1 to 12.
        characters: u8,
        /// How many cells, 1 to [`crate::limits::MAX_CELL_GROUPS`].
        size: usize,
        aggregations: Vec<(String, Aggregation)>,
    },
    /// A group for each combination of several keys, in the order of the keys, by pages: as many as there are. Not inside
    /// other groupings.
    Composite {
        /// The keys, 1 to [`crate::limits::MAX_COMPOSITE_SOURCES`].
        sources: Vec<CompositeSource>,
        /// How many groups, 1 to [`crate::limits::MAX_TERMS_GROUPS`].
        size: usize,
        /// The token of the page before.
        after: Option<String>,
        aggregations: Vec<(String, Aggregation)>,
    },
}

/// Which metric of the values of a field is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// How many there are.
    Count,
    /// Their sum, of LONG or DOUBLE, exact: of LONG a double when it is beyond 64 bits, of DOUBLE the nearest double to
    /// the true sum, and the greatest finite one beyond.
    Sum,
    /// The lowest, of LONG, DOUBLE or DATE.
    Min,
    /// The highest, of LONG, DOUBLE or DATE.
    Max,
    /// The mean, of LONG, DOUBLE or DATE: the nearest double to the true mean; of DATE rounded down to a nanosecond.
    Avg,
    /// All of the above.
    Stats,
    /// How many different ones there are: exact up to [`crate::limits::MAX_EXACT_BYTES`], then an estimate.
    DistinctCount,
}

/// A range of values, the lower end included, the upper not; absent ends are open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueRange {
    /// The lower end.
    pub from: Option<QueryValue>,
    /// The upper end.
    pub to: Option<QueryValue>,
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

/// One key of a composite.
#[derive(Clone, Debug, PartialEq)]
pub struct CompositeSource {
    /// The field.
    pub field: String,
    /// How keys are made of its values.
    pub kind: SourceKind,
    /// Highest first.
    pub descending: bool,
    /// Documents without a value have a key of their own, which is lower than all others.
    pub include_missing: bool,
    /// The value of documents without one; not with `include_missing`.
    pub missing: Option<QueryValue>,
}

/// How the keys of a composite are made of values.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceKind {
    /// They are the values: of KEYWORD, LONG, DOUBLE, BOOLEAN or DATE.
    Terms,
    /// As in [`Aggregation::Histogram`].
    Histogram {
        /// The width of a group; positive.
        interval: f64,
        /// Where a group begins, modulo the interval.
        offset: f64,
    },
    /// As in [`Aggregation::DateHistogram`].
    DateHistogram {
        /// How many units wide a group is, from 1.
        interval: u32,
        /// The unit.
        unit: CalendarUnit,
        /// The zone in which days, and what is longer, begin.
        time_zone: TimeZone,
        /// Groups begin so many nanoseconds later.
        offset: i64,
    },
    /// As in [`Aggregation::GeoCell`].
    GeoCell {
        /// The H3 resolution, 0 to 15.
        resolution: u8,
    },
}

impl Aggregation {
    /// The aggregations inside each group; none of a figure.
    pub fn inside(&self) -> &[(String, Aggregation)] {
        match self {
            Self::Terms { aggregations, .. }
            | Self::Range { aggregations, .. }
            | Self::Filters { aggregations, .. }
            | Self::GeoDistance { aggregations, .. }
            | Self::Histogram { aggregations, .. }
            | Self::DateHistogram { aggregations, .. }
            | Self::GeoCell { aggregations, .. }
            | Self::GeoHash { aggregations, .. }
            | Self::Composite { aggregations, .. } => aggregations,
            _ => &[],
        }
    }

    /// Whether it makes groups.
    pub(crate) fn is_grouping(&self) -> bool {
        !matches!(
            self,
            Self::Figure { .. } | Self::Percentiles { .. } | Self::GeoCentroid { .. } | Self::TopHits { .. }
        )
    }

    /// The aggregation's name in a request.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Figure { figure, .. } => match figure {
                MetricKind::Count => "count",
                MetricKind::Sum => "sum",
                MetricKind::Min => "min",
                MetricKind::Max => "max",
                MetricKind::Avg => "avg",
                MetricKind::Stats => "stats",
                MetricKind::DistinctCount => "distinct_count",
            },
            Self::Percentiles { .. } => "percentiles",
            Self::GeoCentroid { .. } => "geo_centroid",
            Self::TopHits { .. } => "top_hits",
            Self::Terms { .. } => "terms",
            Self::Range { .. } => "range",
            Self::Filters { .. } => "filters",
            Self::GeoDistance { .. } => "geo_distance",
            Self::Histogram { .. } => "histogram",
            Self::DateHistogram { .. } => "date_histogram",
            Self::GeoCell { .. } => "geo_cell",
            Self::GeoHash { .. } => "geo_hash",
            Self::Composite { .. } => "composite",
        }
    }
}
