//! Reads of one snapshot: rows, ranges, secondary indexes, changes.

mod batch;
mod index;
mod index_request;
pub(crate) mod log;
mod options;
pub(crate) mod projection;
mod range;
mod rows;
mod split;

use std::sync::Arc;

use souk_kv::{Direction, KvSnapshot};

pub use self::batch::TableKeys;
pub use self::index_request::{IndexBound, IndexEntry, IndexPage, IndexPosition, IndexRequest};
pub use self::options::{ColumnPage, ReadOptions, TimeRange, VersionSelection};
use self::projection::Projection;
pub use self::range::{KeyBound, RangePage, RangeRequest};
pub use self::rows::Read;
pub use self::split::{Split, Splits};
use crate::catalog::Table;
use crate::change::{Change, ChangeKind, LogEntry};
use crate::database::{Database, DatabaseState};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::id::TableId;
use crate::limits::MAX_READ_BYTES;
pub use crate::read::log::statistics::{LogStatistics, TableLogStatistics};
use crate::row::Row;
use crate::value::{PrimaryKey, Value};

/// One cut across rows, indexes and change log. It never changes and blocks no write; drop it when done, for it
/// keeps old data on the disk.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) kv: Arc<dyn KvSnapshot>,
    /// Generation of the catalog it includes.
    pub(crate) generation: u64,
    pub(crate) shared: Arc<DatabaseState>,
}

impl Database {
    /// One cut across rows, indexes and change log; it includes every write acknowledged before the call.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn snapshot(&self) -> Result<Snapshot> {
        // First: the cut then includes at least what this generation does.
        let generation = self.shared.catalog.read().generation();
        let kv = Arc::from(self.shared.kv.snapshot().await?);
        Ok(Snapshot {
            kv,
            generation,
            shared: Arc::clone(&self.shared),
        })
    }

    /// [`Snapshot::changes`] of a fresh snapshot.
    ///
    /// # Errors
    /// As there.
    pub async fn changes(&self, after: u64, limit: usize) -> Result<Vec<Change>> {
        self.snapshot().await?.changes(after, limit).await
    }

    /// [`Snapshot::changes_of`] of a fresh snapshot.
    ///
    /// # Errors
    /// As there.
    pub async fn changes_of(&self, table: TableId, after: u64, limit: usize) -> Result<Vec<Change>> {
        self.snapshot().await?.changes_of(table, after, limit).await
    }

    /// [`Snapshot::log_entries`] of a fresh snapshot.
    ///
    /// # Errors
    /// As there.
    pub async fn log_entries(&self, after: u64, limit: usize) -> Result<Vec<LogEntry>> {
        self.snapshot().await?.log_entries(after, limit).await
    }

    /// [`Snapshot::sequence_at`] of a fresh snapshot.
    ///
    /// # Errors
    /// As there.
    pub async fn sequence_at(&self, time: i64) -> Result<u64> {
        self.snapshot().await?.sequence_at(time).await
    }
}

impl Snapshot {
    /// Exactly the last sequence this snapshot includes.
    pub fn sequence(&self) -> u64 {
        self.kv.sequence()
    }

    /// A row with all its visible columns, however large it is.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the key isn't of the table, [`Error::TableNotFound`], [`Error::Corrupt`].
    pub async fn get(&self, table: &Table, key: &PrimaryKey) -> Result<Option<Row>> {
        rows::get(self, table, key).await
    }

    /// What the options ask of a row. Of a wide row it returns [`crate::limits::MAX_READ_BYTES`] and where to go on.
    ///
    /// # Errors
    /// As [`Snapshot::get`]; [`Error::Invalid`] and [`Error::LimitExceeded`] for the options.
    pub async fn read(&self, table: &Table, key: &PrimaryKey, options: &ReadOptions) -> Result<Read> {
        self.read_within(table, key, options, MAX_READ_BYTES).await
    }

    /// [`Snapshot::read`], of at most so many bytes of a row, and of one column at least.
    ///
    /// # Errors
    /// As there.
    pub async fn read_within(
        &self,
        table: &Table,
        key: &PrimaryKey,
        options: &ReadOptions,
        bytes_max: usize,
    ) -> Result<Read> {
        rows::read(self, table, key, options, bytes_max).await
    }

    /// Several whole rows, in the order of the keys, at most [`crate::limits::MAX_MULTI_GET_ROWS`].
    ///
    /// # Errors
    /// As [`Snapshot::get`]; [`Error::LimitExceeded`] for too many keys.
    pub async fn multi_get(&self, table: &Table, keys: &[PrimaryKey]) -> Result<Vec<Option<Row>>> {
        rows::multi_get(self, table, keys).await
    }

    /// As many of the first of these rows as have at most `bytes_max` bytes as stored, and one at least: the rows of a page, each with its
    /// bytes.
    ///
    /// # Errors
    /// As [`Snapshot::multi_get`].
    pub async fn multi_get_within(
        &self,
        table: &Table,
        keys: &[PrimaryKey],
        bytes_max: usize,
    ) -> Result<Vec<(Option<Row>, usize)>> {
        rows::multi_get_within(self, table, keys, bytes_max).await
    }

    /// Rows of several tables, together at most [`crate::limits::MAX_MULTI_GET_ROWS`]. There is an answer for each
    /// row, in the order of the tables and keys: what one can't have ([`Error::Corrupt`], or
    /// [`Error::LimitExceeded`] behind [`crate::limits::MAX_BATCH_GET_BYTES`]) takes nothing from the others.
    ///
    /// # Errors
    /// All of it is refused: [`Error::Invalid`] when there is no row, when a table or row is there twice, a key isn't
    /// of its table, or for the options; [`Error::LimitExceeded`]; [`Error::TableNotFound`].
    pub async fn batch_get(&self, tables: &[TableKeys]) -> Result<Vec<Vec<Result<Read>>>> {
        batch::get(self, tables).await
    }

