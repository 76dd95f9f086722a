//! Decodes rows.

use bytes::Bytes;

use super::{CellOperation, HEADER, PlainBufferError, PlainCell, PlainRow, SequenceInfo, tag};
use crate::crc8::Crc8;
use crate::limits;
use crate::reader::{Reader, ReaderError};
use crate::value::{KeyColumn, KeyElement, Text, Value};

type Result<T, E = PlainBufferError> = std::result::Result<T, E>;

/// Decodes a buffer of exactly one row; zeros may follow. Binary values are slices of `bytes`, which they keep alive.
///
/// # Errors
/// Damaged bytes; [`PlainBufferError::NoRow`], [`PlainBufferError::TooManyRows`].
pub fn decode_row(bytes: Bytes) -> Result<PlainRow> {
    let mut rows = rows(bytes, 1)?;
    rows.pop().ok_or(PlainBufferError::NoRow)
}

/// Decodes a buffer of rows, at most [`limits::MAX_ROWS`]; an empty one has none. Binary values are slices of `bytes`, as of
/// [`decode_row`].
///
/// # Errors
/// Damaged bytes; [`PlainBufferError::TooManyRows`].
pub fn decode_rows(bytes: Bytes) -> Result<Vec<PlainRow>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    rows(bytes, limits::MAX_ROWS)
}

/// Decodes a header and at most `max_rows` rows.
fn rows(bytes: Bytes, max_rows: usize) -> Result<Vec<PlainRow>> {
    let mut reader = Reader::new(bytes);
    match reader.u32() {
        Ok(HEADER) => {}
        Ok(other) => return Err(PlainBufferError::Header(other)),
        Err(_) => return Err(PlainBufferError::Truncated),
    }
    let mut decoder = Decoder { reader, next: None };
    decoder.advance();
    let mut rows = Vec::new();
    while decoder.next.is_some() {
        if rows.len() == max_rows {
            return Err(PlainBufferError::TooManyRows(max_rows));
        }
        rows.push(decoder.row()?);
        if max_rows == 1 {
            decoder.skip_padding();
        }
    }
    Ok(rows)
}

/// A recursive-descent decoder with one tag of lookahead; `reader` stands right behind that tag.
struct Decoder {
    reader: Reader,
    /// The tag that was read and not consumed yet; `None` at the end.
    next: Option<u8>,
}

impl From<ReaderError> for PlainBufferError {
    fn from(damage: ReaderError) -> Self {
        match damage {
            ReaderError::Length(length) => Self::Length(length),
            // Only names are read outside of values.
            ReaderError::Utf8 => Self::NameEncoding,
            // Types and booleans are only in values, whose errors name their column: see [`PlainBufferError::from_damage`].
            ReaderError::Truncated | ReaderError::Type(_) | ReaderError::Boolean => Self::Truncated,
        }
    }
}

impl Decoder {
    /// Reads the next tag. All that belongs to the present one has to be read before.
    fn advance(&mut self) {
        self.next = self.reader.byte().ok();
    }

    /// Takes zeros alone for the end: Node's package counts more bytes for placeholders and timestamps than it writes.
    fn skip_padding(&mut self) {
        if self.next == Some(0) && self.reader.is_zero() {
            self.next = None;
        }
    }

    /// Consumes `tag` if it is next, and says whether it was.
    fn take(&mut self, tag: u8) -> bool {
        let here = self.next == Some(tag);
        if here {
            self.advance();
        }
        here
    }

    /// Checks that `expected` is next, without consuming it.
    fn expect(&self, expected: u8) -> Result<()> {
        match self.next {
            Some(found) if found == expected => Ok(()),
            Some(found) => Err(PlainBufferError::Tag { found, expected }),
            None => Err(PlainBufferError::Truncated),
        }
    }

    fn row(&mut self) -> Result<PlainRow> {
        let mut row = PlainRow::default();
        let mut crc = Crc8::default();
        self.expect(tag::ROW_KEY)?;
        self.advance();
        while self.next == Some(tag::CELL) {
            check_cell_count(&row)?;
            row.key.push(self.key_column(&mut crc)?);
        }
        if self.take(tag::ROW_DATA) {
            while self.next == Some(tag::CELL) {
                check_cell_count(&row)?;
                row.cells.push(self.cell(&mut crc)?);
            }
            if row.cells.is_empty() {
                return Err(PlainBufferError::NoCells);
            }
        }
        row.delete_marker = self.take(tag::DELETE_MARKER);
        crc.byte(u8::from(row.delete_marker));
        if self.next == Some(tag::EXTENSION) {
            row.sequence = extension(self.reader.binary()?)?;
            self.advance();
        }
        if self.next != Some(tag::ROW_CHECKSUM) {
            return Err(PlainBufferError::NoRowChecksum);
        }
        self.checksum(crc)?;
        Ok(row)
    }

    /// Reads the checksum whose tag is next, and compares it with `expected`.
    fn checksum(&mut self, expected: Crc8) -> Result<()> {
        let found = self.reader.byte()?;
        self.advance();
        if found == expected.0 {
            Ok(())
        } else {
            Err(PlainBufferError::Checksum {
                found,
                expected: expected.0,
            })
        }
    }

