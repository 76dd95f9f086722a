//! `term`, `terms` and `exists`: documents with a given value, or with any.

use std::sync::Arc;

use tantivy::columnar::MonotonicallyMappableToU64;
use tantivy::query::{BooleanQuery, EmptyQuery, ExistsQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Score, SegmentReader, Term};

use super::Planner;
use super::clause::Clause;
use super::doc_set::DocSetBuilder;
use super::number::Number;
use super::selection::{self, Select, Selected, Selection, SelectionQuery, ValueSet};
use crate::error::{Checker, Reason};
use crate::layout::latitude_column;
use crate::limits::{DOCUMENTS_PER_CHECK, limit};
use crate::pace::Pace;
use crate::request::QueryValue;
use crate::run::Run;
use crate::schema::{FieldKind, ResolvedField};

/// Terms up to which a union of their documents, which can skip, beats gathering all of them.
const FEW_TERMS: usize = 16;

/// Where a value is looked up.
enum Lookup {
    /// No document can have it.
    Nowhere,
    /// In the dictionary.
    Term(Term),
    /// In the dictionary of a TEXT, with scores.
    Word(String),
    /// In a column, as a number whose order is the values'.
    Number(u64),
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
            Lookup::Number(number) => self.having_number(field, vec![number], weight),
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
        self.listed(&values_at, values.len())?;
        let (mut terms, mut numbers) = (Vec::new(), Vec::new());
        let mut fine = true;
        for (nth, value) in values.iter().enumerate() {
            match self.lookup(at, &format!("{values_at}[{nth}]"), field, value) {
                None => fine = false,
                Some(Lookup::Nowhere) => {}
                Some(Lookup::Term(term)) => terms.push(term),
                Some(Lookup::Word(word)) => terms.push(Term::from_field_text(self.single(field)?, &word)),
                Some(Lookup::Number(number)) => numbers.push(number),
            }
        }
        let weight = weighed?;
        if !fine {
            return None;
        }
        Some(if numbers.is_empty() {
            Clause::constant(self.having_any(terms), weight)
        } else {
            self.having_number(field, numbers, weight)
        })
    }

    /// Checks how many values are listed.
    pub(super) fn listed(&mut self, at: &str, values: usize) -> Option<()> {
        if values == 0 {
            let advice = "give at least one value";
            return self.refuse(at, Reason::Missing, "there are no values", advice);
        }
        let advice = "split the values over several clauses";
        self.at_most(at, limit!(MAX_TERMS), values, advice)
    }

    /// The documents that have a value of the field.
    pub(super) fn present(&self, field: &ResolvedField) -> Box<dyn Query> {
        match field.kind {
            FieldKind::Text(_) | FieldKind::Nested(_) => {
                having(Term::from_field_text(self.layout.present, &field.path))
            }
            FieldKind::GeoPoint => Box::new(ExistsQuery::new(latitude_column(&field.path), false)),
            _ => Box::new(ExistsQuery::new(field.path.clone(), false)),
        }
    }

    fn lookup(
        &mut self,
        clause_at: &str,
        at: &str,
        field: &ResolvedField,
        value: &QueryValue,
    ) -> Option<Lookup> {
        let wanted = match (&field.kind, value) {
            (FieldKind::GeoPoint | FieldKind::Nested(_) | FieldKind::Attributes, _) => {
                let advice = match field.kind {
                    FieldKind::GeoPoint => "use geo_distance, geo_bounding_box or geo_polygon",
                    FieldKind::Nested(_) => "use a nested query on a field inside it",
                    _ => "name one of its attributes",
                };
                return self.wrong_kind(clause_at, field, "single values", advice);
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
                let integer = |number: i64| match field.kind {
                    FieldKind::Long if !field.column_only => {
                        Lookup::Term(Term::from_field_i64(single, number))
                    }
                    _ => Lookup::Number(number.to_u64()),
                };
                let found = match field.kind {
                    FieldKind::Double => number.as_double().map(|number| Lookup::Number(number.to_u64())),
                    _ => number.as_integer().map(integer),
                };
                return Some(found.unwrap_or(Lookup::Nowhere));
            }
        };
        self.wrong_value(at, field, wanted, value)
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
            return self.wrong_value(at, field, wanted, value);
        }
        let number = Number::of(value);
        if number.is_none() {
            let advice = "use a finite number";
            self.note(at, Reason::OutOfRange, "the double is not finite", advice);
        }
        number
    }

    pub(super) fn wrong_value<T>(
        &mut self,
        at: &str,
        field: &ResolvedField,
        wanted: &str,
        value: &QueryValue,
    ) -> Option<T> {
        let (path, kind, found) = (&field.path, field.kind.word(), value.type_word());
        let message = format!("`{path}` is {kind}, the value is {found}");
        self.refuse(at, Reason::TypeMismatch, message, format!("give {wanted}"))
    }

    /// Checks that a string could be a value.
    pub(super) fn fits(&mut self, at: &str, text: &str) -> Option<()> {
        let advice = "shorten the value: longer ones are not indexed";
        self.at_most(at, limit!(MAX_KEYWORD_BYTES), text.len(), advice)
    }

    /// The documents with one of the terms, which are of one field.
    pub(super) fn having_any(&self, mut terms: Vec<Term>) -> Box<dyn Query> {
        terms.sort_unstable();
        terms.dedup();
        match terms.len() {
            0 => Box::new(EmptyQuery),
            1..=FEW_TERMS => Box::new(BooleanQuery::union(terms.into_iter().map(having).collect())),
            _ => Box::new(SelectionQuery(Arc::new(AnyTerm {
                terms,
                run: Arc::clone(self.run),
            }))),
        }
    }

    /// The documents of which the field's column has one of the numbers.
    fn having_number(&self, field: &ResolvedField, mut numbers: Vec<u64>, weight: Score) -> Clause {
        numbers.sort_unstable();
        numbers.dedup();
        let select = |numbers: &[u64]| -> Arc<dyn Select> {
            Arc::new(NumberList {
                path: field.path.clone(),
                numbers: numbers.into(),
                run: Arc::clone(self.run),
            })
        };
        // Scanning the column once for each of two beats comparing each value with a list.
        if let [one, other] = *numbers {
            let each =
                [one, other].map(|number| -> Box<dyn Query> { Box::new(SelectionQuery(select(&[number]))) });
            return Clause::constant(Box::new(BooleanQuery::union(each.into())), weight);
        }
        Clause::selecting(select(&numbers), weight)
    }
}

