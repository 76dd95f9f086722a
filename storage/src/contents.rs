//! What each table holds, and the log: counted, not estimated, which takes a read of all rows and index entries.

use souk_kv::{KvSnapshot, Space};

use crate::catalog::Table;
use crate::change;
use crate::database::Database;
use crate::error::Result;
use crate::id::TableId;
use crate::key;
use crate::read::log;
use crate::row::{Row, codec};
use crate::walk::Walk;

/// What a database holds at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// Sequence of the last change.
    pub sequence: u64,
    /// Each table, by number.
    pub tables: Vec<TableContents>,
    /// The change log.
    pub log: LogContents,
}

/// What a table holds, expired or not: what has expired is there until it is cleaned up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableContents {
    /// Its number.
    pub id: TableId,
    /// Its name.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Bytes of keys and rows as they are stored, before the engine compresses them.
    pub bytes: u64,
    /// Cells: all versions of all columns.
    pub cells: u64,
    /// Its secondary indexes.
    pub indexes: Vec<IndexContents>,
}

/// What a secondary index holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexContents {
    /// Its number in the table.
    pub number: u16,
    /// Its name.
    pub name: String,
    /// Number of entries.
    pub entries: u64,
    /// Bytes of the entries as they are stored, before the engine compresses them.
    pub bytes: u64,
}

/// What the change log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogContents {
    /// Number of changes that are kept.
    pub changes: u64,
    /// Their bytes as they are stored, before the engine compresses them.
    pub bytes: u64,
    /// The oldest change that is kept; `None` when none is.
    pub oldest: Option<ChangeTime>,
    /// The newest.
    pub newest: Option<ChangeTime>,
}

/// A change and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeTime {
    /// Its sequence.
    pub sequence: u64,
    /// When it was prepared, nanoseconds since the Unix epoch.
    pub time: i64,
}

impl TableContents {
    /// An empty table.
    pub(crate) fn new(table: &Table) -> Self {
        let definition = table.definition();
        let indexes = definition.indexes.iter().map(|index| IndexContents {
            number: index.number,
            name: index.name.clone(),
            entries: 0,
            bytes: 0,
        });
        Self {
            id: table.id(),
            name: table.name().to_owned(),
            rows: 0,
            bytes: 0,
            cells: 0,
            indexes: indexes.collect(),
        }
    }
}

/// Counts a row.
pub(crate) fn count_row(contents: &mut TableContents, key: &[u8], value: &[u8], row: &Row) {
    contents.rows += 1;
    contents.bytes += (key.len() + value.len()) as u64;
    let cells = row.columns().iter().map(|(_, cells)| cells.len() as u64);
    contents.cells += cells.sum::<u64>();
}

impl Database {
    /// Counts what a snapshot holds. Reads all of it: seconds for each million rows.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`], [`crate::Error::Unavailable`].
    pub async fn contents(&self) -> Result<Contents> {
        let snapshot = self.shared.kv.snapshot().await?;
        let mut tables = Vec::new();
        for table in self.tables() {
            tables.push(table_contents(&*snapshot, &table).await?);
        }
        tables.sort_by_key(|table| table.id);
        Ok(Contents {
            sequence: snapshot.sequence(),
            tables,
            log: log_contents(&*snapshot).await?,
        })
    }
}

async fn table_contents(snapshot: &dyn KvSnapshot, table: &Table) -> Result<TableContents> {
    let mut contents = TableContents::new(table);
    let mut walk = Walk::within(Space::Rows, &key::before_rows(table.id()));
    while let Some(page) = walk.next(snapshot).await? {
        for (key, value) in page {
            let primary_key = key::primary_key_of_row(&key)?;
            let row = codec::decode(primary_key, &value)?;
            count_row(&mut contents, &key, &value, &row);
        }
    }
    for index in &mut contents.indexes {
        let mut walk = Walk::within(Space::Index, &key::index(table.id(), index.number));
        while let Some(page) = walk.next(snapshot).await? {
            for (key, value) in page {
                index.entries += 1;
                index.bytes += (key.len() + value.len()) as u64;
            }
        }
    }
    Ok(contents)
}

async fn log_contents(snapshot: &dyn KvSnapshot) -> Result<LogContents> {
    let mut contents = LogContents::default();
    let low = key::log(log::trimmed(snapshot).await?.saturating_add(1));
    let high = key::log(snapshot.sequence().saturating_add(1));
    let mut walk = Walk::between(Space::Log, low, high);
    while let Some(page) = walk.next(snapshot).await? {
        for (key, entry) in page {
            contents.changes += 1;
            contents.bytes += (key.len() + entry.len()) as u64;
            let sequence = key::sequence_of_log(&key)?;
            let time = change::codec::time(sequence, &entry)?;
            let change = ChangeTime { sequence, time };
            contents.oldest.get_or_insert(change);
            contents.newest = Some(change);
        }
    }
    Ok(contents)
}
