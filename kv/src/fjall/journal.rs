//! Verifies the engine's journals (its write-ahead log) before the engine recovers from them: a torn write at the end is
//! cut off, damage of what was durable is refused.
//!
//! The engine does neither well (3.1.13): at the first entry it can't decode it cuts the journal and drops what
//! follows without a word, though that may have been durable; and for a batch whose checksum is wrong it doesn't
//! open, though nothing may be lost: a disk may write the sectors of a batch that was never synced in any order.
//!
//! So every batch carries a [`GroupMark`]: its number, and how far the journal was durable before it. Where the
//! journal can't be read on, the mark of a later batch tells whether what is broken had been durable.
//!
//! What follows there may be anything, values of clients among it that look like batches. So a mark carries the secret
//! [`Nonce`] of its store, and a checksum, and is believed by itself. A copy of a whole journal in a value is older than
//! the group it stands in: its marks don't reach what may be broken.
//!
//! A journal is a sequence of batches, then zeros or its end. Numbers are little-endian:
//!
//! | entry | bytes                                                                                       |
//! |-------|---------------------------------------------------------------------------------------------|
//! | start | 1, items u32, engine's sequence u64                                                         |
//! | item  | 2, kind u8, compression u8, space u64, key length u16, value length u32, stored length u32, key, value |
//! | clear | 4, space u64; counts as an item                                                             |
//! | end   | 3, xxh3 of the items u64, `FJL` 3                                                           |

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use memchr::memmem;

use super::nonce::Nonce;
use crate::error::OpenError;
use crate::keys;

/// The engine's number of the catalog space: spaces are created in the order of [`crate::space::Space::ALL`].
pub(super) const CATALOG_ID: u64 = 4;
/// Ends a batch.
const TRAILER: &[u8] = b"FJL\x03";
/// Highest sequence the engine can go on from for ever: it needs the highest bit for itself.
const MAX_SEQUENCE: u64 = 1 << 62;
/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// The mark that each commit group writes, in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GroupMark {
    /// Counts the groups from 1 on, without a gap.
    pub(super) number: u64,
    /// All up to this one were durable when this one was written.
    pub(super) durable: u64,
}

impl GroupMark {
    const BYTES: usize = Nonce::BYTES + 3 * size_of::<u64>();

    /// The nonce of the store, number, durable, and the xxh3 of these; big-endian.
    pub(super) fn encode(self, nonce: Nonce) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        let (front, checksum) = out.split_at_mut(Self::BYTES - size_of::<u64>());
        let (secret, numbers) = front.split_at_mut(Nonce::BYTES);
        secret.copy_from_slice(&nonce.0);
        numbers.copy_from_slice([self.number.to_be_bytes(), self.durable.to_be_bytes()].as_flattened());
        checksum.copy_from_slice(&xxh3_64(front).to_be_bytes());
        out
    }

    /// The mark, if the store of this nonce wrote it.
    pub(super) fn decode(bytes: &[u8], nonce: Nonce) -> Option<Self> {
        let ([number, durable, _], []) = bytes.strip_prefix(&nonce.0)?.as_chunks::<8>() else {
            return None;
        };
        let mark = Self {
            number: u64::from_be_bytes(*number),
            durable: u64::from_be_bytes(*durable),
        };
        (mark.encode(nonce) == bytes).then_some(mark)
    }
}

/// The last batch that was read.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    /// The number of the last group, if it is known.
    group: Option<u64>,
    /// The engine's sequence of the last batch: grows from batch to batch. It is in no checksum.
    sequence: Option<u64>,
}