/// The documents with a term.
pub(super) fn having(term: Term) -> Box<dyn Query> {
    Box::new(TermQuery::new(term, IndexRecordOption::Basic))
}

/// The documents with any of many terms of one field, in order. (The search library's own takes a bit for each document of
/// the segment, however few documents there are.)
#[derive(Debug)]
struct AnyTerm {
    terms: Vec<Term>,
    run: Arc<Run>,
}

impl Select for AnyTerm {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Selected> {
        let Some(first) = self.terms.first() else {
            return Ok(Selected::Nothing);
        };
        let terms = self.terms.iter().cloned();
        gather(reader, &self.run, first.field(), terms).map(Selected::Documents)
    }
}

/// The documents with one of some terms of a field.
pub(super) fn gather(
    reader: &SegmentReader,
    run: &Run,
    field: Field,
    terms: impl Iterator<Item = Term>,
) -> tantivy::Result<DocSetBuilder> {
    let mut gathered = DocSetBuilder::new(reader.max_doc(), run.allowance());
    let mut pace = Pace::new(run, DOCUMENTS_PER_CHECK);
    let index = reader.inverted_index(field)?;
    for term in terms {
        run.check_inside()?;
        if let Some(info) = index.get_term_info(&term)? {
            pace.step(info.doc_freq)?;
            gathered.insert_term(&index, &info)?;
        }
    }
    Ok(gathered)
}

/// The documents with one of some numbers, ascending, in a column.
#[derive(Debug)]
struct NumberList {
    path: String,
    numbers: Arc<[u64]>,
    run: Arc<Run>,
}

impl Select for NumberList {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Selected> {
        let column = self.run.columns().numbers(reader, &self.path)?;
        let (Some(column), [first, .., last] | [first @ last]) = (column, &*self.numbers) else {
            return Ok(Selected::Nothing);
        };
        let between = selection::between(Arc::clone(&column), *first..=*last, &self.run, reader.max_doc());
        Ok(match between {
            Selected::Values(_) | Selected::Everything if first != last => {
                let listed = ValueSet::Listed(Arc::clone(&self.numbers));
                Selected::Values(Selection::new(column, listed, &self.run, reader.max_doc()))
            }
            between => between,
        })
    }
}
