//! The documents of a scorer, a block at a time.

use tantivy::query::Scorer;
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, SegmentReader};

use crate::pace::Pace;
use crate::run::Run;

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
