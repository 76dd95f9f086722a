//! Documents with any of many terms of one field, gathered.
//!
//! (The search library's own takes a bit for each document of the segment, however few documents there are.)

use std::sync::Arc;

use tantivy::query::{EnableScoring, Query, Scorer, Weight};
use tantivy::{Score, SegmentReader, Term};

use super::doc_set::DocSetBuilder;
use crate::limits::DOCUMENTS_PER_CHECK;
use crate::pace::Pace;
use crate::run::Run;
use crate::unexplained::unexplained;

/// Looking a term up takes as long as so many of its documents.
const DOCUMENTS_PER_LOOKUP: u32 = 128;

/// The documents with one of the terms.
#[derive(Clone, Debug)]
pub(super) struct AnyTermQuery {
    terms: Arc<[Term]>,
    run: Arc<Run>,
}

impl AnyTermQuery {
    /// Terms of one field, in order.
    pub(super) fn new(terms: Vec<Term>, run: &Arc<Run>) -> Self {
        Self {
            terms: terms.into(),
            run: Arc::clone(run),
        }
    }
}

impl Query for AnyTermQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for AnyTermQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let Self { terms, run } = self;
        let mut gathered = DocSetBuilder::new(reader.max_doc(), run.allowance());
        let mut pace = Pace::new(&**run, DOCUMENTS_PER_CHECK);
        if let Some(first) = terms.first() {
            let index = reader.inverted_index(first.field())?;
            for term in terms.iter() {
                pace.step(DOCUMENTS_PER_LOOKUP)?;
                if let Some(info) = index.get_term_info(term)? {
                    pace.step(info.doc_freq)?;
                    gathered.insert_term(&index, &info, |_| true)?;
                }
            }
        }
        Ok(gathered.into_scorer(boost)?)
    }

    unexplained!();
}
