//! What is given back of a write: the sequence, the rows that were asked for, and what it cost.

use bytes::Bytes;

use crate::batch::{ColumnChange, ReturnRow, RowOperation};
use crate::codec::{Malformed, Reader, put_bytes, put_varint};
use crate::metering::{CapacityUnits, Meter};
use crate::row::{Row, codec};
use crate::value::PrimaryKey;

/// What a batch became.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Committed {
    /// Its place in the change log, and the revision of its rows. A batch that changed nothing (deletes of absent
    /// rows only) gets the last sequence it saw. For a repeated request: the sequence of the first time.
    pub sequence: u64,
    /// The reply of the first time when the request id was known; the batch was not applied again.
    pub replayed: Option<Bytes>,
    /// What became of each write, in their order; of the commit of a transaction, none. For a repeated request: what
    /// was given back the first time, none if that was recorded by a version that gave nothing back.
    pub rows: Vec<WrittenRow>,
    /// What all of it cost.
    pub consumed: CapacityUnits,
}

/// What became of one write.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WrittenRow {
    /// Sequence of the change that has it; `None` in a transaction that isn't committed.
    pub sequence: Option<u64>,
    /// Its primary key, unless [`ReturnRow::None`] was asked for.
    pub key: Option<PrimaryKey>,
    /// What was asked for by [`ReturnRow::AfterModify`] or [`ReturnRow::All`]; `None` when there is no row after the write.
    pub row: Option<Row>,
    /// What it cost; nothing when the request is a repeated one.
    pub consumed: CapacityUnits,
}

impl Committed {
    /// A batch that got this sequence.
    pub(crate) fn new(sequence: u64, mut rows: Vec<WrittenRow>) -> Self {
        for row in &mut rows {
            row.stamp(sequence);
        }
        Self {
            sequence,
            replayed: None,
            consumed: rows.iter().map(|row| row.consumed).sum(),
            rows,
        }
    }
}

impl WrittenRow {
    /// What is given back of a row that is `after` now.
    pub(crate) fn of(returning: &ReturnRow, key: &PrimaryKey, after: Option<&Row>) -> Self {
        let (key, row) = match returning {
            ReturnRow::None => (None, None),
            ReturnRow::Key => (Some(key.clone()), None),
            ReturnRow::AfterModify(columns) => {
                let row = after.map(|row| {
                    let mut row = row.clone();
                    row.columns_mut()
                        .retain_cells(|name, _, _| columns.iter().any(|each| each == name));
                    row
                });
                (Some(key.clone()), row)
            }
            ReturnRow::All => (Some(key.clone()), after.cloned()),
        };
        Self {
            key,
            row,
            ..Self::default()
        }
    }

    /// Bytes that count against [`crate::limits::MAX_RETURNED_BYTES`] and [`crate::limits::MAX_SHOWN_BYTES`].
    pub(crate) fn size(&self) -> usize {
        self.row.as_ref().map_or(0, Row::message_bytes)
    }

    /// Tells it the sequence of its commit.
    pub(crate) fn stamp(&mut self, sequence: u64) {
        self.sequence = Some(sequence);
        if let Some(row) = &mut self.row {
            row.revision = sequence;
        }
    }
}

/// Appends what was given back, for the request to be repeated.
pub(crate) fn encode(out: &mut Vec<u8>, rows: &[WrittenRow]) {
    put_varint(out, rows.len() as u64);
    for WrittenRow { key, row, .. } in rows {
        let key = key.as_ref().map(PrimaryKey::encode).unwrap_or_default();
        put_bytes(out, &key);
        let row = row.as_ref().map(codec::encode).unwrap_or_default();
        put_bytes(out, &row);
    }
}

/// What was given back by the request that got this sequence.
pub(crate) fn decode(reader: &mut Reader<'_>, sequence: u64) -> Result<Vec<WrittenRow>, Malformed> {
    let count = reader.count()?;
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        let (key, row) = (reader.bytes()?, reader.bytes()?);
        let mut written = WrittenRow::default();
        if !key.is_empty() {
            let key = PrimaryKey::decode(key).map_err(|_| Malformed("a primary key"))?;
            if let Some(body) = row.get(codec::HEADER_BYTES..) {
                written.row = Some(codec::decode_body(None, key.clone(), sequence, body)?);
            }
            written.key = Some(key);
        }
        written.stamp(sequence);
        rows.push(written);
    }
    Ok(rows)
}

/// Bytes that a write counts: its key, and names, values and versions of what it writes or deletes.
pub(crate) fn metered(meter: Meter, operation: &RowOperation, key: &PrimaryKey) -> usize {
    let columns: usize = match operation {
        RowOperation::Put { columns, .. } | RowOperation::Append { columns, .. } => {
            let columns = columns.iter();
            columns.map(|(name, value)| meter.cell(name, value.size())).sum()
        }
        RowOperation::PutCells { cells, .. } => {
            let cells = cells.iter();
            cells.map(|put| meter.cell(&put.column, put.value.size())).sum()
        }
        RowOperation::Update { changes, .. } => {
            let changes = changes.iter().map(|change| match change {
                ColumnChange::Put { column, value, .. } => meter.cell(column, value.size()),
                ColumnChange::Increment { column, by } => meter.cell(column, size_of_val(by)),
                ColumnChange::DeleteVersion { column, .. } | ColumnChange::DeleteAll { column } => {
                    meter.cell(column, 0)
                }
            });
            changes.sum()
        }
        RowOperation::Delete { .. } => 0,
    };
    meter.key(key) + columns
}
