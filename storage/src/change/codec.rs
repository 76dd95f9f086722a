//! The bytes of a change: format, sequence (stamped by the commit), time, trace, rows, and an xxh3 checksum of all but
//! format and sequence. After images, and what is told of deleted rows, are the bodies of `row::codec`; their revision is the sequence.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::change::{Change, ChangeKind, RowChange};
use crate::codec::{Malformed, Reader, put_bytes, put_varint};
use crate::error::{Error, Result};
use crate::id::TableId;
use crate::row::codec::{HEADER_BYTES, decode_body};
use crate::value::PrimaryKey;

const FORMAT: u8 = 1;
const CHECKSUM_BYTES: usize = 8;
/// What is around the rows, with a trace.
const HEAD_BYTES: usize = 128;

const PUT: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;

/// Writes a change row by row; the sequence is stamped later.
pub(crate) struct ChangeEncoder {
    out: Vec<u8>,
}

impl ChangeEncoder {
    /// A change of that many rows, which take about so many bytes.
    pub(crate) fn new(time: i64, trace: Option<&str>, rows: usize, bytes: usize) -> Self {
        let mut out = Vec::with_capacity(HEAD_BYTES + bytes);
        out.push(FORMAT);
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&time.to_be_bytes());
        put_bytes(&mut out, trace.unwrap_or_default().as_bytes());
        put_varint(&mut out, rows as u64);
        Self { out }
    }

    /// The next row: its encoded primary key, and its value in the rows space, or what is told of it when it was deleted.
    pub(crate) fn row(&mut self, table: TableId, kind: ChangeKind, key: &[u8], row: Option<&[u8]>) {
        put_varint(&mut self.out, u64::from(table.0));
        self.out.push(match kind {
            ChangeKind::Put => PUT,
            ChangeKind::Update => UPDATE,
            ChangeKind::Delete => DELETE,
        });
        put_bytes(&mut self.out, key);
        put_bytes(
            &mut self.out,
            row.and_then(|row| row.get(HEADER_BYTES..)).unwrap_or_default(),
        );
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// The log entry.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let checksum = xxh3_64(self.out.get(HEADER_BYTES..).unwrap_or_default());
        self.out.extend_from_slice(&checksum.to_be_bytes());
        self.out
    }
}

/// The change of a log entry found under `sequence`.
pub(crate) fn decode(sequence: u64, bytes: &[u8]) -> Result<Change> {
    decode_where(sequence, bytes, &|_, _, _| true)
}

/// Which rows of a change are wanted: by table, kind and encoded primary key.
pub(crate) type Wanted<'a> = &'a (dyn Fn(TableId, ChangeKind, &[u8]) -> bool + Send + Sync);

/// The change of a log entry with the wanted rows only; the others aren't decoded.
pub(crate) fn decode_where(sequence: u64, bytes: &[u8], wanted: Wanted<'_>) -> Result<Change> {
    let mut rows = Vec::new();
    let read = || -> Result<Change, Malformed> {
        let (time, trace) = read(sequence, bytes, |table, kind, key, image| {
            if wanted(table, kind, key) {
                let row = row_change(sequence, rows.last(), (table, kind), key, image)?;
                rows.push(row);
            }
            Ok(())
        })?;
        Ok(Change {
            sequence,
            time,
            trace: (!trace.is_empty()).then(|| trace.to_owned()),
            rows,
        })
    };
    read().map_err(|Malformed(expected)| Error::corrupt(format!("change {sequence}: expected {expected}")))
}

/// The tables of the rows of a log entry; none of these is decoded.
pub(crate) fn tables(sequence: u64, bytes: &[u8]) -> Result<BTreeSet<TableId>> {
    let mut tables = BTreeSet::new();
    let read = read(sequence, bytes, |table, _, _, _| {
        tables.insert(table);
        Ok(())
    });
    read.map(|_| tables)
        .map_err(|Malformed(expected)| Error::corrupt(format!("change {sequence}: expected {expected}")))
}

/// A part of a change.
#[derive(Debug)]
pub(crate) struct ChangePart {
    pub(crate) time: i64,
    pub(crate) trace: Option<String>,
    /// Its rows, each with its place among all rows of the change, from 0.
    pub(crate) rows: Vec<(usize, RowChange)>,
    /// About the bytes of them, as messages have rows.
    pub(crate) bytes: usize,
    /// The place of the first wanted row behind them; `None`: there is no more.
    pub(crate) next: Option<usize>,
}

