//! Figures and groups while they grow, and their bounds.

use std::collections::{BTreeMap, HashSet};
use std::mem::size_of;

use tantivy::columnar::MonotonicallyMappableToU64;

use super::Figure;
use super::check::{Node, Shape};
use super::column::{Kind, Raw};
use crate::error::Error;
use crate::limits::{MAX_AGGREGATION_BYTES, MAX_AGGREGATION_GROUPS};

/// What one aggregation has gathered so far.
pub(super) enum Gathered {
    Figure(Numbers),
    Distinct(HashSet<Raw>),
    Groups(BTreeMap<Raw, Members>),
}

impl Gathered {
    pub(super) fn new(node: &Node) -> Self {
        match &node.shape {
            Shape::Figure(Figure::DistinctCount) => Self::Distinct(HashSet::new()),
            Shape::Figure(_) => Self::Figure(Numbers::default()),
            Shape::Terms { .. } | Shape::Cells { .. } => Self::Groups(BTreeMap::new()),
        }
    }
}

/// The documents of one group.
pub(super) struct Members {
    pub(super) count: u64,
    pub(super) inside: Vec<Gathered>,
}

/// Numbers, taken one by one.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) count: u64,
    /// Of whole numbers: exact, since 2⁶⁴ of them fit.
    pub(super) whole: i128,
    pub(super) double: f64,
    pub(super) extremes: Option<(u64, u64)>,
}

impl Numbers {
    pub(super) fn add(&mut self, number: u64, kind: Kind) {
        self.count += 1;
        match kind {
            Kind::Long | Kind::Date => self.whole += i128::from(i64::from_u64(number)),
            Kind::Double => {
                self.double = (self.double + f64::from_u64(number)).clamp(f64::MIN, f64::MAX);
            }
            Kind::Boolean | Kind::Keyword | Kind::Cell(_) => {}
        }
        self.extremes = Some(match self.extremes {
            None => (number, number),
            Some((lowest, highest)) => (lowest.min(number), highest.max(number)),
        });
    }
}

/// What all aggregations of a request may still hold.
#[derive(Default)]
pub(super) struct Budget {
    groups: usize,
    bytes: usize,
}

impl Budget {
    /// Accounts for a new group.
    pub(super) fn group(&mut self, key: &Raw, node: &Node) -> Result<(), Error> {
        self.groups += 1;
        if self.groups > MAX_AGGREGATION_GROUPS {
            return Err(too_many_groups(self.groups, node));
        }
        let inside = node.inside.len() * size_of::<Gathered>();
        self.bytes(key, size_of::<Members>() + inside, node)
    }

    /// Accounts for a new distinct value.
    pub(super) fn value(&mut self, value: &Raw, node: &Node) -> Result<(), Error> {
        self.bytes(value, 0, node)
    }

    fn bytes(&mut self, value: &Raw, besides: usize, node: &Node) -> Result<(), Error> {
        self.bytes += value.size() + besides;
        if self.bytes > MAX_AGGREGATION_BYTES {
            return Err(too_many_bytes(self.bytes, node));
        }
        Ok(())
    }
}

/// The error of aggregations that hold too much.
pub(super) fn too_many_bytes(actual: usize, node: &Node) -> Error {
    Error::LimitExceeded {
        path: node.path.clone(),
        limit: "MAX_AGGREGATION_BYTES",
        max: MAX_AGGREGATION_BYTES as u64,
        actual: actual as u64,
        advice: "narrow the query, or aggregate a field with fewer different values",
    }
}

/// The error of a grouping with more groups than a request may have.
pub(super) fn too_many_groups(actual: usize, node: &Node) -> Error {
    Error::LimitExceeded {
        path: node.path.clone(),
        limit: "MAX_AGGREGATION_GROUPS",
        max: MAX_AGGREGATION_GROUPS as u64,
        actual: actual as u64,
        advice: "narrow the query, or group by a field with fewer different values",
    }
}
