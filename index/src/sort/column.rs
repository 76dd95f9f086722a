//! Reads what documents are sorted by from the columns of a segment.

use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use tantivy::columnar::{Column, MonotonicallyMappableToU64};
use tantivy::{DocId, Score, SegmentReader};

use super::objects::Objects;
use super::rank;

/// The value of a document under one key, as a number whose order is the key's ascending order. Documents have to be
/// asked for in ascending order, each once.
pub(super) trait Values {
    fn value(&mut self, doc: DocId, score: Score) -> Option<u64>;
}

/// A segment whose documents have no value.
pub(super) struct Nothing;

impl Values for Nothing {
    fn value(&mut self, _: DocId, _: Score) -> Option<u64> {
        None
    }
}

/// The score.
pub(super) struct Scores;

impl Values for Scores {
    fn value(&mut self, _: DocId, score: Score) -> Option<u64> {
        // -0.0 and 0.0 are one score.
        Some((f64::from(score) + 0.0).to_u64())
    }
}

/// A column with at most one value a document.
struct Single<T>(Column<T>);

impl<T: ColumnValue> Values for Single<T> {
    fn value(&mut self, doc: DocId, _: Score) -> Option<u64> {
        self.0.first(doc).map(MonotonicallyMappableToU64::to_u64)
    }
}

/// What a column of a sortable type holds.
trait ColumnValue: MonotonicallyMappableToU64 + PartialOrd + Copy + Debug + Send + Sync + 'static {}

impl<T> ColumnValue for T where
    T: MonotonicallyMappableToU64 + PartialOrd + Copy + Debug + Send + Sync + 'static
{
}

/// Takes values one by one and tells what they make together.
trait Fold<T>: Default {
    fn add(&mut self, value: T);
    fn result(self) -> Option<u64>;
}

#[derive(Default)]
struct Lowest(Option<u64>);

impl<T: ColumnValue> Fold<T> for Lowest {
    fn add(&mut self, value: T) {
        let value = value.to_u64();
        self.0 = Some(self.0.map_or(value, |lowest| lowest.min(value)));
    }

    fn result(self) -> Option<u64> {
        self.0
    }
}

#[derive(Default)]
struct Highest(Option<u64>);

impl<T: ColumnValue> Fold<T> for Highest {
    fn add(&mut self, value: T) {
        let value = value.to_u64();
        self.0 = Some(self.0.map_or(value, |highest| highest.max(value)));
    }

    fn result(self) -> Option<u64> {
        self.0
    }
}

/// A number that can be summed: integers exactly, doubles in the order in which they come.
trait Addend: ColumnValue {
    type Sum: Default;
    fn add_to(self, sum: &mut Self::Sum);
    /// The sum divided by a count from 1; finite.
    fn divided(sum: Self::Sum, count: f64) -> f64;
}

impl Addend for i64 {
    type Sum = i128;

    fn add_to(self, sum: &mut i128) {
        *sum += i128::from(self);
    }

    fn divided(sum: i128, count: f64) -> f64 {
        sum as f64 / count
    }
}

/// A sum of doubles, and the same in units in which it is finite.
#[derive(Default)]
struct Doubles {
    sum: f64,
    scaled: f64,
}

/// More values than a document has in a field, as a power of two.
const DOUBLES_SCALE: f64 = (1_u64 << 32) as f64;

impl Addend for f64 {
    type Sum = Doubles;

    fn add_to(self, sum: &mut Doubles) {
        sum.sum += self;
        sum.scaled += self / DOUBLES_SCALE;
    }

    fn divided(Doubles { sum, scaled }: Doubles, count: f64) -> f64 {
        if sum.is_finite() {
            return sum / count;
        }
        (scaled / count * DOUBLES_SCALE).clamp(f64::MIN, f64::MAX)
    }
}

struct Total<T: Addend> {
    sum: T::Sum,
    count: u32,
}

impl<T: Addend> Default for Total<T> {
    fn default() -> Self {
        Self {
            sum: T::Sum::default(),
            count: 0,
        }
    }
}

impl<T: Addend> Fold<T> for Total<T> {
    fn add(&mut self, value: T) {
        value.add_to(&mut self.sum);
        self.count += 1;
    }

    fn result(self) -> Option<u64> {
        (self.count > 0).then(|| (T::divided(self.sum, 1.0) + 0.0).to_u64())
    }
}

struct Mean<T: Addend>(Total<T>);

impl<T: Addend> Default for Mean<T> {
    fn default() -> Self {
        Self(Total::default())
    }
}

impl<T: Addend> Fold<T> for Mean<T> {
    fn add(&mut self, value: T) {
        self.0.add(value);
    }

    fn result(self) -> Option<u64> {
        // + 0.0: the mean of tiny negative numbers can be -0.0.
        let count = f64::from(self.0.count);
        (self.0.count > 0).then(|| (T::divided(self.0.sum, count) + 0.0).to_u64())
    }
}

