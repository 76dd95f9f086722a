//! The changes of indexes, kept in a table of the store: a restart, a backup and a restore keep them.

use souk_proto::search::v1::IndexChange;
use souk_storage::{Condition, Database, KeyKind, PrimaryKey, RowOperation, Table, TableSchema, WriteBatch};

use crate::columns::{ColumnReader, Columns};
use crate::error::Result;

/// The table, which no resource can have: its name begins as those of the engine do.
const TABLE: &str = "_index_changes";
const NAME: &str = "index";
const CHANGES: &str = "changes";

/// The changes of one index, in order.
pub(crate) type KeptChanges = Vec<IndexChange>;

/// How they stand in their column.
#[derive(Clone, PartialEq, prost::Message)]
struct ChangesColumn {
    #[prost(message, repeated, tag = "1")]
    changes: Vec<IndexChange>,
}

/// The changes of the index of a table.
///
/// # Errors
/// What the store refuses; when what it has isn't what was written.
pub(crate) async fn read(database: &Database, index: &str) -> Result<KeptChanges> {
    let Some(table) = database.table(TABLE) else {
        return Ok(Vec::new());
    };
    let row = database
        .snapshot()
        .await?
        .get(&table, &PrimaryKey::string(index)?)
        .await?;
    let Some(row) = row else {
        return Ok(Vec::new());
    };
    let column: ChangesColumn = ColumnReader::of_row(&row).message(CHANGES)?;
    Ok(column.changes)
}

/// Keeps the changes of the index of a table, durably.
///
/// # Errors
/// What the store refuses.
pub(super) async fn write(database: &Database, index: &str, changes: &[IndexChange]) -> Result<()> {
    let table = table(database).await?;
    let column = ChangesColumn {
        changes: changes.to_vec(),
    };
    let columns = Columns::new().message(CHANGES, &column).into_cells();
    let put = RowOperation::Put {
        key: PrimaryKey::string(index)?,
        columns,
    };
    database
        .write(WriteBatch::of(&table, put, Condition::none()))
        .await?;
    Ok(())
}

async fn table(database: &Database) -> Result<Table> {
    let schema = TableSchema::new(TABLE).key(NAME, KeyKind::String);
    Ok(database.ensure_table(schema).await?)
}
