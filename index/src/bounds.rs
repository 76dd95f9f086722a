//! How high the documents of a word can score, block by block: what lets a search for the best pass over most documents.
//!
//! The library keeps such bounds too, but for the average length that a segment had when it was written, so that they can
//! be too low for the average of all segments; and merges may copy them. These are computed from the lists themselves when
//! a word is first searched for its best documents, and kept while the segment lives. They hold the highest density (see
//! [`Norms::density`]) at a reference average; at another average it is at most higher by the averages' ratio.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::SegmentId;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, Term};

use crate::bm25::{Bm25, Norms};

/// Entries of a list that share a bound.
const BLOCK: usize = 128;
/// Bytes that an allocation takes beside what is asked for.
pub(crate) const ALLOCATION_BYTES: usize = 16;
/// Bytes of all bounds that are kept.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The average length that bounds are kept for.
const REFERENCE: Score = 8.0;
/// What single precision may lose on the way.
const SLACK: Score = 1.000_01;

/// The bounds of one word in one segment.
#[derive(Debug)]
pub(crate) struct Bounds {
    blocks: Vec<PostingBlock>,
    highest: Score,
    frequency: u32,
}

/// Consecutive entries of a posting list, and what bounds their scores.
#[derive(Clone, Copy, Debug)]
struct PostingBlock {
    last: DocId,
    density: Score,
    frequency: u32,
    /// The code of the shortest text.
    shortest: u8,
}

impl Bounds {
    fn measure(reader: &SegmentReader, word: &Term) -> tantivy::Result<Self> {
        let (mut blocks, mut highest, mut frequency) = (Vec::new(), 0.0, 0);
        let index = reader.inverted_index(word.field())?;
        let lengths = reader.fieldnorms_readers().get_field(word.field())?;
        let lengths = lengths.unwrap_or_else(|| FieldNormReader::constant(reader.max_doc(), 1));
        let norms = Norms::new(REFERENCE);
        if let Some(mut postings) = index.read_postings(word, IndexRecordOption::WithFreqs)? {
            let mut doc = postings.doc();
            while doc != TERMINATED {
                let mut block = PostingBlock {
                    last: doc,
                    density: 0.0,
                    frequency: 0,
                    shortest: u8::MAX,
                };
                for _ in 0..BLOCK {
                    let times = postings.term_freq();
                    let length = lengths.fieldnorm_id(doc);
                    let density = norms.density(length, times);
                    block.shortest = block.shortest.min(length);
                    block.density = Score::max(block.density, density);
                    block.frequency = block.frequency.max(times);
                    block.last = doc;
                    doc = postings.advance();
                    if doc == TERMINATED {
                        break;
                    }
                }
                highest = Score::max(highest, block.density);
                frequency = frequency.max(block.frequency);
                blocks.push(block);
            }
        }
        blocks.shrink_to_fit();
        Ok(Self {
            blocks,
            highest,
            frequency,
        })
    }
}

/// The bounds that were measured.
#[derive(Debug, Default)]
pub(crate) struct BoundsCache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    words: HashMap<(SegmentId, Term), Arc<Bounds>>,
    bytes: usize,
}

impl BoundsCache {
    pub(crate) fn get(&self, reader: &SegmentReader, word: &Term) -> tantivy::Result<Arc<Bounds>> {
        let key = (reader.segment_id(), word.clone());
        if let Some(bounds) = self.0.lock().words.get(&key) {
            return Ok(Arc::clone(bounds));
        }
        let bounds = Arc::new(Bounds::measure(reader, word)?);
        let mut kept = self.0.lock();
        if kept.bytes + bytes(word, &bounds) > MAX_BYTES {
            *kept = Kept::default();
        }
        if kept.words.insert(key, Arc::clone(&bounds)).is_none() {
            kept.bytes += bytes(word, &bounds);
        }
        Ok(bounds)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.lock().bytes
    }

    pub(crate) fn retain(&self, alive: impl Fn(&SegmentId) -> bool) {
        let mut kept = self.0.lock();
        kept.words.retain(|(segment, _), _| alive(segment));
        let words = kept.words.iter();
        kept.bytes = words.map(|((_, word), bounds)| bytes(word, bounds)).sum();
    }
}

/// Bytes of a word and its bounds: two places of a table that is half full at least, and three allocations.
fn bytes(word: &Term, bounds: &Bounds) -> usize {
    let places = 2 * size_of::<((SegmentId, Term), Arc<Bounds>)>();
    let allocated = word.len_bytes() + size_of::<Bounds>() + size_of_val(bounds.blocks.as_slice());
    places + allocated + 3 * ALLOCATION_BYTES
}

/// The bounds of a word, walked along with its documents.
pub(crate) struct Ceiling {
    bounds: Arc<Bounds>,
    bm25: Bm25,
    /// What densities at the reference average may be higher by.
    factor: Score,
    /// The block, and what its documents score at most.
    at: usize,
    block: Score,
    /// What any document scores at most.
    pub(crate) highest: Score,
}

impl Ceiling {
    /// The ceiling of a word that `bm25` scores for texts of `average` tokens.
    pub(crate) fn new(bounds: Arc<Bounds>, bm25: Bm25, average: Score) -> Self {
        let factor = Score::max(1.0, average / REFERENCE) * SLACK;
        let mut ceiling = Self {
            highest: bm25.at_density(bounds.highest * factor) * SLACK,
            block: 0.0,
            at: 0,
            bounds,
            bm25,
            factor,
        };
        ceiling.block = ceiling.of_block();
        ceiling
    }

    /// What documents from `doc` on score at most, up to the last document to which that applies. Documents may only
    /// grow.
    pub(crate) fn from(&mut self, doc: DocId) -> (Score, DocId) {
        let blocks = self.bounds.blocks.get(self.at..).unwrap_or_default();
        let passed = blocks.iter().take_while(|block| block.last < doc).count();
        if passed > 0 {
            self.at += passed;
            self.block = self.of_block();
        }
        let block = self.bounds.blocks.get(self.at);
        (self.block, block.map_or(TERMINATED, |block| block.last))
    }

    pub(crate) fn shortest(&self) -> u8 {
        let block = self.bounds.blocks.get(self.at);
        block.map_or(u8::MAX, |block| block.shortest)
    }

    /// What documents of the block score at most when their lengths have this code: to the digit, as no step of
    /// [`Bm25::score`] falls with the frequency or rises with the length, rounded or not.
    pub(crate) fn at_length(&self, code: u8) -> Score {
        let block = self.bounds.blocks.get(self.at);
        block.map_or(0.0, |block| self.bm25.score(code, block.frequency))
    }

    /// What any document scores at most when its length has this code.
    pub(crate) fn highest_at_length(&self, code: u8) -> Score {
        self.bm25.score(code, self.bounds.frequency)
    }

    fn of_block(&self) -> Score {
        let block = self.bounds.blocks.get(self.at);
        block.map_or(0.0, |block| {
            self.bm25.at_density(block.density * self.factor) * SLACK
        })
    }
}
