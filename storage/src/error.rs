//! What can go wrong; what follows from it stands in `error/kind.rs`.

mod kind;

use std::path::PathBuf;

use souk_kv::{self as kv, OpenError};

pub use self::kind::ErrorKind;
use crate::id::TransactionId;
use crate::limits;

/// Result of the storage API.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument can't be right whatever the state of the store.
    #[error("{subject} {problem}")]
    Invalid {
        /// What is wrong: `column "price"`, `primary key`, …
        subject: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An argument is larger than the store takes.
    #[error("{limit} is {max}, but {actual} was given")]
    LimitExceeded {
        /// Name of the constant in [`crate::limits`].
        limit: &'static str,
        /// The most that is taken.
        max: usize,
        /// What was given.
        actual: usize,
    },
    /// The patterns of a filter would look at more text of one row than they may, or those in the conditions of one call at more of all
    /// its rows. Nothing was read or written.
    #[error(
        "patterns would look at more than MAX_MATCHED_BYTES of text, {} bytes, with row {key}",
        limits::MAX_MATCHED_BYTES
    )]
    MatchedTooMuch {
        /// The row at which it is more.
        key: String,
    },
    /// A table of that name exists with another schema.
    #[error("table {table:?} exists and differs: {difference}")]
    TableExists {
        /// Name of the table.
        table: String,
        /// The first difference found.
        difference: String,
    },
    /// The table isn't of this database.
    #[error("table {table:?} is not in this database")]
    TableNotFound {
        /// Name of the table.
        table: String,
    },
    /// The table has no index of that name.
    #[error("table {table:?} has no secondary index {index:?}")]
    IndexNotFound {
        /// Name of the table.
        table: String,
        /// Name asked for.
        index: String,
    },
    /// The table has an index of that name.
    #[error("table {table:?} already has a secondary index {index:?}")]
    IndexExists {
        /// Name of the table.
        table: String,
        /// Name of the index.
        index: String,
    },
    /// The index doesn't hold all rows yet, or didn't when the snapshot was taken.
    #[error("the secondary index {index:?} of table {table:?} is not ready for this snapshot")]
    IndexNotReady {
        /// Name of the table.
        table: String,
        /// Name of the index.
        index: String,
    },
    /// The index can't hold the table's rows.
    #[error("the secondary index {index:?} of table {table:?} could not be built: {reason}")]
    IndexFailed {
        /// Name of the table.
        table: String,
        /// Name of the index.
        index: String,
        /// Which row can't stand in it, and why.
        reason: String,
    },
    /// A condition of a write didn't hold. Nothing was written.
    #[error("condition of write {write} failed: {reason}")]
    ConditionFailed {
        /// Position of the write in its batch, from 0.
        write: usize,
        /// Which condition.
        reason: ConditionFailure,
    },
    /// The request id was used before for something else. Nothing was written.
    #[error("the request id was used before by a different request (written as change {sequence})")]
    RequestIdReused {
        /// Sequence of the first request with this id.
        sequence: u64,
    },
    /// Other writers changed the same rows on each attempt. Nothing was written.
    #[error("the rows changed under this write {attempts} times in a row")]
    Contended {
        /// Attempts made.
        attempts: usize,
    },
    /// A transaction holds the partition. Nothing was written.
    #[error("a transaction holds partition {partition} of table {table:?}")]
    TransactionConflict {
        /// Name of the table.
        table: String,
        /// The partition key, as text.
        partition: String,
    },
    /// No such transaction is open: it never was, has ended, or was ended because its time was up. What it would have
    /// written is not written, unless it was committed.
    #[error("transaction {id} is not open; a transaction lives at most {} s, and {} s without a call",
        limits::MAX_TRANSACTION_LIFE.as_secs(), limits::MAX_TRANSACTION_IDLE.as_secs())]
    TransactionNotFound {
        /// The transaction.
        id: TransactionId,
    },
    /// Another call of the same transaction has not finished.
    #[error("transaction {id} is busy with another call")]
    TransactionBusy {
        /// The transaction.
        id: TransactionId,
    },
    /// A write of a transaction is about a row that the transaction doesn't hold. Nothing was written.
    #[error("write {write} is not in partition {partition} of table {table:?}, which the transaction holds")]
    OutsidePartition {
        /// Position of the write, from 0.
        write: usize,
        /// Name of the transaction's table.
        table: String,
        /// The partition key of the transaction, as text.
        partition: String,
    },
    /// The changes asked for are no longer kept.
    #[error("changes after {requested} were asked for, but the oldest kept is {oldest}")]
    ChangesTrimmed {
        /// Exclusive start that was asked for.
        requested: u64,
        /// Oldest sequence still in the log (one past the end when the log is empty).
        oldest: u64,
    },
    /// Changes of the time asked for are no longer kept.
    #[error("changes since {requested} ns were asked for, but all are kept only after {trimmed:?} ns")]
    TimeTrimmed {
        /// The time asked for, nanoseconds since the Unix epoch.
        requested: i64,
        /// Time of the newest change that is gone; `None` when it isn't known.
        trimmed: Option<i64>,
    },
    /// A feed of that name exists.
    #[error("feed {feed:?} exists")]
    FeedExists {
        /// Name of the feed.
        feed: String,
    },
    /// There is no feed of that name, or it was removed.
    #[error("feed {feed:?} is not in this database")]
    FeedNotFound {
        /// Name of the feed.
        feed: String,
    },
    /// The token isn't of the feed, or not of its log.
    #[error("token of a feed {problem}")]
    FeedTokenInvalid {
        /// What is wrong with it.
        problem: String,
    },
    /// The feed was acknowledged further than the token.
    #[error("the token of feed {feed:?} stands at {token}, behind what is acknowledged, {acknowledged}")]
    FeedTokenStale {
        /// Name of the feed.
        feed: String,
        /// Sequence of the token.
        token: u64,
        /// Sequence of what is acknowledged.
        acknowledged: u64,
    },
    /// The feed has delivered changes that the log lost; their loss was accepted.
    #[error("feed {feed:?} stands at {position}, beyond a log whose loss was accepted")]
    FeedAheadOfLog {
        /// Name of the feed.
        feed: String,
        /// Sequence it had got to.
        position: u64,
    },
    /// Another process, or another handle in this one, has the database open.
    #[error("the database in {directory:?} is in use by {holder}")]
    Locked {
        /// The database's directory.
        directory: PathBuf,
        /// Who has it, as far as the lock file tells: `process 123`, `this process`, `another process`.
        holder: String,
    },
    /// The directory holds something else.
    #[error("{directory:?} is not empty and holds no souk database")]
    NotADatabase {
        /// The directory that was to be opened.
        directory: PathBuf,
    },
    /// The database was written by another version of this software.
    #[error("{directory:?} has storage format {found:?}; this program reads {supported:?}")]
    UnsupportedFormat {
        /// The database's directory.
        directory: PathBuf,
        /// What the marker file says.
        found: String,
        /// What this program writes.
        supported: String,
    },
    /// The log ends before changes that were acknowledged as durable: the disk lost data.
    #[error("the change log ends at {log_end}, but changes up to {watermark} were durable")]
    LogShortened {
        /// Last sequence found.
        log_end: u64,
        /// Last sequence known to have been durable.
        watermark: u64,
    },
    /// Stored bytes are not what was written.
    #[error("stored data is damaged: {what}")]
    Corrupt {
        /// What, where, and how it differs.
        what: String,
        /// The layer below, when it noticed.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A backup isn't whole, isn't as it was written, or doesn't fit.
    #[error("{backup:?} {problem}")]
    UnusableBackup {
        /// The backup, or the file of it.
        backup: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The store has stopped after a failure, or is closed. Nothing was written.
    #[error("the database takes no more calls: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
    /// The commit failed half-way: whether it is on the disk shows only after a restart.
    #[error("the outcome of the commit is not known: {reason}")]
    OutcomeUnknown {
        /// What failed.
        reason: String,
    },
    /// The device has less room than is kept in reserve. Nothing was written; writes are taken again when there is
    /// room.
    #[error("too little room on the device: {reason}")]
    DiskFull {
        /// How little.
        reason: String,
    },
    /// The file system refused.
    #[error("cannot {action} {path:?}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: std::io::Error,
    },
}

