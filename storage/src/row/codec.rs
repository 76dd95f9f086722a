//! The bytes of a row: format, revision (stamped by the commit), then the body that the change log shares:
//! time of the write, and each column with its versions. A version stands as the distance from the time of the
//! write, which is mostly one byte.

#[cfg(test)]
mod tests;

use crate::codec::{Malformed, Reader, put_bytes, put_value, put_varint, put_zigzag};
use crate::error::{Error, Result};
use crate::read::ColumnSelection;
use crate::row::{Cell, Columns, Row};
use crate::value::PrimaryKey;

/// First byte of a row.
pub(crate) const FORMAT: u8 = 1;
/// Format byte and revision.
pub(crate) const HEADER_BYTES: usize = 9;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// The row with a place for the revision, which holds the row's present one.
pub(crate) fn encode(row: &Row) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.push(FORMAT);
    out.extend_from_slice(&row.revision.to_be_bytes());
    put_body(&mut out, row);
    out
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
pub(crate) fn decode(key: PrimaryKey, bytes: &[u8], columns: &ColumnSelection) -> Result<Row> {
    let read = || -> Result<Row, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(Malformed("a row of format 1"));
        }
        let revision = reader.u64()?;
        read_body(key.clone(), revision, reader, columns)
    };
    read().map_err(|Malformed(expected)| Error::corrupt(format!("row {key:?}: expected {expected}")))
}

/// The row of a body in the change log.
pub(crate) fn decode_body(key: PrimaryKey, revision: u64, body: &[u8]) -> Result<Row, Malformed> {
    read_body(key, revision, Reader::new(body), &ColumnSelection::All)
}

fn read_body(
    key: PrimaryKey,
    revision: u64,
    mut reader: Reader<'_>,
    selection: &ColumnSelection,
) -> Result<Row, Malformed> {
    let written = reader.i64()?;
    let base = written.div_euclid(NANOS_PER_MILLI);
    let count = reader.count()?;
    let mut columns = Columns::with_capacity(count);
    for _ in 0..count {
        let name = reader.str()?;
        let versions = reader.count()?;
        let wanted = match selection {
            ColumnSelection::All => true,
            ColumnSelection::Named(names) => names.iter().any(|each| each == name),
        };
        if !wanted {
            for _ in 0..versions {
                reader.zigzag()?;
                reader.skip_value()?;
            }
            continue;
        }
        let mut cells = Vec::with_capacity(versions.min(16));
        for _ in 0..versions {
            let version = reader.zigzag()?.wrapping_add(base);
            cells.push(Cell {
                value: reader.value()?,
                version,
            });
        }
        columns.push(name.to_owned(), cells);
    }
    reader.finish()?;
    Ok(Row {
        key,
        revision,
        written,
        columns,
    })
}
