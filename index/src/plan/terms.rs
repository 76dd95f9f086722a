//! `term` and `terms`: documents with a given value.

use std::ops::Bound;
use std::sync::Arc;

use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, EmptyQuery, Query, RangeQuery, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Score, SegmentReader, Term};

use super::Planner;
use super::any_term::AnyTermQuery;
use super::clause::Clause;
use super::number::Number;
use super::two_phase::{Check, SecondPhase, TwoPhaseQuery};
use crate::error::{Checker, Reason};
use crate::limits::limit;
use crate::request::QueryValue;
use crate::schema::{FieldKind, ResolvedField};

/// Terms up to which a union of their documents, which can skip, beats gathering all of them.
const FEW_TERMS: usize = 16;
/// Values up to which scanning a column once for each beats comparing each value with a list.
const FEW_VALUES: usize = 2;

/// Where a value is looked up.
enum Lookup {
    /// No document can have it.
    Nowhere,
    /// In the dictionary.
    Term(Term),
    /// In the dictionary of a TEXT, with scores.
    Word(String),
    /// In a column of integers.
    Integer(i64),
    /// In a column of doubles.
    Double(f64),
}

impl Planner<'_> {
    pub(super) fn term(
        &mut self,
        at: &str,
        field: &str,
        value: &QueryValue,
        weight: Score,
    ) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        let field = self.field(at, field)?;
        let lookup = self.lookup(at, &format!("{at}.value"), field, value)?;
        let weight = weighed?;
        Some(match lookup {
            Lookup::Nowhere => Clause::nothing(),
            Lookup::Word(word) => Clause::scored(self.word(self.single(field)?, &word), weight),
            Lookup::Term(term) => Clause::constant(having(term), weight),
            Lookup::Integer(number) => Clause::constant(self.integers(field, &[number])?, weight),
            Lookup::Double(number) => Clause::constant(self.doubles(field, &[number])?, weight),
        })
    }

    pub(super) fn terms(
        &mut self,
        at: &str,
        field: &str,
        values: &[QueryValue],
        weight: Score,
    ) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        let field = self.field(at, field)?;
        let values_at = format!("{at}.values");
        if values.is_empty() {
            let advice = "give at least one value";
            return self.refuse(values_at, Reason::Missing, "there are no values", advice);
        }
        let advice = "split the values over several clauses";
        self.at_most(&values_at, limit!(MAX_TERMS), values.len(), advice)?;
        let (mut terms, mut integers, mut doubles) = (Vec::new(), Vec::new(), Vec::new());
        let mut fine = true;
        for (nth, value) in values.iter().enumerate() {
            match self.lookup(at, &format!("{values_at}[{nth}]"), field, value) {
                None => fine = false,
                Some(Lookup::Nowhere) => {}
                Some(Lookup::Term(term)) => terms.push(term),
                Some(Lookup::Word(word)) => terms.push(Term::from_field_text(self.single(field)?, &word)),
                Some(Lookup::Integer(number)) => integers.push(number),
                Some(Lookup::Double(number)) => doubles.push(number),
            }
        }
        let weight = weighed?;
        if !fine {
            return None;
        }
        let query = if !integers.is_empty() {
            self.integers(field, &integers)?
        } else if !doubles.is_empty() {
            self.doubles(field, &doubles)?
        } else {
            self.having_any(terms)
        };
        Some(Clause::constant(query, weight))
    }

    fn lookup(
        &mut self,
        clause_at: &str,
        at: &str,
        field: &ResolvedField,
        value: &QueryValue,
    ) -> Option<Lookup> {
        let wanted = match (&field.kind, value) {
            (FieldKind::GeoPoint, _) => {
                self.wrong_kind(
                    clause_at,
                    field,
                    "single values",
                    "use geo_distance, geo_bounding_box or geo_polygon",
                );
                return None;
            }
            (FieldKind::Nested(_), _) => {
                self.wrong_kind(
                    clause_at,
                    field,
                    "single values",
                    "use a nested query on a field inside it",
                );
                return None;
            }
            (FieldKind::Attributes, _) => {
                self.wrong_kind(clause_at, field, "single values", "name one of its attributes");
                return None;
            }
            (FieldKind::Text(_), QueryValue::String(text)) => {
                self.fits(at, text)?;
                return Some(Lookup::Word(text.clone()));
            }
            (FieldKind::Keyword, QueryValue::String(text)) => {
                self.fits(at, text)?;
                return Some(Lookup::Term(Term::from_field_text(self.single(field)?, text)));
            }
            (FieldKind::Boolean, QueryValue::Boolean(flag)) => {
                return Some(Lookup::Term(Term::from_field_bool(self.single(field)?, *flag)));
            }
            (FieldKind::Keyword | FieldKind::Text(_), _) => "a string",
            (FieldKind::Boolean, _) => "a boolean",
            (FieldKind::Long | FieldKind::Double | FieldKind::Date, _) => {
                let number = self.number(at, field, value)?;
                let single = self.single(field)?;
                let found = if field.kind == FieldKind::Double {
                    number.as_double().map(Lookup::Double)
                } else if field.kind == FieldKind::Long && !field.column_only {
                    number
                        .as_integer()
                        .map(|number| Lookup::Term(Term::from_field_i64(single, number)))
                } else {
                    number.as_integer().map(Lookup::Integer)
                };
                return Some(found.unwrap_or(Lookup::Nowhere));
            }
        };
        self.wrong_value(at, field, wanted, value);
        None
    }

    /// The value as a number that the field's values can be compared with.
    pub(super) fn number(&mut self, at: &str, field: &ResolvedField, value: &QueryValue) -> Option<Number> {
        let wanted = match (&field.kind, value) {
            (FieldKind::Date, QueryValue::Time(_) | QueryValue::Integer(_))
            | (FieldKind::Long | FieldKind::Double, QueryValue::Integer(_) | QueryValue::Double(_)) => None,
            (FieldKind::Date, _) => Some("a time, or its nanoseconds since the Unix epoch as an integer"),
            _ => Some("an integer or a double"),
        };
        if let Some(wanted) = wanted {
            self.wrong_value(at, field, wanted, value);
            return None;
        }
        let number = Number::of(value);
        if number.is_none() {
            let advice = "use a finite number";
            self.note(at, Reason::OutOfRange, "the double is not finite", advice);
        }
        number
    }

    pub(super) fn wrong_value(&mut self, at: &str, field: &ResolvedField, wanted: &str, value: &QueryValue) {
        let message = format!(
            "`{}` is {}, the value is {}",
            field.path,
            field.kind.word(),
            value.type_word()
        );
        self.note(at, Reason::TypeMismatch, message, format!("give {wanted}"));
    }

    /// Checks that a string could be a value.
    pub(super) fn fits(&mut self, at: &str, text: &str) -> Option<()> {
        let advice = "shorten the value: longer ones are not indexed";
        self.at_most(at, limit!(MAX_KEYWORD_BYTES), text.len(), advice)?;
        Some(())
    }

    fn integers(&self, field: &ResolvedField, numbers: &[i64]) -> Option<Box<dyn Query>> {
        let single = self.single(field)?;
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let term = |number: &i64| Term::from_field_i64(single, *number);
        Some(self.in_column(sorted, term, |sorted| {
            Values::Integers(field.path.clone(), sorted)
        }))
    }

    fn doubles(&self, field: &ResolvedField, numbers: &[f64]) -> Option<Box<dyn Query>> {
        let single = self.single(field)?;
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        let term = |number: &f64| Term::from_field_f64(single, *number);
        Some(self.in_column(sorted, term, |sorted| Values::Doubles(field.path.clone(), sorted)))
    }

    /// The documents with one of the terms, which are of one field.
    pub(super) fn having_any(&self, mut terms: Vec<Term>) -> Box<dyn Query> {
        terms.sort_unstable();
        terms.dedup();
        match terms.len() {
            0 => Box::new(EmptyQuery),
            1..=FEW_TERMS => Box::new(BooleanQuery::union(terms.into_iter().map(having).collect())),
            _ => Box::new(AnyTermQuery::new(terms, self.run)),
        }
    }

    /// The documents of which the column has one of the sorted values.
    fn in_column<V>(
        &self,
        sorted: Vec<V>,
        term: impl Fn(&V) -> Term,
        values: impl FnOnce(Vec<V>) -> Values,
    ) -> Box<dyn Query> {
        let between = |from: &V, to: &V| -> Box<dyn Query> {
            Box::new(RangeQuery::new(
                Bound::Included(term(from)),
                Bound::Included(term(to)),
            ))
        };
        match (sorted.first(), sorted.last()) {
            (Some(_), Some(_)) if sorted.len() <= FEW_VALUES => Box::new(BooleanQuery::union(
                sorted.iter().map(|value| between(value, value)).collect(),
            )),
            (Some(first), Some(last)) => {
                let approximation = Arc::from(between(first, last));
                Box::new(TwoPhaseQuery::new(
                    approximation,
                    Arc::new(values(sorted)),
                    self.run,
                ))
            }
            _ => Box::new(EmptyQuery),
        }
    }
}

