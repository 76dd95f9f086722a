//! Writing one row.

use bytes::Bytes;
use souk_engine::storage::{
    CellPut, ColumnChange, Condition, Error as StoreError, Existence, KeyValue, ReturnRow, RowOperation,
    TableSchema, WrittenRow,
};
use souk_engine::{EngineError, TableWrite};
use souk_tablestore::messages::{self, OperationType};
use souk_tablestore::{
    Answer, CellChange, KeyColumn, KeyElement, PutCell, Reason, Returning, RowChange, RowCondition,
    RowExistence, ServiceError, decode,
};

use crate::context::{Answered, Context};
use crate::entries::written_table;
use crate::error::{invalid, refused};
use crate::options::TransferRules;
use crate::read::consumed;
use crate::transaction;
use crate::value::{check_key, key_value, one_key, one_row, primary_key, stored};

/// What a request says about the write of a row, read without a look at the table.
pub(crate) struct AskedWrite {
    pub(crate) change: RowChange,
    pub(crate) condition: Condition,
    returning: Returning,
}

impl AskedWrite {
    /// The rules of its condition are among those of the request.
    pub(crate) fn read(
        kind: OperationType,
        row: Bytes,
        condition: messages::Condition,
        returning: Option<messages::ReturnContent>,
        rules: &mut TransferRules,
    ) -> Result<Self, ServiceError> {
        let change = RowChange::decode(kind, row)?;
        let condition = RowCondition::try_from(condition)?;
        Ok(Self {
            change,
            condition: Condition {
                existence: existence(condition.existence),
                revision: None,
                columns: condition.columns.map(|given| rules.filter(given)).transpose()?,
            },
            returning: returning.try_into()?,
        })
    }

    /// The write, of a table with this schema.
    pub(crate) fn write(self, schema: &TableSchema) -> Result<TableWrite, ServiceError> {
        let returning = match (&self.change, self.returning) {
            // No row is there behind it.
            (RowChange::Delete { .. }, Returning::AfterModify(_)) | (_, Returning::Nothing) => {
                ReturnRow::None
            }
            (_, Returning::AfterModify(columns)) if columns.is_empty() => ReturnRow::Key,
            (_, Returning::Key) => ReturnRow::Key,
            (_, Returning::AfterModify(columns)) => {
                ReturnRow::AfterModify(columns.iter().map(ToString::to_string).collect())
            }
        };
        let numbered = self
            .change
            .key()
            .iter()
            .any(|column| column.value == KeyElement::AutoIncrement);
        let is_update = matches!(self.change, RowChange::Update { .. });
        let operation = match self.change {
            RowChange::Put { key, cells } if numbered => append(schema, &key, cells, &self.condition)?,
            RowChange::Update { key, changes } if numbered => {
                append(schema, &key, puts_alone(changes)?, &self.condition)?
            }
            RowChange::Put { key, cells } => put(schema, &key, cells)?,
            RowChange::Update { key, changes } => RowOperation::Update {
                key: primary_key(schema, &key)?,
                changes: changes.into_iter().map(change).collect(),
            },
            RowChange::Delete { key } => RowOperation::Delete {
                key: primary_key(schema, &key)?,
            },
        };
        let is_write = !matches!(operation, RowOperation::Delete { .. });
        let existence = self.condition.existence;
        if is_write && !numbered && schema.auto_increment.is_some() && existence != Existence::MustExist {
            // Numbers are given by the server.
            return Err(Reason::AutoIncrementTableExpectation {
                expectation: expectation(existence).into(),
            }
            .into());
        }
        if is_update && !schema.allow_update {
            // Also of a row that is to be numbered, which is put to the engine.
            return Err(invalid("The table doesn't allow updates."));
        }
        Ok(TableWrite::new(operation)
            .when(self.condition)
            .returning(returning))
    }
}

fn put(schema: &TableSchema, key: &[KeyColumn], cells: Vec<PutCell>) -> Result<RowOperation, ServiceError> {
    let key = primary_key(schema, key)?;
    if cells.iter().any(|cell| cell.version.is_some()) {
        let cells = cells.into_iter().map(|cell| CellPut {
            column: cell.column.to_string(),
            value: stored(cell.value),
            version: cell.version,
        });
        return Ok(RowOperation::PutCells {
            key,
            cells: cells.collect(),
        });
    }
    Ok(RowOperation::Put {
        key,
        columns: columns(cells),
    })
}

/// A row that the server gives a number.
fn append(
    schema: &TableSchema,
    key: &[KeyColumn],
    cells: Vec<PutCell>,
    condition: &Condition,
) -> Result<RowOperation, ServiceError> {
    check_key(schema, key)?;
    let at = key
        .iter()
        .position(|column| column.value == KeyElement::AutoIncrement);
    if at != schema.auto_increment {
        return Err(Reason::KeySchemaMismatch.into());
    }
    if condition.existence != Existence::Ignore {
        let expectation = expectation(condition.existence).into();
        return Err(Reason::AutoIncrementExpectation { expectation }.into());
    }
    if condition.columns.is_some() {
        return Err(Reason::AutoIncrementCondition.into());
    }
    if cells.iter().any(|cell| cell.version.is_some()) {
        return Err(invalid(
            "Versions can't be given in a row with pk auto increment.",
        ));
    }
    let others: Vec<KeyValue> = key.iter().filter_map(|column| key_value(&column.value)).collect();
    Ok(RowOperation::Append {
        key: others,
        columns: columns(cells),
    })
}

