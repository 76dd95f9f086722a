//! All strings of a dictionary, one behind the other, so that they are searched as one text.
//!
//! Walking over a dictionary costs some 80 to 200 ns a string, of which most is decoding. A run of literal characters is
//! looked for at several bytes a nanosecond, and only strings that have it are looked at.

use std::ops::Range;

use memchr::memmem;
use tantivy::columnar::BytesColumn;

use crate::limits::MAX_KEPT_STRINGS_BYTES;
use crate::run::Run;

/// Stands between two strings: no byte of UTF-8.
const BETWEEN: u8 = 0xff;
/// Strings between two looks at the deadline.
const STRINGS_PER_CHECK: usize = 1_024;

/// The strings of a dictionary, in its order.
#[derive(Debug)]
pub(crate) struct Strings {
    text: Vec<u8>,
    /// Where each string begins, and where one more would.
    starts: Vec<u32>,
}

impl Strings {
    /// Decodes a dictionary; `None` when it has more bytes than are kept.
    pub(super) fn new(column: &BytesColumn, run: &Run) -> tantivy::Result<Option<Self>> {
        let count = column.num_terms();
        let mut text = Vec::new();
        let mut starts = Vec::with_capacity(count.saturating_add(1).min(MAX_KEPT_STRINGS_BYTES));
        let mut stream = column.dictionary().stream()?;
        while stream.advance() {
            if starts.len() % STRINGS_PER_CHECK == 0 {
                run.check_inside()?;
            }
            if text.len() > MAX_KEPT_STRINGS_BYTES {
                return Ok(None);
            }
            starts.push(text.len() as u32);
            text.extend_from_slice(stream.key());
            text.push(BETWEEN);
        }
        starts.push(text.len() as u32);
        Ok(Some(Self { text, starts }))
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.text.capacity() + self.starts.capacity() * size_of::<u32>()
    }

    /// The string with this ordinal.
    fn get(&self, ordinal: usize) -> Option<&[u8]> {
        let from = *self.starts.get(ordinal)? as usize;
        let next = *self.starts.get(ordinal.checked_add(1)?)? as usize;
        self.text.get(from..next.checked_sub(1)?)
    }

    /// Goes through the strings with ordinals in `among` that have `literal` in them and that `fits`, in order.
    pub(crate) fn matching(
        &self,
        among: Range<u64>,
        literal: &[u8],
        run: &Run,
        fits: impl Fn(&[u8]) -> bool,
        mut found: impl FnMut(u64, &[u8]),
    ) -> tantivy::Result<()> {
        let count = self.starts.len().saturating_sub(1);
        let end = usize::try_from(among.end).unwrap_or(count).min(count);
        let mut ordinal = usize::try_from(among.start).unwrap_or(count).min(end);
        let until = self.starts.get(end).copied().unwrap_or_default() as usize;
        let finder = memmem::Finder::new(literal);
        let mut looked = 0_usize;
        while ordinal < end {
            if !literal.is_empty() {
                let from = self.starts.get(ordinal).copied().unwrap_or_default() as usize;
                let Some(at) = self.text.get(from..until).and_then(|rest| finder.find(rest)) else {
                    break;
                };
                let at = from.saturating_add(at);
                // The last string that begins at or before the place.
                let rest = self.starts.get(ordinal..end).unwrap_or_default();
                ordinal += rest
                    .partition_point(|start| *start as usize <= at)
                    .saturating_sub(1);
            }
            let Some(string) = self.get(ordinal) else { break };
            if fits(string) {
                found(ordinal as u64, string);
            }
            looked += 1;
            if looked.is_multiple_of(STRINGS_PER_CHECK) {
                run.check_inside()?;
            }
            ordinal += 1;
        }
        Ok(())
    }
}
