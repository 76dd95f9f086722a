//! Etags: a revision, and the history of the database that gave it, as a short opaque text. The same revision is given to
//! another write after a restore, but not in the same history.

use std::fmt::Write as _;

/// What every etag starts with: the format's version.
const PREFIX: &str = "r";
/// Between revision and history.
const SEPARATOR: char = '-';
/// Bytes of the longest etag: both numbers in 16 digits.
const ETAG_BYTES_MAX: usize = PREFIX.len() + SEPARATOR.len_utf8() + 2 * 16;

/// The etag of a revision.
pub(crate) fn of(revision: i64, history: u64) -> String {
    // Every resource of an answer has one: `format!` would allocate again as it grows.
    let mut etag = String::with_capacity(ETAG_BYTES_MAX);
    let _ = write!(etag, "{PREFIX}{revision:x}{SEPARATOR}{history:016x}");
    etag
}

/// The revision of an etag; `None` when it isn't one of ours, which then equals none. `history_of` tells which history gave a
/// revision.
pub(crate) fn revision(etag: &str, history_of: impl FnOnce(u64) -> u64) -> Option<u64> {
    let (digits, _) = etag.strip_prefix(PREFIX)?.split_once(SEPARATOR)?;
    let revision = i64::from_str_radix(digits, 16).ok()?;
    let sequence = u64::try_from(revision).ok()?;
    // Only the canonical spelling: no sign, no leading zero, no upper case.
    (of(revision, history_of(sequence)) == etag).then_some(sequence)
}

#[cfg(test)]
mod tests {
    use super::{of, revision};

    #[test]
    fn an_etag_is_its_revision_and_nothing_else_is_one() {
        let history = |revision: u64| 0xab + u64::from(revision > 0x1f3);
        assert_eq!(of(0x1f3, 0xab), "r1f3-00000000000000ab");
        assert_eq!(of(i64::MAX, u64::MAX), "r7fffffffffffffff-ffffffffffffffff");
        assert_eq!(revision("r1f3-00000000000000ab", history), Some(0x1f3));
        assert_eq!(revision("r1f4-00000000000000ac", history), Some(0x1f4));
        for other in [
            "",
            "r",
            "1f3",
            "r1f3",
            "r1f3-",
            "r1f3-ab",
            "r1f4-00000000000000ab",
            "r1f3-00000000000000ac",
            "r01f3-00000000000000ab",
            "r1F3-00000000000000ab",
            "r1f3-00000000000000AB",
            "r+1f3-00000000000000ab",
            "r-1-00000000000000ab",
            "r1f3-00000000000000ab ",
            "W/\"r1\"",
            "rfffffffffffffffff-00000000000000ab",
        ] {
            assert_eq!(revision(other, history), None, "{other:?}");
        }
    }
}
