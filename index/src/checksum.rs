//! Whether the files of an index hold what was written into them.
//!
//! The search library ends each of its files with a checksum of what is in front, and compares it only when it is asked
//! to. Its two lists have none from it: they get a line of their own here ([`seal`], [`unseal`]), since a digit of the
//! commit's cursor that changed would let changes be left out.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tantivy::HasLen;
use tantivy::directory::FileSlice;
use tantivy::directory::footer::Footer;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Error;

/// What is read of a file at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Behind the library's footer: its length, and a number that all have.
const TAIL_BYTES: usize = 8;
/// A footer has some hundred bytes; a longer one is damage.
const FOOTER_MAX_BYTES: u64 = 50_000 + TAIL_BYTES as u64;
/// The line that [`seal`] adds: a line break before and behind 16 hexadecimal digits.
const SEAL_BYTES: usize = 18;

/// What was found to be damaged of an index, first. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexDamage(Arc<OnceLock<String>>);

impl IndexDamage {
    /// Remembers damage; what was found first is what every later check tells.
    pub(crate) fn found(&self, detail: String) -> Error {
        let _ = self.0.set(detail);
        self.check().err().unwrap_or(Error::Cancelled)
    }

    /// # Errors
    /// [`Error::Corrupt`] once damage is known.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.0.get() {
            None => Ok(()),
            Some(detail) => Err(Error::corrupt(detail.clone())),
        }
    }
}

/// Whether a failure to read means that the bytes are lost, and not that the system refuses to give them now.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    /// What Linux and others call `EIO`: the device can't read it.
    const UNREADABLE: i32 = 5;
    let lost = [io::ErrorKind::InvalidData, io::ErrorKind::UnexpectedEof];
    lost.contains(&error.kind()) || error.raw_os_error() == Some(UNREADABLE)
}

/// Whether a failure to read means that the system refuses now: no file handles, no memory, no permission. What it says of
/// a file that isn't there is none, and neither is what others than the system make up.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::NotFound => false,
        io::ErrorKind::PermissionDenied | io::ErrorKind::StorageFull | io::ErrorKind::OutOfMemory => true,
        _ => error.raw_os_error().is_some() && !is_damage(error),
    }
}

/// Compares a file of the search library with its checksum. `go_on` is told how much was read, piece by piece, and says
/// whether to read on; `false` when it said no.
///
/// # Errors
/// `InvalidData` and `UnexpectedEof` mean damage; see [`is_damage`].
pub(crate) fn compare(path: &Path, mut go_on: impl FnMut(u64) -> bool) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let (expected, mut left) = footer(&mut file, length)?;
    let mut checksum = crc32fast::Hasher::new();
    let mut piece = vec![0; PIECE_BYTES];
    file.seek(SeekFrom::Start(0))?;
    while left > 0 {
        let wanted = usize::try_from(left).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        let piece = piece.get_mut(..wanted).unwrap_or_default();
        file.read_exact(piece)?;
        checksum.update(piece);
        left -= wanted as u64;
        if !go_on(wanted as u64) {
            return Ok(false);
        }
    }
    if checksum.finalize() != expected {
        return Err(damaged("has another checksum"));
    }
    Ok(true)
}

/// What a file of the search library says of itself: its checksum, and how much is in front of what says so.
fn footer(file: &mut File, length: u64) -> io::Result<(u32, u64)> {
    let tail_starts = length.saturating_sub(FOOTER_MAX_BYTES);
    file.seek(SeekFrom::Start(tail_starts))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    if tail.len() < TAIL_BYTES {
        return Err(damaged("is too short"));
    }
    let (footer, content) =
        Footer::extract_footer(FileSlice::from(tail)).map_err(|_| damaged("has no footer"))?;
    Ok((footer.crc, tail_starts + content.len() as u64))
}

pub(crate) fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Puts a line with its checksum behind a text.
pub(crate) fn seal(text: &[u8]) -> Vec<u8> {
    let mut sealed = text.to_vec();
    sealed.extend_from_slice(format!("\n{:016x}\n", xxh3_64(text)).as_bytes());
    sealed
}

/// The text that was sealed; `None` when it has changed.
pub(crate) fn unseal(mut sealed: Vec<u8>) -> Option<Vec<u8>> {
    let end = sealed.len().checked_sub(SEAL_BYTES)?;
    let text = sealed.get(..end)?;
    if sealed != seal(text) {
        return None;
    }
    sealed.truncate(end);
    Some(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_text_is_given_back_and_any_changed_byte_is_seen() {
        let text = b"{\n  \"opstamp\": 7\n}";
        let sealed = seal(text);
        assert_eq!(unseal(sealed.clone()).as_deref(), Some(&text[..]));
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut other = sealed.clone();
                other[at] ^= 1 << bit;
                assert_eq!(unseal(other), None, "bit {bit} of byte {at}");
            }
            assert_eq!(unseal(sealed[..at].to_vec()), None, "cut at {at}");
        }
        assert_eq!(unseal(text.to_vec()), None);
    }
}
