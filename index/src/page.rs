//! Page tokens: stateless positions in an order of hits.
//!
//! A token holds where the last hit of a page stands, under every key of the order, and which request it belongs to. So
//! it stays good over commits, merges and restarts, and the server remembers nothing. It doesn't over another design of the
//! index: what a document is sorted by may be another value then, or of another type. The bytes, before URL-safe base64
//! without padding; integers are little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | format, 3 |
//! | 8 | fingerprint of query and order |
//! | 8 | fingerprint of the index's design: its schema and its label |
//! | 1 | number of keys |
//! | each key | 0: no value; 1 and 8 bytes: a number; 2, 4 bytes of length and as many bytes: a string |
//! | 8 | xxh3 of all before |
//!
//! The checksum finds accidents, not attackers: a forged token is a position like any other, and gives nothing away.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Error;
use crate::limits::{
    MAX_COMPOSITE_SOURCES, MAX_KEY_BYTES, MAX_PAGE_TOKEN_CHARS, MAX_SORTS, MAX_STRING_BYTES,
};
use crate::sort::RawSortValue;

/// Bytes that a token begins with: most need no more, and growing by doubling costs as much as the rest.
const FIRST_ROOM: usize = 96;

/// 1 was that of tokens whose document keys were other bytes, 2 that of tokens without a design.
const FORMAT: u8 = 3;
const MISSING: u8 = 0;
const NUMBER: u8 = 1;
const BYTES: u8 = 2;

// The longest token that an order can make has to be accepted.
const _: () = assert!(MAX_COMPOSITE_SOURCES <= MAX_SORTS);
const _: () = assert!(
    (26 + MAX_SORTS * (5 + MAX_STRING_BYTES) + 5 + MAX_KEY_BYTES).div_ceil(3) * 4 <= MAX_PAGE_TOKEN_CHARS
);

/// The request and the design of the index that a page token belongs to, as fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageOrigin {
    pub(crate) request: u64,
    pub(crate) design: u64,
}

