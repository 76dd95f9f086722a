//! What scores of texts depend on besides the document: how many documents have a text, how long texts are, and how many
//! have a word. All count documents that aren't deleted, so neither deletes nor merges change a score: two indexes with the
//! same documents score alike, however their segments lie.
//!
//! Lengths are those of the code of one byte that a segment keeps (exact up to 40 tokens). Each segment's sum is computed
//! once; what its deleted documents take away, once after each change of them. Texts lie on the documents of their
//! field's scope alone, so nested objects and their parents don't distort each other's statistics.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tantivy::index::SegmentId;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{BitSet, DocId, Searcher, SegmentReader, Term};

use crate::bounds::{ALLOCATION_BYTES, BoundsCache};
use crate::doc_walk::{each_list_block, go_to};

/// Counts of words that are kept, and bytes of the words.
const MAX_WORDS: usize = 65_536;
const MAX_WORD_BYTES: usize = 8 * 1024 * 1024;
/// Looking a deleted document up in a word's list costs as much as walking so many entries.
const ENTRIES_PER_LOOKUP: usize = 32;

/// The texts of one field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    /// Documents with at least one token.
    pub(crate) documents: u64,
    /// Tokens of all.
    pub(crate) tokens: u64,
}

/// A segment with the number of its deleted documents, which only grows.
type State = (SegmentId, u32);

/// Statistics of the documents and words of an index for BM25 scores, kept by segment.
#[derive(Debug, Default)]
pub(crate) struct CollectionStatistics {
    /// The texts that deleted documents take away; under none of them, those of the whole segment.
    texts: Mutex<HashMap<(State, Field), Texts>>,
    deleted: Mutex<HashMap<State, Arc<Vec<DocId>>>>,
    words: Mutex<Words>,
    /// How high documents can score for words.
    pub(crate) bounds: BoundsCache,
}

/// How many documents have a word.
#[derive(Debug, Default)]
struct Words {
    counts: HashMap<(State, Term), u64>,
    bytes: usize,
}

impl Words {
    /// Keeps a count; forgets all others where they are too many.
    fn keep(&mut self, key: (State, Term), count: u64) {
        let bytes = key.1.len_bytes();
        if self.counts.len() >= MAX_WORDS || self.bytes + bytes > MAX_WORD_BYTES {
            *self = Self::default();
        }
        if self.counts.insert(key, count).is_none() {
            self.bytes += bytes;
        }
    }

    /// Bytes of words and counts: two places of a table that is half full at least, and an allocation.
    fn bytes_in_all(&self) -> usize {
        self.bytes + self.counts.len() * (2 * size_of::<((State, Term), u64)>() + ALLOCATION_BYTES)
    }

    fn retain(&mut self, current: impl Fn(&State) -> bool) {
        self.counts.retain(|(state, _), _| current(state));
        self.bytes = self.counts.keys().map(|(_, word)| word.len_bytes()).sum();
    }
}

impl CollectionStatistics {
    pub(crate) fn texts(&self, searcher: &Searcher, field: Field) -> tantivy::Result<Texts> {
        let mut all = Texts::default();
        for reader in searcher.segment_readers() {
            let whole = self.texts_of(reader, 0, field)?;
            all.documents += whole.documents;
            all.tokens += whole.tokens;
            if reader.has_deletes() {
                let gone = self.texts_of(reader, reader.num_deleted_docs(), field)?;
                all.documents -= gone.documents;
                all.tokens -= gone.tokens;
            }
        }
        Ok(all)
    }

    /// How many documents have a word.
    pub(crate) fn having(&self, searcher: &Searcher, word: &Term) -> tantivy::Result<u64> {
        let counts = searcher.segment_readers().iter();
        let counts = counts.map(|reader| self.having_in(reader, word));
        counts.sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        let deleted = self.deleted.lock();
        let deleted = deleted.values().map(|deleted| size_of_val(deleted.as_slice()));
        deleted.sum::<usize>() + self.words.lock().bytes_in_all() + self.bounds.bytes()
    }

    /// Forgets segments that are gone, and what more deletes have made untrue.
    pub(crate) fn retain(&self, readers: &[SegmentReader]) {
        let states: HashMap<SegmentId, u32> = readers.iter().map(state).collect();
        let current = |(segment, deleted): &State| states.get(segment) == Some(deleted);
        self.texts
            .lock()
            .retain(|(state, _), _| current(state) || state.1 == 0 && states.contains_key(&state.0));
        self.deleted.lock().retain(|state, _| current(state));
        self.words.lock().retain(current);
        self.bounds.retain(|segment| states.contains_key(segment));
    }

