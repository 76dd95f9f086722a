//! Multi-term queries: documents with any of the terms that a word stands for, which begin with it or are spelled much like it.
//!
//! The terms are gathered from the dictionaries of all segments before the search, so that a document's score depends on
//! the whole index and not on its segment. There are at most [`MAX_EXPANSIONS`] of them: nothing is left out silently.

use std::collections::BTreeMap;
use std::sync::Arc;

use tantivy::postings::{Postings, TermInfo};
use tantivy::query::{
    Bm25StatisticsProvider, Bm25Weight, EnableScoring, FuzzyTermQuery, Query, Scorer, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, InvertedIndexReader, Score, Searcher, SegmentReader, TERMINATED, Term};

use super::dictionary_walk::walk_bounds;
use super::doc_set::DocSetBuilder;
use super::pattern::beginning_with;
use crate::allowance::Grant;
use crate::edit_distance::edits_within;
use crate::error::Error;
use crate::limits::{DOCUMENTS_PER_CHECK, MAX_EXPANSIONS, limit};
use crate::pace::Pace;
use crate::run::Run;
use crate::statistics::Texts;
use crate::unexplained::unexplained;

/// Memory of a term with its weight, in two trees: one by term, and while it is made one by frequency.
const BYTES_PER_TERM: usize = 2 * (size_of::<Bm25Weight>() + 2 * size_of::<Vec<u8>>());

/// Bytes of an automaton above which terms are compared one by one: the library's has a table for each of its states, of
/// which there are as many for each character of the word.
const MAX_AUTOMATON_BYTES: usize = 8 << 20;
/// The table of a state.
const STATE_BYTES: usize = 256 * size_of::<u32>();
const TERMS_PER_CHECK: u32 = 64;

/// About how large the automaton is that accepts what is up to `edits` from a word.
fn automaton_bytes(word: &str, edits: u8) -> usize {
    let characters = word.chars().count();
    // States for each place in the word, as measured; between the bytes of a character there are more.
    let states = if edits > 1 { 48 } else { 12 };
    let longer = word.chars().filter(|character| !character.is_ascii()).count();
    characters
        .saturating_mul(states * STATE_BYTES)
        .saturating_mul(1 + longer)
}

/// Which terms a word stands for.
#[derive(Clone, Debug)]
pub(super) enum MultiTerm {
    /// Those that begin with it.
    Prefix(String),
    /// Those that differ from it by few edits.
    Near {
        word: String,
        /// How many edits, at most 2.
        edits: u8,
        /// The beginning that they have in common with the word.
        prefix: String,
    },
}

impl MultiTerm {
    /// Gives each term of a dictionary that the word stands for to `found`, in the dictionary's order.
    pub(super) fn each(
        &self,
        field: Field,
        index: &InvertedIndexReader,
        run: &Run,
        mut found: impl FnMut(&[u8], &TermInfo) -> tantivy::Result<()>,
    ) -> tantivy::Result<()> {
        let mut pace = Pace::new(run, TERMS_PER_CHECK);
        let prefix = match self {
            Self::Prefix(prefix) | Self::Near { prefix, .. } => prefix,
        };
        let (lower, upper) = beginning_with(prefix);
        let (from, to) = walk_bounds(&lower, &upper);
        match self {
            Self::Prefix(_) => {
                let mut terms = index.terms().range().ge(from).lt(to).into_stream()?;
                while terms.advance() {
                    found(terms.key(), terms.value())?;
                }
            }
            Self::Near { word, edits, .. } if automaton_bytes(word, *edits) > MAX_AUTOMATON_BYTES => {
                let mut terms = index.terms().range().ge(from).lt(to).into_stream()?;
                while terms.advance() {
                    pace.step(1)?;
                    let term = std::str::from_utf8(terms.key()).unwrap_or_default();
                    if edits_within(word, term, usize::from(*edits)).is_some() {
                        found(terms.key(), terms.value())?;
                    }
                }
            }
            Self::Near { word, edits, .. } => {
                let _held = run.allowance().take(automaton_bytes(word, *edits))?;
                let near = FuzzyTermQuery::new(Term::from_field_text(field, word), *edits, true);
                let automaton = near.automaton()?;
                let mut terms = index.terms().search(automaton).ge(from).lt(to).into_stream()?;
                while terms.advance() {
                    found(terms.key(), terms.value())?;
                }
            }
        }
        Ok(())
    }

    /// What a term's score is multiplied by: half as much for one edit, a third for two.
    fn nearness(&self, term: &[u8]) -> Score {
        let Self::Near { word, edits, .. } = self else {
            return 1.0;
        };
        let most = usize::from(*edits);
        let edits = edits_within(word, std::str::from_utf8(term).unwrap_or_default(), most);
        1.0 / (1.0 + edits.unwrap_or(most) as Score)
    }
}

/// One over the library's factor k1 + 1, without which scores are those of words.
pub(super) const SCALE: Score = 1.0 / 2.2;

/// The statistics of one field, as the library asks for them.
pub(super) struct FieldStatistics<'a> {
    texts: Texts,
    run: &'a Run,
    searcher: &'a Searcher,
}

impl<'a> FieldStatistics<'a> {
    pub(super) fn new(run: &'a Run, searcher: &'a Searcher, field: Field) -> tantivy::Result<Self> {
        Ok(Self {
            texts: run.statistics().texts(searcher, field)?,
            run,
            searcher,
        })
    }
}

impl Bm25StatisticsProvider for FieldStatistics<'_> {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok(self.texts.tokens)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.texts.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.run.check_inside()?;
        self.run.statistics().having(self.searcher, term)
    }
}

