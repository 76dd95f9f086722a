//! The documents of one word in one segment.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, Term};

use crate::bm25::Bm25;
use crate::bounds::Ceiling;
use crate::doc_walk::go_to;
use crate::run::Run;

/// Walks a word's documents, and scores them.
pub(super) struct PostingsCursor {
    pub(super) postings: SegmentPostings,
    pub(super) lengths: FieldNormReader,
    pub(super) bm25: Bm25,
    /// How often the word counts.
    pub(super) count: u32,
    pub(super) reader: SegmentReader,
    pub(super) word: Term,
    /// The average length of all texts.
    pub(super) average: Score,
    /// Absent until it is measured.
    pub(super) ceiling: Option<Ceiling>,
    /// Texts with this code of their length, or a higher one, are passed over.
    pub(super) too_long: u16,
}

/// Codes of lengths end before it.
pub(super) const CODES: u16 = u8::MAX as u16 + 1;

/// The first code of lengths that `reaches` nothing any more; scores fall with lengths.
pub(super) fn first_too_long(reaches: impl Fn(u8) -> bool) -> u16 {
    let (mut low, mut high) = (0, CODES);
    while low < high {
        let middle = u16::midpoint(low, high);
        if reaches(u8::try_from(middle).unwrap_or(u8::MAX)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    high
}

impl PostingsCursor {
    pub(super) fn doc(&self) -> DocId {
        self.postings.doc()
    }

    pub(super) fn advance(&mut self) -> DocId {
        let next = self.postings.advance();
        self.seek_short(next, TERMINATED, self.too_long)
    }

    /// Goes to the first document from `target` on, if it isn't behind it already.
    pub(super) fn seek(&mut self, target: DocId) -> DocId {
        self.seek_short(target, TERMINATED, self.too_long)
    }

    /// The first document from `target` on, up to `last`, whose text's code is below `too_long`; or the first behind
    /// `last`.
    pub(super) fn seek_short(&mut self, target: DocId, last: DocId, too_long: u16) -> DocId {
        let mut doc = go_to(&mut self.postings, target);
        let is_long = |doc| too_long < CODES && u16::from(self.lengths.fieldnorm_id(doc)) >= too_long;
        while doc <= last && doc != TERMINATED && is_long(doc) {
            doc = self.postings.advance();
        }
        doc
    }

    /// How many documents have the word, deleted ones included.
    pub(super) fn len(&self) -> u32 {
        self.postings.doc_freq()
    }

    pub(super) fn score(&self) -> Score {
        let length = self.length_of(self.postings.doc());
        self.bm25.score(length, self.postings.term_freq())
    }

    /// Makes [`PostingsCursor::highest`] and [`PostingsCursor::bound`] tell something, which may take a walk over all documents of the word.
    pub(super) fn measure(&mut self, run: &Run) -> tantivy::Result<()> {
        if self.ceiling.is_none() {
            run.check_inside()?;
            let bounds = run.statistics().bounds.get(&self.reader, &self.word)?;
            self.ceiling = Some(Ceiling::new(bounds, self.bm25.clone(), self.average));
        }
        Ok(())
    }

    /// What the ceiling says; no bound before there is one.
    fn at_most(&self, of: impl Fn(&Ceiling) -> Score) -> f64 {
        let ceiling = self.ceiling.as_ref();
        ceiling.map_or(f64::INFINITY, |ceiling| f64::from(of(ceiling)))
    }

    /// What any document scores at most.
    pub(super) fn highest(&self) -> f64 {
        self.at_most(|ceiling| ceiling.highest)
    }

    /// What documents from `doc` on score at most, and the last one to which that applies. `doc` may only grow.
    pub(super) fn bound(&mut self, doc: DocId) -> (f64, DocId) {
        self.ceiling.as_mut().map_or((f64::INFINITY, doc), |ceiling| {
            let (bound, last) = ceiling.from(doc);
            (f64::from(bound), last)
        })
    }

    /// What documents of the block that [`PostingsCursor::bound`] told of score at most when their lengths have this code.
    pub(super) fn at_length(&self, code: u8) -> f64 {
        self.at_most(|ceiling| ceiling.at_length(code))
    }

    /// The code of the shortest text of the block that [`PostingsCursor::bound`] told of.
    pub(super) fn shortest(&self) -> u8 {
        self.ceiling.as_ref().map_or(0, Ceiling::shortest)
    }

    /// What any document scores at most when its length has this code.
    pub(super) fn highest_at_length(&self, code: u8) -> f64 {
        self.at_most(|ceiling| ceiling.highest_at_length(code))
    }

    /// The code of the length of a document's text.
    pub(super) fn length_of(&self, doc: DocId) -> u8 {
        self.lengths.fieldnorm_id(doc)
    }
}
