//! The catalog: definitions of tables that are created at run time. It is a table of the store, so that restarts, backups and
//! restores keep it.
//!
//! The store keeps the schema of a definition; the catalog keeps the rest. An entry that isn't complete is of a table whose creation
//! hasn't ended, one without a table in the store of a table whose drop hasn't: both are removed by dropping it, by creating it
//! again, or by the next opening.

use std::path::Path;

use serde::{Deserialize, Serialize};
use souk_storage::{
    Condition, Database, Direction, KeyKind, KeyValue, PrimaryKey, RangeRequest, Row, RowOperation, Table,
    TableSchema, WriteBatch,
};

use crate::columns::{ColumnReader, Columns, CorruptRow};
use crate::definition::check::limit;
use crate::definition::{
    ColumnDefinition, MAX_DEFINITION_BYTES, OwnerDefinition, SearchIndexDefinition, TableDefinition,
    index_name,
};
use crate::error::{EngineError, Result};
use crate::keeper;
use crate::open_table::OpenTable;

/// Most tables that are created at run time.
pub const MAX_CREATED_TABLES: usize = 1_000;

/// Name of the catalog's table; users can't create one with a leading underscore.
const TABLE: &str = "_tables";
const NAME: &str = "name";
const DEFINITION: &str = "definition";
const COMPLETE: &str = "complete";

/// What the catalog keeps of a [`TableDefinition`].
#[derive(Serialize, Deserialize)]
struct Entry {
    /// What messages call a row of the table.
    item: String,
    #[serde(default)]
    columns: Vec<ColumnDefinition>,
    indexes: Vec<SearchIndexDefinition>,
    #[serde(default)]
    owners: Vec<OwnerDefinition>,
}

/// The tables of the catalog after an opening.
#[derive(Default)]
pub(crate) struct Created {
    /// Those that could be opened.
    pub(crate) open: Vec<OpenTable>,
    /// The names of those that couldn't, and why.
    pub(crate) closed: Vec<(String, String)>,
}

/// Opens the tables of the catalog; one that can't be opened doesn't keep the others from it. Removes what is left of creations and
/// drops that didn't end, also from `folder`, which has the indexes of all tables; of a table that code has `declared` it removes
/// the entry alone.
///
/// # Errors
/// What the store refuses; [`EngineError::TableOfCatalog`].
pub(crate) async fn open(database: &Database, folder: &Path, declared: &[&str]) -> Result<Created> {
    let mut created = Created::default();
    for row in entries(database).await? {
        let Some(name) = row.key.values().first().and_then(KeyValue::as_str) else {
            tracing::error!(key = ?row.key, "an entry of the catalog has no name");
            continue;
        };
        let is_half = ColumnReader::of_row(&row).boolean(COMPLETE) == Ok(false);
        let table = database.table(name).filter(|_| !is_half);
        let is_declared = declared.contains(&name);
        match table {
            Some(_) if is_declared => {
                let table = name.to_owned();
                return Err(EngineError::TableOfCatalog { table });
            }
            Some(table) => match opened(database, &row, table) {
                Ok(open) => created.open.push(open),
                Err(error) => {
                    tracing::error!(table = name, %error, "a table can't be opened, and stays closed");
                    created.closed.push((name.to_owned(), error.to_string()));
                }
            },
            None => {
                tracing::info!(
                    table = name,
                    "what is left of a table that was half created or dropped is removed"
                );
                let removed = match is_declared {
                    true => forget(database, name).await,
                    false => remove(database, folder, name).await,
                };
                if let Err(error) = removed {
                    tracing::error!(
                        table = name,
                        %error,
                        "what is left of a table can't be removed; the next start tries again"
                    );
                }
            }
        }
    }
    Ok(created)
}

fn opened(database: &Database, row: &Row, table: Table) -> Result<OpenTable> {
    let definition = decode(&ColumnReader::of_row(row), &table)?;
    OpenTable::created(definition, table, database.last_sequence())
}

/// Begins to create a table: what there is of it before [`write`] is removed by the next opening.
///
/// # Errors
/// [`EngineError::LimitExceeded`]; what the store refuses.
pub(crate) async fn begin(database: &Database, definition: &TableDefinition) -> Result<()> {
    put(database, definition, false).await
}

