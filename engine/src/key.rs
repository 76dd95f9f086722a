//! Primary keys: of ids, and as the keys of documents.

use md5::{Digest as _, Md5};
use souk_storage::{KeyKind, KeyValue, PrimaryKey, TableSchema};

use crate::columns::CorruptRow;
use crate::hex;

/// Key column that spreads ids over the key space: their md5 in hexadecimal.
pub const HASH_COLUMN: &str = "_hash";
/// Key column with the id itself.
pub const ID_COLUMN: &str = "_id";

/// Longest key of a row of a searched table, bytes, as its document has it.
pub const MAX_DOCUMENT_KEY_BYTES: usize = souk_index::limits::MAX_KEY_BYTES;

/// Bytes of an md5 in hexadecimal.
const HASH_BYTES: usize = 32;

/// Tags in front of each value of a document key; their order is the order of the types. An id that stands alone has none.
const TAG_INTEGER: u8 = 1;
const TAG_STRING: u8 = 2;
const TAG_BINARY: u8 = 3;
/// Stands before an id that is empty, or could be taken for other values by its first byte.
const TAG_ID: u8 = 4;
/// Version of the encoding of document keys. It changes with the encoding, so that indexes with older keys are rebuilt.
pub(crate) const DOCUMENT_KEY_VERSION: u32 = 3;

/// Flipped in an INTEGER, so that negative numbers come first.
const SIGN: u64 = 1 << 63;
/// Ends a STRING or BINARY; a zero byte inside is followed by [`ESCAPE`], so that shorter values come first.
const END: [u8; 2] = [0, 0];
const ESCAPE: u8 = 0xff;

/// The primary key of an id: its md5 in hexadecimal, then the id itself, so that neighbouring ids don't make one part
/// of the key space hot.
///
/// # Errors
/// When the id is longer than a key column may be.
pub fn hashed(id: &str) -> Result<PrimaryKey, souk_storage::Error> {
    let hash = md5_hex(id);
    PrimaryKey::new([
        KeyValue::from(&*String::from_utf8_lossy(&hash)),
        KeyValue::from(id),
    ])
}

/// The id in a key of [`hashed`].
///
/// # Errors
/// When it isn't one: other columns, or a hash that isn't the id's.
pub fn hashed_id(key: &PrimaryKey) -> Result<String, CorruptRow> {
    match key.values() {
        [KeyValue::String(hash), KeyValue::String(id)] if is_hash(hash, id) => Ok(id.as_str().to_owned()),
        _ => Err(CorruptRow::new(
            ID_COLUMN,
            "the primary key isn't the md5 of an id and the id",
        )),
    }
}

/// The id in a key that is known to be one of [`hashed`], as all of a resource's table are: without computing the hash again.
pub(crate) fn id_of_hashed(key: &PrimaryKey) -> Option<&str> {
    match key.values() {
        [KeyValue::String(_), KeyValue::String(id)] => Some(id.as_str()),
        _ => None,
    }
}

/// A table whose keys are made by [`hashed`].
#[must_use]
pub fn hashed_table(name: &str) -> TableSchema {
    TableSchema::new(name)
        .key(HASH_COLUMN, KeyKind::String)
        .key(ID_COLUMN, KeyKind::String)
}

/// Whether the keys of a table are made by [`hashed`].
pub(crate) fn is_hashed(schema: &TableSchema) -> bool {
    let columns = schema.key.iter().map(|(name, kind)| (name.as_str(), *kind));
    columns.eq([(HASH_COLUMN, KeyKind::String), (ID_COLUMN, KeyKind::String)])
}

/// Whether a text is the md5 of an id, which isn't computed for what can't be one by its length.
fn is_hash(text: &str, id: &str) -> bool {
    text.len() == HASH_BYTES && text.as_bytes() == md5_hex(id)
}

/// The md5 of an id in hexadecimal: ASCII.
fn md5_hex(id: &str) -> [u8; HASH_BYTES] {
    let digest = Md5::digest(id.as_bytes());
    let mut digits = [0; HASH_BYTES];
    for (two, byte) in digits.as_chunks_mut().0.iter_mut().zip(digest) {
        *two = [hex::digit(byte >> 4), hex::digit(byte & 0xf)];
    }
    digits
}

/// A primary key as the key of a document: its byte order is the order of primary keys. Of a [`hashed`] key it is the id alone, whose
/// order that is then: an index keeps each key in dictionaries, where digits of a hash share nothing with their
/// neighbours, and people expect the order of ids. Being the id, it can be a field of the document, too
/// ([`souk_index::Field::key`]).
#[must_use]
pub fn to_document_key(key: &PrimaryKey) -> Vec<u8> {
    match key.values() {
        [KeyValue::String(hash), KeyValue::String(id)] if is_hash(hash, id) => {
            document_id(id.as_bytes().to_vec())
        }
        values => encode_values(values),
    }
}

/// The document key of a primary key that isn't one of [`hashed`]: its values, each behind its tag.
pub(crate) fn encode_values<'a>(values: impl IntoIterator<Item = &'a KeyValue>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    for value in values {
        match value {
            KeyValue::Integer(number) => {
                bytes.push(TAG_INTEGER);
                bytes.extend_from_slice(&(number.cast_unsigned() ^ SIGN).to_be_bytes());
            }
            KeyValue::String(text) => push_escaped(TAG_STRING, text.as_bytes(), &mut bytes),
            KeyValue::Binary(value) => push_escaped(TAG_BINARY, value, &mut bytes),
        }
    }
    bytes
}

/// [`to_document_key`] of a key that is known to be one of [`hashed`]: without computing the hash again.
pub(crate) fn hashed_document_key(key: &PrimaryKey) -> Vec<u8> {
    match id_of_hashed(key) {
        Some(id) => document_id(id.as_bytes().to_vec()),
        None => to_document_key(key),
    }
}

