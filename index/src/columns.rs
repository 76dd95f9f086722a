//! What searches keep of the columns of segments, so that none has to find it out again: the columns themselves, opened;
//! the lowest and highest value of each block of documents; the strings of a dictionary, one behind the other; the cells
//! of points.
//!
//! A segment's columns never change, deletes included, so all of it is good for as long as the segment lives. Everything
//! is made when it is first needed. Above [`MAX_COLUMN_CACHE_BYTES`] all of it is let go and made again.

mod blocks;
mod cells;
mod dictionary;
mod dictionary_restarts;
mod strings;
mod va_file;

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use h3o::Resolution;
use memchr::memmem::Finder;
use parking_lot::RwLock;
use tantivy::columnar::{BytesColumn, Cardinality, Column, ColumnType};
use tantivy::index::SegmentId;
use tantivy::{DocId, Result, SegmentReader};

pub(crate) use blocks::{ColumnBlock, ColumnBlocks, Cover, DOCS_PER_BLOCK, behind_block};
pub(crate) use cells::{GeoCells, cell};
pub(crate) use va_file::{VaFile, Within};

use dictionary_restarts::DictionaryRestarts;
use strings::{Parts, Strings};

use crate::execution::Execution;
use crate::held_bytes::HeldBytes;
use crate::layout::string_column;
use crate::limits::{MAX_COLUMN_CACHE_BYTES, MAX_KEPT_STRINGS_BYTES};
use crate::points::Points;

/// Documents of a segment from which on its columns get codes: the values of fewer stay in the processor's caches.
const MIN_CODED_DOCS: u32 = 65_536;
/// Times that the value of each document was asked for, on average, when its code pays: it takes as long to make.
const LOOKS_PER_CODE: u64 = 2;

/// The columns of all segments that searches have looked at.
#[derive(Default)]
pub(crate) struct ColumnCache {
    segments: RwLock<HashMap<SegmentId, Arc<SegmentColumns>>>,
    held: Arc<AtomicUsize>,
}

/// The columns of one segment, by path. Absent ones are remembered, too.
#[derive(Default)]
struct SegmentColumns {
    numbers: RwLock<HashMap<String, Option<Arc<NumberColumn>>>>,
    strings: RwLock<HashMap<String, Option<Arc<StringColumn>>>>,
    cells: RwLock<HashMap<(String, Resolution), Arc<GeoCells>>>,
}

impl ColumnCache {
    /// A column of numbers; `None` when no document of the segment has a value.
    pub(crate) fn numbers(&self, reader: &SegmentReader, path: &str) -> Result<Option<Arc<NumberColumn>>> {
        use ColumnType::{Bool, F64, I64, U64};
        let types = [I64, U64, F64, Bool];
        known(&self.segment(reader).numbers, path, || {
            let opened = reader.fast_fields().u64_lenient_for_type(Some(&types), path)?;
            let column = opened.map(|(column, _)| column);
            let column = column.filter(|column| column.values.num_vals() > 0);
            Ok(column.map(|column| NumberColumn::new(column, reader.max_doc(), &self.held)))
        })
    }

    /// A column of strings; `None` when no document of the segment has a value.
    pub(crate) fn strings(&self, reader: &SegmentReader, path: &str) -> Result<Option<Arc<StringColumn>>> {
        known(&self.segment(reader).strings, path, || {
            let column = string_column(reader, path)?;
            let column = column.filter(|column| column.ords().values.num_vals() > 0);
            Ok(column.map(|column| StringColumn::new(column, reader.max_doc(), &self.held)))
        })
    }

    /// The cells of one resolution that `points`, those of the field at `path`, lie in; `None` when there is no room to keep them.
    pub(crate) fn cells(
        &self,
        reader: &SegmentReader,
        path: &str,
        points: &Points,
        resolution: Resolution,
    ) -> Option<Arc<GeoCells>> {
        let segment = self.segment(reader);
        let key = (path.to_owned(), resolution);
        if let Some(cells) = segment.cells.read().get(&key) {
            return Some(Arc::clone(cells));
        }
        let cells = Arc::new(GeoCells::new(points.clone(), resolution, &self.held)?);
        segment.cells.write().insert(key, Arc::clone(&cells));
        Some(cells)
    }

