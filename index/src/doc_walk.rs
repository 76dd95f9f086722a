//! How doc sets go from document to document.

use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, SegmentReader};

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