/// The token of a position.
pub(crate) fn encode(origin: PageOrigin, sort_values: &[RawSortValue]) -> String {
    let mut bytes = Vec::with_capacity(FIRST_ROOM);
    bytes.push(FORMAT);
    bytes.extend(origin.request.to_le_bytes());
    bytes.extend(origin.design.to_le_bytes());
    bytes.push(sort_values.len() as u8);
    for sort_value in sort_values {
        match sort_value {
            RawSortValue::Missing => bytes.push(MISSING),
            RawSortValue::Number(number) => {
                bytes.push(NUMBER);
                bytes.extend(number.to_le_bytes());
            }
            RawSortValue::Bytes(string) => {
                bytes.push(BYTES);
                bytes.extend((string.len() as u32).to_le_bytes());
                bytes.extend(string);
            }
        }
    }
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The [design](crate::Index::token_design) of the index that gave a token, of a page of hits or of groups; `None` for anything that no
/// index has given. Whether the token is good is known when it is searched with.
pub fn token_design(token: &str) -> Option<u64> {
    if token.len() > MAX_PAGE_TOKEN_CHARS {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (content, checksum) = bytes.split_last_chunk::<8>()?;
    let mut rest = Rest(content);
    let is_whole = xxh3_64(content) == u64::from_le_bytes(*checksum) && rest.byte() == Some(FORMAT);
    let (_request, design) = (rest.number()?, rest.number()?);
    is_whole.then_some(design)
}

/// The position of a token.
///
/// # Errors
/// [`Error::PageTokenInvalid`] for anything that [`encode`] didn't make for this request.
pub(crate) fn decode(origin: PageOrigin, token: &str) -> Result<Vec<RawSortValue>, Error> {
    let invalid = |detail| Error::PageTokenInvalid { detail };
    if token.len() > MAX_PAGE_TOKEN_CHARS {
        return Err(invalid("it is too long"));
    }
    let bytes = URL_SAFE_NO_PAD.decode(token);
    let bytes = bytes.map_err(|_| invalid("it is not URL-safe base64"))?;
    let ends = bytes.split_last_chunk::<8>();
    let (content, checksum) = ends.ok_or_else(|| invalid("it is too short"))?;
    if xxh3_64(content) != u64::from_le_bytes(*checksum) {
        return Err(invalid("it was changed"));
    }
    let mut rest = Rest(content);
    if rest.byte() != Some(FORMAT) {
        return Err(invalid("its format is unknown"));
    }
    if rest.number() != Some(origin.request) {
        return Err(invalid("it belongs to another query or order"));
    }
    if rest.number() != Some(origin.design) {
        return Err(invalid("the index has been redesigned since it was given"));
    }
    rest.sort_values()
        .ok_or_else(|| invalid("its content is damaged"))
}

/// Bytes that are not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn sort_values(&mut self) -> Option<Vec<RawSortValue>> {
        let count = self.byte()?;
        let sort_values = (0..count).map(|_| self.sort_value());
        let sort_values = sort_values.collect::<Option<Vec<_>>>()?;
        self.0.is_empty().then_some(sort_values)
    }

    fn sort_value(&mut self) -> Option<RawSortValue> {
        match self.byte()? {
            MISSING => Some(RawSortValue::Missing),
            NUMBER => self.number().map(RawSortValue::Number),
            BYTES => {
                let length = u32::from_le_bytes(self.chunk()?);
                let (string, rest) = self.0.split_at_checked(length as usize)?;
                self.0 = rest;
                Some(RawSortValue::Bytes(string.to_vec()))
            }
            _ => None,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        self.chunk::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: PageOrigin = PageOrigin {
        request: 77,
        design: 5,
    };

    fn position() -> Vec<RawSortValue> {
        vec![
            RawSortValue::Missing,
            RawSortValue::Number(u64::MAX),
            RawSortValue::Bytes(Vec::new()),
            RawSortValue::Bytes(vec![0, 255, 7]),
        ]
    }

    #[test]
    fn a_token_tells_which_design_it_is_of() {
        let token = encode(ORIGIN, &[RawSortValue::Number(1)]);
        assert_eq!(token_design(&token), Some(ORIGIN.design));
        for other in ["", "AbC-_9", &token[1..], &format!("{token}A")] {
            assert_eq!(token_design(other), None, "{other}");
        }
    }

    #[test]
    fn a_token_comes_back_and_is_fit_for_a_url() {
        let token = encode(ORIGIN, &position());
        assert_eq!(decode(ORIGIN, &token).expect("a good token"), position());
        assert!(
            token
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        );
        assert_eq!(decode(ORIGIN, &encode(ORIGIN, &[])).expect("a good token"), []);
    }

    #[test]
    fn anything_else_is_refused() {
        let token = encode(ORIGIN, &position());
        for other in [
            "",
            "A",
            "====",
            "a b",
            "\u{fc}",
            &token[1..],
            &token[..token.len() - 1],
            &format!("{token}A"),
        ] {
            assert!(
                matches!(decode(ORIGIN, other), Err(Error::PageTokenInvalid { .. })),
                "{other}"
            );
        }
        for other in [
            PageOrigin {
                request: 78,
                ..ORIGIN
            },
            PageOrigin { design: 6, ..ORIGIN },
        ] {
            assert!(matches!(
                decode(other, &token),
                Err(Error::PageTokenInvalid { .. })
            ));
        }
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        for at in 0..token.len() {
            for letter in letters.iter().step_by(7) {
                let mut changed = token.clone().into_bytes();
                if changed[at] == *letter {
                    continue;
                }
                changed[at] = *letter;
                let changed = String::from_utf8(changed).expect("ASCII");
                assert!(decode(ORIGIN, &changed).is_err(), "{changed}");
            }
        }
        let long = "A".repeat(MAX_PAGE_TOKEN_CHARS + 1);
        assert!(matches!(
            decode(ORIGIN, &long),
            Err(Error::PageTokenInvalid {
                detail: "it is too long"
            })
        ));
    }

    #[test]
    fn the_checksum_alone_makes_no_token() {
        for content in [
            vec![2],
            vec![FORMAT],
            [&[FORMAT][..], &77_u64.to_le_bytes()].concat(),
            [
                &[FORMAT][..],
                &77_u64.to_le_bytes(),
                &5_u64.to_le_bytes(),
                &[1, 9],
            ]
            .concat(),
        ] {
            let mut bytes = content;
            bytes.extend(xxh3_64(&bytes).to_le_bytes());
            let token = URL_SAFE_NO_PAD.encode(bytes);
            assert!(matches!(
                decode(ORIGIN, &token),
                Err(Error::PageTokenInvalid { .. })
            ));
        }
    }
}
