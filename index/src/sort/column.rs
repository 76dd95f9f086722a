//! Reads what documents are sorted by from the columns of a segment.

use std::ops::{Bound, RangeBounds};

use tantivy::columnar::{Column, MonotonicallyMappableToU64};
use tantivy::{DocId, Score};

use super::objects::Objects;
use super::rank;

/// The value of a document under one key, as a number whose order is the key's ascending order. Documents have to be
/// asked for in ascending order, each once.
pub(super) trait Values {
    fn value(&mut self, doc: DocId, score: Score) -> Option<u64>;
}

pub(super) struct Nothing;

impl Values for Nothing {
    fn value(&mut self, _: DocId, _: Score) -> Option<u64> {
        None
    }
}

pub(super) struct Scores;

impl Values for Scores {
    fn value(&mut self, _: DocId, score: Score) -> Option<u64> {
        // -0.0 and 0.0 are one score.
        Some((f64::from(score) + 0.0).to_u64())
    }
}

/// Which of several values counts, or what they make together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    Only,
    Lowest,
    Highest,
    Mean,
    Sum,
}

/// What the numbers of a column stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberKind {
    Long,
    Double,
    Boolean,
    Date,
}

struct Single(Column<u64>);

impl Values for Single {
    fn value(&mut self, doc: DocId, _: Score) -> Option<u64> {
        self.0.first(doc)
    }
}

struct Several {
    column: Column<u64>,
    objects: Option<Objects>,
    /// Which values count; all when absent.
    among: Option<(Bound<u64>, Bound<u64>)>,
    pick: Pick,
    doubles: bool,
}

impl Several {
    /// Goes through the values of a document, or of its objects.
    fn each(&mut self, doc: DocId, mut take: impl FnMut(u64)) {
        match &mut self.objects {
            None => self.column.values_for_doc(doc).for_each(take),
            Some(objects) => {
                objects.seek(doc);
                while let Some(object) = objects.next(doc) {
                    self.column.values_for_doc(object).for_each(&mut take);
                }
            }
        }
    }

    fn best(&mut self, doc: DocId, better: impl Fn(u64, u64) -> u64) -> Option<u64> {
        let mut best = None;
        let mut take = |value| best = Some(best.map_or(value, |best| better(best, value)));
        match self.among {
            None => self.each(doc, take),
            Some(among) => self.each(doc, |value| {
                if among.contains(&value) {
                    take(value);
                }
            }),
        }
        best
    }

    /// The mean or the sum; integers are added up exactly, doubles in the order in which they come.
    fn total(&mut self, doc: DocId) -> Option<f64> {
        let (mut count, mean) = (0_u32, self.pick == Pick::Mean);
        let parts = |count| f64::from(if mean { count } else { 1 });
        let total = if self.doubles {
            let mut sum = Doubles::default();
            self.each(doc, |value| {
                count += 1;
                sum.add(f64::from_u64(value));
            });
            sum.divided(parts(count))
        } else {
            let mut sum = 0_i128;
            self.each(doc, |value| {
                count += 1;
                sum += i128::from(i64::from_u64(value));
            });
            sum as f64 / parts(count)
        };
        // + 0.0: the mean of tiny negative numbers can be -0.0.
        (count > 0).then_some(total + 0.0)
    }
}

impl Values for Several {
    fn value(&mut self, doc: DocId, _: Score) -> Option<u64> {
        match self.pick {
            Pick::Only | Pick::Lowest => self.best(doc, u64::min),
            Pick::Highest => self.best(doc, u64::max),
            Pick::Mean | Pick::Sum => self.total(doc).map(f64::to_u64),
        }
    }
}

/// More values than a document has in a field, as a power of two.
const DOUBLES_SCALE: f64 = (1_u64 << 32) as f64;

/// A sum of doubles, and the same in units in which it is finite.
#[derive(Default)]
struct Doubles {
    sum: f64,
    scaled: f64,
}

impl Doubles {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.scaled += value / DOUBLES_SCALE;
    }

    /// The sum divided by a count from 1; finite.
    fn divided(self, count: f64) -> f64 {
        if self.sum.is_finite() {
            return self.sum / count;
        }
        (self.scaled / count * DOUBLES_SCALE).clamp(f64::MIN, f64::MAX)
    }
}

pub(super) fn numbers(
    column: Column<u64>,
    kind: NumberKind,
    pick: Pick,
    objects: Option<Objects>,
) -> Box<dyn Values> {
    if pick == Pick::Only && objects.is_none() {
        return Box::new(Single(column));
    }
    Box::new(Several {
        column,
        objects,
        among: None,
        pick,
        doubles: kind == NumberKind::Double,
    })
}

/// Ordinals, as positions among strings.
struct Ordinals<V>(V);

impl<V: Values> Values for Ordinals<V> {
    fn value(&mut self, doc: DocId, score: Score) -> Option<u64> {
        self.0.value(doc, score).map(rank::of_ordinal)
    }
}

/// The strings of a column, or those between two ordinals, by their ordinals.
pub(super) fn ordinals(
    column: Column<u64>,
    among: Option<(Bound<u64>, Bound<u64>)>,
    pick: Pick,
    objects: Option<Objects>,
) -> Box<dyn Values> {
    if pick == Pick::Only && objects.is_none() && among.is_none() {
        return Box::new(Ordinals(Single(column)));
    }
    Box::new(Ordinals(Several {
        column,
        objects,
        among,
        pick,
        doubles: false,
    }))
}
