//! How doc sets go from document to document.

use tantivy::query::Scorer;
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, SegmentReader};

use crate::pace::Pace;
use crate::run::Run;

/// Where a doc set stands once it isn't before `target`.
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

/// Gives the documents of a scorer that aren't deleted to `take`, a block at a time; how many there are.
pub(crate) fn each_block(
    scorer: &mut dyn Scorer,
    reader: &SegmentReader,
    mut pace: Pace<&Run>,
    mut take: impl FnMut(&[DocId]) -> tantivy::Result<()>,
) -> tantivy::Result<u64> {
    let mut buffer = [0; COLLECT_BLOCK_BUFFER_LEN];
    let (mut alive, mut matches) = (Vec::new(), 0);
    loop {
        let filled = scorer.fill_buffer(&mut buffer);
        let mut docs = buffer.get(..filled).unwrap_or_default();
        if reader.has_deletes() {
            alive.clear();
            alive.extend(docs.iter().copied().filter(|doc| !reader.is_deleted(*doc)));
            docs = &alive;
        }
        matches += docs.len() as u64;
        take(docs)?;
        if filled < buffer.len() {
            return Ok(matches);
        }
        pace.step(filled as u32)?;
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