/// Checks all journals, the oldest first, and cuts an interrupted write off the last one. Gives the number of the
/// last group that is there, if there is one. With `accept`, cuts off what is damaged, too, and all that follows.
///
/// # Errors
/// [`OpenError::Corrupt`] when something is damaged that was durable: nothing is changed. [`OpenError::Io`].
pub(super) fn check(data: &Path, nonce: Nonce, accept: bool) -> Result<Option<u64>, OpenError> {
    let journals = list(data)?;
    let mut before = Before::default();
    let mut next = 0;
    for (position, (number, path)) in journals.iter().enumerate() {
        if *number != next {
            // Those between were deleted, for the engine has their contents in tables.
            before.group = None;
        } else if next == 0 {
            before.group = Some(0);
        }
        next = number + 1;
        let is_active = position + 1 == journals.len();
        let Some(damage) = read(path, nonce, is_active, &mut before).map_err(OpenError::io("read", path))?
        else {
            continue;
        };
        if !damage.interrupted {
            let what = format!(
                "{path:?} is damaged at byte {}: {}",
                damage.at, "commits that were durable are lost"
            );
            if !accept {
                return Err(OpenError::corrupt(what));
            }
            tracing::warn!("accepted a loss: {what}");
        }
        let later = journals.get(position + 1..).unwrap_or_default();
        for (_, path) in later.iter().rev() {
            fs::remove_file(path).map_err(OpenError::io("remove", path))?;
        }
        cut(path, damage.at).map_err(OpenError::io("cut", path))?;
        tracing::info!(journal = ?path, at = damage.at, "cut off a write that was interrupted");
        break;
    }
    Ok(before.group)
}

/// The journals by their numbers. What has another name is left to the engine.
fn list(data: &Path) -> Result<Vec<(u64, PathBuf)>, OpenError> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(data).map_err(OpenError::io("list", data))? {
        let path = entry.map_err(OpenError::io("list", data))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(".jnl")?.parse::<u64>().ok());
        if let Some(number) = number {
            journals.push((number, path));
        }
    }
    journals.sort_unstable();
    Ok(journals)
}

fn cut(path: &Path, at: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(at)?;
    file.sync_all()
}

/// Where a journal can't be read on.
#[derive(Debug, Clone, Copy)]
struct JournalDamage {
    at: u64,
    /// Whether it may be a write that was never durable.
    interrupted: bool,
}

/// Reads a journal to its end or to where it is damaged.
fn read(
    path: &Path,
    nonce: Nonce,
    is_active: bool,
    before: &mut Before,
) -> io::Result<Option<JournalDamage>> {
    let mut window = Window::open(path)?;
    loop {
        match parse(window.bytes(), nonce) {
            Parsed::Batch(batch) => {
                let follows = batch
                    .mark
                    .zip(before.group)
                    .is_none_or(|(mark, last)| mark.number == last + 1)
                    && before.sequence.is_none_or(|last| batch.sequence > last);
                if !follows {
                    let (at, interrupted) = (window.position(), false);
                    return Ok(Some(JournalDamage { at, interrupted }));
                }
                before.sequence = Some(batch.sequence);
                before.group = batch.mark.map(|mark| mark.number).or(before.group);
                window.skip(batch.length);
            }
            Parsed::Incomplete if window.grow()? => {}
            Parsed::Incomplete | Parsed::Broken => break,
        }
    }
    let at = window.position();
    let rest = window.rest()?;
    if rest.is_empty() {
        return Ok(None);
    }
    // An older journal was synced as a whole before the next one was begun.
    let interrupted = is_active && !was_durable(&rest, nonce, before.group);
    Ok(Some(JournalDamage { at, interrupted }))
}

/// Whether the broken batch at the begin was durable, by the marks behind it.
fn was_durable(rest: &[u8], nonce: Nonce, last: Option<u64>) -> bool {
    memmem::find_iter(rest, &nonce.0).any(|at| {
        let mark = rest.get(at..).and_then(|rest| rest.get(..GroupMark::BYTES));
        let mark = mark.and_then(|mark| GroupMark::decode(mark, nonce));
        // The first that is broken comes after `last`. Where that isn't known, the worst is assumed.
        mark.is_some_and(|mark| last.is_none_or(|last| mark.durable > last))
    })
}

/// The next batch of a journal.
enum Parsed {
    Batch(Batch),
    /// The bytes end before the batch does.
    Incomplete,
    Broken,
}

struct Batch {
    length: usize,
    sequence: u64,
    mark: Option<GroupMark>,
}

