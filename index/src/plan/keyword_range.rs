//! Documents with a KEYWORD between two others.
//!
//! The column's dictionary tells how many different values the range has. A few are looked up; the documents of many are
//! told by the ordinals that they have in the column. Either way the work is bounded by the segment's size, not by the
//! number of values.

use std::ops::{Bound, Range};
use std::sync::Arc;

use tantivy::SegmentReader;
use tantivy::columnar::BytesColumn;

use super::dictionary_walk::DictionaryWalk;
use super::selection::{self, Select, Selected};

/// Values up to which looking each up beats reading the column.
const FEW_VALUES: u64 = 64;
/// Documents of a segment for each value that is looked up, where there are more values.
const DOCS_PER_VALUE: u64 = 16_384;

/// The documents of which a value lies between two bounds, of which one at least is there.
#[derive(Debug)]
pub(super) struct KeywordRange {
    pub(super) path: String,
    /// Looks each value up.
    pub(super) walk: DictionaryWalk,
}

impl Select for KeywordRange {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Selected> {
        let DictionaryWalk { bounds, run, .. } = &self.walk;
        let Some(strings) = run.columns().strings(reader, &self.path)? else {
            return Ok(Selected::Nothing);
        };
        let range = ordinals_between(&strings.column, &bounds.0, &bounds.1)?;
        let few = FEW_VALUES.max(u64::from(reader.max_doc()) / DOCS_PER_VALUE);
        match range.end.saturating_sub(range.start) {
            0 => Ok(Selected::Nothing),
            count if count <= few => self.walk.open(reader),
            _ => {
                let (column, range) = (Arc::clone(&strings.ordinals), range.start..=range.end - 1);
                Ok(selection::between(column, range, run, reader.max_doc()))
            }
        }
    }
}

/// The ordinals of the strings between two bounds.
pub(crate) fn ordinals_between(
    column: &BytesColumn,
    lower: &Bound<String>,
    upper: &Bound<String>,
) -> tantivy::Result<Range<u64>> {
    let lower = lower.as_ref().map(String::as_bytes);
    let upper = upper.as_ref().map(String::as_bytes);
    let (from, to) = column.dictionary().term_bounds_to_ord(lower, upper)?;
    let from = match from {
        Bound::Included(ordinal) => ordinal,
        Bound::Excluded(ordinal) => ordinal + 1,
        Bound::Unbounded => 0,
    };
    let behind = match to {
        Bound::Included(ordinal) => ordinal + 1,
        Bound::Excluded(ordinal) => ordinal,
        Bound::Unbounded => column.num_terms() as u64,
    };
    // Of what lies behind the last string of several blocks the library says the highest number there is.
    let terms = column.num_terms() as u64;
    let (from, behind) = (from.min(terms), behind.min(terms));
    Ok(from..behind.max(from))
}
