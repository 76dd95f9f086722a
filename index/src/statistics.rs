//! BM25 statistics over the documents that can match: nested objects are physical documents too, but must not make the
//! words of their parents look rarer.

use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

/// The statistics of a searcher, with only the documents of one kind counted.
pub(crate) struct ScopeStatistics<'a> {
    searcher: &'a Searcher,
    documents: u64,
}

impl<'a> ScopeStatistics<'a> {
    /// Counts the documents that have the term `kind`; deleted ones count until a merge, as they do for terms.
    pub(crate) fn new(searcher: &'a Searcher, kind: &Term) -> tantivy::Result<Self> {
        Ok(Self {
            searcher,
            documents: searcher.doc_freq(kind)?,
        })
    }
}

impl Bm25StatisticsProvider for ScopeStatistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.searcher.total_num_tokens(field)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.searcher.doc_freq(term)
    }
}