/// What an update of a row that isn't there yet puts.
fn puts_alone(changes: Vec<CellChange>) -> Result<Vec<PutCell>, ServiceError> {
    let puts = changes.into_iter().map(|change| match change {
        CellChange::Put(cell) => Ok(cell),
        CellChange::DeleteVersion { .. } | CellChange::DeleteAll { .. } | CellChange::Increment { .. } => {
            Err(invalid(
                "Only columns can be put in a row with pk auto increment.",
            ))
        }
    });
    puts.collect()
}

fn columns(cells: Vec<PutCell>) -> Vec<(souk_engine::storage::ColumnName, souk_engine::storage::Value)> {
    let cells = cells.into_iter();
    cells
        .map(|cell| (cell.column.as_str().into(), stored(cell.value)))
        .collect()
}

fn change(change: CellChange) -> ColumnChange {
    match change {
        CellChange::Put(cell) => ColumnChange::Put {
            column: cell.column.to_string(),
            value: stored(cell.value),
            version: cell.version,
        },
        CellChange::DeleteVersion { column, version } => ColumnChange::DeleteVersion {
            column: column.to_string(),
            version,
        },
        CellChange::DeleteAll { column } => ColumnChange::DeleteAll {
            column: column.to_string(),
        },
        CellChange::Increment { column, by } => ColumnChange::Increment {
            column: column.to_string(),
            by,
        },
    }
}

fn existence(given: RowExistence) -> Existence {
    match given {
        RowExistence::Ignore => Existence::Ignore,
        RowExistence::Expected => Existence::MustExist,
        RowExistence::NotExpected => Existence::MustNotExist,
    }
}

/// As texts name it.
fn expectation(given: Existence) -> &'static str {
    match given {
        Existence::Ignore => "IGNORE",
        Existence::MustExist => "EXPECT_EXIST",
        Existence::MustNotExist => "EXPECT_NOT_EXIST",
    }
}

/// Puts a row.
pub(crate) async fn put_row(context: &Context, body: Bytes) -> Answered {
    let request: messages::PutRowRequest = decode(body).map_err(Reason::from)?;
    let asked = AskedWrite::read(
        OperationType::Put,
        request.row,
        request.condition,
        request.return_content,
        &mut TransferRules::default(),
    )?;
    let transaction = request.transaction_id.as_deref();
    let (row, written) = one(context, &request.table_name, asked, transaction).await?;
    Ok(Answer::ok(&messages::PutRowResponse {
        consumed: consumed(written.consumed),
        row,
    }))
}

/// Updates a row.
pub(crate) async fn update_row(context: &Context, body: Bytes) -> Answered {
    let request: messages::UpdateRowRequest = decode(body).map_err(Reason::from)?;
    let asked = AskedWrite::read(
        OperationType::Update,
        request.row_change,
        request.condition,
        request.return_content,
        &mut TransferRules::default(),
    )?;
    let transaction = request.transaction_id.as_deref();
    let (row, written) = one(context, &request.table_name, asked, transaction).await?;
    Ok(Answer::ok(&messages::UpdateRowResponse {
        consumed: consumed(written.consumed),
        row,
    }))
}

/// Deletes a row.
pub(crate) async fn delete_row(context: &Context, body: Bytes) -> Answered {
    let request: messages::DeleteRowRequest = decode(body).map_err(Reason::from)?;
    let asked = AskedWrite::read(
        OperationType::Delete,
        request.primary_key,
        request.condition,
        request.return_content,
        &mut TransferRules::default(),
    )?;
    let transaction = request.transaction_id.as_deref();
    let (row, written) = one(context, &request.table_name, asked, transaction).await?;
    Ok(Answer::ok(&messages::DeleteRowResponse {
        consumed: consumed(written.consumed),
        row,
    }))
}

async fn one(
    context: &Context,
    table_name: &str,
    asked: AskedWrite,
    transaction: Option<&str>,
) -> Result<(Option<Bytes>, WrittenRow), ServiceError> {
    let table = written_table(context, table_name)?;
    let definition = table.definition();
    let is_put = matches!(asked.change, RowChange::Put { .. });
    let write = asked.write(&definition.schema)?;
    let returning = write.returning.clone();
    let refused = |error| too_large(error, is_put);
    let written = match transaction::id(context, table_name, transaction)? {
        Some(id) => {
            let written = table.write_in(id, vec![write], false).await.map_err(refused)?;
            written.into_iter().next().transpose().map_err(refused)?
        }
        None => {
            let written = table.write(vec![write], None).await.map_err(refused)?;
            written.value.into_iter().next()
        }
    };
    let written = written.unwrap_or_default();
    Ok((returned(&definition.schema, &returning, &written), written))
}

/// What a write gives back of its row.
pub(crate) fn returned(schema: &TableSchema, asked: &ReturnRow, written: &WrittenRow) -> Option<Bytes> {
    match asked {
        ReturnRow::None => None,
        ReturnRow::Key => written.key.as_ref().map(|key| one_key(schema, key)),
        ReturnRow::AfterModify(_) | ReturnRow::All => {
            written.row.as_ref().map(|row| one_row(schema, Some(row)))
        }
    }
}

/// A row that is larger than a write may be has a text of its own.
fn too_large(error: EngineError, is_put: bool) -> ServiceError {
    match error {
        EngineError::Storage(StoreError::LimitExceeded {
            limit: "MAX_BATCH_BYTES",
            max,
            actual,
        }) => match is_put {
            true => Reason::PutTooLarge {
                limit: max,
                size: actual,
            }
            .into(),
            false => Reason::UpdateTooLarge {
                limit: max,
                size: actual,
            }
            .into(),
        },
        error => refused(error),
    }
}
