//! How doc sets go from document to document.

use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::query::Scorer;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, InvertedIndexReader, SegmentReader};

/// Where a doc set stands once it isn't before `target`. Called for each document of each list.
#[inline(always)]
pub(crate) fn go_to<D: DocSet + ?Sized>(docs: &mut D, target: DocId) -> DocId {
    let at = docs.doc();
    if at < target { docs.seek(target) } else { at }
}

/// How many documents a scorer has that aren't deleted.
pub(crate) fn count(scorer: &mut dyn Scorer, reader: &SegmentReader) -> u32 {
    match reader.alive_bitset() {
        Some(alive) => scorer.count(alive),
        None => scorer.count_including_deleted(),
    }
}

/// Calls `take` with each block of a posting list. `postings` is a decoder that is reused between lists.
pub(crate) fn each_list_block(
    index: &InvertedIndexReader,
    list: &TermInfo,
    postings: &mut Option<BlockSegmentPostings>,
    mut take: impl FnMut(&[DocId]),
) -> tantivy::Result<()> {
    let postings = match postings {
        Some(postings) => {
            index.reset_block_postings_from_terminfo(list, postings)?;
            postings
        }
        None => postings.insert(index.read_block_postings_from_terminfo(list, IndexRecordOption::Basic)?),
    };
    while !postings.docs().is_empty() {
        take(postings.docs());
        postings.advance();
    }
    Ok(())
}

/// The walk of a [`DocSet`] that stands on `doc`, and goes to its first document from another on by `settle`.
macro_rules! settles {
    () => {
        fn advance(&mut self) -> tantivy::DocId {
            match self.doc {
                tantivy::TERMINATED => tantivy::TERMINATED,
                doc => self.settle(doc + 1),
            }
        }

        fn seek(&mut self, target: tantivy::DocId) -> tantivy::DocId {
            if self.doc < target {
                self.settle(target)
            } else {
                self.doc
            }
        }

        fn doc(&self) -> tantivy::DocId {
            self.doc
        }
    };
}

pub(crate) use settles;
