//! The keys of the order of hits.

use super::query::{Query, QueryValue};
use crate::geo::GeoPoint;

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
