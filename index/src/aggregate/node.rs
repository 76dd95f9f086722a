//! Aggregations that can run.

use tantivy::query::Query as PhysicalQuery;

use super::column::{Kind, Raw};
use super::histogram::{IntervalBounds, Intervals};
use super::quantiles::Percentage;
use crate::geo::GeoPoint;
use crate::page::PageOrigin;
use crate::request::{GroupOrder, MetricKind};
use crate::result::Datum;
use crate::sort::{Order, RawSortValue};

pub(crate) struct Prepared {
    pub(super) nodes: Vec<Node>,
}

impl Prepared {
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether documents are compared by their scores anywhere.
    pub(crate) fn wants_scores(&self) -> bool {
        self.nodes.iter().any(Node::wants_scores)
    }
}

pub(super) struct Node {
    pub(super) name: String,
    /// Where it stands in the request.
    pub(super) path: String,
    /// The nested objects that it takes; the documents themselves when absent.
    pub(super) scope: Option<String>,
    pub(super) shape: Shape,
    pub(super) inside: Vec<Node>,
}

impl Node {
    /// Whether documents are compared by their scores in it or inside it.
    pub(super) fn wants_scores(&self) -> bool {
        let own = matches!(&self.shape, Shape::TopHits { order, .. } if order.wants_scores());
        own || self.inside.iter().any(Self::wants_scores)
    }
}

/// What an aggregation makes of the documents.
pub(super) enum Shape {
    Figure {
        field: FieldOf,
        figure: MetricKind,
    },
    Percentiles {
        field: FieldOf,
        percentages: Vec<Percentage>,
    },
    Centroid {
        field: FieldOf,
    },
    TopHits {
        order: Box<Order>,
        size: usize,
    },
    Groups(Grouping),
    Composite(Composite),
}

/// The field of an aggregation.
#[derive(Debug)]
pub(super) struct FieldOf {
    pub(super) path: String,
    pub(super) kind: Kind,
    /// Which of the attributes, where the field is one of attributes.
    pub(super) attribute: Option<String>,
    /// The value of documents without one.
    pub(super) missing: Option<Raw>,
}

/// How documents are grouped, and which groups are shown.
pub(super) struct Grouping {
    pub(super) by: By,
    pub(super) size: Size,
    pub(super) min_doc_count: u64,
    pub(super) order: Vec<GroupOrder>,
}

/// How many groups are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// The first so many.
    First(usize),
    /// All; more than [`crate::limits::MAX_HISTOGRAM_GROUPS`] are refused.
    All,
    /// One for each range or filter.
    Each(usize),
}

/// What documents are grouped by.
pub(super) enum By {
    Value(FieldOf),
    Intervals {
        field: FieldOf,
        intervals: Intervals,
        bounds: IntervalBounds,
    },
    Ranges {
        field: FieldOf,
        ranges: Vec<Range>,
    },
    Distances {
        path: String,
        origin: GeoPoint,
        ranges: Vec<(f64, f64)>,
    },
    Filters(Vec<Box<dyn PhysicalQuery>>),
}

impl By {
    /// A key as it is shown.
    pub(super) fn keys(&self, name: &Raw) -> Vec<Option<Datum>> {
        let number = match name {
            Raw::Number(number) => *number,
            Raw::Bytes(_) => 0,
        };
        let nth = usize::try_from(number).unwrap_or(usize::MAX);
        match self {
            Self::Value(field) => vec![Some(name.datum(field.kind))],
            Self::Intervals { intervals, .. } => vec![Some(intervals.datum(number))],
            Self::Ranges { ranges, .. } => ranges.get(nth).map_or_else(Vec::new, |range| range.ends.to_vec()),
            Self::Distances { ranges, .. } => ranges.get(nth).map_or_else(Vec::new, |(from, to)| {
                let end = |end: f64| Some(Datum::Double(end)).filter(|_| end.is_finite());
                vec![end(*from), end(*to)]
            }),
            Self::Filters(_) => Vec::new(),
        }
    }
}

/// A range of values, as numbers whose order is the values'.
#[derive(Debug)]
pub(super) struct Range {
    /// The first value inside.
    pub(super) low: u128,
    /// The first value behind; beyond 64 bits when it is open.
    pub(super) high: u128,
    /// The ends as they were asked for.
    pub(super) ends: [Option<Datum>; 2],
}

pub(super) struct Source {
    /// Values or intervals.
    pub(super) by: By,
    pub(super) descending: bool,
    /// Documents without a value have a key, the lowest.
    pub(super) include_missing: bool,
}

pub(super) struct Composite {
    pub(super) sources: Vec<Source>,
    pub(super) size: usize,
    /// What page tokens belong to.
    pub(super) origin: PageOrigin,
    /// Only groups behind this one count.
    pub(super) after: Option<Vec<RawSortValue>>,
}