/// The documents with a term.
pub(super) fn having(term: Term) -> Box<dyn Query> {
    Box::new(TermQuery::new(term, IndexRecordOption::Basic))
}

/// A column's name, and the sorted values that it may have.
#[derive(Debug)]
enum Values {
    Integers(String, Vec<i64>),
    Doubles(String, Vec<f64>),
}

impl SecondPhase for Values {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Check> {
        Ok(match self {
            Self::Integers(path, sorted) => {
                let sorted = sorted.clone();
                let column: Option<Column<i64>> = reader.fast_fields().column_opt(path)?;
                any_value(column, move |value| sorted.binary_search(&value).is_ok())
            }
            Self::Doubles(path, sorted) => {
                let sorted = sorted.clone();
                let column: Option<Column<f64>> = reader.fast_fields().column_opt(path)?;
                any_value(column, move |value| {
                    sorted.binary_search_by(|probe| probe.total_cmp(&value)).is_ok()
                })
            }
        })
    }
}

fn any_value<T>(column: Option<Column<T>>, fits: impl Fn(T) -> bool + Send + 'static) -> Check
where
    T: PartialOrd + Copy + std::fmt::Debug + Send + Sync + 'static,
{
    match column {
        Some(column) => Box::new(move |doc: DocId| column.values_for_doc(doc).any(&fits)),
        None => Box::new(|_| false),
    }
}