/// The wanted rows (`None`: all) of a log entry from a place on, as many as `room` has bytes for, and one at least. The others aren't decoded.
pub(crate) fn decode_part(
    sequence: u64,
    bytes: &[u8],
    wanted: Option<Wanted<'_>>,
    from: usize,
    room: usize,
) -> Result<ChangePart> {
    let (mut rows, mut taken, mut next, mut place) = (Vec::<(usize, RowChange)>::new(), 0, None, 0);
    let read = read(sequence, bytes, |table, kind, key, image| {
        let at = place;
        place += 1;
        let is_wanted = || wanted.is_none_or(|wanted| wanted(table, kind, key));
        if at < from || next.is_some() || !is_wanted() {
            return Ok(());
        }
        let before = rows.last().map(|(_, row)| row);
        let row = row_change(sequence, before, (table, kind), key, image)?;
        let bytes = row.message_bytes();
        if !rows.is_empty() && taken + bytes > room {
            next = Some(at);
        } else {
            taken += bytes;
            rows.push((at, row));
        }
        Ok(())
    });
    let (time, trace) = read
        .map_err(|Malformed(expected)| Error::corrupt(format!("change {sequence}: expected {expected}")))?;
    Ok(ChangePart {
        time,
        trace: (!trace.is_empty()).then(|| trace.to_owned()),
        rows,
        bytes: taken,
        next,
    })
}

/// A row of a change behind another one: rows of a table mostly have columns of the same names.
fn row_change(
    sequence: u64,
    before: Option<&RowChange>,
    (table, kind): (TableId, ChangeKind),
    key: &[u8],
    image: &[u8],
) -> Result<RowChange, Malformed> {
    let key = PrimaryKey::decode(key).map_err(|_| Malformed("a primary key"))?;
    let bare = image.is_empty();
    let other = before.and_then(|row| row.row.as_ref());
    let image = |key: &PrimaryKey| decode_body(other, key.clone(), sequence, image);
    let (row, parting) = match kind {
        ChangeKind::Delete if bare => (None, None),
        ChangeKind::Delete => (None, Some(image(&key)?)),
        ChangeKind::Put | ChangeKind::Update => (Some(image(&key)?), None),
    };
    Ok(RowChange {
        table,
        key,
        kind,
        row,
        parting,
    })
}

/// Goes over a log entry without decoding its rows: table, kind and bytes of each. Gives the change's time.
pub(crate) fn outline(
    sequence: u64,
    bytes: &[u8],
    mut row: impl FnMut(TableId, ChangeKind, usize),
) -> Result<i64> {
    read(sequence, bytes, |table, kind, key, image| {
        row(table, kind, key.len() + image.len());
        Ok(())
    })
    .map(|(time, _)| time)
    .map_err(|Malformed(expected)| Error::corrupt(format!("change {sequence}: expected {expected}")))
}

/// When the change of a log entry was made, without reading its rows.
pub(crate) fn time(sequence: u64, bytes: &[u8]) -> Result<i64> {
    let read = || Reader::new(split(sequence, bytes)?).i64();
    read().map_err(|Malformed(expected)| Error::corrupt(format!("change {sequence}: expected {expected}")))
}

/// What the checksum of an entry found under `sequence` covers.
fn split(sequence: u64, bytes: &[u8]) -> Result<&[u8], Malformed> {
    let mut reader = Reader::new(bytes);
    if reader.u8()? != FORMAT {
        return Err(Malformed("a change of format 1"));
    }
    if reader.u64()? != sequence {
        return Err(Malformed("the sequence of its key"));
    }
    let (body, checksum) = reader
        .rest()
        .split_last_chunk::<CHECKSUM_BYTES>()
        .ok_or(Malformed("a checksum"))?;
    if xxh3_64(body) != u64::from_be_bytes(*checksum) {
        return Err(Malformed("another checksum"));
    }
    Ok(body)
}

/// Hands each row of a change to `row`: table, kind, encoded key, image. Gives the change's time and trace.
fn read(
    sequence: u64,
    bytes: &[u8],
    mut row: impl FnMut(TableId, ChangeKind, &[u8], &[u8]) -> Result<(), Malformed>,
) -> Result<(i64, &str), Malformed> {
    let mut reader = Reader::new(split(sequence, bytes)?);
    let time = reader.i64()?;
    let trace = reader.str()?;
    let count = reader.count()?;
    for _ in 0..count {
        let table = u32::try_from(reader.varint()?).map_err(|_| Malformed("a table"))?;
        let kind = match reader.u8()? {
            PUT => ChangeKind::Put,
            UPDATE => ChangeKind::Update,
            DELETE => ChangeKind::Delete,
            _ => return Err(Malformed("a kind of change")),
        };
        let key = reader.bytes()?;
        let image = reader.bytes()?;
        row(TableId(table), kind, key, image)?;
    }
    reader.finish()?;
    Ok((time, trace))
}
