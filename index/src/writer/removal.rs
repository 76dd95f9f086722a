//! The removal of a document by its key, as the search library keeps it until all segments have applied it.
//!
//! Merges hold all removals since they began: there may be millions. The library's own, of a term, are ready to score and
//! take some 1,300 bytes each; these take a tenth, and are counted.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tantivy::query::{EnableScoring, Query, Scorer, Weight};
use tantivy::schema::Field;
use tantivy::{DocId, Result, Score, SegmentReader};

use crate::allowance::Allowance;
use crate::doc_walk::each_list_block;
use crate::held_bytes::HeldBytes;
use crate::plan::DocSetBuilder;
use crate::unexplained::unexplained;

/// Bytes that a removal takes beside its key: itself, its counts, and its place in the library's queue.
const REMOVAL_BYTES: usize = 128;

#[derive(Clone, Debug)]
pub(super) struct Removal(Arc<Key>);

#[derive(Debug)]
struct Key {
    field: Field,
    key: Box<[u8]>,
    _held: HeldBytes,
}

impl Removal {
    /// Of the documents with this key in a field; the bytes that it takes are counted in `held`.
    pub(super) fn new(field: Field, key: &[u8], held: &Arc<AtomicUsize>) -> Self {
        Self(Arc::new(Key {
            field,
            key: key.into(),
            _held: HeldBytes::new(key.len() + REMOVAL_BYTES, held),
        }))
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.key.len() + REMOVAL_BYTES
    }

    /// Gives the documents with the key to `take`, a block of postings at a time.
    fn each_block(&self, reader: &SegmentReader, take: impl FnMut(&[DocId])) -> Result<()> {
        let index = reader.inverted_index(self.0.field)?;
        let Some(term) = index.terms().get(&self.0.key)? else {
            return Ok(());
        };
        each_list_block(&index, &term, &mut None, take)
    }
}

impl Query for Removal {
    fn weight(&self, _: EnableScoring<'_>) -> Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for Removal {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> Result<Box<dyn Scorer>> {
        let mut removed = DocSetBuilder::new(reader.max_doc(), &Allowance::unbounded());
        self.each_block(reader, |docs| docs.iter().for_each(|doc| removed.insert(*doc)))?;
        Ok(removed.into_scorer(boost)?)
    }

    unexplained!();

    fn for_each_no_score(&self, reader: &SegmentReader, callback: &mut dyn FnMut(&[DocId])) -> Result<()> {
        self.each_block(reader, callback)
    }
}
