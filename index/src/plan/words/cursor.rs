//! The documents of one word in one segment.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::{DocId, DocSet, Score, SegmentReader, Term};

use crate::bm25::Bm25;
use crate::bounds::Ceiling;
use crate::statistics::Statistics;

/// Where a word's bounds come from.
pub(super) struct Source {
    pub(super) reader: SegmentReader,
    pub(super) word: Term,
    /// The average length of all texts.
    pub(super) average: Score,
    pub(super) statistics: Arc<Statistics>,
}

/// Walks a word's documents, and scores them.
pub(super) struct Cursor {
    postings: SegmentPostings,
    lengths: FieldNormReader,
    bm25: Bm25,
    count: u32,
    source: Source,
    ceiling: Option<Ceiling>,
}

impl Cursor {
    pub(super) fn new(
        postings: SegmentPostings,
        lengths: FieldNormReader,
        bm25: Bm25,
        count: u32,
        source: Source,
    ) -> Self {
        Self {
            postings,
            lengths,
            bm25,
            count,
            source,
            ceiling: None,
        }
    }

    /// How often the word counts.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn doc(&self) -> DocId {
        self.postings.doc()
    }

    pub(super) fn advance(&mut self) -> DocId {
        self.postings.advance()
    }

    /// Goes to the first document from `target` on, if it isn't behind it already.
    pub(super) fn seek(&mut self, target: DocId) -> DocId {
        let doc = self.postings.doc();
        if doc < target {
            self.postings.seek(target)
        } else {
            doc
        }
    }

    /// How many documents have the word, deleted ones included.
    pub(super) fn len(&self) -> u32 {
        self.postings.doc_freq()
    }

    /// The score of the document that it stands on.
    pub(super) fn score(&self) -> Score {
        self.bm25.score(
            self.lengths.fieldnorm_id(self.postings.doc()),
            self.postings.term_freq(),
        )
    }

    /// Makes [`Cursor::highest`] and [`Cursor::bound`] tell something.
    pub(super) fn measure(&mut self) -> tantivy::Result<()> {
        if self.ceiling.is_none() {
            let Source {
                reader,
                word,
                average,
                statistics,
            } = &self.source;
            let bounds = statistics.bounds(reader, word)?;
            self.ceiling = Some(Ceiling::new(bounds, self.bm25.clone(), *average));
        }
        Ok(())
    }

    /// What any document scores at most.
    pub(super) fn highest(&self) -> f64 {
        self.ceiling
            .as_ref()
            .map_or(f64::INFINITY, |ceiling| f64::from(ceiling.highest()))
    }

    /// What documents from `doc` on score at most, and the last one to which that applies. `doc` may only grow.
    pub(super) fn bound(&mut self, doc: DocId) -> (f64, DocId) {
        self.ceiling.as_mut().map_or((f64::INFINITY, doc), |ceiling| {
            let (bound, last) = ceiling.from(doc);
            (f64::from(bound), last)
        })
    }

    /// What documents of the block that [`Cursor::bound`] told of score at most when their lengths have this code.
    pub(super) fn at_length(&self, code: u8) -> f64 {
        let ceiling = self.ceiling.as_ref();
        ceiling.map_or(f64::INFINITY, |ceiling| f64::from(ceiling.at_length(code)))
    }

    /// The code of the length of the document that it stands on.
    pub(super) fn length(&self) -> u8 {
        self.lengths.fieldnorm_id(self.postings.doc())
    }
}
