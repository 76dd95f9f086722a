//! What is kept of a request, so that it can be repeated safely: format, sequence (stamped by the commit), fingerprint,
//! durability, what was given back of the rows (all of them, if the writer wants to answer so again), reply. Found by the request's id, and by its age for the sweep.
//! Format 1 had no rows.

use bytes::Bytes;
use souk_kv::Durability;

use crate::batch::{RequestRecord, WrittenRow, written};
use crate::codec::{Malformed, Reader};
use crate::error::{Error, Result};

const FORMAT: u8 = 2;
const FORMAT_WITHOUT_ROWS: u8 = 1;
const DISK: u8 = 1;
const BUFFERED: u8 = 2;

/// What the first request of an id left behind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Replay {
    pub(crate) sequence: u64,
    pub(crate) fingerprint: u64,
    pub(crate) durability: Durability,
    pub(crate) rows: Vec<WrittenRow>,
    pub(crate) reply: Bytes,
}

/// The bytes; the sequence stands where the commit stamps it.
pub(crate) fn encode(
    sequence: u64,
    durability: Durability,
    rows: &[WrittenRow],
    request: &RequestRecord,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(24 + 2 * rows.len() + request.reply.len());
    out.push(FORMAT);
    out.extend_from_slice(&sequence.to_be_bytes());
    out.extend_from_slice(&request.fingerprint.to_be_bytes());
    out.push(match durability {
        Durability::Disk => DISK,
        Durability::Buffered => BUFFERED,
    });
    written::encode(&mut out, rows);
    out.extend_from_slice(&request.reply);
    out
}

/// What the bytes say.
pub(crate) fn decode(bytes: &Bytes) -> Result<Replay> {
    let read = || -> Result<Replay, Malformed> {
        let mut reader = Reader::new(bytes);
        let format = reader.u8()?;
        if format != FORMAT && format != FORMAT_WITHOUT_ROWS {
            return Err(Malformed("a request of format 1 or 2"));
        }
        let sequence = reader.u64()?;
        Ok(Replay {
            sequence,
            fingerprint: reader.u64()?,
            durability: match reader.u8()? {
                DISK => Durability::Disk,
                BUFFERED => Durability::Buffered,
                _ => return Err(Malformed("a durability")),
            },
            rows: if format == FORMAT {
                written::decode(&mut reader, sequence)?
            } else {
                Vec::new()
            },
            reply: bytes.slice_ref(reader.rest()),
        })
    };
    read().map_err(|Malformed(expected)| Error::corrupt(format!("record of a request: expected {expected}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Cell, Columns, Row};
    use crate::value::{PrimaryKey, Value};

    fn request() -> RequestRecord {
        RequestRecord {
            id: [7; 16],
            fingerprint: 0x0102,
            reply: Bytes::from_static(b"ok"),
        }
    }

    #[test]
    fn keeps_golden_bytes() {
        let bytes = encode(3, Durability::Buffered, &[], &request());
        assert_eq!(
            bytes,
            [
                2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2, 2, 0, b'o', b'k'
            ]
        );
        let replay = Replay {
            sequence: 3,
            fingerprint: 0x0102,
            durability: Durability::Buffered,
            rows: Vec::new(),
            reply: request().reply,
        };
        assert_eq!(decode(&bytes.into()).ok(), Some(replay.clone()));
        let before = b"\x01\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\x01\x02\x02ok";
        assert_eq!(decode(&Bytes::from_static(before)).ok(), Some(replay));
    }

    #[test]
    fn keeps_what_was_given_back() {
        let key = PrimaryKey::integer(5);
        let cell = Cell {
            value: Value::Integer(8),
            version: 2,
        };
        let columns: Columns = [("c".to_owned(), cell)].into_iter().collect();
        let mut rows = [
            WrittenRow::default(),
            WrittenRow {
                key: Some(key.clone()),
                ..WrittenRow::default()
            },
            WrittenRow {
                row: Some(Row::new(key.clone(), 0, 7, columns)),
                key: Some(key),
                ..WrittenRow::default()
            },
        ];
        let bytes = encode(3, Durability::Disk, &rows, &request());
        let replay = decode(&bytes.into()).expect("a record");
        for row in &mut rows {
            row.stamp(3);
        }
        assert_eq!((replay.rows.as_slice(), &*replay.reply), (&rows[..], &b"ok"[..]));
    }

    #[test]
    fn refuses_what_it_did_not_write() {
        for bytes in [
            &b""[..],
            b"\x01",
            b"\x02abcdefghabcdefgh\x01",
            b"\x03abcdefghabcdefgh\x01",
            b"\x01abcdefghabcdefgh\x03",
        ] {
            assert!(matches!(
                decode(&Bytes::from_static(bytes)),
                Err(Error::Corrupt { .. })
            ));
        }
    }
}