    /// A page of the rows in a range. Reading stops after [`crate::limits::MAX_SCANNED_ROWS`] rows or
    /// [`crate::limits::MAX_SCANNED_BYTES`], passed by the filter or not. Rows are never cut by their size.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub async fn range(&self, table: &Table, request: &RangeRequest) -> Result<RangePage> {
        range::page(self, table, request).await
    }

    /// Splits a table into parts of about this many stored bytes: each part ends with the first row that reaches
    /// them. Takes the time of reading the whole table once; nothing of it is held in memory.
    ///
    /// # Errors
    /// [`Error::Invalid`] for 0 bytes; [`Error::LimitExceeded`] for [`crate::limits::MAX_SPLITS`];
    /// [`Error::TableNotFound`], [`Error::Corrupt`].
    pub async fn split_points(&self, table: &Table, bytes: usize) -> Result<Splits> {
        split::points(self, table, bytes).await
    }

    /// A page of the entries of a secondary index.
    ///
    /// # Errors
    /// [`Error::IndexNotFound`], [`Error::IndexNotReady`], [`Error::IndexFailed`]; [`Error::Invalid`] for a bound, position or column that isn't of the index;
    /// [`Error::LimitExceeded`] for the filter or selection; [`Error::TableNotFound`], [`Error::Corrupt`].
    pub async fn index(&self, table: &Table, request: &IndexRequest) -> Result<IndexPage> {
        index::page(self, table, request).await
    }

    /// [`Snapshot::index`] of the entries whose first values equal `prefix` (which may be empty), after a position.
    ///
    /// # Errors
    /// As there.
    pub async fn index_range(
        &self,
        table: &Table,
        index: &str,
        prefix: &[Value],
        after: Option<&IndexPosition>,
        direction: Direction,
        limit: usize,
    ) -> Result<IndexPage> {
        let mut request = IndexRequest::prefix(index, prefix.to_vec(), direction).limit(limit);
        request.after = after.cloned();
        self.index(table, &request).await
    }

    /// Changes after `after` (exclusive), in order, up to this snapshot's sequence. At most `limit`,
    /// [`crate::limits::MAX_CHANGES_PER_READ`] and [`crate::limits::MAX_CHANGES_BYTES`], but at least one if there
    /// is one: empty means that the end is reached.
    ///
    /// # Errors
    /// [`Error::ChangesTrimmed`] when some of them are no longer kept, [`Error::Corrupt`].
    pub async fn changes(&self, after: u64, limit: usize) -> Result<Vec<Change>> {
        log::changes(&*self.kv, after, limit).await
    }

    /// [`Snapshot::changes`] with the rows of one table only: the others aren't decoded. A change without any is there
    /// all the same.
    ///
    /// # Errors
    /// As there.
    pub async fn changes_of(&self, table: TableId, after: u64, limit: usize) -> Result<Vec<Change>> {
        let wanted = move |of: TableId, _: ChangeKind, _: &[u8]| of == table;
        log::changes_until(&*self.kv, after, self.sequence(), limit, Some(&wanted)).await
    }

    /// [`Snapshot::changes`], not decoded.
    ///
    /// # Errors
    /// As there, but for what decoding finds.
    pub async fn log_entries(&self, after: u64, limit: usize) -> Result<Vec<LogEntry>> {
        log::entries_until(&*self.kv, after, self.sequence(), limit).await
    }

    /// Where the changes since a time begin: reading after this sequence gives every change of that time (nanoseconds
    /// since the Unix epoch) or later, and none that is earlier before it. Found by a binary search; where the clock
    /// was set back, it is one of the places at which the clock passed the time. Changes dated in the future by a clock
    /// that was ahead are passed over.
    ///
    /// # Errors
    /// [`Error::TimeTrimmed`] when changes of that time may be gone, [`Error::Corrupt`].
    pub async fn sequence_at(&self, time: i64) -> Result<u64> {
        log::time::sequence_at(&*self.kv, time, self.now()).await
    }

    /// The first changes since a time; go on with [`Snapshot::changes`] after the last of them.
    ///
    /// # Errors
    /// As [`Snapshot::sequence_at`] and [`Snapshot::changes`].
    pub async fn changes_since(&self, time: i64, limit: usize) -> Result<Vec<Change>> {
        self.changes(self.sequence_at(time).await?, limit).await
    }

    /// What the log holds, all together and of each table. Reads the whole log, a page at a time.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub async fn log_statistics(&self) -> Result<LogStatistics> {
        log::statistics::statistics(&*self.kv).await
    }

    /// The oldest sequence the log still has; one past [`Snapshot::sequence`] when it is empty.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub async fn oldest_change(&self) -> Result<u64> {
        Ok(log::trimmed(&*self.kv).await?.saturating_add(1))
    }

    /// Refuses the handle of another database.
    fn check_owned(&self, table: &Table) -> Result<()> {
        self.shared.catalog.read().check_owned(table)
    }

    /// The time by which rows expire, nanoseconds.
    fn now(&self) -> i64 {
        self.shared.options.clock.now()
    }

    /// What a read wants of the rows of a table, checked.
    fn projection<'a>(&self, table: &Table, options: &'a ReadOptions) -> Result<Projection<'a>> {
        self.check_owned(table)?;
        Projection::new(table, options, self.now())
    }
}
