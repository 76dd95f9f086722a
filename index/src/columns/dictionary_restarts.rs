//! Restart points of a dictionary: where to begin to decode, every few strings.
//!
//! The library decodes half a block of a dictionary for the string behind an ordinal: 1 to 2 µs for keys of 32 bytes, twice
//! twenty times for a page. Remembering every sixteenth string and where the next begins makes that a tenth, for some 3
//! bytes a string. Making it is bounded work in each search: a stretch of the dictionary at a time, once as many strings
//! were asked for as make it worth while. A [dictionary](super::dictionary) that looks different is left to the library.

use std::io;

use tantivy::HasLen;
use tantivy::columnar::BytesColumn;
use tantivy::directory::OwnedBytes;

use super::dictionary::{HEADER_BYTES, next_block, next_string};
use crate::checksum::damaged;

/// Strings between two that are remembered.
const STRINGS_PER_POINT: u64 = 16;
/// Strings that one call goes on by, at most: some 50 µs.
const STRINGS_PER_STRETCH: u64 = 4_096;
/// Strings that the library decodes to find one, about: half a block.
const STRINGS_PER_LOOKUP: u64 = 64;

/// The strings of a dictionary, as far as it was gone through.
#[derive(Debug, Default)]
pub(super) struct DictionaryRestarts {
    /// Strings that the library was asked for.
    asked: u64,
    reading: Option<Reading>,
    /// Whether nothing more is remembered: all is, or the dictionary isn't as expected.
    pub(super) ended: bool,
}

#[derive(Debug)]
struct Reading {
    bytes: OwnedBytes,
    /// One for every [`STRINGS_PER_POINT`] strings.
    points: Vec<Point>,
    /// The strings at the points, one behind the other.
    strings: Vec<u8>,
    /// Stands on the last string that was read.
    last: DictionaryCursor,
    string: Vec<u8>,
    read: u64,
}

/// A string that is remembered.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Where the next one begins.
    next: DictionaryCursor,
    /// Where it ends in [`Reading::strings`].
    end: u32,
}

/// A place between two strings.
#[derive(Clone, Copy, Debug, Default)]
struct DictionaryCursor {
    at: u32,
    /// Where the block ends.
    end: u32,
}

impl DictionaryRestarts {
    /// Takes note that `count` strings of `column` are wanted, and goes on if that is worth while. How many bytes more
    /// are held now.
    pub(super) fn want(&mut self, count: usize, column: &BytesColumn) -> io::Result<usize> {
        let terms = column.num_terms() as u64;
        self.asked = self.asked.saturating_add(count as u64);
        if self.ended || self.asked.saturating_mul(STRINGS_PER_LOOKUP) < terms {
            return Ok(0);
        }
        let reading = match &mut self.reading {
            Some(reading) => reading,
            None => {
                let slice = &column.dictionary().sstable_slice;
                if u32::try_from(slice.len()).is_err() {
                    self.ended = true;
                    return Ok(0);
                }
                self.reading.insert(Reading::new(slice.read_bytes()?))
            }
        };
        let before = reading.held();
        let until = reading.read.saturating_add(STRINGS_PER_STRETCH).min(terms);
        while reading.read < until {
            if reading.step().is_none() {
                self.ended = true;
                break;
            }
        }
        self.ended |= reading.read == terms;
        Ok(reading.held().saturating_sub(before))
    }

    /// How many strings are known: those with lower ordinals.
    pub(super) fn known(&self) -> u64 {
        self.reading.as_ref().map_or(0, |reading| reading.read)
    }

    /// Writes the string of an ordinal that is known to `string`.
    pub(super) fn get(&self, ordinal: u64, string: &mut Vec<u8>) -> io::Result<()> {
        let reading = self.reading.as_ref();
        let found = reading.and_then(|reading| reading.get(ordinal, string));
        found.ok_or_else(|| damaged("a dictionary ends too early"))
    }
}

impl Reading {
    fn new(bytes: OwnedBytes) -> Self {
        Self {
            bytes,
            points: Vec::new(),
            strings: Vec::new(),
            last: DictionaryCursor::default(),
            string: Vec::new(),
            read: 0,
        }
    }

    fn held(&self) -> usize {
        self.strings.capacity() + self.points.capacity() * size_of::<Point>()
    }

    /// Reads one string more; `None` when there is none, or none as expected.
    fn step(&mut self) -> Option<()> {
        self.last.step(&self.bytes, &mut self.string)?;
        if self.read.is_multiple_of(STRINGS_PER_POINT) {
            self.strings.extend_from_slice(&self.string);
            self.points.push(Point {
                next: self.last,
                end: u32::try_from(self.strings.len()).ok()?,
            });
        }
        self.read += 1;
        Some(())
    }

    fn get(&self, ordinal: u64, string: &mut Vec<u8>) -> Option<()> {
        let nth = usize::try_from(ordinal / STRINGS_PER_POINT).ok()?;
        let point = self.points.get(nth)?;
        let start = match nth.checked_sub(1) {
            Some(before) => self.points.get(before)?.end,
            None => 0,
        };
        string.clear();
        string.extend_from_slice(self.strings.get(start as usize..point.end as usize)?);
        let mut cursor = point.next;
        for _ in 0..ordinal % STRINGS_PER_POINT {
            cursor.step(&self.bytes, string)?;
        }
        Some(())
    }
}

impl DictionaryCursor {
    /// Makes of a string the one behind it.
    fn step(&mut self, bytes: &[u8], string: &mut Vec<u8>) -> Option<()> {
        if self.at == self.end {
            let (block, _) = next_block(bytes.get(self.at as usize..)?)?;
            self.at = self.at.checked_add(HEADER_BYTES as u32)?;
            self.end = self.at.checked_add(u32::try_from(block.len()).ok()?)?;
            string.clear();
        }
        let block = bytes.get(self.at as usize..self.end as usize)?;
        let (keep, own, rest) = next_string(block)?;
        if keep > string.len() {
            return None;
        }
        string.truncate(keep);
        string.extend_from_slice(own);
        self.at = self.end - rest.len() as u32;
        Some(())
    }
}

#[cfg(test)]
mod tests;
