//! `range`: documents with a value between two bounds.

use std::cmp::Ordering;
use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;

use tantivy::SegmentReader;
use tantivy::columnar::MonotonicallyMappableToU64;

use super::Planner;
use super::clause::Clause;
use super::number::{self, Number};
use super::selection::{self, Select, Selected};
use crate::error::{Checker, Reason};
use crate::request::QueryValue;
use crate::run::Run;
use crate::schema::{FieldKind, ResolvedField};

impl Planner<'_> {
    pub(super) fn range(
        &mut self,
        at: &str,
        field: &str,
        lower: &Bound<QueryValue>,
        upper: &Bound<QueryValue>,
    ) -> Option<Clause> {
        let field = self.field(at, field)?;
        if (lower, upper) == (&Bound::Unbounded, &Bound::Unbounded) {
            return self.unbounded(at);
        }
        let place = |bound: &Bound<QueryValue>, word: &str| match bound {
            Bound::Excluded(_) => format!("{at}.{word}"),
            _ => format!("{at}.{word}e"),
        };
        let (lower_at, upper_at) = (place(lower, "gt"), place(upper, "lt"));
        match field.kind {
            FieldKind::Keyword | FieldKind::Text(_) => {
                let text = |planner: &mut Self, at: &str, value: &QueryValue| match value {
                    QueryValue::String(text) => planner.fits(at, text).map(|()| text.clone()),
                    _ => planner.wrong_value(at, field, "a string", value),
                };
                let lower = self.bound(lower, |planner, value| text(planner, &lower_at, value));
                let upper = self.bound(upper, |planner, value| text(planner, &upper_at, value));
                let (lower, upper) = (lower?, upper?);
                self.ordered(at, &lower, &upper, |a, b| a.cmp(b))?;
                self.text_range(field, (lower, upper), 1.0)
            }
            FieldKind::Long | FieldKind::Double | FieldKind::Date => {
                let lower = self.bound(lower, |planner, value| planner.number(&lower_at, field, value));
                let upper = self.bound(upper, |planner, value| planner.number(&upper_at, field, value));
                let (lower, upper) = (lower?, upper?);
                self.ordered(at, &lower, &upper, |a, b| a.compare(*b))?;
                Some(self.number_range(field, lower, upper))
            }
            FieldKind::Boolean | FieldKind::GeoPoint | FieldKind::Nested(_) | FieldKind::Attributes => {
                let wants = "KEYWORD, TEXT, LONG, DOUBLE and DATE fields";
                self.wrong_kind(at, field, wants, "use term, a geo query or a nested query")
            }
        }
    }

    pub(super) fn unbounded<T>(&mut self, at: &str) -> Option<T> {
        let advice = "give a lower or an upper bound, or use exists";
        self.refuse(at, Reason::Missing, "the range has no bound", advice)
    }

    fn bound<T>(
        &mut self,
        bound: &Bound<QueryValue>,
        convert: impl FnOnce(&mut Self, &QueryValue) -> Option<T>,
    ) -> Option<Bound<T>> {
        match bound {
            Bound::Included(value) => convert(self, value).map(Bound::Included),
            Bound::Excluded(value) => convert(self, value).map(Bound::Excluded),
            Bound::Unbounded => Some(Bound::Unbounded),
        }
    }

    pub(super) fn ordered<T>(
        &mut self,
        at: &str,
        lower: &Bound<T>,
        upper: &Bound<T>,
        compare: impl FnOnce(&T, &T) -> Ordering,
    ) -> Option<()> {
        let (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) =
            (lower, upper)
        else {
            return Some(());
        };
        if compare(from, to) == Ordering::Greater {
            let message = "the lower bound is above the upper bound";
            return self.refuse(at, Reason::OutOfRange, message, "exchange the bounds");
        }
        Some(())
    }

    fn number_range(&self, field: &ResolvedField, lower: Bound<Number>, upper: Bound<Number>) -> Clause {
        let values = if field.kind == FieldKind::Double {
            number::double_positions(lower, upper)
        } else {
            number::integers(lower, upper).map(|range| range.start().to_u64()..=range.end().to_u64())
        };
        let Some(values) = values else {
            return Clause::nothing();
        };
        let select = NumberRange {
            path: field.path.clone(),
            values,
            run: Arc::clone(self.run),
        };
        Clause::selecting(Arc::new(select), 1.0)
    }
}

/// The documents with a number in a range, as numbers whose order is the values'.
#[derive(Debug)]
struct NumberRange {
    path: String,
    values: RangeInclusive<u64>,
    run: Arc<Run>,
}

impl Select for NumberRange {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Selected> {
        let column = self.run.columns().numbers(reader, &self.path)?;
        Ok(column.map_or(Selected::Nothing, |column| {
            selection::between(column, self.values.clone(), &self.run, reader.max_doc())
        }))
    }
}
