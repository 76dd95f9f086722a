//! The definitions of tables that are created at run time, kept in a table of the store: a restart, a backup and a restore
//! keep them.
//!
//! A definition's schema is where the store keeps it; here is the rest. An entry is complete or it is the trace of a table that
//! is being created or dropped, which the next opening removes.

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
};
use crate::design::Design;
#[cfg(doc)]
use crate::error::EngineError;
use crate::error::Result;
use crate::index_change::KeptChanges;
use crate::keeper;
use crate::open_table::{Home, OpenTable};

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
    search: Option<SearchIndexDefinition>,
    #[serde(default)]
    owners: Vec<OwnerDefinition>,
}

/// Opens the tables of the catalog. What of one was only half created or dropped is removed, in `folder`, that of all indexes,
/// too.
///
/// # Errors
/// What the store refuses; when what it has isn't what was written.
pub(crate) async fn open(database: &Database, folder: &Path) -> Result<Vec<OpenTable>> {
    let mut tables = Vec::new();
    for row in entries(database).await? {
        let columns = ColumnReader::of_row(&row);
        let name = name_of(&row)?;
        let table = database.table(&name);
        match table.filter(|_| columns.boolean(COMPLETE) == Ok(true)) {
            Some(table) => {
                let definition = read(&columns, &table)?;
                let last = database.last_sequence();
                let wanted = design(&definition)?;
                let open = OpenTable::new(
                    Home::Catalog,
                    definition,
                    table,
                    KeptChanges::default(),
                    wanted,
                    last,
                );
                tables.push(open);
            }
            None => {
                tracing::info!(
                    table = name,
                    "a table that was half created or dropped is removed"
                );
                remove(database, folder, &name).await?;
            }
        }
    }
    Ok(tables)
}

/// What the search index of a table is to be.
///
/// # Errors
/// [`souk_index::Error::InvalidSchema`].
pub(crate) fn design(definition: &TableDefinition) -> Result<Design> {
    match &definition.search {
        Some(search) => Design::new(definition, search),
        None => Design::none(definition),
    }
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

/// Removes a table with all that its index has left, and its entry. Its index must have ended.
///
/// # Errors
/// What disk and store refuse; the next opening then goes on.
pub(crate) async fn remove(database: &Database, folder: &Path, name: &str) -> Result<()> {
    keeper::remove_all(database, name, folder.join(name)).await?;
    if let Some(table) = database.table(name) {
        database.delete_table(&table).await?;
    }
    forget(database, name).await
}

/// Removes the entry of a table.
///
/// # Errors
/// What the store refuses.
pub(crate) async fn forget(database: &Database, name: &str) -> Result<()> {
    let delete = RowOperation::Delete {
        key: PrimaryKey::string(name)?,
    };
    let batch = WriteBatch::of(&own_table(database).await?, delete, Condition::none());
    database.write(batch).await?;
    Ok(())
}

async fn put(database: &Database, definition: &TableDefinition, complete: bool) -> Result<()> {
    let entry = Entry {
        item: definition.item.clone(),
        columns: definition.columns.clone(),
        search: definition.search.clone(),
        owners: definition.owners.clone(),
    };
    // Strings, numbers and lists: there is nothing that can't be written.
    let text = serde_json::to_string(&entry).unwrap_or_default();
    limit("MAX_DEFINITION_BYTES", MAX_DEFINITION_BYTES, text.len())?;
    let columns = Columns::new()
        .string(DEFINITION, &text)
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
        search: entry.search,
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

fn name_of(row: &Row) -> Result<String, CorruptRow> {
    let name = row.key.values().first().and_then(KeyValue::as_str);
    let name = name.ok_or_else(|| CorruptRow::new(NAME, "isn't a text"))?;
    Ok(name.to_owned())
}

async fn own_table(database: &Database) -> Result<Table> {
    let schema = TableSchema::new(TABLE).key(NAME, KeyKind::String);
    Ok(database.ensure_table(schema).await?)
}