    /// Bytes that are kept, beside the columns themselves.
    pub(crate) fn bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn segment(&self, reader: &SegmentReader) -> Arc<SegmentColumns> {
        let id = reader.segment_id();
        if self.held.load(Ordering::Relaxed) > MAX_COLUMN_CACHE_BYTES {
            self.segments.write().clear();
        } else if let Some(segment) = self.segments.read().get(&id) {
            return Arc::clone(segment);
        }
        Arc::clone(self.segments.write().entry(id).or_default())
    }

    pub(crate) fn retain(&self, readers: &[SegmentReader]) {
        let lives = |id: &SegmentId| readers.iter().any(|reader| reader.segment_id() == *id);
        self.segments.write().retain(|id, _| lives(id));
    }
}

/// What is known at a path, made if it isn't.
fn known<T>(
    all: &RwLock<HashMap<String, Option<Arc<T>>>>,
    path: &str,
    make: impl FnOnce() -> Result<Option<T>>,
) -> Result<Option<Arc<T>>> {
    if let Some(known) = all.read().get(path) {
        return Ok(known.clone());
    }
    let made = make()?.map(Arc::new);
    all.write().insert(path.to_owned(), made.clone());
    Ok(made)
}

/// What is in a cell, made if nothing is; another search may be quicker.
pub(crate) fn made<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    match cell.get() {
        Some(made) => Ok(made),
        None => {
            let made = make()?;
            Ok(cell.get_or_init(|| made))
        }
    }
}

/// A column of numbers, as numbers whose order is the values', or of the ordinals of strings. There is a value at least.
pub(crate) struct NumberColumn {
    pub(crate) column: Column<u64>,
    max_doc: u32,
    blocks: OnceLock<(ColumnBlocks, HeldBytes)>,
    /// Documents whose values were asked for one by one.
    asked: AtomicU64,
    codes: OnceLock<Option<(VaFile, HeldBytes)>>,
    held: Arc<AtomicUsize>,
}

impl NumberColumn {
    fn new(column: Column<u64>, max_doc: u32, held: &Arc<AtomicUsize>) -> Self {
        Self {
            column,
            max_doc,
            blocks: OnceLock::new(),
            asked: AtomicU64::new(0),
            codes: OnceLock::new(),
            held: Arc::clone(held),
        }
    }

    /// The codes of the column's values, once as many documents were asked for one by one as make reading the whole
    /// column worth while; `docs` more are.
    pub(crate) fn codes(&self, docs: usize, run: &Execution) -> Result<Option<&VaFile>> {
        if self.codes.get().is_none() {
            if self.max_doc < MIN_CODED_DOCS {
                return Ok(None);
            }
            let asked = self.asked.fetch_add(docs as u64, Ordering::Relaxed);
            if asked < u64::from(self.max_doc) * LOOKS_PER_CODE {
                return Ok(None);
            }
        }
        let codes = made(&self.codes, || {
            let codes = VaFile::new(&self.column, self.max_doc, run)?;
            Ok(codes.map(|codes| {
                let held = HeldBytes::new(codes.bytes(), &self.held);
                (codes, held)
            }))
        })?;
        Ok(codes.as_ref().map(|(codes, _)| codes))
    }

    /// Puts the values of some documents, and whose they are, behind those that are there.
    pub(crate) fn read(&self, docs: Range<DocId>, whose: &mut Vec<DocId>, values: &mut Vec<u64>) {
        if self.column.get_cardinality() == Cardinality::Full {
            each_value(&self.column, docs, |doc, value| {
                whose.push(doc);
                values.push(value);
            });
            return;
        }
        for doc in docs {
            for value in self.column.values_for_doc(doc) {
                whose.push(doc);
                values.push(value);
            }
        }
    }

    /// The column's blocks. The first call reads the whole column.
    pub(crate) fn blocks(&self, run: &Execution) -> Result<&ColumnBlocks> {
        let (blocks, _) = made(&self.blocks, || {
            let blocks = ColumnBlocks::new(&self.column, self.max_doc, run)?;
            let held = HeldBytes::new(blocks.bytes(), &self.held);
            Ok((blocks, held))
        })?;
        Ok(blocks)
    }
}

/// Values that are read at once.
const VALUES_PER_READ: usize = 512;

/// Goes through the values of some rows of a column, in order.
fn each_value(column: &Column<u64>, rows: Range<u32>, mut take: impl FnMut(u32, u64)) {
    let mut buffer = [0; VALUES_PER_READ];
    let mut row = rows.start;
    while row < rows.end {
        let count = ((rows.end - row) as usize).min(VALUES_PER_READ);
        let Some(values) = buffer.get_mut(..count) else {
            break;
        };
        column.values.get_range(u64::from(row), values);
        for value in values {
            take(row, *value);
            row += 1;
        }
    }
}