/// Which condition of a write failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionFailure {
    /// The row must not exist, and does.
    #[error("the row exists")]
    AlreadyExists,
    /// The row must exist (or have a revision), and doesn't.
    #[error("the row does not exist")]
    NotFound,
    /// The row has been written since.
    #[error("the row is at revision {actual}, expected {expected}")]
    RevisionMismatch {
        /// Revision the writer expects.
        expected: u64,
        /// Revision of the row.
        actual: u64,
    },
    /// The column condition doesn't hold.
    #[error("the column condition does not hold")]
    Column,
}

impl Error {
    pub(crate) fn invalid(subject: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            subject: subject.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn feed_token(problem: impl Into<String>) -> Self {
        Self::FeedTokenInvalid {
            problem: problem.into(),
        }
    }

    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt {
            what: what.into(),
            source: None,
        }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

impl From<kv::Error> for Error {
    fn from(error: kv::Error) -> Self {
        match error {
            kv::Error::Conflict { .. } => Self::Contended { attempts: 1 },
            kv::Error::TooLarge { limit, max, actual } => Self::LimitExceeded { limit, max, actual },
            kv::Error::Malformed { problem } => Self::invalid("a commit", format!("has {problem}")),
            kv::Error::Unavailable { reason } => Self::Unavailable { reason },
            kv::Error::OutcomeUnknown { reason, .. } => Self::OutcomeUnknown { reason },
            kv::Error::DiskFull { reason } => Self::DiskFull { reason },
            kv::Error::Corrupt { what, source } => Self::Corrupt { what, source },
        }
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Invalid { option, problem } => Self::invalid(format!("option {option}"), problem),
            OpenError::Locked { directory, holder } => Self::Locked { directory, holder },
            OpenError::NotADatabase { directory } => Self::NotADatabase { directory },
            OpenError::UnsupportedFormat {
                directory,
                found,
                supported,
            } => Self::UnsupportedFormat {
                directory,
                found,
                supported,
            },
            OpenError::LogShortened { log_end, watermark } => Self::LogShortened { log_end, watermark },
            OpenError::Io { action, path, source } => Self::Io { action, path, source },
            OpenError::Store(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_that_was_refused_says_what_to_do() {
        let directory = PathBuf::from("directory");
        let format = Error::from(OpenError::UnsupportedFormat {
            directory: directory.clone(),
            found: "1".to_owned(),
            supported: "2".to_owned(),
        });
        assert_eq!(format.code(), "UNSUPPORTED_FORMAT");
        assert!(format.advice().contains("export its rows"), "{}", format.advice());
        let io = Error::from(OpenError::Io {
            action: "open",
            path: directory,
            source: std::io::ErrorKind::ReadOnlyFilesystem.into(),
        });
        assert_eq!(io.code(), "IO");
        let damaged = Error::from(OpenError::Store(kv::Error::Corrupt {
            what: "a table".to_owned(),
            source: None,
        }));
        assert_eq!(damaged.code(), "DATA_CORRUPT");
    }
}
