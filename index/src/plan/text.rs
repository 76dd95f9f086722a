//! `match` and `match_phrase`: documents with the tokens of a text.
//!
//! The fuzzy analyzer keeps the words of a query whole, and a document's tokens are at most `max_chars` long: a longer
//! word is looked up as a phrase of its consecutive parts, which finds exactly the documents that contain it. Phrases on
//! fields of min_word and max_word are looked up in their single characters (see [`phrase_analyzer`]).

use std::collections::BTreeSet;

use tantivy::query::Query;
use tantivy::schema::Field as PhysicalField;
use tantivy::{Score, Term};

use super::Planner;
use super::clause::Clause;
use super::sloppy_phrase::SloppyPhraseQuery;
use super::terms::having;
use super::union::{Together, UnionQuery};
use super::words::WordsQuery;
use crate::analyze::{Phase, Placed, analyze, phrase_analyzer, phrase_words, query_parts, slop_positions};
use crate::error::{Checker, Reason};
use crate::limits::limit;
use crate::request::Operator;
use crate::schema::{Analyzer, FieldKind, ResolvedField};

/// How many of a text's tokens have to match.
pub(super) type Combine = (Operator, Option<u32>);

/// Whether values of the type are strings, whole or in tokens.
pub(super) fn is_text(kind: &FieldKind) -> bool {
    matches!(kind, FieldKind::Keyword | FieldKind::Text(_))
}

/// How many of so many words have to match; `None` when there aren't as many, or none.
pub(super) fn needed(combine: Combine, minimum: usize, words: usize) -> Option<usize> {
    let needed = match combine.0 {
        Operator::And => words,
        Operator::Or => minimum,
    };
    Some(needed).filter(|needed| words > 0 && *needed <= words)
}

impl<'a> Planner<'a> {
    pub(super) fn match_text(
        &mut self,
        at: &str,
        field: &str,
        text: &str,
        combine: Combine,
        weight: Score,
    ) -> Option<Clause> {
        let (field, single, weight, minimum) = self.matched(at, field, text, combine, weight)?;
        let FieldKind::Text(analyzer) = &field.kind else {
            // A KEYWORD is one token, of which no more than one can match.
            return Some(match minimum {
                0 | 1 => Clause::constant(having(Term::from_field_text(single, text)), weight),
                _ => Clause::nothing(),
            });
        };
        let tokens = analyze(analyzer, Phase::Query, text);
        let words = tokens.iter().map(|token| query_parts(analyzer, text, token));
        let words: Vec<Vec<Placed>> = words.collect();
        self.tokens_fit(at, words.iter().map(Vec::len).sum())?;
        Some(match needed(combine, minimum, words.len()) {
            Some(needed) => Clause::scored(self.some_of(single, words, needed), weight),
            None => Clause::nothing(),
        })
    }

    pub(super) fn match_phrase(
        &mut self,
        at: &str,
        field: &str,
        text: &str,
        slop: u32,
        weight: Score,
    ) -> Option<Clause> {
        let matched = self.matched(at, field, text, (Operator::Or, None), weight);
        let advice = "use match with the operator AND to find tokens anywhere";
        self.at_most(format!("{at}.slop"), limit!(MAX_SLOP), slop as usize, advice)?;
        let (field, single, weight, _) = matched?;
        let FieldKind::Text(analyzer) = &field.kind else {
            let whole = having(Term::from_field_text(single, text));
            return Some(Clause::constant(whole, weight));
        };
        let (single, placed) = self.placed(field, single, analyzer, text);
        self.tokens_fit(at, placed.len())?;
        if placed.is_empty() {
            return Some(Clause::nothing());
        }
        let slop = slop_positions(analyzer, slop) as u64;
        let phrase = self.phrase(single, placed.into_iter().collect(), slop);
        Some(Clause::scored(phrase, weight))
    }

    /// The documents with one token, scored.
    pub(super) fn word(&self, field: PhysicalField, token: &str) -> Box<dyn Query> {
        Box::new(WordsQuery::new(field, &[token], 1, self.run))
    }

