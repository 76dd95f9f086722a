//! What is kept of a request, so that it can be repeated safely: format, sequence (stamped by the commit), fingerprint,
//! durability, reply. Found by the request's id, and by its age for the sweep.

use bytes::Bytes;

use crate::batch::{Durability, RequestRecord};
use crate::codec::{Malformed, Reader};
use crate::error::{Error, Result};

const FORMAT: u8 = 1;
const DISK: u8 = 1;
const BUFFERED: u8 = 2;

/// What the first request of an id left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replay {
    pub(crate) sequence: u64,
    pub(crate) fingerprint: u64,
    pub(crate) durability: Durability,
    pub(crate) reply: Bytes,
}

/// The bytes; the sequence stands where the commit stamps it.
pub(crate) fn encode(sequence: u64, durability: Durability, request: &RequestRecord) -> Vec<u8> {
    let mut out = Vec::with_capacity(18 + request.reply.len());
    out.push(FORMAT);
    out.extend_from_slice(&sequence.to_be_bytes());
    out.extend_from_slice(&request.fingerprint.to_be_bytes());
    out.push(match durability {
        Durability::Disk => DISK,
        Durability::Buffered => BUFFERED,
    });
    out.extend_from_slice(&request.reply);
    out
}

/// What the bytes say.
pub(crate) fn decode(bytes: &Bytes) -> Result<Replay> {
    let read = || -> Result<Replay, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(Malformed("a request of format 1"));
        }
        Ok(Replay {
            sequence: reader.u64()?,
            fingerprint: reader.u64()?,
            durability: match reader.u8()? {
                DISK => Durability::Disk,
                BUFFERED => Durability::Buffered,
                _ => return Err(Malformed("a durability")),
            },
            reply: bytes.slice_ref(reader.rest()),
        })
    };
    read().map_err(|Malformed(expected)| Error::corrupt(format!("record of a request: expected {expected}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_golden_bytes() {
        let request = RequestRecord {
            id: [7; 16],
            fingerprint: 0x0102,
            reply: Bytes::from_static(b"ok"),
        };
        let bytes = encode(3, Durability::Buffered, &request);
        assert_eq!(
            bytes,
            [1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2, 2, b'o', b'k']
        );
        assert_eq!(
            decode(&bytes.into()).ok(),
            Some(Replay {
                sequence: 3,
                fingerprint: 0x0102,
                durability: Durability::Buffered,
                reply: request.reply
            })
        );
    }

    #[test]
    fn refuses_what_it_did_not_write() {
        for bytes in [
            &b""[..],
            b"\x01",
            b"\x02abcdefghabcdefgh\x01",
            b"\x01abcdefghabcdefgh\x03",
        ] {
            assert!(matches!(
                decode(&Bytes::from_static(bytes)),
                Err(Error::Corrupt { .. })
            ));
        }
    }
}
