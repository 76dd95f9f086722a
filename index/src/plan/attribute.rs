//! Clauses on attributes: the field's name is followed by a dot and the attribute's, which may have dots of its own.
//!
//! Values are typed by themselves. `term` and `terms` find equal values of the same type, integers and doubles being one;
//! `range` takes numbers, times or texts, and matches only these; patterns match texts.

use std::ops::Bound;

use tantivy::{Score, Term};

use super::Planner;
use super::clause::Clause;
use super::glob::GlobForm;
use super::terms::having;
use crate::attribute::{self, AttributeType};
use crate::error::{Checker, Reason, every};
use crate::request::{Query, QueryValue};
use crate::schema::{FieldKind, ResolvedField};

#[derive(Clone, Copy)]
pub(super) struct Attribute<'a> {
    field: &'a ResolvedField,
    name: &'a str,
}

impl<'a> Planner<'a> {
    /// The attribute that a query is about; `None` when it is about something else.
    pub(super) fn attribute<'q>(&self, query: &'q Query) -> Option<(&'q str, &'q str)> {
        let field = match query {
            Query::MatchFuzzy { .. } | Query::MatchPhrasePrefix { .. } => return None,
            query => query.field()?,
        };
        let resolved = self.layout.schema.resolve(field)?;
        if resolved.kind != FieldKind::Attributes {
            return None;
        }
        Some((field, field.get(resolved.path.len() + 1..).unwrap_or_default()))
    }

    /// Plans a query that is about an attribute.
    pub(super) fn attribute_clause(
        &mut self,
        query: &Query,
        (path, name): (&str, &str),
        at: &str,
    ) -> Option<Clause> {
        let at = format!("{at}.{}", query.kind());
        let weighed = self.weight(&at, query.weight());
        let field = self.field(&at, path)?;
        if name.is_empty() && !matches!(query, Query::Exists { .. }) {
            let message = format!("`{path}` is {}, and no attribute is named", field.kind.word());
            let advice = format!("name one: `{path}.color`");
            return self.refuse(format!("{at}.field"), Reason::TypeMismatch, message, advice);
        }
        let attribute = Attribute { field, name };
        let texts = attribute::first_of(name, AttributeType::Text);
        match query {
            Query::Term { value, .. } => {
                let term = self.attribute_term(attribute, value, &format!("{at}.value"));
                Some(Clause::constant(having(term?), weighed?))
            }
            Query::Terms { values, .. } => self.attribute_terms(attribute, values, weighed, &at),
            Query::Match { text, .. } | Query::MatchPhrase { text, .. } => {
                let value = QueryValue::String(text.clone());
                let term = self.attribute_term(attribute, &value, &format!("{at}.text"));
                Some(Clause::constant(having(term?), weighed?))
            }
            Query::Range { lower, upper, .. } => {
                let bounds = self.attribute_bounds(attribute, lower, upper, &at)?;
                self.text_range(field, bounds, weighed?)
            }
            Query::Prefix { value, .. } | Query::Suffix { value, .. } => {
                self.affix(&format!("{at}.value"), value)?;
                let form = match query {
                    Query::Prefix { .. } => GlobForm::Prefix(value.clone()),
                    _ => GlobForm::Suffix(value.clone()),
                };
                self.form(field, &texts, form, weighed?)
            }
            Query::Wildcard { pattern, .. } => {
                let form = self.glob(&format!("{at}.pattern"), pattern)?.form();
                self.form(field, &texts, form, weighed?)
            }
            _ if name.is_empty() => Some(Clause::constant(self.present(field), 1.0)),
            _ => self.text_range(field, attribute::bounds(name), weighed?),
        }
    }

    fn attribute_term(&mut self, of: Attribute<'_>, value: &QueryValue, at: &str) -> Option<Term> {
        self.attribute_value(value, at)?;
        let (_, term) = attribute::query_term(of.name, value);
        Some(Term::from_field_text(self.single(of.field)?, &term))
    }

    /// Checks that a value could be one of an attribute.
    fn attribute_value(&mut self, value: &QueryValue, at: &str) -> Option<()> {
        match value {
            QueryValue::String(text) => self.fits(at, text),
            QueryValue::Double(number) if !number.is_finite() => {
                let message = "the double is not finite";
                self.refuse(at, Reason::OutOfRange, message, "use a finite number")
            }
            _ => Some(()),
        }
    }

    fn attribute_terms(
        &mut self,
        of: Attribute<'_>,
        values: &[QueryValue],
        weighed: Option<Score>,
        at: &str,
    ) -> Option<Clause> {
        let at = format!("{at}.values");
        self.listed(&at, values.len())?;
        let values = values.iter().enumerate();
        let terms = every(values.map(|(nth, value)| self.attribute_term(of, value, &format!("{at}[{nth}]"))));
        Some(Clause::constant(self.having_any(terms?), weighed?))
    }

    fn attribute_bounds(
        &mut self,
        of: Attribute<'_>,
        lower: &Bound<QueryValue>,
        upper: &Bound<QueryValue>,
        at: &str,
    ) -> Option<(Bound<String>, Bound<String>)> {
        let mut types = Vec::new();
        for bound in [lower, upper] {
            let (Bound::Included(value) | Bound::Excluded(value)) = bound else {
                continue;
            };
            self.attribute_value(value, at)?;
            types.push(attribute::query_term(of.name, value).0);
        }
        let Some(of_type) = types.first().copied() else {
            return self.unbounded(at);
        };
        let ranged = [AttributeType::Number, AttributeType::Time, AttributeType::Text];
        if !ranged.contains(&of_type) || types.iter().any(|other| *other != of_type) {
            let message = "the bounds are not two numbers, two times or two strings";
            let advice = "give bounds of one of these types: a range matches values of that type";
            return self.refuse(at, Reason::TypeMismatch, message, advice);
        }
        let term = |value: &QueryValue| attribute::query_term(of.name, value).1;
        let (from, to) = (lower.as_ref().map(term), upper.as_ref().map(term));
        self.ordered(at, &from, &to, |from, to| from.cmp(to))?;
        let from = match from {
            Bound::Unbounded => Bound::Included(attribute::first_of(of.name, of_type)),
            bound => bound,
        };
        let to = match to {
            Bound::Unbounded => Bound::Excluded(attribute::behind_of(of.name, of_type)),
            bound => bound,
        };
        Some((from, to))
    }
}
