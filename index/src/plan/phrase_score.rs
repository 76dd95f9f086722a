//! The library's exact phrases, with scores like those of words: without its factor k1 + 1, and by [`Statistics`].

use std::sync::Arc;

use tantivy::postings::SegmentPostings;
use tantivy::query::{Bm25StatisticsProvider, BoostQuery, EnableScoring, PhraseQuery, Query, Weight};
use tantivy::schema::Field;
use tantivy::{Score, Searcher, Term};

use super::paced::PacedWeight;
use crate::run::Run;
use crate::statistics::{Statistics, Texts};

/// One over the library's factor.
pub(super) const SCALE: Score = 1.0 / 2.2;

/// The documents with a phrase.
#[derive(Clone, Debug)]
pub(super) struct ScoredPhraseQuery {
    field: Field,
    phrase: PhraseQuery,
    run: Arc<Run>,
}

impl ScoredPhraseQuery {
    /// At least two terms with their places.
    pub(super) fn new(field: Field, terms: Vec<(usize, Term)>, run: &Arc<Run>) -> Self {
        Self {
            field,
            phrase: PhraseQuery::new_with_offset(terms),
            run: Arc::clone(run),
        }
    }
}

impl Query for ScoredPhraseQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let weight = match scoring {
            EnableScoring::Enabled { searcher, .. } => {
                let provider = FieldStatistics::new(self.run.statistics(), searcher, self.field)?;
                let scoring = EnableScoring::enabled_from_statistics_provider(&provider, searcher);
                BoostQuery::new(Box::new(self.phrase.clone()), SCALE).weight(scoring)?
            }
            EnableScoring::Disabled { .. } => self.phrase.weight(scoring)?,
        };
        let held = self.phrase.phrase_terms().len() * size_of::<SegmentPostings>();
        let held = self.run.allowance().take(held)?;
        Ok(Box::new(PacedWeight::new(weight, &self.run, held)))
    }
}

/// The statistics of one field, as the library asks for them.
pub(super) struct FieldStatistics<'a> {
    texts: Texts,
    statistics: &'a Statistics,
    searcher: &'a Searcher,
}

impl<'a> FieldStatistics<'a> {
    pub(super) fn new(
        statistics: &'a Statistics,
        searcher: &'a Searcher,
        field: Field,
    ) -> tantivy::Result<Self> {
        Ok(Self {
            texts: statistics.texts(searcher, field)?,
            statistics,
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
        self.statistics.having(self.searcher, term)
    }
}
