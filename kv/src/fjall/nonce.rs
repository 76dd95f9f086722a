//! The nonce of a store: a secret number, which distinguishes the marks in its journals from bytes that look like them.
//!
//! Clients choose the values that stand in a journal, so a value could look like a whole group of commits with its mark. But
//! they can't know the nonce: it is drawn when the store is created, and never sent to a client.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;

use xxhash_rust::xxh3::xxh3_64;

/// The secret number of a store: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Nonce(pub(super) [u8; Self::BYTES]);

impl Nonce {
    pub(super) const BYTES: usize = 16;

    /// Draws one. The keys of [`RandomState`] are the operating system's random bytes.
    pub(super) fn random() -> Self {
        let keys = RandomState::new();
        let halves = [0u64, 1].map(|half| keys.hash_one(half).to_be_bytes());
        let mut out = [0; Self::BYTES];
        out.copy_from_slice(halves.as_flattened());
        Self(out)
    }

    /// Reads what [`Nonce::to_text`] wrote; `None` when a character of it was changed.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let (number, _) = text.split_once(' ')?;
        let nonce = Self(u128::from_str_radix(number, 16).ok()?.to_be_bytes());
        (nonce.to_text() == text).then_some(nonce)
    }

    /// The number and its checksum, in 32 and 16 hexadecimal digits. The checksum is there because with a damaged number the
    /// store would take durable commits for torn ones.
    pub(super) fn to_text(self) -> String {
        let number = u128::from_be_bytes(self.0);
        format!("{number:032x} {:016x}", xxh3_64(&self.0))
    }
}

/// Without the number, which stays secret.
impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_as_it_was_written_or_not_at_all() {
        let nonce = Nonce::random();
        assert_ne!(nonce, Nonce::random());
        let text = nonce.to_text();
        assert_eq!(Nonce::from_text(&text), Some(nonce));
        for at in 0..text.len() {
            for other in [b'0', b'f', b'F', b' ', b'+'] {
                let mut damaged = text.clone().into_bytes();
                damaged[at] = other;
                let damaged = String::from_utf8(damaged).expect("text");
                assert!(
                    damaged == text || Nonce::from_text(&damaged).is_none(),
                    "{damaged}"
                );
            }
            assert_eq!(Nonce::from_text(&text[..at]), None);
        }
    }
}