    /// The documents with these tokens at these distances, give or take `slop`.
    fn phrase(&self, field: PhysicalField, placed: Vec<Placed>, slop: u64) -> Box<dyn Query> {
        if let [(_, token)] = placed.as_slice() {
            return self.word(field, token);
        }
        let first = placed.iter().map(|(at, _)| *at).min().unwrap_or_default();
        let terms = placed
            .iter()
            .map(|(at, token)| ((at - first) as u32, Term::from_field_text(field, token)));
        Box::new(SloppyPhraseQuery::new(field, terms.collect(), slop, self.run))
    }

    /// The documents with `needed` of some words, each of one or several parts. A word that is repeated counts as often.
    fn some_of(&self, field: PhysicalField, words: Vec<Vec<Placed>>, needed: usize) -> Box<dyn Query> {
        let whole = |word: &Vec<Placed>| match word.as_slice() {
            [(_, token)] => Some(token.clone()),
            _ => None,
        };
        if let Some(tokens) = words.iter().map(whole).collect::<Option<Vec<String>>>() {
            let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
            return Box::new(WordsQuery::new(field, &tokens, needed as u32, self.run));
        }
        let phrases = words.into_iter().map(|word| self.phrase(field, word, 0));
        self.union(phrases.collect(), needed)
    }

    /// The documents that `needed` of some queries match, with the sum of their scores.
    pub(super) fn union(&self, mut queries: Vec<Box<dyn Query>>, needed: usize) -> Box<dyn Query> {
        if queries.len() == 1
            && let Some(only) = queries.pop()
        {
            return only;
        }
        let clauses = queries.into_iter().map(|query| Clause::scored(query, 1.0));
        let union = UnionQuery::new(clauses.collect(), needed, Together::Sum, self.run);
        Box::new(union)
    }

    /// The words of a phrase, and the physical field in which they are looked up.
    pub(super) fn placed(
        &self,
        field: &ResolvedField,
        single: PhysicalField,
        analyzer: &Analyzer,
        text: &str,
    ) -> (PhysicalField, BTreeSet<Placed>) {
        let characters = self.layout.characters(&field.path);
        match characters.zip(phrase_analyzer(analyzer)) {
            Some((characters, analyzer)) => (characters, phrase_words(&analyzer, text)),
            None => (single, phrase_words(analyzer, text)),
        }
    }

    /// Checks a clause that looks for a text: its field, the physical one, its weight, and how many tokens have to match.
    pub(super) fn matched(
        &mut self,
        at: &str,
        field: &str,
        text: &str,
        combine: Combine,
        weight: Score,
    ) -> Option<(&'a ResolvedField, PhysicalField, Score, usize)> {
        let weighed = self.weight(at, weight);
        let minimum = self.match_minimum(at, combine);
        let field = self.field_of(at, field, is_text, "TEXT and KEYWORD fields", "use term or range");
        let fits = self.text_fits(at, text);
        let (weight, minimum, field, ()) = (weighed?, minimum?, field?, fits?);
        Some((field, self.single(field)?, weight, minimum))
    }

    fn text_fits(&mut self, at: &str, text: &str) -> Option<()> {
        let at = format!("{at}.text");
        if text.is_empty() {
            let advice = "give a text, or use exists";
            return self.refuse(at, Reason::Missing, "the text is empty", advice);
        }
        self.at_most(at, limit!(MAX_MATCH_TEXT_BYTES), text.len(), "shorten the text")
    }

    pub(super) fn tokens_fit(&mut self, at: &str, tokens: usize) -> Option<()> {
        let advice = "shorten the text";
        self.at_most(format!("{at}.text"), limit!(MAX_MATCH_TOKENS), tokens, advice)
    }

    fn match_minimum(&mut self, at: &str, combine: Combine) -> Option<usize> {
        let at = format!("{at}.minimum_should_match");
        match combine {
            (_, None) => Some(1),
            (Operator::Or, Some(minimum @ 1..)) => Some(minimum as usize),
            (Operator::Or, Some(0)) => {
                let message = "a match without a matching token is none";
                let advice = "give at least 1, or leave it out";
                self.refuse(at, Reason::OutOfRange, message, advice)
            }
            (Operator::And, Some(_)) => {
                let message = "with the operator AND every token has to match";
                let advice = "leave it out, or use the operator OR";
                self.refuse(at, Reason::TypeMismatch, message, advice)
            }
        }
    }
}