/// The terms of all segments that `multi_term` stands for, at most [`MAX_EXPANSIONS`]; how many documents have each. `held` is
/// of them, and of what has a copy of each.
pub(super) fn expand(
    multi_term: &MultiTerm,
    field: Field,
    scoring: &EnableScoring<'_>,
    at: &str,
    run: &Run,
    held: &mut Grant,
) -> tantivy::Result<BTreeMap<Vec<u8>, u64>> {
    let mut terms: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let Some(searcher) = scoring.searcher() else {
        return Ok(terms);
    };
    for reader in searcher.segment_readers() {
        run.check_inside()?;
        let index = reader.inverted_index(field)?;
        multi_term.each(field, &index, run, |term, info| {
            let documents = u64::from(info.doc_freq);
            if let Some(known) = terms.get_mut(term) {
                *known += documents;
            } else if terms.len() < MAX_EXPANSIONS {
                held.grow(BYTES_PER_TERM + 2 * term.len())?;
                terms.insert(term.to_vec(), documents);
            } else {
                let advice =
                    "give more characters, or allow fewer edits: the word stands for more terms of the index";
                let error = Error::limit(at, limit!(MAX_EXPANSIONS), MAX_EXPANSIONS + 1, advice);
                return Err(run.give_up(error));
            }
            Ok(())
        })?;
    }
    Ok(terms)
}

/// The documents with any of the terms that a word stands for.
///
/// A document scores the sum over the terms that it has: for a prefix each term's BM25 score; for near words that of
/// the most frequent of them (so that a rare misspelling doesn't win by being rare), divided by one more than the
/// number of edits.
#[derive(Clone, Debug)]
pub(super) struct MultiTermQuery {
    pub(super) field: Field,
    pub(super) multi_term: MultiTerm,
    /// The clause, for the error.
    pub(super) at: String,
    pub(super) run: Arc<Run>,
}

impl Query for MultiTermQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let run = &*self.run;
        let mut held = run.allowance().grant();
        let terms = expand(&self.multi_term, self.field, &scoring, &self.at, run, &mut held)?;
        let similarities = match scoring {
            EnableScoring::Enabled { searcher, .. } => {
                let statistics = FieldStatistics::new(&self.run, searcher, self.field)?;
                Some(self.similarities(&terms, &statistics)?)
            }
            EnableScoring::Disabled { .. } => {
                held.shrink_to(0);
                None
            }
        };
        Ok(Box::new(MultiTermWeight {
            query: self.clone(),
            similarities,
            _held: held,
        }))
    }
}

impl MultiTermQuery {
    fn similarities(
        &self,
        terms: &BTreeMap<Vec<u8>, u64>,
        statistics: &dyn Bm25StatisticsProvider,
    ) -> tantivy::Result<BTreeMap<Vec<u8>, Bm25Weight>> {
        let documents = statistics.total_num_docs()?;
        let average = statistics.total_num_tokens(self.field)? as Score / documents as Score;
        let most = terms.values().copied().max().unwrap_or_default();
        // Each weight has a table of norms, which equal frequencies share.
        let mut of_frequency: BTreeMap<u64, Bm25Weight> = BTreeMap::new();
        let mut weight = |term: &[u8], frequency: u64| {
            let frequency = match self.multi_term {
                MultiTerm::Prefix(_) => frequency,
                MultiTerm::Near { .. } => most,
            };
            // The library insists that no term is in more documents than there are.
            let frequency = frequency.min(documents);
            let weight = || Bm25Weight::for_one_term_without_explain(frequency, documents, average);
            let weight = of_frequency.entry(frequency).or_insert_with(weight);
            weight.boost_by(self.multi_term.nearness(term) * SCALE)
        };
        let weights = terms.iter().map(|(term, frequency)| {
            self.run.check_inside()?;
            Ok((term.clone(), weight(term, *frequency)))
        });
        weights.collect()
    }
}

struct MultiTermWeight {
    query: MultiTermQuery,
    similarities: Option<BTreeMap<Vec<u8>, Bm25Weight>>,
    _held: Grant,
}

impl Weight for MultiTermWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let (field, multi_term, run) = (self.query.field, &self.query.multi_term, &*self.query.run);
        let index = reader.inverted_index(field)?;
        let Some(similarities) = &self.similarities else {
            let mut gathered = DocSetBuilder::new(reader.max_doc(), run.allowance());
            multi_term.each(field, &index, run, |_, info| {
                run.check_inside()?;
                gathered.insert_term(&index, info)
            })?;
            return Ok(gathered.into_scorer(boost)?);
        };
        let norms = reader.fieldnorms_readers().get_field(field)?;
        let mut sums = DocSetBuilder::<Score>::new(reader.max_doc(), run.allowance());
        let mut pace = Pace::new(run, DOCUMENTS_PER_CHECK);
        multi_term.each(field, &index, run, |term, info| {
            let Some(similarity) = similarities.get(term) else {
                return Ok(());
            };
            let similarity = similarity.boost_by(boost);
            let mut postings = index.read_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
            while postings.doc() != TERMINATED {
                pace.step(1)?;
                let doc = postings.doc();
                let norm = norms.as_ref().map_or(1, |norms| norms.fieldnorm_id(doc));
                sums.add(doc, similarity.score(norm, postings.term_freq()))?;
                postings.advance();
            }
            Ok(())
        })?;
        Ok(sums.into_scorer()?)
    }

    unexplained!();
}
