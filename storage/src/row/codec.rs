//! The bytes of a row: format, revision (stamped by the commit), then the body that the change log shares:
//! time of the write, and each column with its versions. A version stands as the distance from the time of the
//! write, which is mostly one byte.

#[cfg(test)]
mod tests;

use crate::codec::{Malformed, Reader, put_bytes, put_value, put_varint, put_zigzag};
use crate::error::{Error, Result};
use crate::row::columns::Cells;
use crate::row::{Cell, Columns, Row};
use crate::value::PrimaryKey;

/// First byte of a row.
pub(crate) const FORMAT: u8 = 1;
/// Format byte and revision.
pub(crate) const HEADER_BYTES: usize = 9;

/// Time of the write and number of columns.
const BODY_BYTES: usize = 10;
/// Length of a short name and number of versions.
const COLUMN_BYTES: usize = 2;
/// Distance of a version, and tag and length of a value. A small number takes fewer bytes than [`Value::size`](crate::Value::size)
/// says.
const CELL_BYTES: usize = 6;

/// Most columns or versions that memory is reserved for before they are read: a damaged count must not cost memory.
const MAX_RESERVED: usize = 64;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// The stored row. A commit overwrites its revision with the sequence.
pub(crate) fn encode(row: &Row) -> Vec<u8> {
    let mut out = Vec::with_capacity(capacity(row));
    out.push(FORMAT);
    out.extend_from_slice(&row.revision.to_be_bytes());
    put_body(&mut out, row);
    out
}

/// Bytes that the row takes at most, unless names and values are unusually long.
fn capacity(row: &Row) -> usize {
    let cells = |cells: &[Cell]| {
        cells
            .iter()
            .map(|cell| CELL_BYTES + cell.value.size())
            .sum::<usize>()
    };
    let columns = row.columns().iter();
    let columns = columns.map(|(name, each)| COLUMN_BYTES + name.len() + cells(each));
    HEADER_BYTES + BODY_BYTES + columns.sum::<usize>()
}

fn put_body(out: &mut Vec<u8>, row: &Row) {
    out.extend_from_slice(&row.written.to_be_bytes());
    put_varint(out, row.columns().len() as u64);
    let base = row.written.div_euclid(NANOS_PER_MILLI);
    for (name, cells) in row.columns().iter() {
        put_bytes(out, name.as_bytes());
        put_varint(out, cells.len() as u64);
        for cell in cells {
            put_zigzag(out, cell.version.wrapping_sub(base));
            put_value(out, &cell.value);
        }
    }
}

/// The row of a value in the rows space.
pub(crate) fn decode(key: PrimaryKey, bytes: &[u8]) -> Result<Row> {
    decode_after(None, key, bytes, usize::MAX)
}

/// The same, given a row of the same table, whose columns are taken to have the same names: then they aren't made
/// anew. Of each column the newest `versions` are kept at most.
pub(crate) fn decode_after(
    other: Option<&Row>,
    key: PrimaryKey,
    bytes: &[u8],
    versions: usize,
) -> Result<Row> {
    let read = || -> Result<_, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(Malformed("a row of format 1"));
        }
        let revision = reader.u64()?;
        let (written, columns) = read_body(reader, versions, other.map(Row::columns))?;
        Ok((revision, written, columns))
    };
    match read() {
        Ok((revision, written, columns)) => Ok(Row::new(key, revision, written, columns)),
        Err(Malformed(expected)) => Err(Error::corrupt(format!("row {key:?}: expected {expected}"))),
    }
}

/// The row of a body in the change log, given another as in [`decode_after`].
pub(crate) fn decode_body(
    other: Option<&Row>,
    key: PrimaryKey,
    revision: u64,
    body: &[u8],
) -> Result<Row, Malformed> {
    let (written, columns) = read_body(Reader::new(body), usize::MAX, other.map(Row::columns))?;
    Ok(Row::new(key, revision, written, columns))
}

/// Time of the write, and the columns, each with so many of its versions at most.
fn read_body(
    mut reader: Reader<'_>,
    most: usize,
    other: Option<&Columns>,
) -> Result<(i64, Columns), Malformed> {
    let written = reader.i64()?;
    let base = written.div_euclid(NANOS_PER_MILLI);
    let count = reader.count()?;
    let mut columns = Columns::with_capacity(count.min(MAX_RESERVED));
    for _ in 0..count {
        let name = reader.bytes()?;
        let versions = reader.count()?;
        let known = other.and_then(|other| other.name(columns.len()));
        let name = match known {
            Some(known) if known.as_bytes() == name => known.clone(),
            _ => std::str::from_utf8(name).map_err(|_| Malformed("UTF-8"))?.into(),
        };
        let kept = versions.min(most);
        let cells = if kept == 1 {
            Cells::from_buf([cell(&mut reader, base)?])
        } else {
            let mut cells = Cells::with_capacity(kept.min(MAX_RESERVED));
            for _ in 0..kept {
                cells.push(cell(&mut reader, base)?);
            }
            cells
        };
        for _ in kept..versions {
            reader.varint()?;
            reader.skip_value()?;
        }
        columns.push(name, cells);
    }
    reader.finish()?;
    Ok((written, columns))
}

#[inline]
fn cell(reader: &mut Reader<'_>, base: i64) -> Result<Cell, Malformed> {
    let version = reader.zigzag()?.wrapping_add(base);
    let value = reader.value()?;
    Ok(Cell { value, version })
}
