//! Random orders.

use souk_index::{ArrayMode, GeoPoint, Missing, NestedSort, QueryValue, Sort};

use crate::questions::Questions;
use crate::universe::{Kind, Leaf, once_in, pick, point};

impl Questions<'_> {
    /// An order of documents.
    pub(crate) fn sorts(&mut self) -> Vec<Sort> {
        (0..self.rng.usize(..4)).map(|_| self.sort()).collect()
    }

    fn sort(&mut self) -> Sort {
        match self.rng.u8(..9) {
            0 | 1 => Sort::Score {
                ascending: once_in(self.rng, 3),
            },
            2 => Sort::PrimaryKey {
                descending: self.rng.bool(),
            },
            3 => self.distance("").unwrap_or(Sort::PrimaryKey { descending: true }),
            _ => {
                let leaves = self.universe.leaves.iter().filter(|leaf| Self::sortable(leaf));
                let leaves: Vec<Leaf> = leaves.cloned().collect();
                let leaf = pick(self.rng, &leaves).clone();
                self.by_field(&leaf)
            }
        }
    }

    fn sortable(leaf: &Leaf) -> bool {
        matches!(
            leaf.kind,
            Kind::Keyword | Kind::Long | Kind::Double | Kind::Boolean | Kind::Date
        )
    }

    fn by_field(&mut self, leaf: &Leaf) -> Sort {
        let summable = matches!(leaf.kind, Kind::Long | Kind::Double | Kind::Date);
        let mode = match self.rng.u8(..6) {
            0 => Some(ArrayMode::Min),
            1 => Some(ArrayMode::Max),
            2 if summable => Some(ArrayMode::Avg),
            3 if summable => Some(ArrayMode::Sum),
            _ => None,
        };
        let missing = match self.rng.u8(..3) {
            0 => Missing::First,
            1 => Missing::Last,
            _ => Missing::Value(match (self.stand_in(leaf.kind), mode) {
                (QueryValue::Time(time), Some(ArrayMode::Avg | ArrayMode::Sum)) => QueryValue::Integer(time),
                (value, _) => value,
            }),
        };
        let nested = (!leaf.scope.is_empty()).then(|| NestedSort {
            path: leaf.scope.clone(),
            filter: self.rng.bool().then(|| self.query(&leaf.scope, 1)),
        });
        Sort::Field {
            field: leaf.path.clone(),
            descending: self.rng.bool(),
            mode,
            missing,
            nested,
        }
    }

    fn distance(&mut self, scope: &str) -> Option<Sort> {
        let field = self.field(scope, |leaf| leaf.kind == Kind::Point)?.path;
        let count = if once_in(self.rng, 10) {
            100
        } else {
            self.rng.usize(1..4)
        };
        let points: Vec<GeoPoint> = (0..count)
            .map(|_| {
                if self.rng.bool() {
                    *pick(self.rng, &self.universe.points)
                } else {
                    point(self.rng)
                }
            })
            .collect();
        Some(Sort::GeoDistance {
            field,
            points,
            descending: self.rng.bool(),
        })
    }

    /// An order of the objects at a path, by their own fields.
    pub(crate) fn object_sorts(&mut self, path: &str) -> Vec<Sort> {
        let mut sorts = Vec::new();
        for _ in 0..self.rng.usize(..3) {
            let sort = match self.rng.u8(..4) {
                0 => Some(Sort::Score {
                    ascending: self.rng.bool(),
                }),
                1 => self.distance(path),
                _ => self
                    .field(path, Self::sortable)
                    .map(|leaf| match self.by_field(&leaf) {
                        Sort::Field {
                            field,
                            descending,
                            mode,
                            missing,
                            ..
                        } => Sort::Field {
                            field,
                            descending,
                            mode,
                            missing,
                            nested: None,
                        },
                        other => other,
                    }),
            };
            sorts.extend(sort);
        }
        sorts
    }
}