/// A column of which several values make one.
struct Several<T, F> {
    column: Column<T>,
    objects: Option<Objects>,
    fold: std::marker::PhantomData<fn() -> F>,
}

impl<T: ColumnValue, F: Fold<T>> Values for Several<T, F> {
    fn value(&mut self, doc: DocId, _: Score) -> Option<u64> {
        let mut fold = F::default();
        match &mut self.objects {
            None => self.column.values_for_doc(doc).for_each(|value| fold.add(value)),
            Some(objects) => {
                objects.seek(doc);
                while let Some(object) = objects.next(doc) {
                    self.column
                        .values_for_doc(object)
                        .for_each(|value| fold.add(value));
                }
            }
        }
        fold.result()
    }
}

fn several<T: ColumnValue, F: Fold<T> + 'static>(
    column: Column<T>,
    objects: Option<Objects>,
) -> Box<dyn Values> {
    Box::new(Several::<T, F> {
        column,
        objects,
        fold: std::marker::PhantomData,
    })
}

/// Which of several values counts, or what they make together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// There is only one.
    Only,
    Lowest,
    Highest,
    Mean,
    Sum,
}

/// Lowest or highest values, or the only ones.
fn extremes<T: ColumnValue>(column: Column<T>, pick: Pick, objects: Option<Objects>) -> Box<dyn Values> {
    match pick {
        Pick::Only if objects.is_none() => Box::new(Single(column)),
        Pick::Highest => several::<T, Highest>(column, objects),
        Pick::Only | Pick::Lowest | Pick::Mean | Pick::Sum => several::<T, Lowest>(column, objects),
    }
}

fn numbers<T: Addend>(column: Column<T>, pick: Pick, objects: Option<Objects>) -> Box<dyn Values> {
    match pick {
        Pick::Mean => several::<T, Mean<T>>(column, objects),
        Pick::Sum => several::<T, Total<T>>(column, objects),
        Pick::Only | Pick::Lowest | Pick::Highest => extremes(column, pick, objects),
    }
}

/// Which column holds the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberKind {
    Long,
    Double,
    Boolean,
    Date,
}

/// The only values of a column.
pub(super) fn only(column: Column<u64>) -> Box<dyn Values> {
    Box::new(Single(column))
}

/// The numbers of a field.
pub(super) fn open_numbers(
    reader: &SegmentReader,
    path: &str,
    kind: NumberKind,
    pick: Pick,
    objects: Option<Objects>,
) -> tantivy::Result<Box<dyn Values>> {
    let columns = reader.fast_fields();
    let opened = match kind {
        NumberKind::Long | NumberKind::Date => columns
            .column_opt::<i64>(path)?
            .map(|column| numbers(column, pick, objects)),
        NumberKind::Double => columns
            .column_opt::<f64>(path)?
            .map(|column| numbers(column, pick, objects)),
        NumberKind::Boolean => columns
            .column_opt::<bool>(path)?
            .map(|column| extremes(column, pick, objects)),
    };
    Ok(opened.unwrap_or_else(|| Box::new(Nothing)))
}

/// Ordinals, as positions among strings.
struct Ordinals(Box<dyn Values>);

impl Values for Ordinals {
    fn value(&mut self, doc: DocId, score: Score) -> Option<u64> {
        self.0.value(doc, score).map(rank::of_ordinal)
    }
}

/// The strings of a column, by their ordinals.
pub(super) fn ordinals(column: Column<u64>, pick: Pick, objects: Option<Objects>) -> Box<dyn Values> {
    Box::new(Ordinals(extremes(column, pick, objects)))
}

/// The lowest or highest of those ordinals of a document that lie between two.
struct Among {
    column: Column<u64>,
    between: (Bound<u64>, Bound<u64>),
    highest: bool,
    objects: Option<Objects>,
}

impl Values for Among {
    fn value(&mut self, doc: DocId, _: Score) -> Option<u64> {
        let Self {
            column,
            between,
            highest,
            objects,
        } = self;
        let mut best = None;
        let mut add = |doc: DocId| {
            for ordinal in column
                .values_for_doc(doc)
                .filter(|ordinal| between.contains(ordinal))
            {
                let better = best.is_none_or(|best| if *highest { ordinal > best } else { ordinal < best });
                if better {
                    best = Some(ordinal);
                }
            }
        };
        match objects {
            None => add(doc),
            Some(objects) => {
                objects.seek(doc);
                while let Some(object) = objects.next(doc) {
                    add(object);
                }
            }
        }
        best.map(rank::of_ordinal)
    }
}

/// The strings of a column between two ordinals.
pub(super) fn ordinals_among(
    column: Column<u64>,
    between: (Bound<u64>, Bound<u64>),
    pick: Pick,
    objects: Option<Objects>,
) -> Box<dyn Values> {
    Box::new(Among {
        column,
        between,
        highest: pick == Pick::Highest,
        objects,
    })
}
