//! `prefix`, `suffix` and `wildcard`: documents with a KEYWORD, or a token of a TEXT, of some form.

use std::ops::Bound;
use std::sync::Arc;

use tantivy::schema::Field;
use tantivy::{Score, Term};

use super::Planner;
use super::clause::Clause;
use super::dictionary_walk::{Matcher, Walk};
use super::glob::{Form, Glob};
use super::keyword_pattern::KeywordPattern;
use super::keyword_range::KeywordRange;
use super::selection::SelectionQuery;
use super::terms::having;
use super::text::is_text;
use crate::error::{Checker, Reason};
use crate::limits::limit;
use crate::schema::{FieldKind, ResolvedField};

impl<'a> Planner<'a> {
    pub(super) fn affixed(
        &mut self,
        at: &str,
        field: &str,
        form: fn(String) -> Form,
        affix: &str,
        weight: Score,
    ) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        let field = self.pattern_field(at, field);
        let fits = self.affix(&format!("{at}.value"), affix);
        let (weight, field, ()) = (weighed?, field?, fits?);
        self.form(field, form(affix.to_owned()), weight)
    }

    pub(super) fn wildcard(&mut self, at: &str, field: &str, pattern: &str, weight: Score) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        let field = self.pattern_field(at, field);
        let glob = self.glob(&format!("{at}.pattern"), pattern);
        let (weight, field, glob) = (weighed?, field?, glob?);
        self.form(field, glob.form(), weight)
    }

    pub(super) fn form(&self, field: &ResolvedField, form: Form, weight: Score) -> Option<Clause> {
        let single = self.single(field)?;
        let (bounds, matcher) = match form {
            Form::Exact(text) => {
                let query = having(Term::from_field_text(single, &text));
                return Some(Clause::constant(query, weight));
            }
            Form::Prefix(prefix) if prefix.is_empty() => {
                return Some(Clause::constant(self.present(field), weight));
            }
            Form::Prefix(prefix) => (beginning_with(&prefix), Matcher::All),
            Form::Suffix(suffix) => ((Bound::Unbounded, Bound::Unbounded), Matcher::Suffix(suffix)),
            Form::Pattern(prefix, glob) => (beginning_with(&prefix), Matcher::Glob(glob)),
        };
        if field.kind != FieldKind::Keyword {
            return Some(self.walking(single, bounds, matcher, weight));
        }
        if let Matcher::All = matcher {
            return self.keyword_range(field, bounds, weight);
        }
        let select = KeywordPattern::new(single, &field.path, bounds, matcher, 0, self.run);
        Some(Clause::selecting(Arc::new(select), weight))
    }

    /// The documents with a KEYWORD, or a term of an attribute, between two bounds.
    pub(super) fn keyword_range(
        &self,
        field: &ResolvedField,
        bounds: (Bound<String>, Bound<String>),
        weight: Score,
    ) -> Option<Clause> {
        let (path, walk) = (
            field.path.clone(),
            self.walk(self.single(field)?, bounds, Matcher::All),
        );
        Some(Clause::selecting(Arc::new(KeywordRange { path, walk }), weight))
    }

    /// The documents with a token between two bounds that matches.
    pub(super) fn walking(
        &self,
        field: Field,
        bounds: (Bound<String>, Bound<String>),
        matcher: Matcher,
        weight: Score,
    ) -> Clause {
        let walk = self.walk(field, bounds, matcher);
        Clause::constant(Box::new(SelectionQuery(Arc::new(walk))), weight)
    }

    fn walk(&self, field: Field, bounds: (Bound<String>, Bound<String>), matcher: Matcher) -> Walk {
        let run = Arc::clone(self.run);
        Walk {
            field,
            bounds,
            matcher,
            run,
        }
    }

    fn pattern_field(&mut self, at: &str, field: &str) -> Option<&'a ResolvedField> {
        let advice = "use term, range or a geo query";
        self.field_of(at, field, is_text, "KEYWORD and TEXT fields", advice)
    }

    pub(super) fn affix(&mut self, at: &str, affix: &str) -> Option<()> {
        if affix.is_empty() {
            let advice = "use exists to find any value";
            return self.refuse(at, Reason::Missing, "there are no characters", advice);
        }
        self.at_most(at, limit!(MAX_AFFIX_BYTES), affix.len(), "shorten it")
    }

    pub(super) fn glob(&mut self, at: &str, pattern: &str) -> Option<Glob> {
        let chars = pattern.chars().count();
        if chars == 0 {
            let advice = "use term to find empty strings";
            return self.refuse(at, Reason::Missing, "the pattern is empty", advice);
        }
        self.at_most(at, limit!(MAX_WILDCARD_CHARS), chars, "shorten the pattern")?;
        let glob = Glob::new(pattern);
        if glob.is_none() {
            let advice = r"write `\\` for a backslash";
            self.note(at, Reason::OutOfRange, "the pattern ends in an escape", advice);
        }
        glob
    }
}

/// The bounds between which lie exactly the strings that begin with `prefix`.
pub(super) fn beginning_with(prefix: &str) -> (Bound<String>, Bound<String>) {
    let lower = if prefix.is_empty() {
        Bound::Unbounded
    } else {
        Bound::Included(prefix.to_owned())
    };
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // The byte order of UTF-8 is the order of characters.
        if let Some(next) = (last..=char::MAX).nth(1) {
            chars.push(next);
            return (lower, Bound::Excluded(chars.into_iter().collect()));
        }
    }
    (lower, Bound::Unbounded)
}

#[cfg(test)]
mod tests {
    use std::ops::RangeBounds;

    use super::*;

    #[test]
    fn the_bounds_of_a_prefix_hold_exactly_what_begins_with_it() {
        let texts = [
            "",
            "a",
            "ab",
            "ac",
            "b",
            "\u{d7ff}",
            "\u{e000}",
            "\u{d7ff}x",
            "\u{10ffff}",
            "\u{10ffff}\u{10ffff}z",
        ];
        for prefix in texts {
            for text in texts {
                let within = beginning_with(prefix).contains(&text.to_owned());
                assert_eq!(within, text.starts_with(prefix), "{prefix:?} {text:?}");
            }
        }
    }
}
