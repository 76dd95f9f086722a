//! Reserved keys: those of the catalog and the log that engines read and write themselves.

use bytes::Bytes;

/// Key in the catalog space that never has a value: removing it is a write that changes nothing.
pub const NO_OP: &[u8] = &[0x00];
/// Key of the last assigned sequence (u64), in the catalog space.
pub const HEAD: &[u8] = &[0x01];
/// Key of the last trimmed sequence (u64), in the catalog space.
pub const TRIMMED: &[u8] = &[0x02];
/// Key of the time of the newest change that is trimmed, in the catalog space. An engine removes it when it gives up
/// a part of the log.
pub const TRIMMED_TIME: &[u8] = &[0x03];
/// Key of what trimming noticed of changes dated in the future, in the catalog space. An engine removes it when
/// sequences are given again.
pub const NOTICED: &[u8] = &[0x05];
/// Key of the [`Histories`](crate::histories::Histories), in the catalog space.
pub const HISTORIES: &[u8] = &[0x06];
/// Key of the mark of the last group of commits, in the catalog space.
pub const GROUP: &[u8] = &[0x08];

/// Key of a log entry, in the log space.
pub fn log(sequence: u64) -> Bytes {
    Bytes::copy_from_slice(&sequence.to_be_bytes())
}
