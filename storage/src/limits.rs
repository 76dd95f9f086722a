//! Every limit of the store, by name. Tablestore's where it has one, never lower.

use std::time::Duration;

use souk_kv::limits::{MAX_COMMIT_BYTES, MAX_KEY_BYTES};

/// Most primary key columns of a table.
pub const MAX_KEY_COLUMNS: usize = 4;
/// Longest STRING or BINARY value in a primary key or in a secondary index, bytes.
pub const MAX_KEY_VALUE_BYTES: usize = 1024;
/// Longest name of a table, index, consumer or column, bytes.
pub const MAX_NAME_BYTES: usize = 255;
/// Longest value of one attribute cell, bytes.
pub const MAX_VALUE_BYTES: usize = 2 << 20;
/// Most attribute columns one write may name for one row.
pub const MAX_COLUMNS_PER_WRITE: usize = 1024;
/// Most versions a column may keep.
pub const MAX_VERSIONS: u32 = 1024;
/// Most rows of one batch write.
pub const MAX_BATCH_ROWS: usize = 200;
/// Most bytes of one batch write: keys, names and values of all its rows.
pub const MAX_BATCH_BYTES: usize = 4 << 20;
/// Largest row as stored, bytes. A row grows by updates, so this is above what one write can carry.
pub const MAX_ROW_BYTES: usize = 16 << 20;
/// Largest entry of the change log, bytes: the after images of all rows of one batch.
pub const MAX_CHANGE_BYTES: usize = 64 << 20;
/// Longest reply kept with a request id, bytes.
pub const MAX_REPLY_BYTES: usize = 1 << 20;
/// Longest traceparent kept with a change, bytes.
pub const MAX_TRACE_BYTES: usize = 256;
/// Most keys of one multi-get, or of all tables of one batch get. Tablestore's batch get stops at 100.
pub const MAX_MULTI_GET_ROWS: usize = 1000;
/// Most bytes of one row that one read returns; the next read resumes at the column after. A single larger column is
/// returned alone.
pub const MAX_READ_BYTES: usize = 4 << 20;
/// Most bytes of rows that one batch get returns; each row beyond is refused by itself.
pub const MAX_BATCH_GET_BYTES: usize = 32 << 20;
/// Most splits of a table: ranges of keys that are read side by side.
pub const MAX_SPLITS: usize = 10_000;
/// Most bytes of the keys at which the splits of one answer begin and end, as encoded in its message.
pub const MAX_SPLITS_BYTES: usize = MAX_SHOWN_BYTES;
/// Most rows that a range scans, whether it returns them or not, before it ends a page.
pub const MAX_SCANNED_ROWS: usize = 5000;
/// Most bytes that a range scans before it ends a page.
pub const MAX_SCANNED_BYTES: usize = 4 << 20;
/// Most columns a read may select by name.
pub const MAX_SELECTED_COLUMNS: usize = 1024;
/// Most nodes of one filter. Tablestore allows 10 comparisons.
pub const MAX_FILTER_NODES: usize = 64;
/// Deepest nesting of one filter.
pub const MAX_FILTER_DEPTH: usize = 16;
/// Longest regular expression of a value transfer rule, bytes.
pub const MAX_PATTERN_BYTES: usize = 256;
/// Most memory that the compiled regular expression may take, and again the cache of a match, bytes.
///
/// The time of a match grows with program and text, at worst to some 2 s for a MiB. A `\w` takes 49 KiB.
pub const MAX_PATTERN_PROGRAM_BYTES: usize = 64 << 10;
/// Most bytes of text that all regular expressions of a filter match against in one row: the largest value once.
pub const MAX_MATCHED_BYTES: usize = MAX_VALUE_BYTES;
/// Most secondary indexes of a table. Tablestore allows 5.
pub const MAX_INDEXES: usize = 16;
/// Highest number of a secondary index. Each index of a table gets its own and never another's, so that this many
/// can be created in the life of a table; the number above is that of the hidden index by which expired cells are found.
pub const MAX_INDEX_NUMBER: u16 = u16::MAX - 1;
/// Most columns of a secondary index, without the appended table key.
pub const MAX_INDEX_COLUMNS: usize = 4;
/// Most included columns of a secondary index.
pub const MAX_INCLUDED_COLUMNS: usize = 32;
/// Most tables of a database. Tablestore allows 64 in an instance.
pub const MAX_TABLES: usize = 1024;
/// Most named consumers of the change log.
pub const MAX_CONSUMERS: usize = 2048;
/// Most feeds of a database.
pub const MAX_FEEDS: usize = 2048;
/// Most records one read of a feed returns; the last change may go beyond.
pub const MAX_FEED_RECORDS: usize = 5000;
/// Most bytes one read of a feed returns, as messages have rows; a larger change comes in parts, a larger row alone.
pub const MAX_FEED_BYTES: usize = MAX_SHOWN_BYTES;
/// Most shards of a feed.
pub const MAX_FEED_SHARDS: u16 = 64;
/// Most changes that one read of a feed scans before it returns what it found.
pub const MAX_FEED_SCANNED_CHANGES: usize = 10_000;
/// Most bytes of the log that it looks through, and the last change whole.
pub const MAX_FEED_SCANNED_BYTES: usize = 64 << 20;
/// Longest use of one snapshot by a feed that reads base rows: a snapshot keeps old data on the disk.
pub const FEED_SNAPSHOT_LIFE: Duration = Duration::from_secs(60);
/// The longest a feed may keep changes that are past the retention.
pub const MAX_FEED_HOLD: Duration = MAX_RETENTION;
/// A feed that starts at a time starts at least this much inside of the retention, as with Tablestore.
pub const FEED_START_MARGIN: Duration = Duration::from_secs(300);
/// The shortest retention of changes.
pub const MIN_RETENTION: Duration = Duration::from_secs(3600);
/// The longest retention of changes: 168 hours, as with Tablestore.
pub const MAX_RETENTION: Duration = Duration::from_secs(168 * 3600);
/// Disorder of times in the log that counts as normal: writers take their time before their sequence. A change dated further
/// ahead has its time from a clock that was wrong.
pub const CHANGE_TIME_DISORDER: Duration = Duration::from_secs(1);
/// Most changes one read of the log returns.
pub const MAX_CHANGES_PER_READ: usize = 10_000;
/// Most bytes one read of the log returns; a single larger change is returned alone.
pub const MAX_CHANGES_BYTES: usize = 4 << 20;
/// How far a version given by a client may lie from the clock unless the table says otherwise.
pub const DEFAULT_MAX_VERSION_OFFSET: Duration = Duration::from_secs(86_400);
/// Attempts of a write whose row changed between its read and its commit.
pub const MAX_WRITE_ATTEMPTS: usize = 32;
/// Bytes of changed rows after which rows that are written one by one continue in another commit.
pub const MAX_ROWS_COMMIT_BYTES: usize = 32 << 20;
/// Most bytes of rows given back by the writes of one batch, [`crate::ReturnRow::AfterModify`] and [`crate::ReturnRow::All`], as
/// [`crate::Row::message_bytes`] counts them.
pub const MAX_RETURNED_BYTES: usize = 8 << 20;
/// [`MAX_RETURNED_BYTES`] of rows that are written one by one or in a transaction, and of batches that ask for it, so that
/// a message of 4 MiB holds them.
pub const MAX_SHOWN_BYTES: usize = 3 << 20;
/// Longest life of a transaction.
pub const MAX_TRANSACTION_LIFE: Duration = Duration::from_secs(60);
/// Longest time of a transaction between two calls in it.
pub const MAX_TRANSACTION_IDLE: Duration = Duration::from_secs(60);
/// Most bytes the writes of one transaction carry: keys, names and values.
pub const MAX_TRANSACTION_BYTES: usize = 4 << 20;
/// Most transactions that are open at a time.
pub const MAX_TRANSACTIONS: usize = 10_000;
/// Most bytes of memory that the uncommitted rows and index entries of all transactions take.
pub const MAX_STAGED_BYTES: usize = 256 << 20;
/// Most of them in transactions of one caller, where callers are known.
pub const MAX_STAGED_OF_CALLER_BYTES: usize = MAX_STAGED_BYTES / 4;
/// Most changes, back from the end of the log, among which an opening looks for gaps.
pub const GAP_CHECK_CHANGES: usize = 20_000;
/// Bytes of changes after which an opening ends that check, which reads them from the disk.
pub const GAP_CHECK_BYTES: usize = 16 << 20;
/// Most log entries or request records that one commit of the background sweep deletes.
pub const SWEEP_STEP: usize = 512;
/// Most steps, each a commit, of one background sweep; what is left waits for the next pass.
pub const MAX_SWEEP_STEPS: usize = 200;
/// Most rows or entries one step of a background job handles: a step is one commit.
pub const MAX_JOB_STEP_ROWS: usize = 256;
/// Bytes after which a step of a background job reads no further.
pub const MAX_JOB_STEP_BYTES: usize = 1 << 20;
/// Most rows whose expired cells one commit reclaims: as many as a client's batch has.
pub const MAX_RECLAIMED_ROWS: usize = MAX_BATCH_ROWS;
/// A backup on the device of its database leaves this many times [`souk_kv::FjallOptions::reserve_bytes`] free, so
/// that it ends before writes are refused.
pub const BACKUP_RESERVES: u64 = 2;
/// Bytes of entries that a backup compresses as one block.
pub const BACKUP_BLOCK_BYTES: usize = 1 << 20;
/// Bytes after which a backup begins another file.
pub const BACKUP_FILE_BYTES: u64 = 256 << 20;
/// Largest manifest of a backup: some 100,000 files.
pub const MAX_MANIFEST_BYTES: u64 = 16 << 20;
/// Most backups of one chain: a full one and the incremental ones after it.
pub const MAX_BACKUP_CHAIN: usize = 1024;
/// Bytes that a restore writes with one commit.
pub const RESTORE_COMMIT_BYTES: usize = 4 << 20;
/// Most problems that a check lists; it counts all.
pub const MAX_PROBLEMS: usize = 1000;
/// Most missing rows that a check remembers until it reads the change that deleted them; more may go unnoticed.
pub const MAX_GONE_ROWS: usize = 1 << 20;