fn parse(bytes: &[u8], nonce: Nonce) -> Parsed {
    let mut reader = Reader { bytes, at: 0, nonce };
    match reader.batch() {
        Ok(batch) => Parsed::Batch(batch),
        Err(Stop::Incomplete) => Parsed::Incomplete,
        Err(Stop::Broken) => Parsed::Broken,
    }
}

enum Stop {
    Incomplete,
    Broken,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    nonce: Nonce,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Stop> {
        let end = self.at.checked_add(count).ok_or(Stop::Broken)?;
        let taken = self.bytes.get(self.at..end).ok_or(Stop::Incomplete)?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn byte(&mut self) -> Result<u8, Stop> {
        self.array().map(u8::from_le_bytes)
    }

    fn length(&mut self) -> Result<usize, Stop> {
        usize::try_from(u32::from_le_bytes(self.array()?)).map_err(|_| Stop::Broken)
    }

    fn batch(&mut self) -> Result<Batch, Stop> {
        if self.byte()? != 1 {
            return Err(Stop::Broken);
        }
        let items = u32::from_le_bytes(self.array()?);
        let sequence = u64::from_le_bytes(self.array()?);
        if sequence > MAX_SEQUENCE {
            return Err(Stop::Broken);
        }
        let start = self.at;
        let mut mark = None;
        for _ in 0..items {
            mark = self.item()?.or(mark);
        }
        let checksum = xxh3_64(self.bytes.get(start..self.at).unwrap_or_default());
        let whole = self.byte()? == 3
            && u64::from_le_bytes(self.array()?) == checksum
            && self.take(TRAILER.len())? == TRAILER;
        if !whole {
            return Err(Stop::Broken);
        }
        Ok(Batch {
            length: self.at,
            sequence,
            mark,
        })
    }

    fn item(&mut self) -> Result<Option<GroupMark>, Stop> {
        match self.byte()? {
            2 => {}
            4 => return self.take(8).map(|_| None),
            _ => return Err(Stop::Broken),
        }
        self.take(2)?;
        let space = u64::from_le_bytes(self.array()?);
        let key = usize::from(u16::from_le_bytes(self.array()?));
        self.length()?;
        let value = self.length()?;
        let key = self.take(key)?;
        let value = self.take(value)?;
        let is_mark = space == CATALOG_ID && key == keys::GROUP;
        Ok(is_mark.then(|| GroupMark::decode(value, self.nonce)).flatten())
    }
}

/// A read window on a file.
struct Window {
    file: File,
    bytes: Vec<u8>,
    /// Where it begins in the file.
    start: u64,
    /// How much of it was read.
    at: usize,
}

impl Window {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            bytes: Vec::new(),
            start: 0,
            at: 0,
        })
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn position(&self) -> u64 {
        self.start + self.at as u64
    }

    fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// Reads on; `false` at the end of the file.
    fn grow(&mut self) -> io::Result<bool> {
        self.start = self.position();
        self.bytes.drain(..std::mem::take(&mut self.at));
        // A batch much longer than a chunk isn't copied for every chunk.
        let more = CHUNK_BYTES.max(self.bytes.len()) as u64;
        let read = Read::by_ref(&mut self.file)
            .take(more)
            .read_to_end(&mut self.bytes)?;
        Ok(read > 0)
    }

    /// All that follows, without the zeros at the end.
    fn rest(mut self) -> io::Result<Vec<u8>> {
        let mut rest = self.bytes().to_vec();
        let mut length = rest.len();
        trim(&mut rest);
        loop {
            self.bytes.clear();
            let limit = CHUNK_BYTES as u64;
            if Read::by_ref(&mut self.file)
                .take(limit)
                .read_to_end(&mut self.bytes)?
                == 0
            {
                return Ok(rest);
            }
            let before = length;
            length += self.bytes.len();
            trim(&mut self.bytes);
            if !self.bytes.is_empty() {
                rest.resize(before, 0);
                rest.append(&mut self.bytes);
            }
        }
    }
}

/// Drops the zeros at the end.
fn trim(bytes: &mut Vec<u8>) {
    let end = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    bytes.truncate(end);
}
