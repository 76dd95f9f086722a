//! Encodes rows.

use bytes::{BufMut as _, Bytes, BytesMut};

use super::{CellOperation, HEADER, PlainRow, SequenceInfo, tag};
use crate::crc8::Crc8;
use crate::value::{KeyElement, Value, length};

/// Bytes of a sequence info: its three fields, each behind its tag.
const SEQUENCE_BYTES: u32 = 1 + 4 + 1 + 8 + 1 + 4;

/// Encodes rows, one after the other; no rows are no bytes, not even a header.
#[must_use]
pub fn encode<'a>(rows: impl IntoIterator<Item = &'a PlainRow>) -> Bytes {
    let mut encoder = PlainBufferEncoder::new();
    for row in rows {
        let mut out = encoder.row();
        for column in &row.key {
            out.key(&column.name, &column.value);
        }
        for cell in &row.cells {
            out.cell(&cell.name, cell.value.as_ref(), cell.operation, cell.timestamp);
        }
        out.finish(row.delete_marker, row.sequence);
    }
    encoder.finish()
}

/// Encodes rows without making a [`PlainRow`] of each.
#[derive(Debug, Default)]
pub struct PlainBufferEncoder {
    out: BytesMut,
}

impl PlainBufferEncoder {
    /// An encoder without rows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a row.
    pub fn row(&mut self) -> RowEncoder<'_> {
        if self.out.is_empty() {
            self.out.put_u32_le(HEADER);
        }
        self.out.put_u8(tag::ROW_KEY);
        RowEncoder {
            out: &mut self.out,
            crc: Crc8::default(),
            has_cells: false,
        }
    }

    /// Bytes so far, for the limit of a page of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether no row was begun.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The bytes of all rows.
    #[must_use]
    pub fn finish(self) -> Bytes {
        self.out.freeze()
    }
}

/// A row that is being written: its key, its cells, then [`RowEncoder::finish`].
#[derive(Debug)]
#[must_use = "a row isn't one before it is finished"]
pub struct RowEncoder<'a> {
    out: &'a mut BytesMut,
    crc: Crc8,
    has_cells: bool,
}

impl RowEncoder<'_> {
    /// A column of the primary key; all of them come before the first cell.
    pub fn key(&mut self, name: &str, value: &KeyElement) {
        debug_assert!(!self.has_cells, "a key column behind a cell");
        let mut crc = self.begin_cell(name);
        self.value(|out| value.write(out));
        value.checksum(&mut crc);
        self.end_cell(crc);
    }

    /// An attribute cell.
    pub fn cell(
        &mut self,
        name: &str,
        value: Option<&Value>,
        operation: Option<CellOperation>,
        timestamp: Option<i64>,
    ) {
        if !self.has_cells {
            self.has_cells = true;
            self.out.put_u8(tag::ROW_DATA);
        }
        let mut crc = self.begin_cell(name);
        if let Some(value) = value {
            self.value(|out| value.write(out));
            value.checksum(&mut crc);
        }
        if let Some(operation) = operation {
            self.out.put_slice(&[tag::CELL_OPERATION, operation.number()]);
        }
        if let Some(timestamp) = timestamp {
            self.out.put_u8(tag::CELL_TIMESTAMP);
            self.out.put_i64_le(timestamp);
        }
        checksum_end(&mut crc, operation, timestamp);
        self.end_cell(crc);
    }

    /// Ends the row. The checksum doesn't cover the sequence info.
    pub fn finish(mut self, delete_marker: bool, sequence: Option<SequenceInfo>) {
        if delete_marker {
            self.out.put_u8(tag::DELETE_MARKER);
        }
        self.crc.byte(u8::from(delete_marker));
        if let Some(sequence) = sequence {
            self.out.put_u8(tag::EXTENSION);
            self.out.put_u32_le(1 + 4 + SEQUENCE_BYTES);
            self.out.put_u8(tag::SEQUENCE);
            self.out.put_u32_le(SEQUENCE_BYTES);
            self.out.put_u8(tag::SEQUENCE_EPOCH);
            self.out.put_u32_le(sequence.epoch);
            self.out.put_u8(tag::SEQUENCE_TIMESTAMP);
            self.out.put_i64_le(sequence.timestamp);
            self.out.put_u8(tag::SEQUENCE_ROW_INDEX);
            self.out.put_u32_le(sequence.row_index);
        }
        self.out.put_slice(&[tag::ROW_CHECKSUM, self.crc.0]);
    }

    /// Writes the name of a cell, and returns the checksum so far.
    fn begin_cell(&mut self, name: &str) -> Crc8 {
        self.out.put_slice(&[tag::CELL, tag::CELL_NAME]);
        self.out.put_u32_le(length(name.len()));
        self.out.put_slice(name.as_bytes());
        let mut crc = Crc8::default();
        crc.bytes(name.as_bytes());
        crc
    }

    /// Writes a value behind its length, which is known only once `write` is done.
    fn value(&mut self, write: impl FnOnce(&mut BytesMut)) {
        self.out.put_u8(tag::CELL_VALUE);
        let at = self.out.len();
        self.out.put_u32_le(0);
        write(self.out);
        let bytes = length(self.out.len() - at - 4);
        if let Some(place) = self.out.get_mut(at..at + 4) {
            place.copy_from_slice(&bytes.to_le_bytes());
        }
    }

    /// Writes the checksum of a cell, which the row's covers.
    fn end_cell(&mut self, crc: Crc8) {
        self.out.put_slice(&[tag::CELL_CHECKSUM, crc.0]);
        self.crc.byte(crc.0);
    }
}

/// Adds what follows a cell's value to its checksum: the timestamp before the operation, though they are written the other way round.
pub(super) fn checksum_end(crc: &mut Crc8, operation: Option<CellOperation>, timestamp: Option<i64>) {
    if let Some(timestamp) = timestamp {
        crc.bytes(&timestamp.to_le_bytes());
    }
    if let Some(operation) = operation {
        crc.byte(operation.number());
    }
}
