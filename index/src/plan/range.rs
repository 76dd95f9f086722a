//! `range`: documents with a value between two bounds.

use std::cmp::Ordering;
use std::ops::Bound;

use tantivy::Term;
use tantivy::query::RangeQuery;

use super::Planner;
use super::clause::Clause;
use super::dictionary_walk::{Matcher, WalkQuery};
use super::keyword_range::KeywordRangeQuery;
use super::number::{self, Number};
use crate::error::Reason;
use crate::query::QueryValue;
use crate::schema::{FieldKind, ResolvedField};

impl Planner<'_> {
    pub(super) fn range(
        &mut self,
        at: &str,
        scope: Option<&str>,
        field: &str,
        lower: &Bound<QueryValue>,
        upper: &Bound<QueryValue>,
    ) -> Option<Clause> {
        let field = self.field(at, scope, field)?;
        if (lower, upper) == (&Bound::Unbounded, &Bound::Unbounded) {
            let advice = "give a lower or an upper bound, or use exists";
            self.violate(at.to_owned(), Reason::Missing, "the range has no bound", advice);
            return None;
        }
        let lower_at = format!(
            "{at}.{}",
            if matches!(lower, Bound::Excluded(_)) {
                "gt"
            } else {
                "gte"
            }
        );
        let upper_at = format!(
            "{at}.{}",
            if matches!(upper, Bound::Excluded(_)) {
                "lt"
            } else {
                "lte"
            }
        );
        match field.kind {
            FieldKind::Keyword | FieldKind::Text(_) => {
                let lower = self.text_bound(&lower_at, field, lower);
                let upper = self.text_bound(&upper_at, field, upper);
                let (lower, upper) = (lower?, upper?);
                self.ordered(at, &lower, &upper, |a, b| a.cmp(b))?;
                self.text_range(at, field, lower, upper)
            }
            FieldKind::Long | FieldKind::Double | FieldKind::Date => {
                let lower = self.number_bound(&lower_at, field, lower);
                let upper = self.number_bound(&upper_at, field, upper);
                let (lower, upper) = (lower?, upper?);
                self.ordered(at, &lower, &upper, |a, b| a.compare(*b))?;
                self.number_range(field, lower, upper)
            }
            FieldKind::Boolean | FieldKind::GeoPoint | FieldKind::Nested(_) => {
                let wants = "KEYWORD, TEXT, LONG, DOUBLE and DATE fields";
                self.wrong_kind(at, field, wants, "use term, a geo query or a nested query");
                None
            }
        }
    }

    fn text_bound(
        &mut self,
        at: &str,
        field: &ResolvedField,
        bound: &Bound<QueryValue>,
    ) -> Option<Bound<String>> {
        self.bound(bound, |planner, value| match value {
            QueryValue::String(text) => planner.fits(at, text).map(|()| text.clone()),
            QueryValue::Integer(_)
            | QueryValue::Double(_)
            | QueryValue::Boolean(_)
            | QueryValue::Bytes(_)
            | QueryValue::Time(_) => {
                planner.wrong_value(at, field, "a string", value);
                None
            }
        })
    }

    fn number_bound(
        &mut self,
        at: &str,
        field: &ResolvedField,
        bound: &Bound<QueryValue>,
    ) -> Option<Bound<Number>> {
        self.bound(bound, |planner, value| planner.number(at, field, value))
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

    fn ordered<T>(
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
            self.violate(at.to_owned(), Reason::OutOfRange, message, "exchange the bounds");
            return None;
        }
        Some(())
    }

    fn number_range(
        &self,
        field: &ResolvedField,
        lower: Bound<Number>,
        upper: Bound<Number>,
    ) -> Option<Clause> {
        let single = self.single(field)?;
        let (from, to) = if field.kind == FieldKind::Double {
            let (from, to) = number::doubles(lower, upper);
            let term = |number| Term::from_field_f64(single, number);
            (from.map(term), to.map(term))
        } else {
            let Some(range) = number::integers(lower, upper) else {
                return Some(Clause::nothing());
            };
            let term = |number: &i64| Bound::Included(Term::from_field_i64(single, *number));
            (term(range.start()), term(range.end()))
        };
        Some(Clause::constant(Box::new(RangeQuery::new(from, to)), 1.0))
    }

    fn text_range(
        &self,
        at: &str,
        field: &ResolvedField,
        lower: Bound<String>,
        upper: Bound<String>,
    ) -> Option<Clause> {
        let single = self.single(field)?;
        Some(Clause::constant(
            if field.kind == FieldKind::Keyword {
                Box::new(KeywordRangeQuery::new(single, &field.path, lower, upper))
            } else {
                Box::new(WalkQuery::new(single, (lower, upper), Matcher::All, at, self.run))
            },
            1.0,
        ))
    }
}