/// Stores a definition durably, in place of the one before.
///
/// # Errors
/// As [`begin`].
pub(crate) async fn write(database: &Database, definition: &TableDefinition) -> Result<()> {
    put(database, definition, true).await
}

/// Whether a table has an entry, complete or not.
///
/// # Errors
/// What the store refuses.
pub(crate) async fn contains(database: &Database, name: &str) -> Result<bool> {
    let (Some(table), Ok(key)) = (database.table(TABLE), PrimaryKey::string(name)) else {
        return Ok(false);
    };
    let snapshot = database.snapshot().await?;
    Ok(snapshot.get(&table, &key).await?.is_some())
}

/// Removes a table with all that its indexes have left, and its entry. Its indexes must have ended. These are deletes alone: a full
/// device takes them, too.
///
/// # Errors
/// What disk and store refuse; another call, or the next opening, then goes on.
pub(crate) async fn remove(database: &Database, folder: &Path, name: &str) -> Result<()> {
    // Before the entry, without which the next opening wouldn't continue.
    if let Some(table) = database.table(name) {
        database.delete_table(&table).await?;
    }
    let table = name.to_owned();
    keeper::remove_all(database, folder, move |index| {
        index_name::table_of(index) == table
    })
    .await?;
    forget(database, name).await
}

/// Removes the entry of a table.
async fn forget(database: &Database, name: &str) -> Result<()> {
    let delete = RowOperation::Delete {
        key: PrimaryKey::string(name)?,
    };
    let batch = WriteBatch::of(&own_table(database).await?, delete, Condition::none());
    database.write(batch).await?;
    Ok(())
}

/// Refuses a definition that is too long to be kept.
///
/// # Errors
/// [`EngineError::LimitExceeded`].
pub(crate) fn check(definition: &TableDefinition) -> Result<()> {
    encode(definition).map(drop)
}

/// Encodes what the catalog keeps of a definition.
fn encode(definition: &TableDefinition) -> Result<String> {
    let entry = Entry {
        item: definition.item.clone(),
        columns: definition.columns.clone(),
        indexes: definition.indexes.clone(),
        owners: definition.owners.clone(),
    };
    let text = serde_json::to_string(&entry)
        .map_err(|_| EngineError::Defect("the definition of a table can't be encoded"))?;
    limit("MAX_DEFINITION_BYTES", MAX_DEFINITION_BYTES, text.len())?;
    Ok(text)
}

async fn put(database: &Database, definition: &TableDefinition, complete: bool) -> Result<()> {
    let columns = Columns::new()
        .string(DEFINITION, &encode(definition)?)
        .boolean(COMPLETE, complete);
    let put = RowOperation::Put {
        key: PrimaryKey::string(definition.name())?,
        columns: columns.into_cells(),
    };
    let batch = WriteBatch::of(&own_table(database).await?, put, Condition::none());
    database.write(batch).await?;
    Ok(())
}

fn decode(columns: &ColumnReader<'_>, table: &Table) -> Result<TableDefinition, CorruptRow> {
    let text = columns.string(DEFINITION)?;
    let entry: Result<Entry, _> = serde_json::from_str(&text);
    let entry = entry.map_err(|error| CorruptRow::new(DEFINITION, error.to_string()))?;
    Ok(TableDefinition {
        schema: (*table.schema()).clone(),
        item: entry.item,
        columns: entry.columns,
        indexes: entry.indexes,
        owners: entry.owners,
    })
}

async fn entries(database: &Database) -> Result<Vec<Row>> {
    let Some(table) = database.table(TABLE) else {
        return Ok(Vec::new());
    };
    let snapshot = database.snapshot().await?;
    let (mut rows, mut request) = (Vec::new(), RangeRequest::all(Direction::Forward));
    loop {
        let page = snapshot.range(&table, &request).await?;
        rows.extend(page.rows);
        match page.next {
            Some(next) => request = request.resume(next),
            None => return Ok(rows),
        }
    }
}

async fn own_table(database: &Database) -> Result<Table> {
    let schema = TableSchema::new(TABLE).key(NAME, KeyKind::String);
    Ok(database.ensure_table(schema).await?)
}
