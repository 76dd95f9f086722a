//! Rows of writes: what a put, an update and a deletion may say, and what they say.

use bytes::Bytes;

use crate::error::Reason;
use crate::key::KeyUse;
use crate::limits;
use crate::messages::OperationType;
use crate::name::check_column;
use crate::plainbuffer::{CellOperation, PlainCell, PlainRow, decode_row};
use crate::value::{KeyColumn, Text, Value};

/// What a write does to one row.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange {
    /// Replaces the whole row.
    Put {
        /// The row; a column that isn't the first may be numbered by the server.
        key: Vec<KeyColumn>,
        /// Its cells.
        cells: Vec<PutCell>,
    },
    /// Changes some columns.
    Update {
        /// The row; a column that isn't the first may be numbered by the server.
        key: Vec<KeyColumn>,
        /// What is changed, at least one, in order.
        changes: Vec<CellChange>,
    },
    /// Deletes the row.
    Delete {
        /// The row.
        key: Vec<KeyColumn>,
    },
}

/// A cell that is put.
#[derive(Clone, Debug, PartialEq)]
pub struct PutCell {
    /// The column.
    pub column: Text,
    /// Its value; a double is finite.
    pub value: Value,
    /// Milliseconds since the Unix epoch; `None`: the server's time.
    pub version: Option<i64>,
}

/// What an update does to one column.
#[derive(Clone, Debug, PartialEq)]
pub enum CellChange {
    /// Writes a version.
    Put(PutCell),
    /// Deletes one version.
    DeleteVersion {
        /// The column.
        column: Text,
        /// Exactly this version, milliseconds since the Unix epoch.
        version: i64,
    },
    /// Deletes all versions.
    DeleteAll {
        /// The column.
        column: Text,
    },
    /// Adds to the newest INTEGER.
    Increment {
        /// The column.
        column: Text,
        /// What to add; may be negative.
        by: i64,
    },
}

impl RowChange {
    /// Reads the row of a write.
    ///
    /// # Errors
    /// What is wrong with the bytes, or with such a write of such a row.
    pub fn decode(kind: OperationType, bytes: Bytes) -> Result<Self, Reason> {
        let row = decode_row(bytes)?;
        match kind {
            OperationType::Put => Self::put(row),
            OperationType::Update => Self::update(row),
            OperationType::Delete => Self::delete(row),
        }
    }

    /// The row that it is about.
    #[must_use]
    pub fn key(&self) -> &[KeyColumn] {
        match self {
            Self::Put { key, .. } | Self::Update { key, .. } | Self::Delete { key } => key,
        }
    }

    fn put(row: PlainRow) -> Result<Self, Reason> {
        check(&row)?;
        let mut cells = Vec::with_capacity(row.cells.len());
        for cell in row.cells {
            if cell.operation.is_some() {
                return Err(Reason::PutOperation { name: cell.name });
            }
            cells.push(put_cell(cell)?);
        }
        Ok(Self::Put { key: row.key, cells })
    }

    fn update(row: PlainRow) -> Result<Self, Reason> {
        check(&row)?;
        if row.cells.is_empty() {
            return Err(Reason::UpdateWithoutCells);
        }
        let changes = row.cells.into_iter().map(cell_change).collect::<Result<_, _>>()?;
        Ok(Self::Update {
            key: row.key,
            changes,
        })
    }

    fn delete(row: PlainRow) -> Result<Self, Reason> {
        if !row.delete_marker {
            return Err(Reason::DeleteMarkerMissing);
        }
        if !row.cells.is_empty() {
            return Err(Reason::DeletionWithCells);
        }
        KeyUse::Delete.check(&row.key)?;
        Ok(Self::Delete { key: row.key })
    }
}

/// What holds of puts and updates alike.
fn check(row: &PlainRow) -> Result<(), Reason> {
    if row.delete_marker {
        return Err(Reason::DeleteMarkerUnexpected);
    }
    KeyUse::Write.check(&row.key)?;
    if row.cells.len() > limits::MAX_COLUMNS_PER_WRITE {
        return Err(Reason::TooManyColumns {
            limit: limits::MAX_COLUMNS_PER_WRITE,
            count: row.cells.len(),
        });
    }
    for cell in &row.cells {
        if cell.name.is_empty() {
            return Err(Reason::NoColumnName);
        }
        check_column(&cell.name)?;
        if row.key.iter().any(|column| column.name == cell.name) {
            return Err(Reason::DuplicatedColumn {
                name: cell.name.clone(),
            });
        }
        if cell
            .timestamp
            .is_some_and(|timestamp| timestamp >= i64::MAX / 1000)
        {
            return Err(Reason::TimestampOutOfRange);
        }
    }
    Ok(())
}

fn put_cell(cell: PlainCell) -> Result<PutCell, Reason> {
    let Some(value) = cell.value else {
        return Err(Reason::NoColumnValue { name: cell.name });
    };
    check_value(&cell.name, &value)?;
    Ok(PutCell {
        column: cell.name,
        value,
        version: cell.timestamp,
    })
}

fn check_value(name: &Text, value: &Value) -> Result<(), Reason> {
    match value {
        Value::Double(number) if number.is_nan() => Err(Reason::NotANumber),
        Value::Double(number) if number.is_infinite() => Err(Reason::Infinity),
        Value::String(_) | Value::Binary(_) if value.size() > limits::MAX_VALUE_BYTES => {
            Err(Reason::ValueTooLong {
                name: name.clone(),
                limit: limits::MAX_VALUE_BYTES,
                length: value.size(),
            })
        }
        _ => Ok(()),
    }
}

fn cell_change(cell: PlainCell) -> Result<CellChange, Reason> {
    let PlainCell { name: column, .. } = &cell;
    let column = column.clone();
    match (cell.operation, cell.value.as_ref(), cell.timestamp) {
        (None, _, _) => put_cell(cell).map(CellChange::Put),
        (Some(CellOperation::DeleteAllVersions | CellOperation::DeleteOneVersion), Some(_), _) => {
            Err(Reason::DeletionValue)
        }
        (Some(CellOperation::DeleteOneVersion), None, None) => Err(Reason::DeletionTimestampMissing),
        (Some(CellOperation::DeleteOneVersion), None, Some(version)) => {
            Ok(CellChange::DeleteVersion { column, version })
        }
        (Some(CellOperation::DeleteAllVersions), None, Some(_)) => Err(Reason::DeletionTimestamp),
        (Some(CellOperation::DeleteAllVersions), None, None) => Ok(CellChange::DeleteAll { column }),
        // An increment gets its version at write time.
        (Some(CellOperation::Increment), _, Some(_)) => Err(Reason::InvalidTimestamp { cell: column }),
        (Some(CellOperation::Increment), Some(Value::Integer(by)), None) => {
            Ok(CellChange::Increment { column, by: *by })
        }
        (Some(CellOperation::Increment), Some(value), None) => Err(Reason::InvalidAttributeType {
            kind: value.type_name().into(),
        }),
        (Some(CellOperation::Increment), None, None) => Err(Reason::CellValueMissing { cell: column }),
    }
}
