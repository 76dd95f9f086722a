//! Opaque tokens: a format version, what they belong to, a payload, and a checksum, as URL-safe text.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use souk_index::limits::MAX_PAGE_TOKEN_CHARS;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Longest token that is looked at, in characters: one of the index's inside one of a search.
pub(crate) const TOKEN_CHARS_MAX: usize = (MAX_PAGE_TOKEN_CHARS + 64) / 3 * 4;

/// Version of the layout `version | kind | fingerprint | payload | checksum`.
const VERSION: u8 = 1;
/// Keeps accidental and casual forgeries out. It is no secret: a token grants nothing that its request doesn't.
const SEED: u64 = 0x534f_554b_544f_4b31;
/// Bytes in front of the payload and behind it.
const HEAD: usize = 10;
const TAIL: usize = 8;

/// What a token is for. A token of one kind is none of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// The next page of a list.
    List = 1,
    /// A snapshot that is kept for exports.
    Snapshot = 2,
    /// The next block of an export.
    Resume = 3,
    /// The next page of a search in a view that is kept.
    View = 4,
    /// The next page of a range.
    Range = 5,
    /// The next page of the list of tables.
    Tables = 6,
    /// A place in a shard of a consumer group.
    Shard = 7,
    /// The next page of a range of own rows among those of others: behind a row, not at one.
    OwnRange = 8,
}

/// Makes a token. `fingerprint` says which arguments it belongs to.
pub(crate) fn seal(kind: TokenKind, fingerprint: u64, payload: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(HEAD + payload.len() + TAIL);
    bytes.extend_from_slice(&[VERSION, kind as u8]);
    bytes.extend_from_slice(&fingerprint.to_be_bytes());
    bytes.extend_from_slice(payload);
    let checksum = xxh3_64_with_seed(&bytes, SEED);
    bytes.extend_from_slice(&checksum.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The payload of a token.
///
/// # Errors
/// What is wrong with it, in words for the client.
pub(crate) fn open(kind: TokenKind, fingerprint: u64, token: &str) -> Result<Vec<u8>, &'static str> {
    if token.len() > TOKEN_CHARS_MAX {
        return Err("it is longer than any token");
    }
    let mut bytes = URL_SAFE_NO_PAD
        .decode(token)
        .map_err(|_| "it isn't URL-safe base64")?;
    let Some(end) = bytes.len().checked_sub(TAIL).filter(|end| *end >= HEAD) else {
        return Err("it is too short");
    };
    let tail = bytes.split_off(end);
    if tail != xxh3_64_with_seed(&bytes, SEED).to_be_bytes() {
        return Err("its checksum is wrong");
    }
    let payload = bytes.split_off(HEAD);
    if bytes.first() != Some(&VERSION) {
        return Err("it has a format that this version doesn't know");
    }
    if bytes.get(1) != Some(&(kind as u8)) {
        return Err("it is a token of another kind");
    }
    if bytes.get(2..) != Some(fingerprint.to_be_bytes().as_slice()) {
        return Err("it belongs to other arguments");
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::{TokenKind, open, seal};

    #[test]
    fn a_token_opens_as_what_it_was_sealed_as_and_nothing_else() {
        let token = seal(TokenKind::List, 7, b"payload");
        assert!(
            token
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'),
            "{token}"
        );
        assert_eq!(open(TokenKind::List, 7, &token), Ok(b"payload".to_vec()));
        assert_eq!(
            open(TokenKind::List, 8, &token),
            Err("it belongs to other arguments")
        );
        assert_eq!(
            open(TokenKind::Resume, 7, &token),
            Err("it is a token of another kind")
        );
        assert_eq!(open(TokenKind::List, 7, "!"), Err("it isn't URL-safe base64"));
        assert_eq!(open(TokenKind::List, 7, ""), Err("it is too short"));
    }

    #[test]
    fn a_token_with_any_character_changed_is_refused() {
        let token = seal(TokenKind::Resume, 42, b"some payload");
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("ascii");
            assert!(open(TokenKind::Resume, 42, &changed).is_err(), "changed at {at}");
        }
    }
}
