//! Opens the index of a table, or builds it from the table: when there is none, when it was made for other fields, when
//! it is damaged, and when the log doesn't reach back to it any more.
//!
//! `<index>/<table>/<fingerprint>` holds an index that is complete. A new one is built beside it, in
//! `<fingerprint>.building`, from a snapshot of the table, and gets its name when it is durable; what a crash leaves of it
//! is removed. The change log does the rest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use souk_index::{Error as IndexError, Index, IndexOptions, Operation};
use souk_storage::{Database, Direction, RangeRequest, Row};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::error::{EngineError, Result};
use crate::table::OpenTable;

/// Ends the name of a folder whose index isn't complete.
const BUILDING: &str = ".building";

/// Where the indexes of one table are.
#[derive(Clone, Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

/// The index of a table, complete up to a sequence that the log still continues. `None` when it was asked to stop.
pub(crate) fn open_or_build(
    runtime: &Handle,
    table: &OpenTable,
    database: &Database,
    folder: &Folder,
    writer_memory: usize,
    stop: &CancellationToken,
) -> Result<Option<Index>> {
    let name = format!("{:016x}", table.declaration.fingerprint(&table.schema));
    let complete = folder.0.join(&name);
    let mut options = IndexOptions::default();
    options.writer_memory_bytes = writer_memory;
    if complete.is_dir() {
        match open(runtime, table, database, &complete, options.clone())? {
            Ok(index) => {
                remove_others(&folder.0, &name)?;
                return Ok(Some(index));
            }
            Err(why) => warn!(table = table.declaration.name, why, "the index is built anew"),
        }
    }
    let draft = folder.0.join(format!("{name}{BUILDING}"));
    remove(&draft)?;
    fs::create_dir_all(&folder.0).map_err(refused("creating the folder of an index"))?;
    if !build(runtime, table, database, &draft, options.clone(), stop)? {
        return Ok(None);
    }
    remove(&complete)?;
    fs::rename(&draft, &complete).map_err(refused("naming a new index"))?;
    fs::File::open(&folder.0)
        .and_then(|folder| folder.sync_all())
        .map_err(refused("naming a new index"))?;
    remove_others(&folder.0, &name)?;
    Ok(Some(Index::open(&complete, table.schema.clone(), options)?))
}

/// The index in a folder, or why it can't be used.
fn open(
    runtime: &Handle,
    table: &OpenTable,
    database: &Database,
    folder: &Path,
    options: IndexOptions,
) -> Result<std::result::Result<Index, String>> {
    let index = match Index::open(folder, table.schema.clone(), options) {
        Ok(index) => index,
        Err(error @ (IndexError::Corrupt { .. } | IndexError::SchemaMismatch { .. })) => {
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let has = index.durable_sequence();
    let snapshot = runtime.block_on(database.snapshot())?;
    let oldest = runtime.block_on(snapshot.oldest_change())?;
    Ok(if has > snapshot.sequence() {
        Err(format!(
            "it includes change {has}, the store ends at {}",
            snapshot.sequence()
        ))
    } else if has + 1 < oldest {
        Err(format!("it ends at change {has}, the log begins at {oldest}"))
    } else {
        Ok(index)
    })
}

/// Builds an index from a snapshot of the table; `false` when it was asked to stop.
fn build(
    runtime: &Handle,
    table: &OpenTable,
    database: &Database,
    folder: &Path,
    options: IndexOptions,
    stop: &CancellationToken,
) -> Result<bool> {
    let index = Index::open(folder, table.schema.clone(), options)?;
    let mut writer = index.writer()?;
    let snapshot = runtime.block_on(database.snapshot())?;
    let mut request = RangeRequest::all(Direction::Forward);
    let mut rows = 0;
    loop {
        if stop.is_cancelled() {
            return Ok(false);
        }
        let page = runtime.block_on(snapshot.range(&table.table, &request))?;
        rows += page.rows.len();
        writer.apply(page.rows.iter().filter_map(|row| insertion(table, row)).collect())?;
        match page.next {
            Some(next) => request = request.resume(next),
            None => break,
        }
    }
    writer.commit(snapshot.sequence())?;
    writer.close()?;
    if rows > 0 {
        info!(table = table.declaration.name, rows, "the index is built");
    }
    Ok(true)
}

fn insertion(table: &OpenTable, row: &Row) -> Option<Operation> {
    match (table.declaration.document)(row) {
        Ok(document) => Some(Operation::Insert(document)),
        Err(corrupt) => {
            error!(table = table.declaration.name, error = %corrupt, "a row can't be indexed");
            None
        }
    }
}

/// Removes indexes of other declarations, and what a crash left of building one.
fn remove_others(folder: &Path, name: &str) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(refused("listing indexes"))? {
        let entry = entry.map_err(refused("listing indexes"))?;
        if entry.file_name() != name {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(refused("removing an old index")(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn refused(doing: &'static str) -> impl FnOnce(io::Error) -> EngineError {
    move |source| EngineError::Io { doing, source }
}
