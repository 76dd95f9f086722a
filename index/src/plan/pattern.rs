//! `prefix`, `suffix` and `wildcard`: documents with a KEYWORD, or a token of a TEXT, of some form.

use std::ops::Bound;
use std::sync::Arc;

use tantivy::{Score, Term};

use super::Planner;
use super::clause::Clause;
use super::dictionary_walk::{DictionaryWalk, Matcher};
use super::glob::{Glob, GlobForm};
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
        form: fn(String) -> GlobForm,
        affix: &str,
        weight: Score,
    ) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        let field = self.pattern_field(at, field);
        let fits = self.affix(&format!("{at}.value"), affix);
        let (weight, field, ()) = (weighed?, field?, fits?);
        self.form(field, "", form(affix.to_owned()), weight)
    }

    pub(super) fn wildcard(&mut self, at: &str, field: &str, pattern: &str, weight: Score) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        let field = self.pattern_field(at, field);
        let glob = self.glob(&format!("{at}.pattern"), pattern);
        let (weight, field, glob) = (weighed?, field?, glob?);
        self.form(field, "", glob.form(), weight)
    }

    /// The documents with a value of a form, behind `texts`, which all values of an attribute begin with that are texts.
    pub(super) fn form(
        &self,
        field: &ResolvedField,
        texts: &str,
        form: GlobForm,
        weight: Score,
    ) -> Option<Clause> {
        let begins = |text: &str| beginning_with(&format!("{texts}{text}"));
        let (bounds, matcher) = match form {
            GlobForm::Exact(text) => {
                let term = Term::from_field_text(self.single(field)?, &format!("{texts}{text}"));
                return Some(Clause::constant(having(term), weight));
            }
            GlobForm::Prefix(prefix) if prefix.is_empty() && texts.is_empty() => {
                return Some(Clause::constant(self.present(field), weight));
            }
            GlobForm::Prefix(prefix) => (begins(&prefix), Matcher::All),
            GlobForm::Suffix(suffix) => (begins(""), Matcher::Suffix(suffix)),
            GlobForm::Infix(infix) => (begins(""), Matcher::Infix(infix)),
            GlobForm::Pattern(prefix, glob) => (begins(&prefix), Matcher::Glob(glob)),
        };
        self.between(field, bounds, matcher, texts.len(), weight)
    }

    /// The documents with a KEYWORD, a term of an attribute, or a token of a TEXT, between two bounds.
    pub(super) fn text_range(
        &self,
        field: &ResolvedField,
        bounds: (Bound<String>, Bound<String>),
        weight: Score,
    ) -> Option<Clause> {
        self.between(field, bounds, Matcher::All, 0, weight)
    }

    /// [`Self::text_range`] of those that match behind so many bytes.
    fn between(
        &self,
        field: &ResolvedField,
        bounds: (Bound<String>, Bound<String>),
        matcher: Matcher,
        behind: usize,
        weight: Score,
    ) -> Option<Clause> {
        let (single, path, run) = (self.single(field)?, field.path.clone(), Arc::clone(self.run));
        let is_text = matches!(field.kind, FieldKind::Text(_));
        if !is_text && !matches!(matcher, Matcher::All) {
            let select = KeywordPattern {
                field: single,
                path,
                bounds,
                matcher,
                behind,
                run,
                found: Default::default(),
            };
            return Some(Clause::selecting(Arc::new(select), weight));
        }
        let walk = DictionaryWalk {
            field: single,
            bounds,
            matcher,
            run,
        };
        Some(match is_text {
            true => Clause::constant(Box::new(SelectionQuery(Arc::new(walk))), weight),
            false => Clause::selecting(Arc::new(KeywordRange { path, walk }), weight),
        })
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
pub(crate) fn beginning_with(prefix: &str) -> (Bound<String>, Bound<String>) {
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
