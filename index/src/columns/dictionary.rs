//! A dictionary of strings as it lies in the file.
//!
//! The library holds each string as its difference from the one before, in blocks of some 4,000 bytes, and decodes them by
//! way of automata and values that nobody here needs. The format is the one that the dictionary's crate documents
//! (tantivy-sstable, "On disk format"), with no values and without compression.

/// What a block begins with: its length, which includes the flag, and the flag that tells whether it is compressed.
const LENGTH_BYTES: usize = 4;
pub(super) const HEADER_BYTES: usize = LENGTH_BYTES + 1;
/// Says that two numbers of variable length follow.
const LONG_LENGTHS: u8 = 1;

/// The next block, and what is behind it; `None` at the end, and where no block is as expected.
pub(super) fn next_block(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    // The last block is empty.
    let length = u32::from_le_bytes(*length)
        .checked_sub(1)
        .filter(|length| *length > 0)?;
    let (compressed, rest) = rest.split_first()?;
    if *compressed != 0 {
        return None;
    }
    rest.split_at_checked(length as usize)
}

/// The next string of a block: how much of its beginning is that of the string before, what follows there, and the rest
/// of the block. `None` when it isn't as expected.
#[inline]
pub(super) fn next_string(block: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let (lengths, rest) = block.split_first()?;
    let (keep, add, rest) = if *lengths == LONG_LENGTHS {
        let (keep, rest) = variable_length(rest)?;
        let (add, rest) = variable_length(rest)?;
        (keep, add, rest)
    } else {
        (usize::from(lengths & 0x0f), usize::from(lengths >> 4), rest)
    };
    let (own, rest) = rest.split_at_checked(add)?;
    Some((keep, own, rest))
}

/// A number in groups of seven bits, the lowest first, and what is behind it.
#[inline]
fn variable_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0_u64;
    for (nth, byte) in bytes.iter().enumerate() {
        number |= u64::from(byte & 0x7f).checked_shl(7 * nth as u32)?;
        if byte & 0x80 == 0 {
            return Some((usize::try_from(number).ok()?, bytes.get(nth + 1..)?));
        }
    }
    None
}
