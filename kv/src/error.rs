//! The errors of an engine: of a call ([`Error`]) and of opening a store ([`OpenError`]).

use std::io;
use std::path::PathBuf;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A check failed. Nothing is written.
    #[error("check {check} of the commit failed")]
    Conflict {
        /// Position of the first check that failed.
        check: usize,
    },
    /// A key or commit is larger than [`Kv::limits`](crate::Kv::limits). Nothing is written.
    #[error("{limit} is {max}, but {actual} was given")]
    TooLarge {
        /// Name of the limit.
        limit: &'static str,
        /// The limit, bytes.
        max: usize,
        /// What was given, bytes.
        actual: usize,
    },
    /// No engine can carry out the commit: a defect of the caller. Nothing is written.
    #[error("a commit has {problem}")]
    Malformed {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The store has failed before or is closed. Nothing is written.
    #[error("the store is unavailable: {reason}")]
    Unavailable {
        /// The failure, or that it is closed.
        reason: String,
    },
    /// The device has too little room; there may be more later. Nothing is written.
    #[error("too little room on the device: {reason}")]
    DiskFull {
        /// The free bytes and those that are kept free.
        reason: String,
    },
    /// The commit failed half-way: it may have been written.
    #[error("the outcome of the commit is not known: {reason}")]
    OutcomeUnknown {
        /// What failed.
        reason: String,
        /// Whether the device was full.
        disk_full: bool,
    },
    /// The store can't read what it wrote.
    #[error("stored data is damaged: {what}")]
    Corrupt {
        /// What is damaged, with its place.
        what: String,
        /// The engine's error.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl Error {
    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt {
            what: what.into(),
            source: None,
        }
    }

    pub(crate) fn closed() -> Self {
        Self::Unavailable {
            reason: "it is closed".to_owned(),
        }
    }
}

/// Why a store doesn't open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// An option is out of its range.
    #[error("option {option} {problem}")]
    Invalid {
        /// Name of the option.
        option: &'static str,
        /// The value, and the range.
        problem: String,
    },
    /// Another process, or another handle in this one, has the store open.
    #[error("the database in {directory:?} is in use by {holder}")]
    Locked {
        /// The store's directory.
        directory: PathBuf,
        /// The holder, as far as the lock file tells: `process 123`, `this process`, `another process`.
        holder: String,
    },
    /// The directory holds files, but no database.
    #[error("{directory:?} is not empty and holds no souk database")]
    NotADatabase {
        /// The directory that was to be opened.
        directory: PathBuf,
    },
    /// The store was written by another version of this software.
    #[error("{directory:?} has storage format {found:?}; this program reads {supported:?}")]
    UnsupportedFormat {
        /// The store's directory.
        directory: PathBuf,
        /// The version in the marker file.
        found: String,
        /// The version that this program reads and writes.
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
    /// The file system refused.
    #[error("cannot {action} {path:?}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// Stored data is damaged, or writing failed while a loss was being accepted.
    #[error(transparent)]
    Store(#[from] Error),
}

impl OpenError {
    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Store(Error::corrupt(what))
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