    fn texts_of(&self, reader: &SegmentReader, deleted: u32, field: Field) -> tantivy::Result<Texts> {
        let key = ((reader.segment_id(), deleted), field);
        if let Some(texts) = self.texts.lock().get(&key) {
            return Ok(*texts);
        }
        let mut texts = Texts::default();
        if let Some(lengths) = reader.fieldnorms_readers().get_field(field)? {
            let mut add = |doc| {
                let length = lengths.fieldnorm(doc);
                texts.documents += u64::from(length > 0);
                texts.tokens += u64::from(length);
            };
            match deleted {
                0 => (0..lengths.num_docs()).for_each(add),
                _ => self.deleted(reader).iter().for_each(|doc| add(*doc)),
            }
        }
        self.texts.lock().insert(key, texts);
        Ok(texts)
    }

    fn having_in(&self, reader: &SegmentReader, word: &Term) -> tantivy::Result<u64> {
        let index = reader.inverted_index(word.field())?;
        let Some(info) = index.get_term_info(word)? else {
            return Ok(0);
        };
        let Some(alive) = reader.alive_bitset() else {
            return Ok(u64::from(info.doc_freq));
        };
        let key = (state(reader), word.clone());
        if let Some(count) = self.words.lock().counts.get(&key) {
            return Ok(*count);
        }
        let deleted = self.deleted(reader);
        let having = info.doc_freq as usize;
        let gone = if deleted.len() < having / ENTRIES_PER_LOOKUP {
            let mut postings = index.read_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
            let having = deleted.iter().filter(|doc| go_to(&mut postings, **doc) == **doc);
            having.count()
        } else {
            let mut gone = 0;
            each_list_block(&index, &info, &mut None, |docs| {
                gone += docs.iter().filter(|doc| alive.is_deleted(**doc)).count();
            })?;
            gone
        };
        let count = having.saturating_sub(gone) as u64;
        self.words.lock().keep(key, count);
        Ok(count)
    }

    fn deleted(&self, reader: &SegmentReader) -> Arc<Vec<DocId>> {
        let key = state(reader);
        if let Some(deleted) = self.deleted.lock().get(&key) {
            return Arc::clone(deleted);
        }
        let mut deleted = Vec::with_capacity(reader.num_deleted_docs() as usize);
        if let Some(alive) = reader.alive_bitset() {
            let mut bits = BitSet::with_max_value_and_full(reader.max_doc());
            bits.intersect_update(alive.bitset());
            for bucket in 0..reader.max_doc().div_ceil(u64::BITS) {
                let mut missing = !u64::from_le_bytes(bits.tinyset(bucket).into_bytes());
                while missing != 0 {
                    let doc = bucket * u64::BITS + missing.trailing_zeros();
                    if doc < reader.max_doc() {
                        deleted.push(doc);
                    }
                    missing &= missing - 1;
                }
            }
        }
        let deleted = Arc::new(deleted);
        self.deleted.lock().insert(key, Arc::clone(&deleted));
        deleted
    }
}

fn state(reader: &SegmentReader) -> State {
    (reader.segment_id(), reader.num_deleted_docs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_words_are_kept_up_to_so_many_and_so_many_bytes() {
        let state = (SegmentId::generate_random(), 0);
        let field = Field::from_field_id(0);
        for (words, length) in [(2 * MAX_WORDS, 8), (300, 60_000)] {
            let mut kept = Words::default();
            for nth in 0..words {
                let word = Term::from_field_text(field, &format!("{nth:0length$}"));
                kept.keep((state, word.clone()), 1);
                kept.keep((state, word.clone()), 2);
                assert_eq!(kept.counts.get(&(state, word)), Some(&2));
                assert!(kept.counts.len() <= MAX_WORDS && kept.bytes <= MAX_WORD_BYTES);
            }
            let bytes: usize = kept.counts.keys().map(|(_, word)| word.len_bytes()).sum();
            assert_eq!((kept.bytes, bytes > 0), (bytes, true));
            kept.retain(|_| false);
            assert_eq!((kept.bytes, kept.counts.len()), (0, 0));
        }
    }
}
