//! The definitions of tables that are created at run time, kept in a table of the store: a restart, a backup and a restore
//! keep them.
//!
//! A definition's schema is where the store keeps it; here is the rest. An entry that isn't complete is the trace of a table that
//! is being created, one without a table in the store of one that is being dropped: both are removed by dropping it, by creating
//! it again, or by the next opening.

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
pub const MAX_CREATED_TABLES: usize = 256;

/// The table of definitions, which nobody else can have: its name begins as those of the engine do.
const TABLE: &str = "_tables";
const NAME: &str = "name";
const DEFINITION: &str = "definition";
const COMPLETE: &str = "complete";

/// What of a definition the store doesn't keep itself.
#[derive(Serialize, Deserialize)]
struct Entry {
    item: String,
    #[serde(default)]
    columns: Vec<ColumnDefinition>,
    indexes: Vec<SearchIndexDefinition>,
    #[serde(default)]
    owners: Vec<OwnerDefinition>,
}

/// What there is of the tables of the catalog.
#[derive(Default)]
pub(crate) struct Created {
    /// Those that could be opened.
    pub(crate) open: Vec<OpenTable>,
    /// The names of those that couldn't, and why.
    pub(crate) closed: Vec<(String, String)>,
}

/// Opens the tables of the catalog. What of one was only half created or dropped is removed, in `folder`, that of all indexes,
/// too. One that can't be opened keeps nothing else from it. Nothing is done to tables of the names that code has `declared`.
///
/// # Errors
/// What the store refuses; [`EngineError::TableOfCatalog`].
pub(crate) async fn open(database: &Database, folder: &Path, declared: &[&str]) -> Result<Created> {
    let mut created = Created::default();
    for row in entries(database).await? {
        let Some(name) = row.key.values().first().and_then(KeyValue::as_str) else {
            tracing::error!(key = ?row.key, "an entry of the catalog isn't one");
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
    let definition = read(&ColumnReader::of_row(row), &table)?;
    OpenTable::created(definition, table, database.last_sequence())
}

/// Begins to create a table: what there is of it before [`write`] is removed by the next opening.
///
/// # Errors
/// [`EngineError::LimitExceeded`]; what the store refuses.
pub(crate) async fn begin(database: &Database, definition: &TableDefinition) -> Result<()> {
    put(database, definition, false).await
}

/// Keeps a definition, durably.
///
/// # Errors
/// As [`begin`].
pub(crate) async fn write(database: &Database, definition: &TableDefinition) -> Result<()> {
    put(database, definition, true).await
}

/// Whether there is an entry of a table.
///
/// # Errors
/// What the store refuses.
pub(crate) async fn has(database: &Database, name: &str) -> Result<bool> {
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
    // First: an entry without a table is one that goes.
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
    text(definition).map(drop)
}

/// What is kept of a definition.
fn text(definition: &TableDefinition) -> Result<String> {
    let entry = Entry {
        item: definition.item.clone(),
        columns: definition.columns.clone(),
        indexes: definition.indexes.clone(),
        owners: definition.owners.clone(),
    };
    // Strings, numbers and lists: there is nothing that can't be written.
    let text = serde_json::to_string(&entry).unwrap_or_default();
    limit("MAX_DEFINITION_BYTES", MAX_DEFINITION_BYTES, text.len())?;
    Ok(text)
}

async fn put(database: &Database, definition: &TableDefinition, complete: bool) -> Result<()> {
    let columns = Columns::new()
        .string(DEFINITION, &text(definition)?)
        .boolean(COMPLETE, complete);
    let put = RowOperation::Put {
        key: PrimaryKey::string(definition.name())?,
        columns: columns.into_cells(),
    };
    let batch = WriteBatch::of(&own_table(database).await?, put, Condition::none());
    database.write(batch).await?;
    Ok(())
}

fn read(columns: &ColumnReader<'_>, table: &Table) -> Result<TableDefinition, CorruptRow> {
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
