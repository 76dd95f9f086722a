//! The lowest and the highest value of each block of documents of a column.

use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use tantivy::DocId;
use tantivy::columnar::{Column, ColumnIndex};

use super::each_value;
use crate::execution::Execution;

/// Documents of a block. Small enough that looking at one more costs next to nothing, large enough that a segment has few.
pub(crate) const DOCS_PER_BLOCK: DocId = 512;
/// The first document behind the block of a document.
pub(crate) fn behind_block(doc: DocId) -> DocId {
    (doc / DOCS_PER_BLOCK + 1).saturating_mul(DOCS_PER_BLOCK)
}

const BLOCKS_PER_CHECK: usize = 256;
/// The part of all values' width up to which blocks of this width, on average, lie in order.
const ORDERED_WIDTH: f64 = 0.25;

/// What is known of the values of a block's documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnBlock {
    pub(crate) lowest: u64,
    /// Below the lowest when no document has a value.
    pub(crate) highest: u64,
    /// Whether each document has exactly one value.
    pub(crate) full: bool,
}

const NO_DOCUMENTS: ColumnBlock = ColumnBlock {
    lowest: u64::MAX,
    highest: 0,
    full: false,
};

/// How the values of a block lie to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    /// No document has a value in the range.
    None,
    /// Some may have one.
    Some,
    /// Every document has one.
    All,
}

impl ColumnBlock {
    pub(crate) fn is_empty(&self) -> bool {
        self.lowest > self.highest
    }

    pub(crate) fn cover(&self, range: &RangeInclusive<u64>) -> Cover {
        if self.lowest > *range.end() || self.highest < *range.start() || self.is_empty() {
            Cover::None
        } else if self.full && range.contains(&self.lowest) && range.contains(&self.highest) {
            Cover::All
        } else {
            Cover::Some
        }
    }

    /// The part of the values that lie in the range, if they are spread evenly.
    fn share(&self, range: &RangeInclusive<u64>) -> f64 {
        match self.cover(range) {
            Cover::None => 0.0,
            Cover::All => 1.0,
            Cover::Some => {
                let (from, to) = (self.lowest.max(*range.start()), self.highest.min(*range.end()));
                ((to - from) as f64 + 1.0) / ((self.highest - self.lowest) as f64 + 1.0)
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct ColumnBlocks {
    blocks: Vec<ColumnBlock>,
    max_doc: DocId,
    /// Whether values mostly lie by document: most blocks have a small part of the values between all lowest and highest.
    pub(crate) ordered: bool,
    /// The numbers of the blocks, the highest value first.
    by_highest: OnceLock<Vec<u32>>,
    /// The numbers of the blocks, the lowest value first.
    by_lowest: OnceLock<Vec<u32>>,
    /// The values between which those of each block and of all behind it lie.
    onwards: OnceLock<Vec<ColumnBlock>>,
}

impl ColumnBlocks {
    pub(super) fn new(column: &Column<u64>, max_doc: DocId, run: &Execution) -> tantivy::Result<Self> {
        let count = max_doc.div_ceil(DOCS_PER_BLOCK);
        let mut blocks = Vec::with_capacity(count as usize);
        for nth in 0..count {
            run.check_nth(nth as usize, BLOCKS_PER_CHECK)?;
            let from = nth * DOCS_PER_BLOCK;
            let to = (from + DOCS_PER_BLOCK).min(max_doc);
            blocks.push(block(column, from..to));
        }
        Ok(Self {
            ordered: ordered(&blocks),
            blocks,
            max_doc,
            by_highest: OnceLock::new(),
            by_lowest: OnceLock::new(),
            onwards: OnceLock::new(),
        })
    }

    /// Bytes that it takes, with the two orders and what lies onwards.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.len() * (2 * size_of::<ColumnBlock>() + 2 * size_of::<u32>())
    }

    pub(crate) fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// The block `nth`; an empty one behind the last.
    pub(crate) fn get(&self, nth: u32) -> ColumnBlock {
        self.blocks.get(nth as usize).copied().unwrap_or(NO_DOCUMENTS)
    }

    /// The block of a document and all behind it, as one.
    pub(crate) fn onwards(&self, doc: DocId) -> ColumnBlock {
        let onwards = self.onwards.get_or_init(|| {
            let mut onwards = self.blocks.clone();
            let mut behind = onwards.last().copied().unwrap_or(NO_DOCUMENTS);
            for block in onwards.iter_mut().rev() {
                block.lowest = block.lowest.min(behind.lowest);
                block.highest = block.highest.max(behind.highest);
                block.full &= behind.full;
                behind = *block;
            }
            onwards
        });
        let at = (doc / DOCS_PER_BLOCK) as usize;
        onwards.get(at).copied().unwrap_or(NO_DOCUMENTS)
    }

    pub(crate) fn of(&self, doc: DocId) -> ColumnBlock {
        self.get(doc / DOCS_PER_BLOCK)
    }

    pub(crate) fn docs(&self, nth: u32) -> Range<DocId> {
        let from = nth.saturating_mul(DOCS_PER_BLOCK).min(self.max_doc);
        from..from.saturating_add(DOCS_PER_BLOCK).min(self.max_doc)
    }

    /// The numbers of the blocks, best value first; those without a value last.
    pub(crate) fn best_first(&self, descending: bool) -> &[u32] {
        let order = if descending {
            &self.by_highest
        } else {
            &self.by_lowest
        };
        order.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.len()).collect();
            order.sort_by_key(|nth| {
                let block = self.get(*nth);
                let best = if descending { !block.highest } else { block.lowest };
                (block.is_empty(), best)
            });
            order
        })
    }

    /// About how many documents have a value in the range, and how many have to be looked at to know which.
    pub(crate) fn estimate(&self, range: &RangeInclusive<u64>) -> (u32, u32) {
        let (mut matches, mut open) = (0.0, 0_u32);
        for block in &self.blocks {
            matches += block.share(range) * f64::from(DOCS_PER_BLOCK);
            if block.cover(range) == Cover::Some {
                open = open.saturating_add(DOCS_PER_BLOCK);
            }
        }
        ((matches as u32).min(self.max_doc), open.min(self.max_doc))
    }
}

/// Whether the values of a block are few of all, on average. An outlier alone doesn't decide: it widens one block.
fn ordered(blocks: &[ColumnBlock]) -> bool {
    let filled = || blocks.iter().filter(|block| !block.is_empty());
    let lowest = filled().map(|block| block.lowest).min().unwrap_or_default();
    let highest = filled().map(|block| block.highest).max().unwrap_or_default();
    let widths: f64 = filled().map(|block| (block.highest - block.lowest) as f64).sum();
    widths < ORDERED_WIDTH * (highest - lowest) as f64 * filled().count() as f64
}

fn block(column: &Column<u64>, docs: Range<DocId>) -> ColumnBlock {
    let rows = match &column.index {
        ColumnIndex::Full => docs.clone(),
        ColumnIndex::Empty { .. } => 0..0,
        ColumnIndex::Optional(_) | ColumnIndex::Multivalued(_) => {
            column.index.docid_range_to_rowids(docs.clone())
        }
    };
    let single = !matches!(column.index, ColumnIndex::Multivalued(_));
    let rows = rows.start..rows.end.min(column.values.num_vals());
    let full = single && rows.len() == docs.len();
    let mut block = ColumnBlock { full, ..NO_DOCUMENTS };
    each_value(column, rows, |_, value| {
        block.lowest = block.lowest.min(value);
        block.highest = block.highest.max(value);
    });
    block
}
