//! The bytes of a background job: format, rows handled, the range it walks, and the key it goes on at.

use bytes::Bytes;

use super::{Job, JobCursor, JobKind};
use crate::codec::{Malformed, Reader, put_bytes, put_varint};
use crate::error::{Error, Result};
use crate::key;

const FORMAT: u8 = 1;

impl JobKind {
    /// The number of the kind in the key of a job.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::FillIndex => 1,
            Self::RemoveIndex => 2,
            Self::RemoveTable => 3,
            Self::TrimVersions => 4,
        }
    }

    /// The kind with this number; `None` when there is none.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::FillIndex),
            2 => Some(Self::RemoveIndex),
            3 => Some(Self::RemoveTable),
            4 => Some(Self::TrimVersions),
            _ => None,
        }
    }
}

/// The value of a job: format, rows handled, range, key it goes on at. Table, kind and index are in its key.
pub(super) fn encode(job: &Job) -> Vec<u8> {
    let mut out = vec![FORMAT];
    put_varint(&mut out, job.handled);
    out.push(job.cursor.range);
    put_bytes(&mut out, &job.cursor.low);
    out
}

pub(super) fn decode(key: &[u8], value: &Bytes) -> Result<Job> {
    let (table, kind, index) = key::job_of(key)?;
    let read = || -> Result<Job, Malformed> {
        let kind = JobKind::from_number(kind).ok_or(Malformed("a kind of job"))?;
        let mut reader = Reader::new(value);
        if reader.u8()? != FORMAT {
            return Err(Malformed("a job of format 1"));
        }
        let handled = reader.varint()?;
        let cursor = JobCursor {
            range: reader.u8()?,
            low: Bytes::copy_from_slice(reader.bytes()?),
        };
        reader.finish()?;
        Ok(Job {
            table,
            kind,
            handled,
            index,
            cursor,
        })
    };
    read().map_err(|Malformed(expected)| {
        Error::corrupt(format!("job of table number {}: expected {expected}", table.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TableId;

    #[test]
    fn keeps_golden_bytes() {
        let job = Job {
            table: TableId(0x0102),
            kind: JobKind::FillIndex,
            handled: 300,
            index: 7,
            cursor: JobCursor {
                range: 1,
                low: Bytes::from_static(b"key"),
            },
        };
        let key = key::job(job.table, job.kind.number(), job.index);
        assert_eq!(key[..], [0x11, 0, 0, 1, 2, 1, 0, 7]);
        let value = encode(&job);
        assert_eq!(value, [1, 0xac, 2, 1, 3, b'k', b'e', b'y']);
        for end in 0..value.len() {
            let cut = Bytes::copy_from_slice(&value[..end]);
            assert!(decode(&key, &cut).is_err(), "cut at {end}");
        }
        assert_eq!(decode(&key, &value.into()).unwrap(), job);
    }

    #[test]
    fn refuses_unknown_kinds() {
        let value = encode(&Job::new(TableId(1), JobKind::TrimVersions, 0)).into();
        let key = key::job(TableId(1), 9, 0);
        assert!(matches!(decode(&key, &value), Err(Error::Corrupt { .. })));
        assert!(matches!(decode(&key[..5], &value), Err(Error::Corrupt { .. })));
    }
}