    /// Reads the name of the cell whose tag is next.
    fn name(&mut self, crc: &mut Crc8) -> Result<Text> {
        self.advance();
        self.expect(tag::CELL_NAME)?;
        let name = self.reader.text()?;
        self.advance();
        crc.bytes(name.as_bytes());
        Ok(name)
    }

    /// Reads the value whose tag is next: a length, and a value of exactly that length, which `read` decodes. `wrong_type` is the
    /// error of a type that can't be here.
    fn value<T>(
        &mut self,
        name: &Text,
        wrong_type: fn(Text) -> PlainBufferError,
        read: impl FnOnce(&mut Reader) -> Result<T, ReaderError>,
    ) -> Result<T> {
        let length = self.reader.u32()?;
        let before = self.reader.remaining();
        let value = read(&mut self.reader)
            .map_err(|damage| PlainBufferError::from_damage(damage, name, wrong_type))?;
        if usize::try_from(length) != Ok(before - self.reader.remaining()) {
            return Err(PlainBufferError::ValueLength(name.clone()));
        }
        self.advance();
        Ok(value)
    }

    /// Reads the checksum of a cell, which is part of the row's checksum.
    fn cell_checksum(&mut self, name: &Text, crc: Crc8, row: &mut Crc8) -> Result<()> {
        if self.next != Some(tag::CELL_CHECKSUM) {
            return Err(PlainBufferError::NoCellChecksum(name.clone()));
        }
        row.byte(crc.0);
        self.checksum(crc)
    }

    fn key_column(&mut self, row: &mut Crc8) -> Result<KeyColumn> {
        let mut crc = Crc8::default();
        let name = self.name(&mut crc)?;
        if self.next != Some(tag::CELL_VALUE) {
            return Err(PlainBufferError::NoKeyValue(name));
        }
        let value = self.value(&name, PlainBufferError::KeyType, KeyElement::read)?;
        value.checksum(&mut crc);
        match self.next {
            Some(tag::CELL_OPERATION) => return Err(PlainBufferError::KeyOperation(name)),
            Some(tag::CELL_TIMESTAMP) => return Err(PlainBufferError::KeyTimestamp(name)),
            _ => {}
        }
        self.cell_checksum(&name, crc, row)?;
        Ok(KeyColumn { name, value })
    }

    fn cell(&mut self, row: &mut Crc8) -> Result<PlainCell> {
        let mut crc = Crc8::default();
        let name = self.name(&mut crc)?;
        let mut cell = PlainCell {
            name,
            value: None,
            operation: None,
            timestamp: None,
        };
        if self.next == Some(tag::CELL_VALUE) {
            let value = self.value(&cell.name, PlainBufferError::ValueType, Value::read)?;
            value.checksum(&mut crc);
            cell.value = Some(value);
        }
        if self.next == Some(tag::CELL_OPERATION) {
            let number = self.reader.byte()?;
            cell.operation =
                Some(CellOperation::from_number(number).ok_or(PlainBufferError::Operation(number))?);
            self.advance();
        }
        if self.next == Some(tag::CELL_TIMESTAMP) {
            let timestamp = self.reader.i64()?;
            if timestamp < 0 {
                return Err(PlainBufferError::Timestamp(cell.name));
            }
            cell.timestamp = Some(timestamp);
            self.advance();
        }
        super::encode::checksum_end(&mut crc, cell.operation, cell.timestamp);
        self.cell_checksum(&cell.name, crc, row)?;
        Ok(cell)
    }
}

/// Checks that the row may have one more cell: at most [`limits::MAX_ROW_CELLS`].
fn check_cell_count(row: &PlainRow) -> Result<()> {
    if row.key.len() + row.cells.len() < limits::MAX_ROW_CELLS {
        Ok(())
    } else {
        Err(PlainBufferError::TooManyCells)
    }
}

/// Decodes an extension: sequence info; parts that later versions of the protocol may add are skipped.
fn extension(bytes: Bytes) -> Result<Option<SequenceInfo>> {
    let mut reader = Reader::new(bytes);
    let mut sequence = None;
    while !reader.is_empty() {
        let tag = reader.byte()?;
        let part = reader.binary()?;
        if tag == tag::SEQUENCE {
            sequence = Some(sequence_info(part)?);
        }
    }
    Ok(sequence)
}

fn sequence_info(bytes: Bytes) -> Result<SequenceInfo> {
    let mut reader = Reader::new(bytes);
    let expect = |reader: &mut Reader, expected| match reader.byte()? {
        found if found == expected => Ok(()),
        found => Err(PlainBufferError::Tag { found, expected }),
    };
    expect(&mut reader, tag::SEQUENCE_EPOCH)?;
    let epoch = reader.u32()?;
    expect(&mut reader, tag::SEQUENCE_TIMESTAMP)?;
    let timestamp = reader.i64()?;
    expect(&mut reader, tag::SEQUENCE_ROW_INDEX)?;
    let row_index = reader.u32()?;
    Ok(SequenceInfo {
        epoch,
        timestamp,
        row_index,
    })
}
