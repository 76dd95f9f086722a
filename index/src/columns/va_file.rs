//! A VA file: a byte for each document of a column, which tells about where its value lies.
//!
//! Filters look at the values of documents that lie far apart: each costs a wait for memory, and eight bytes of a cache
//! line are used. A byte a document is read eight times closer together, needs no look-up of which documents have a
//! value, and mostly tells whether the value is in a range. Only where it lies at an end of the range is the value read.
//!
//! The codes are ranks among at most 254 values that part a sample of the column evenly, as in a VA-file (Weber, Schek,
//! Blott: "A quantitative analysis and performance study for similarity-search methods", VLDB 1998).

use std::ops::RangeInclusive;

use tantivy::columnar::{Column, ColumnIndex};
use tantivy::{DocId, Result};

use super::each_value;
use crate::execution::Execution;

/// The code of documents without a value.
const NO_VALUE: u8 = 0;
/// VaFile of documents with one: 1 to this.
const MAX_CODE: usize = u8::MAX as usize;
/// Values that are looked at to choose the codes.
const SAMPLE: u32 = 16_384;
const VALUES_PER_CHECK: u32 = 65_536;

/// The codes of a column of which each document has at most one value.
#[derive(Debug)]
pub(crate) struct VaFile {
    /// By document.
    codes: Vec<u8>,
    /// Code `n` stands for the values from the `n - 1`st on, up to the next; the first for lower ones, too.
    lowest: Vec<u64>,
    /// The lowest and the highest value that has each code.
    spans: Vec<(u64, u64)>,
}

/// What codes tell of a range of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeRange {
    /// The codes of which values may lie in the range.
    first: u8,
    last: u8,
    /// Those of which all do; none where the first lies behind the last.
    first_whole: u16,
    last_whole: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    No,
    /// Its code doesn't tell.
    Perhaps,
    Yes,
}

impl VaFile {
    /// Reads the whole column; `None` when documents may have several values.
    pub(super) fn new(column: &Column<u64>, max_doc: DocId, run: &Execution) -> Result<Option<Self>> {
        if matches!(column.index, ColumnIndex::Multivalued(_)) {
            return Ok(None);
        }
        let mut made = Self {
            codes: vec![NO_VALUE; max_doc as usize],
            lowest: lowest_of_codes(column),
            spans: vec![(u64::MAX, 0); MAX_CODE + 1],
        };
        let mut docs = match &column.index {
            ColumnIndex::Optional(index) => Some(index.iter_non_null_docs()),
            _ => None,
        };
        let values = column.values.num_vals();
        for from in (0..values).step_by(VALUES_PER_CHECK as usize) {
            run.check_inside()?;
            let rows = from..from.saturating_add(VALUES_PER_CHECK).min(values);
            each_value(column, rows, |row, value| {
                // Where every document has a value, its row is its number.
                let doc = docs.as_mut().map_or(Some(row), Iterator::next);
                if let Some(doc) = doc {
                    made.take(doc, value);
                }
            });
        }
        Ok(Some(made))
    }

    fn take(&mut self, doc: DocId, value: u64) {
        let code = self.code_of(value);
        if let Some(of_doc) = self.codes.get_mut(doc as usize) {
            *of_doc = code;
        }
        if let Some((lowest, highest)) = self.spans.get_mut(usize::from(code)) {
            *lowest = value.min(*lowest);
            *highest = value.max(*highest);
        }
    }

    fn code_of(&self, value: u64) -> u8 {
        let code = self.lowest.partition_point(|lowest| *lowest <= value);
        code.clamp(1, MAX_CODE) as u8
    }

    pub(super) fn bytes(&self) -> usize {
        self.codes.len() + size_of_val(self.lowest.as_slice()) + size_of_val(self.spans.as_slice())
    }

    pub(crate) fn range(&self, values: &RangeInclusive<u64>) -> CodeRange {
        let (first, last) = (self.code_of(*values.start()), self.code_of(*values.end()));
        let span = |code: u8| {
            let span = self.spans.get(usize::from(code));
            span.copied().unwrap_or((0, u64::MAX))
        };
        let from_its_lowest = *values.start() <= span(first).0;
        let to_its_highest = *values.end() >= span(last).1;
        CodeRange {
            first,
            last,
            first_whole: u16::from(first) + u16::from(!from_its_lowest),
            last_whole: u16::from(last) - u16::from(!to_its_highest),
        }
    }

    #[inline]
    pub(crate) fn within(&self, doc: DocId, range: CodeRange) -> Within {
        let code = self.codes.get(doc as usize).copied().unwrap_or(NO_VALUE);
        if code == NO_VALUE || code < range.first || code > range.last {
            Within::No
        } else if (range.first_whole..=range.last_whole).contains(&u16::from(code)) {
            Within::Yes
        } else {
            Within::Perhaps
        }
    }
}

/// The values at which codes begin, ascending, each once.
fn lowest_of_codes(column: &Column<u64>) -> Vec<u64> {
    let values = column.values.num_vals();
    let count = values.min(SAMPLE);
    let row = |nth: u32| (u64::from(nth) * u64::from(values) / u64::from(count.max(1))) as u32;
    let mut sample: Vec<u64> = (0..count).map(|nth| column.values.get_val(row(nth))).collect();
    sample.sort_unstable();
    let mut lowest = sample.clone();
    lowest.dedup();
    if lowest.len() >= MAX_CODE {
        let of_code = |code: usize| sample.get(code * sample.len() / (MAX_CODE - 1)).copied();
        lowest = (0..MAX_CODE - 1).filter_map(of_code).collect();
        lowest.dedup();
    }
    lowest
}

#[cfg(test)]
mod tests;