pub(crate) struct StringColumn {
    pub(crate) column: BytesColumn,
    pub(crate) ordinals: Arc<NumberColumn>,
    /// All of them, part by part, if they are kept.
    kept: OnceLock<(Vec<Strings>, HeldBytes)>,
    restarts: RwLock<(DictionaryRestarts, HeldBytes)>,
    held: Arc<AtomicUsize>,
}

impl StringColumn {
    fn new(column: BytesColumn, max_doc: u32, held: &Arc<AtomicUsize>) -> Self {
        let ordinals = Arc::new(NumberColumn::new(column.ords().clone(), max_doc, held));
        Self {
            column,
            ordinals,
            kept: OnceLock::new(),
            restarts: RwLock::new((DictionaryRestarts::default(), HeldBytes::new(0, held))),
            held: Arc::clone(held),
        }
    }

    /// Gives the strings of ordinals, which ascend, in that order.
    pub(crate) fn each_string(&self, ordinals: &[u64], mut take: impl FnMut(&[u8])) -> io::Result<()> {
        // Whoever comes while another goes on with them takes what there is.
        let ended = self.restarts.read().0.ended;
        if let Some(mut restarts) = (!ended).then(|| self.restarts.try_write()).flatten() {
            let (restarts, held) = &mut *restarts;
            held.grow(restarts.want(ordinals.len(), &self.column)?);
        }
        let rest = {
            let (restarts, _) = &*self.restarts.read();
            let known = ordinals.partition_point(|ordinal| *ordinal < restarts.known());
            let (known, unknown) = ordinals.split_at(known);
            let mut string = Vec::new();
            for ordinal in known {
                restarts.get(*ordinal, &mut string)?;
                take(&string);
            }
            unknown
        };
        // Each block of the dictionary is decoded once.
        self.column.dictionary().sorted_ords_to_term_cb(rest, take)?;
        Ok(())
    }

    /// Goes through the strings with ordinals in `among` that have `literal` in them and that `fits`, in order. None of
    /// them is below `from`. They are decoded, and kept where there is room.
    pub(crate) fn matching(
        &self,
        among: Range<u64>,
        from: Option<&[u8]>,
        literal: &[u8],
        run: &Execution,
        fits: impl Fn(&[u8]) -> bool,
        mut found: impl FnMut(u64, &[u8]),
    ) -> Result<()> {
        if among.is_empty() {
            // What begins behind the last string has no block to begin at.
            return Ok(());
        }
        let literal = Finder::new(literal);
        if let Some((kept, _)) = self.kept.get() {
            let mut kept = kept.iter();
            return kept.try_for_each(|part| part.matching(&among, &literal, run, &fits, &mut found));
        }
        let dictionary = self.column.dictionary();
        let bytes = dictionary.sstable_slice.read_bytes()?;
        let block = from.and_then(|from| dictionary.sstable_index.get_block_with_key(from));
        let (begin, ordinal) = block.map_or((0, 0), |block| (block.byte_range.start, block.first_ordinal));
        let mut parts = Parts::new(bytes.get(begin..).unwrap_or_default(), ordinal);
        let terms = self.column.num_terms();
        // Decoded they take their starts, the bytes between them and what they have in common more.
        let more = terms.saturating_mul(size_of::<u32>() + 1);
        let keeps = among == (0..terms as u64) && self.has_room(bytes.len().saturating_add(more));
        let mut keeping = keeps.then(|| (Vec::new(), HeldBytes::new(0, &self.held)));
        while let Some(part) = parts.next(among.end)? {
            part.matching(&among, &literal, run, &fits, &mut found)?;
            keeping = keeping.filter(|_| self.has_room(part.bytes()));
            if let Some((kept, held)) = &mut keeping {
                held.grow(part.bytes());
                kept.push(part.clone());
            }
        }
        if let Some(all) = keeping {
            // Another search may have been quicker.
            drop(self.kept.set(all));
        }
        Ok(())
    }

    /// Whether so many bytes of strings may be kept more.
    fn has_room(&self, bytes: usize) -> bool {
        self.held.load(Ordering::Relaxed).saturating_add(bytes) <= MAX_KEPT_STRINGS_BYTES
    }
}

#[cfg(test)]
mod testing;
