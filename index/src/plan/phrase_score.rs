//! What makes the library's scores those of words: without its factor k1 + 1, and by [`Statistics`].
//!
//! [`Statistics`]: crate::statistics::Statistics

use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::Field;
use tantivy::{Score, Searcher, Term};

use crate::run::Run;
use crate::statistics::Texts;

/// One over the library's factor.
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
