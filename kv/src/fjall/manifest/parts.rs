//! Files of parts: how the engine (3.1.13, its crate `sfa` 1.0) writes lists of tables, tables, and large values.
//!
//! Parts, then the table of parts, then a trailer. Numbers are little-endian:
//!
//! | what           | bytes                                                                                  |
//! |----------------|----------------------------------------------------------------------------------------|
//! | table of parts | `TOC!`, parts u32, for each: position u64, length u64, name's length u16, name         |
//! | trailer        | `SFA!`, version 1, checksum's kind 0, xxh3 u128 of the table, its position u64, its length u64 |

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use crate::error::OpenError;

const TABLE_MAGIC: &[u8] = b"TOC!";
const TRAILER_MAGIC: &[u8] = b"SFA!\x01\x00";
const TRAILER_BYTES: usize = 38;
/// Far more than the engine's tables of parts have: they name about ten.
const MAX_TABLE_BYTES: usize = 64 * 1024;
/// After its number a file has the kind of its checksum u8, and that u128.
const CHECKSUM_BYTES: usize = 17;

/// Reads numbers off the front of bytes; `None` at their end.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn count(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }
}

/// Where the table of parts lies, and its checksum.
struct Trailer {
    position: usize,
    checksum: u128,
}

impl Trailer {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut numbers = Numbers(bytes.strip_prefix(TRAILER_MAGIC)?);
        let checksum = u128::from_le_bytes(numbers.take()?);
        let position = usize::try_from(numbers.number()?).ok()?;
        Some(Self { position, checksum })
    }
}

/// The files that a list of tables names, as far as it can be read: the list itself has been checked.
pub(super) fn files(space: &Path, list: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(tables) = part(list, b"tables") {
        let folder = space.join("tables");
        // What ends early is left for the engine to refuse.
        let _ = tables_of(tables, |number| found.push(folder.join(number.to_string())));
    }
    if let Some(values) = part(list, b"blob_files") {
        let folder = space.join("blobs");
        let _ = large_values_of(values, |number| found.push(folder.join(number.to_string())));
    }
    found
}

/// Levels, in each its runs, in each its tables, in each the oldest sequence behind the checksum.
fn tables_of(bytes: &[u8], mut found: impl FnMut(u64)) -> Option<()> {
    let mut numbers = Numbers(bytes);
    for _ in 0..numbers.byte()? {
        for _ in 0..numbers.byte()? {
            for _ in 0..numbers.count()? {
                found(numbers.number()?);
                numbers.skip(CHECKSUM_BYTES + size_of::<u64>())?;
            }
        }
    }
    Some(())
}

fn large_values_of(bytes: &[u8], mut found: impl FnMut(u64)) -> Option<()> {
    let mut numbers = Numbers(bytes);
    for _ in 0..numbers.count()? {
        found(numbers.number()?);
        numbers.skip(CHECKSUM_BYTES)?;
    }
    Some(())
}

/// One part of a file that is whole.
fn part<'a>(file: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (_, end) = file.split_last_chunk::<TRAILER_BYTES>()?;
    let trailer = Trailer::read(end)?;
    let mut numbers = Numbers(file.get(trailer.position..)?.strip_prefix(TABLE_MAGIC)?);
    for _ in 0..numbers.count()? {
        let position = usize::try_from(numbers.number()?).ok()?;
        let length = usize::try_from(numbers.number()?).ok()?;
        let named = usize::from(u16::from_le_bytes(numbers.take()?));
        let here = numbers.0.get(..named)? == name;
        numbers.skip(named)?;
        if here {
            return file.get(position..position.checked_add(length)?);
        }
    }
    None
}

/// Compares a file's table of parts with its checksum. What has no trailer is left for the engine to refuse.
///
/// # Errors
/// [`OpenError::Corrupt`] when they differ, [`OpenError::Io`].
pub(super) fn check(path: &Path) -> Result<(), OpenError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(OpenError::io("open", path))?,
    };
    let length = file.metadata().map_err(OpenError::io("measure", path))?.len();
    let Some(end) = length.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(());
    };
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, end)
        .map_err(OpenError::io("read", path))?;
    let Some(trailer) = Trailer::read(&trailer) else {
        return Ok(());
    };
    let table = end.checked_sub(trailer.position as u64);
    let length = table.and_then(|length| usize::try_from(length).ok());
    let Some(length) = length.filter(|length| *length <= MAX_TABLE_BYTES) else {
        return Err(OpenError::corrupt(format!(
            "the end of {path:?} gives byte {} as the place of its table of parts",
            trailer.position
        )));
    };
    let mut table = vec![0; length];
    file.read_exact_at(&mut table, trailer.position as u64)
        .map_err(OpenError::io("read", path))?;
    if xxh3_128(&table) != trailer.checksum {
        let what = format!("the table of parts at the end of {path:?} has another checksum than was noted");
        return Err(OpenError::corrupt(what));
    }
    Ok(())
}
