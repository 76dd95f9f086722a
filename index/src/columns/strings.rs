//! Strings of a dictionary, one behind the other, so that they are searched as one text.
//!
//! The library takes some 80 to 200 ns a string to walk over a dictionary, of which most is its way of decoding. Here they are
//! decoded one behind the other; a run of literal characters is then looked for at several bytes a nanosecond, and only
//! strings that have it are looked at. A dictionary is decoded in parts that stay in the processor's
//! caches, so that its size is a matter of time alone.

use std::io;
use std::ops::Range;

use memchr::memmem::Finder;

use super::dictionary::{next_block, next_string};
use crate::checksum::damaged;
use crate::execution::Execution;

/// Stands between two strings: no byte of UTF-8.
const BETWEEN: u8 = 0xff;
/// Bytes of the text of a part; the block of the dictionary that passes them is in it as a whole.
const PART_BYTES: usize = 256 * 1024;
const STRINGS_PER_CHECK: usize = 1_024;

/// Some strings in a row of a dictionary.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    /// The ordinal of the first.
    first: u64,
    text: Vec<u8>,
    /// Where each string begins, and where one more would.
    starts: Vec<u32>,
}

impl Strings {
    pub(super) fn bytes(&self) -> usize {
        self.text.capacity() + self.starts.capacity() * size_of::<u32>()
    }

    fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    fn get(&self, nth: usize) -> Option<&[u8]> {
        let from = *self.starts.get(nth)? as usize;
        let next = *self.starts.get(nth.checked_add(1)?)? as usize;
        self.text.get(from..next.checked_sub(1)?)
    }

    /// Goes through those with ordinals in `among` that have the literal in them and that `fits`, in order.
    pub(super) fn matching(
        &self,
        among: &Range<u64>,
        literal: &Finder<'_>,
        run: &Execution,
        fits: &impl Fn(&[u8]) -> bool,
        found: &mut impl FnMut(u64, &[u8]),
    ) -> tantivy::Result<()> {
        let nth = |ordinal: u64| {
            let nth = usize::try_from(ordinal.saturating_sub(self.first));
            nth.map_or(self.len(), |nth| nth.min(self.len()))
        };
        let (mut at, end) = (nth(among.start), nth(among.end));
        run.walked(end.saturating_sub(at))?;
        let until = self.starts.get(end).copied().unwrap_or_default() as usize;
        let mut looked = 0_usize;
        while at < end {
            if !literal.needle().is_empty() {
                let from = self.starts.get(at).copied().unwrap_or_default() as usize;
                let Some(place) = self.text.get(from..until).and_then(|rest| literal.find(rest)) else {
                    break;
                };
                let place = from.saturating_add(place);
                // The last string that begins at or before the place.
                let rest = self.starts.get(at..end).unwrap_or_default();
                let begins_before = |start: &u32| *start as usize <= place;
                // It is near most often: steps that double find it with fewer looks into memory than halves of all.
                let mut reach = 1;
                while rest.get(reach).is_some_and(begins_before) {
                    reach *= 2;
                }
                let near = rest.get(reach / 2..reach.min(rest.len())).unwrap_or_default();
                at += reach / 2 + near.partition_point(begins_before).saturating_sub(1);
            }
            let Some(string) = self.get(at) else { break };
            if fits(string) {
                found(self.first.saturating_add(at as u64), string);
            }
            looked += 1;
            run.check_nth(looked, STRINGS_PER_CHECK)?;
            at += 1;
        }
        Ok(())
    }

    /// Puts the strings of a block behind these; `None` when it isn't as expected.
    fn decode(&mut self, mut block: &[u8]) -> Option<()> {
        let mut before = 0..0;
        while !block.is_empty() {
            let (keep, own, rest) = next_string(block)?;
            if keep > before.len() {
                return None;
            }
            let start = self.text.len();
            self.text.extend_from_within(before.start..before.start + keep);
            self.text.extend_from_slice(own);
            before = start..self.text.len();
            self.text.push(BETWEEN);
            self.starts.push(u32::try_from(start).ok()?);
            block = rest;
        }
        Some(())
    }
}

/// Decodes a dictionary, part by part.
pub(super) struct Parts<'a> {
    /// Behind the blocks that were decoded.
    rest: &'a [u8],
    next: u64,
    part: Strings,
}

impl<'a> Parts<'a> {
    /// From a block on, which begins with the string of an ordinal.
    pub(super) fn new(blocks: &'a [u8], ordinal: u64) -> Self {
        Self {
            rest: blocks,
            next: ordinal,
            part: Strings::default(),
        }
    }

    /// The next part, unless the string of the ordinal `until` is reached.
    pub(super) fn next(&mut self, until: u64) -> io::Result<Option<&Strings>> {
        if self.next >= until {
            return Ok(None);
        }
        let part = &mut self.part;
        part.first = self.next;
        part.text.clear();
        part.starts.clear();
        while part.text.len() < PART_BYTES && part.first + (part.starts.len() as u64) < until {
            let decoded = next_block(self.rest).and_then(|(block, rest)| {
                self.rest = rest;
                part.decode(block)
            });
            decoded.ok_or_else(|| damaged("a dictionary isn't as expected"))?;
        }
        self.next = part.first + part.starts.len() as u64;
        let end = u32::try_from(part.text.len());
        part.starts.push(end.unwrap_or(u32::MAX));
        Ok(Some(part))
    }
}

#[cfg(test)]
mod tests;
