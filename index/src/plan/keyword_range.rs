//! Documents with a KEYWORD between two others.
//!
//! The column's dictionary tells how many different values the range has. A few are looked up; the documents of many are
//! told by the ordinals that they have in the column. Either way the work is bounded by the segment's size, not by the
//! number of values.

use std::ops::{Bound, Range};
use std::sync::Arc;

use tantivy::SegmentReader;
use tantivy::columnar::BytesColumn;
use tantivy::schema::Field;

use super::doc_set::DocSetBuilder;
use super::selection::{self, Select, Selected};
use crate::run::Run;

/// Values up to which looking each up beats reading the column.
const FEW_VALUES: u64 = 64;
/// Documents of a segment for each value that is looked up, where there are more values.
const DOCS_PER_VALUE: u64 = 16_384;

/// The documents of which a value lies between two bounds, of which one at least is there.
#[derive(Debug)]
pub(super) struct KeywordRange {
    pub(super) field: Field,
    pub(super) path: String,
    pub(super) lower: Bound<String>,
    pub(super) upper: Bound<String>,
    pub(super) run: Arc<Run>,
}

impl KeywordRange {
    fn look_up(&self, reader: &SegmentReader) -> tantivy::Result<DocSetBuilder> {
        let index = reader.inverted_index(self.field)?;
        let (from, to) = walk_bounds(&self.lower, &self.upper);
        let mut terms = index.terms().range().ge(from).lt(to).into_stream()?;
        let mut gathered = DocSetBuilder::new(reader.max_doc(), self.run.allowance());
        while terms.advance() {
            self.run.check_inside()?;
            gathered.insert_term(&index, terms.value(), |_| true)?;
        }
        Ok(gathered)
    }
}

impl Select for KeywordRange {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Selected> {
        let Some(strings) = self.run.columns().strings(reader, &self.path)? else {
            return Ok(Selected::Nothing);
        };
        let range = ordinals_between(&strings.column, &self.lower, &self.upper)?;
        let few = FEW_VALUES.max(u64::from(reader.max_doc()) / DOCS_PER_VALUE);
        match range.end.saturating_sub(range.start) {
            0 => Ok(Selected::Nothing),
            count if count <= few => self.look_up(reader).map(Selected::Documents),
            _ => Ok(selection::between(
                Arc::clone(&strings.ordinals),
                range.start..=range.end - 1,
                &self.run,
                reader.max_doc(),
            )),
        }
    }
}

/// The ordinals of the strings between two bounds.
pub(super) fn ordinals_between(
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

/// The bytes at which a walk over a dictionary of strings begins, and before which it ends.
pub(super) fn walk_bounds(lower: &Bound<String>, upper: &Bound<String>) -> (Vec<u8>, Vec<u8>) {
    let behind = |text: &String| [text.as_bytes(), &[0]].concat();
    let from = match lower {
        Bound::Included(text) => text.clone().into_bytes(),
        Bound::Excluded(text) => behind(text),
        Bound::Unbounded => Vec::new(),
    };
    let to = match upper {
        Bound::Included(text) => behind(text),
        Bound::Excluded(text) => text.clone().into_bytes(),
        // No string of UTF-8 has this byte.
        Bound::Unbounded => vec![0xff],
    };
    (from, to)
}
