//! What is looked for in a field: its part of the query tree.

use std::collections::HashSet;
use std::ops::{Bound, RangeBounds};

use crate::analyze::{Phase, Placed, analyze, phrase_analyzer, phrase_words, query_parts, slop_positions};
use crate::limits::{MAX_FUZZY_WORDS, MAX_MATCH_TEXT_BYTES};
use crate::plan::glob::Glob;
use crate::plan::{Matcher, beginning_with};
use crate::request::{Operator, Query, QueryValue};
use crate::run::Run;
use crate::schema::Analyzer;

/// One thing that is looked for.
#[derive(Clone, Debug)]
pub(super) struct Seek {
    pub(super) what: What,
    /// How much a found word counts.
    pub(super) weight: f32,
}

/// What is looked for.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// Each token that matches.
    Tokens(TokenMatcher),
    /// Words, if enough of them are there.
    Words { words: Vec<Word>, needed: usize },
    /// Words one after the other.
    Phrase(Phrase),
}

/// Which tokens match: some spellings, or the ones of a range that a pattern matches.
#[derive(Clone, Debug)]
pub(super) enum TokenMatcher {
    Any(HashSet<String>),
    /// Those between two bounds that match.
    Between((Bound<String>, Bound<String>), Matcher),
}

impl TokenMatcher {
    pub(super) fn matches(&self, token: &str) -> bool {
        match self {
            Self::Any(tokens) => tokens.contains(token),
            Self::Between((lower, upper), matcher) => {
                let lower = lower.as_ref().map(String::as_str);
                let between = (lower, upper.as_ref().map(String::as_str));
                RangeBounds::<str>::contains(&between, token) && matcher.matches(token.as_bytes())
            }
        }
    }
}

/// A word of a `match`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Word {
    /// This token, or these parts of it one after the other.
    Parts(Vec<Placed>),
    /// Every token near this one.
    Near {
        word: String,
        edits: usize,
        prefix: String,
    },
}

/// Words one after the other.
#[derive(Clone, Debug)]
pub(super) struct Phrase {
    /// The words with their places.
    pub(super) words: Vec<Placed>,
    /// By how many positions in all they may be apart.
    pub(super) slop: usize,
    /// Whether the last word only begins a token.
    pub(super) last_is_prefix: bool,
    /// How the texts are analyzed, if not as the field is.
    pub(super) analyzer: Option<Analyzer>,
}

/// What `query` looks for in the TEXT field at `path`.
pub(super) fn seeks(query: &Query, path: &str, analyzer: &Analyzer, run: &Run) -> tantivy::Result<Vec<Seek>> {
    let mut seeks = Vec::new();
    let mut open = vec![query];
    while let Some(query) = open.pop() {
        run.check_inside()?;
        match query {
            Query::Bool {
                must, filter, should, ..
            } => open.extend(must.iter().chain(filter).chain(should)),
            Query::Nested { query, .. }
            | Query::ConstScore { filter: query, .. }
            | Query::Weighted { query, .. } => open.push(query),
            Query::FunctionScore(scored) => open.push(&scored.query),
            Query::DisMax { queries, .. } => open.extend(queries),
            _ => seeks.extend(leaf(query, path, analyzer)),
        }
    }
    Ok(seeks)
}

/// What a query without clauses looks for.
fn leaf(query: &Query, path: &str, analyzer: &Analyzer) -> Option<Seek> {
    if query.field() != Some(path) {
        return None;
    }
    let short = |text: &str| text.len() <= MAX_MATCH_TEXT_BYTES;
    let between = |bounds, matcher| What::Tokens(TokenMatcher::Between(bounds, matcher));
    let what = match query {
        Query::Term { value, .. } => What::Tokens(TokenMatcher::Any(strings(std::slice::from_ref(value)))),
        Query::Terms { values, .. } => What::Tokens(TokenMatcher::Any(strings(values))),
        Query::Range { lower, upper, .. } => between((bound(lower)?, bound(upper)?), Matcher::All),
        Query::Prefix { value, .. } => between(beginning_with(value), Matcher::All),
        Query::Suffix { value, .. } => between(beginning_with(""), Matcher::Suffix(value.clone())),
        Query::Wildcard { pattern, .. } => between(beginning_with(""), Matcher::Glob(Glob::new(pattern)?)),
        Query::Match {
            text,
            operator,
            minimum_should_match,
            ..
        } if short(text) => {
            // A word that the text repeats counts as often, as in the search.
            let tokens = analyze(analyzer, Phase::Query, text);
            let words = tokens
                .iter()
                .map(|token| Word::Parts(query_parts(analyzer, text, token)));
            enough(words.collect(), *operator, *minimum_should_match)
        }
        Query::MatchFuzzy {
            text,
            operator,
            minimum_should_match,
            fuzziness,
            prefix_length,
            ..
        } if short(text) => {
            let tokens = analyze(analyzer, Phase::Query, text);
            let words = tokens.into_iter().map(|token| token.text);
            let near = |word: String| match fuzziness.edits(&word) {
                0 => Word::Parts(vec![(0, word)]),
                edits => Word::Near {
                    prefix: word.chars().take(*prefix_length as usize).collect(),
                    edits: usize::from(edits),
                    word,
                },
            };
            let words = words.take(MAX_FUZZY_WORDS).map(near);
            enough(words.collect(), *operator, *minimum_should_match)
        }
        Query::MatchPhrase { text, slop, .. } if short(text) => {
            phrase(analyzer, text, slop_positions(analyzer, *slop), false)
        }
        Query::MatchPhrasePrefix { text, .. } if short(text) => phrase(analyzer, text, 0, true),
        _ => return None,
    };
    // Fragments are in order of the bits of their scores: of −0.0 it makes 0.0.
    let weight = query.weight() + 0.0;
    Some(Seek { what, weight })
}

fn enough(words: Vec<Word>, operator: Operator, minimum: Option<u32>) -> What {
    let needed = match operator {
        Operator::And => words.len(),
        Operator::Or => minimum.map_or(1, |minimum| minimum as usize),
    };
    What::Words { words, needed }
}

fn phrase(analyzer: &Analyzer, text: &str, slop: usize, last_is_prefix: bool) -> What {
    let other = phrase_analyzer(analyzer);
    let words = phrase_words(other.as_ref().unwrap_or(analyzer), text);
    What::Phrase(Phrase {
        words: words.into_iter().collect(),
        slop,
        last_is_prefix,
        analyzer: other,
    })
}

fn strings(values: &[QueryValue]) -> HashSet<String> {
    let texts = values.iter().filter_map(|value| match value {
        QueryValue::String(text) => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

fn bound(bound: &Bound<QueryValue>) -> Option<Bound<String>> {
    match bound {
        Bound::Included(QueryValue::String(text)) => Some(Bound::Included(text.clone())),
        Bound::Excluded(QueryValue::String(text)) => Some(Bound::Excluded(text.clone())),
        Bound::Unbounded => Some(Bound::Unbounded),
        Bound::Included(_) | Bound::Excluded(_) => None,
    }
}