/// Longest encoding of one key value: a tag, every byte escaped, the terminator.
pub(crate) const MAX_ENCODED_VALUE_BYTES: usize = 1 + 2 * MAX_KEY_VALUE_BYTES + 2;

// The limits hold together.
const _: () = assert!(
    8 + (MAX_INDEX_COLUMNS + MAX_KEY_COLUMNS) * MAX_ENCODED_VALUE_BYTES <= MAX_KEY_BYTES,
    "the longest key of an index entry fits a key of the engine"
);
const _: () = assert!(MAX_BATCH_BYTES < MAX_ROW_BYTES && MAX_ROW_BYTES < MAX_CHANGE_BYTES);
const _: () = assert!(
    2 * MAX_CHANGE_BYTES + MAX_REPLY_BYTES + MAX_RETURNED_BYTES < MAX_COMMIT_BYTES,
    "a full batch fits a commit: each row once as a row and once in the log, and its index entries"
);
const _: () = assert!(MAX_VALUE_BYTES <= MAX_BATCH_BYTES);
const _: () = assert!(MAX_CHANGE_BYTES <= MAX_STAGED_OF_CALLER_BYTES);
const _: () = assert!(
    MAX_ROWS_COMMIT_BYTES + 2 * MAX_ROW_BYTES <= MAX_CHANGE_BYTES,
    "the last row of a commit of rows fits, with room for what frames the rows"
);

/// Refuses `actual` above `max`, naming the limit.
pub(crate) fn check(limit: &'static str, max: usize, actual: usize) -> Result<(), crate::Error> {
    if actual > max {
        return Err(crate::Error::LimitExceeded { limit, max, actual });
    }
    Ok(())
}