fn document_id(mut id: Vec<u8>) -> Vec<u8> {
    if id.first().is_none_or(|first| *first <= TAG_ID) {
        id.insert(0, TAG_ID);
    }
    id
}

/// Adds a tag, the escaped bytes of a value, and [`END`].
fn push_escaped(tag: u8, value: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(tag);
    for byte in value {
        bytes.push(*byte);
        if *byte == 0 {
            bytes.push(ESCAPE);
        }
    }
    bytes.extend_from_slice(&END);
}

/// The id in a document key that stands for one of [`hashed`], whose hash isn't computed.
pub(crate) fn hashed_document_id(document_key: &[u8]) -> Option<&str> {
    let id = match document_key {
        [TAG_ID, id @ ..] => id,
        [] | [0..TAG_ID, ..] => return None,
        id => id,
    };
    std::str::from_utf8(id).ok()
}

/// The row behind the key of a document as people name it: its id, or the values of its key.
pub(crate) fn document_name(document_key: &[u8]) -> Option<String> {
    if let Some(id) = hashed_document_id(document_key) {
        return Some(id.to_owned());
    }
    let key = from_document_key(document_key)?;
    let value = |value: &KeyValue| match value {
        KeyValue::String(text) => text.to_string(),
        KeyValue::Integer(number) => number.to_string(),
        KeyValue::Binary(bytes) => format!("{bytes:?}"),
    };
    Some(key.values().iter().map(value).collect::<Vec<_>>().join(", "))
}

/// The primary key in the key of a document; `None` when it isn't one of [`to_document_key`].
pub(crate) fn from_document_key(mut bytes: &[u8]) -> Option<PrimaryKey> {
    if let Some(id) = hashed_document_id(bytes) {
        return hashed(id).ok();
    }
    let mut values = Vec::with_capacity(2);
    while let Some((tag, rest)) = bytes.split_first() {
        let value;
        (value, bytes) = match *tag {
            TAG_INTEGER => {
                let (number, rest) = rest.split_first_chunk::<8>()?;
                (
                    KeyValue::Integer((u64::from_be_bytes(*number) ^ SIGN).cast_signed()),
                    rest,
                )
            }
            TAG_STRING => {
                let (value, rest) = unescape(rest)?;
                (KeyValue::from(String::from_utf8(value).ok()?), rest)
            }
            TAG_BINARY => {
                let (value, rest) = unescape(rest)?;
                (KeyValue::Binary(value.into()), rest)
            }
            _ => return None,
        };
        values.push(value);
    }
    PrimaryKey::new(values).ok()
}

/// A value and what follows its end.
fn unescape(mut bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::with_capacity(bytes.len());
    loop {
        match bytes {
            [0, 0, rest @ ..] => return Some((value, rest)),
            [0, ESCAPE, rest @ ..] => {
                value.push(0);
                bytes = rest;
            }
            [0, ..] | [] => return None,
            [byte, rest @ ..] => {
                value.push(*byte);
                bytes = rest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use souk_storage::{KeyValue, PrimaryKey};

    use super::{from_document_key, hashed, hashed_id, to_document_key};

    #[test]
    fn a_hashed_key_holds_its_id_and_refuses_another() {
        let key = hashed("o0000000000").expect("short");
        assert_eq!(key.values()[0].as_str(), Some("c49f5fd5aba33159accae0d3ecd749a7"));
        assert_eq!(hashed_id(&key), Ok("o0000000000".to_owned()));
        let wrong = PrimaryKey::new(vec![KeyValue::from("00"), KeyValue::from("o1")]).expect("short");
        assert!(hashed_id(&wrong).is_err());
        assert!(hashed(&"x".repeat(2_000)).is_err());
    }

    #[test]
    fn document_keys_are_in_the_order_of_primary_keys_and_come_back() {
        let values = [
            KeyValue::Integer(i64::MIN),
            KeyValue::Integer(-1),
            KeyValue::Integer(0),
            KeyValue::Integer(i64::MAX),
        ];
        let texts = [
            "",
            "\0",
            "\0\0",
            "\0a",
            "a",
            "a\0",
            "a\0b",
            "aa",
            "b",
            "奶茶",
            "\u{10ffff}",
        ];
        let mut keys: Vec<PrimaryKey> = Vec::new();
        for text in texts {
            for value in &values {
                let key = PrimaryKey::new(vec![KeyValue::from(text), value.clone()]).expect("short");
                keys.push(key);
            }
        }
        let ids = [
            "", "\0", "\x03a", "\x04", "\x04\x04", "\x05", "a", "a\0", "aa", "奶茶",
        ];
        let ids = ids.map(|id| hashed(id).expect("short"));
        for key in keys.iter().chain(&ids) {
            assert_eq!(from_document_key(&to_document_key(key)).as_ref(), Some(key));
        }
        assert!(ids.is_sorted_by_key(to_document_key), "by id, not by hash");
        assert_eq!(
            to_document_key(&ids[8]),
            b"aa",
            "the id itself, which a field can be"
        );
        let mut by_key = keys.clone();
        by_key.sort();
        let mut by_bytes = keys;
        by_bytes.sort_by_key(to_document_key);
        assert_eq!(by_key, by_bytes);
    }

    #[test]
    fn bytes_that_are_no_document_key_are_refused() {
        for bytes in [
            &b""[..],
            b"\0",
            b"\0a",
            b"\xff",
            b"\x01abc",
            b"\x02abc",
            b"\x02a\0",
            b"\x02a\0\x01\0\0",
            b"\x02\xff\0\0",
            b"\x04\xff",
        ] {
            assert_eq!(from_document_key(bytes), None, "{bytes:?}");
        }
    }
}
