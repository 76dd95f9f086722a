//! The top k documents of each of many groups.

use std::collections::BinaryHeap;
use std::io;

use tantivy::{DocId, Score, SegmentReader};

use super::rank::Rank;
use super::segment::{PreparedOrder, SegmentOrder};
use super::top::{HeapEntry, Winner, keep};

/// The best documents of each group on one segment.
pub(crate) struct PerGroupTopK<'a> {
    prepared: &'a PreparedOrder<'a>,
    reader: SegmentReader,
    order: SegmentOrder<'a>,
    size: usize,
    /// What `order` stands on.
    on: Option<DocId>,
    /// The last of the best of each group on top.
    heaps: Vec<BinaryHeap<HeapEntry>>,
    /// Documents in all heaps.
    pub(crate) entries: usize,
}

impl<'a> PerGroupTopK<'a> {
    pub(crate) fn open(
        prepared: &'a PreparedOrder<'a>,
        reader: &SegmentReader,
        size: usize,
    ) -> tantivy::Result<Self> {
        Ok(Self {
            prepared,
            reader: reader.clone(),
            order: prepared.open(reader, true)?,
            size,
            on: None,
            heaps: Vec::new(),
            entries: 0,
        })
    }

    /// Bytes of one of them, in a list that doubles.
    pub(crate) fn entry_bytes(&self) -> usize {
        3 * size_of::<HeapEntry>() / 2 + self.order.rank_bytes()
    }

    /// Looks at a document for a group. Documents come in ascending order most often; those that are in many groups come again.
    pub(crate) fn offer(&mut self, doc: DocId, score: Score, group: u32) -> tantivy::Result<()> {
        let group = group as usize;
        if self.on.is_some_and(|on| doc < on) && !self.order.is_random_access() {
            self.order = self.prepared.open(&self.reader, true)?;
        }
        if self.on != Some(doc) {
            self.order.move_to(doc, score);
            self.on = Some(doc);
        }
        if self.heaps.len() <= group {
            self.heaps.resize_with(group + 1, BinaryHeap::new);
        }
        if let Some(heap) = self.heaps.get_mut(group) {
            self.entries += usize::from(keep(heap, &mut self.order, self.size, score));
        }
        Ok(())
    }

    /// The documents of each group, in no order.
    pub(crate) fn into_winners(self) -> io::Result<Vec<Vec<Winner>>> {
        let counts: Vec<usize> = self.heaps.iter().map(BinaryHeap::len).collect();
        let entries: Vec<HeapEntry> = self.heaps.into_iter().flat_map(BinaryHeap::into_vec).collect();
        let ranks: Vec<&[Rank]> = entries.iter().map(|entry| entry.ranks.as_slice()).collect();
        let sort_values = self.order.sort_values(&ranks)?;
        let scores = entries.iter().map(HeapEntry::score);
        let mut winners = sort_values.into_iter().zip(scores).map(Winner::new);
        let counts = counts.into_iter();
        Ok(counts
            .map(|count| winners.by_ref().take(count).collect())
            .collect())
    }
}
