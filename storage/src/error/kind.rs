//! What follows from an error: its kind, a code, advice, and whether trying again helps.

use super::{ConditionFailure, Error};

/// The kinds of errors, to match on: several errors that call for the same reaction are one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is wrong.
    InvalidArgument,
    /// An argument is larger than a limit, or takes more work than one allows.
    LimitExceeded,
    /// The table, index or feed doesn't exist.
    NotFound,
    /// The table exists and differs, or the index or feed exists.
    AlreadyExists,
    /// The index is still being built.
    NotReady,
    /// The index can't be built from the table's rows.
    IndexFailed,
    /// A condition of a write failed; see [`ConditionFailure`].
    ConditionFailed,
    /// The request id belongs to another request.
    RequestIdReused,
    /// Concurrent writes changed the rows on every attempt.
    Contended,
    /// A transaction holds the partition that was to be written.
    TransactionConflict,
    /// The transaction isn't open: it never was, has ended, or has timed out.
    TransactionNotFound,
    /// Another call of the transaction hasn't finished.
    TransactionBusy,
    /// The log no longer has the changes: they are trimmed, or were lost.
    ChangesTrimmed,
    /// The directory is open in this process or another.
    Locked,
    /// The directory holds no database, or one of another format.
    UnsupportedFormat,
    /// Data is lost or damaged.
    Corrupt,
    /// The backup can't be used.
    UnusableBackup,
    /// The store has stopped after a failure, or is closed.
    Unavailable,
    /// The outcome of a commit isn't known.
    OutcomeUnknown,
    /// The device has less free space than is kept in reserve.
    DiskFull,
    /// The file system failed.
    Io,
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. }
            | Self::FeedTokenInvalid { .. }
            | Self::FeedTokenStale { .. }
            | Self::OutsidePartition { .. } => ErrorKind::InvalidArgument,
            Self::LimitExceeded { .. } | Self::MatchedTooMuch { .. } => ErrorKind::LimitExceeded,
            Self::TableExists { .. } | Self::IndexExists { .. } | Self::FeedExists { .. } => {
                ErrorKind::AlreadyExists
            }
            Self::IndexNotReady { .. } => ErrorKind::NotReady,
            Self::IndexFailed { .. } => ErrorKind::IndexFailed,
            Self::TableNotFound { .. } | Self::IndexNotFound { .. } | Self::FeedNotFound { .. } => {
                ErrorKind::NotFound
            }
            Self::ConditionFailed { .. } => ErrorKind::ConditionFailed,
            Self::RequestIdReused { .. } => ErrorKind::RequestIdReused,
            Self::Contended { .. } => ErrorKind::Contended,
            Self::ChangesTrimmed { .. } | Self::TimeTrimmed { .. } | Self::FeedAheadOfLog { .. } => {
                ErrorKind::ChangesTrimmed
            }
            Self::TransactionConflict { .. } => ErrorKind::TransactionConflict,
            Self::TransactionNotFound { .. } => ErrorKind::TransactionNotFound,
            Self::TransactionBusy { .. } => ErrorKind::TransactionBusy,
            Self::Locked { .. } => ErrorKind::Locked,
            Self::NotADatabase { .. } | Self::UnsupportedFormat { .. } => ErrorKind::UnsupportedFormat,
            Self::LogShortened { .. } | Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::UnusableBackup { .. } => ErrorKind::UnusableBackup,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::OutcomeUnknown { .. } => ErrorKind::OutcomeUnknown,
            Self::DiskFull { .. } => ErrorKind::DiskFull,
            Self::Io { .. } => ErrorKind::Io,
        }
    }

    /// A stable name of the error in UPPER_SNAKE_CASE.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "INVALID_ARGUMENT",
            Self::LimitExceeded { .. } | Self::MatchedTooMuch { .. } => "LIMIT_EXCEEDED",
            Self::TableExists { .. } => "TABLE_ALREADY_EXISTS",
            Self::TableNotFound { .. } => "TABLE_NOT_FOUND",
            Self::IndexNotFound { .. } => "INDEX_NOT_FOUND",
            Self::IndexExists { .. } => "INDEX_ALREADY_EXISTS",
            Self::IndexNotReady { .. } => "INDEX_NOT_READY",
            Self::IndexFailed { .. } => "INDEX_FAILED",
            Self::ConditionFailed { reason, .. } => match reason {
                ConditionFailure::AlreadyExists => "ROW_ALREADY_EXISTS",
                ConditionFailure::NotFound => "ROW_NOT_FOUND",
                ConditionFailure::RevisionMismatch { .. } => "REVISION_MISMATCH",
                ConditionFailure::Column => "COLUMN_CONDITION_FAILED",
            },
            Self::RequestIdReused { .. } => "REQUEST_ID_REUSED",
            Self::Contended { .. } => "ROW_CONTENDED",
            Self::ChangesTrimmed { .. } | Self::TimeTrimmed { .. } => "CHANGES_TRIMMED",
            Self::FeedExists { .. } => "FEED_ALREADY_EXISTS",
            Self::FeedNotFound { .. } => "FEED_NOT_FOUND",
            Self::FeedTokenInvalid { .. } => "FEED_TOKEN_INVALID",
            Self::FeedTokenStale { .. } => "FEED_TOKEN_STALE",
            Self::FeedAheadOfLog { .. } => "FEED_AHEAD_OF_LOG",
            Self::TransactionConflict { .. } => "TRANSACTION_CONFLICT",
            Self::TransactionNotFound { .. } => "TRANSACTION_NOT_FOUND",
            Self::TransactionBusy { .. } => "TRANSACTION_BUSY",
            Self::OutsidePartition { .. } => "OUTSIDE_PARTITION",
            Self::Locked { .. } => "DATABASE_LOCKED",
            Self::NotADatabase { .. } => "NOT_A_DATABASE",
            Self::UnsupportedFormat { .. } => "UNSUPPORTED_FORMAT",
            Self::LogShortened { .. } => "LOG_SHORTENED",
            Self::Corrupt { .. } => "DATA_CORRUPT",
            Self::UnusableBackup { .. } => "UNUSABLE_BACKUP",
            Self::Unavailable { .. } => "STORAGE_UNAVAILABLE",
            Self::OutcomeUnknown { .. } => "OUTCOME_UNKNOWN",
            Self::DiskFull { .. } => "DISK_FULL",
            Self::Io { .. } => "IO",
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "correct the argument",
            Self::LimitExceeded { .. } => "send less at a time",
            Self::MatchedTooMuch { .. } => "use fewer patterns, or leave the row out",
            Self::TableExists { .. } => "use the schema the table was created with, or another name",
            Self::TableNotFound { .. } => "create the table first, and use the handle of this database",
            Self::IndexNotFound { .. } => "use an index of the table's schema, or create this one",
            Self::IndexExists { .. } => "drop the index first, or use another name",
            Self::IndexNotReady { .. } => "wait until the index is ready, then take a new snapshot",
            Self::IndexFailed { .. } => {
                "drop the index, correct or delete the row, and create the index again"
            }
            Self::ConditionFailed { .. } => "read the row again and decide anew",
            Self::RequestIdReused { .. } => "use a fresh id for each request, and the same only to repeat it",
            Self::Contended { .. } => "try again after a pause",
            Self::TransactionConflict { .. } => {
                "try again when the transaction has ended, a minute later at most"
            }
            Self::TransactionNotFound { .. } => {
                "begin another transaction and read again what it is based on"
            }
            Self::TransactionBusy { .. } => "wait for the answer of a transaction's call before the next one",
            Self::OutsidePartition { .. } => "write other partitions outside of the transaction",
            Self::ChangesTrimmed { .. } => "start over from a snapshot of the tables",
            Self::TimeTrimmed { .. } => "start later, or from the oldest change that is kept",
            Self::FeedExists { .. } => "use the feed that is there, remove it first, or use another name",
            Self::FeedNotFound { .. } => "create the feed first",
            Self::FeedTokenInvalid { .. } => {
                "use a token that a read of this feed gave; only a feed of rows alone has an end"
            }
            Self::FeedTokenStale { .. } => "read again: the feed goes on behind what is acknowledged",
            Self::FeedAheadOfLog { .. } => {
                "remove the feed, create it anew and start over from its base rows"
            }
            Self::Locked { .. } => "stop whoever has it open, or use another directory",
            Self::NotADatabase { .. } => "give an empty directory or the directory of a souk database",
            Self::UnsupportedFormat { .. } => {
                "use the version of the program that wrote the database, or export its rows with it and load them with \
                 this one"
            }
            Self::LogShortened { .. } | Self::Corrupt { .. } => {
                "restore the directory from a backup, and check the disk; to open what is left and accept \
                 the loss, set recovery to accept a shorter log"
            }
            Self::UnusableBackup { .. } => {
                "use another backup: a full one, or a full one and all that follow it in their order"
            }
            Self::Unavailable { .. } => "restart the process; the cause is in the message and in the log",
            Self::OutcomeUnknown { .. } => {
                "restart the process, then repeat the request with the same request id"
            }
            Self::DiskFull { .. } => {
                "free space on the device, or delete rows; writes are taken again without a restart"
            }
            Self::Io { .. } => "check the path, its permissions and the disk",
        }
    }

    /// Whether the same call may succeed later, without a change to it.
    pub fn retryable(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Contended
                | ErrorKind::NotReady
                | ErrorKind::TransactionConflict
                | ErrorKind::TransactionBusy
                | ErrorKind::Unavailable
                | ErrorKind::OutcomeUnknown
                | ErrorKind::DiskFull
        )
    }
}
