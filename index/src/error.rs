//! What can go wrong, as types: each with a stable code, its cause, and what to do about it.

mod violation;

use std::io;

use tantivy::TantivyError;

use crate::limits::{Limit, MAX_SEARCH_BYTES, limit};

pub(crate) use violation::{Checker, Refusals, every};
pub use violation::{Reason, Violation, Violations};

/// What the index answers when it can't do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is wrong in one or several places. The caller has to change it.
    #[error("the search is invalid: {0}")]
    InvalidQuery(Violations),
    /// The schema is wrong in one or several places.
    #[error("the schema is invalid: {0}")]
    InvalidSchema(Violations),
    /// A limit that only the data could show was passed.
    #[error("{path}: {actual} is above the limit {limit} of {max}; {advice}")]
    LimitExceeded {
        /// Where in the request or the operation.
        path: String,
        /// The limit's name.
        limit: &'static str,
        /// What is allowed.
        max: u64,
        /// What it would have been, as far as counted.
        actual: u64,
        /// What to do about it.
        advice: &'static str,
    },
    /// The page token was changed, belongs to another request, or isn't one.
    #[error("the page token can't be used: {detail}; start again without a page token")]
    PageTokenInvalid {
        /// What is wrong with it.
        detail: &'static str,
    },
    /// The search didn't end before its deadline.
    #[error("the deadline passed before the search ended{}; narrow the query or allow more time", progress(.walked))]
    DeadlineExceeded {
        /// Values and words of dictionaries that its patterns had looked at.
        walked: u64,
    },
    /// The caller gave the search up.
    #[error("the search was cancelled")]
    Cancelled,
    /// The folder holds an index of another schema.
    #[error(
        "the index was built for another schema (it has {found:016x}, expected {expected:016x}); \
         build a new index in another folder"
    )]
    SchemaMismatch {
        /// The fingerprint of the schema that was asked for.
        expected: u64,
        /// The fingerprint that the folder has.
        found: u64,
    },
    /// A writer exists already, or existed and was lost.
    #[error("the index has a writer already; an index has one writer at a time")]
    WriterBusy,
    /// A write failed before; the index must be opened again so that it resumes from its durable state.
    #[error(
        "the index writer has failed: {detail}; open the index again, it resumes from its last checkpoint"
    )]
    WriterFailed {
        /// The first failure.
        detail: String,
    },
    /// A document's key is empty.
    #[error("a document key is empty")]
    EmptyKey,
    /// A document's key isn't UTF-8, where it is the value of a field.
    #[error("a document key is not UTF-8; keys are the values of a field of this schema")]
    KeyNotText,
    /// A commit would move the cursor backwards.
    #[error("commit of sequence {given} after {committed}; sequences may not go back")]
    SequenceWentBack {
        /// The sequence of the call.
        given: u64,
        /// The sequence that is committed.
        committed: u64,
    },
    /// The files of the index contradict each other or their checksums.
    #[error("the index is damaged: {detail}; delete the folder, the index is rebuilt from the table")]
    Corrupt {
        /// What was found.
        detail: String,
        /// The cause, where there is one.
        #[source]
        source: Option<tantivy::TantivyError>,
    },
    /// The disk or the operating system refused.
    #[error("input/output error while {doing}: {source}; check the disk's space, health and permissions")]
    Io {
        /// What the index was doing.
        doing: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The search library failed in a way that has no name here.
    #[error("the search library failed while {doing}: {source}; this is a defect, please report it")]
    Engine {
        /// What the index was doing.
        doing: &'static str,
        /// The cause.
        #[source]
        source: tantivy::TantivyError,
    },
}

/// How far a search with patterns got.
fn progress(walked: &u64) -> String {
    match walked {
        0 => String::new(),
        walked => format!(" (its patterns had looked at {walked} values)"),
    }
}

impl Error {
    /// The error's stable name in UPPER_SNAKE_CASE.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidQuery(_) => "INVALID_QUERY",
            Self::InvalidSchema(_) => "INVALID_SCHEMA",
            Self::LimitExceeded { .. } => "LIMIT_EXCEEDED",
            Self::PageTokenInvalid { .. } => "PAGE_TOKEN_INVALID",
            Self::DeadlineExceeded { .. } => "DEADLINE_EXCEEDED",
            Self::Cancelled => "CANCELLED",
            Self::SchemaMismatch { .. } => "SCHEMA_MISMATCH",
            Self::WriterBusy => "WRITER_BUSY",
            Self::WriterFailed { .. } => "WRITER_FAILED",
            Self::EmptyKey => "EMPTY_KEY",
            Self::KeyNotText => "KEY_NOT_TEXT",
            Self::SequenceWentBack { .. } => "SEQUENCE_WENT_BACK",
            Self::Corrupt { .. } => "INDEX_CORRUPT",
            Self::Io { .. } => "IO",
            Self::Engine { .. } => "SEARCH_ENGINE",
        }
    }

    /// A limit that the data passes: what was asked for at `path` would be `actual`, as far as counted.
    pub(crate) fn limit(path: &str, limit: Limit, actual: usize, advice: &'static str) -> Self {
        Self::LimitExceeded {
            path: path.to_owned(),
            limit: limit.name,
            max: limit.max,
            actual: actual as u64,
            advice,
        }
    }

    /// What `doing` something failed with on the disk.
    pub(crate) fn io(doing: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Io { doing, source }
    }

    pub(crate) fn corrupt(detail: impl Into<String>) -> Self {
        Self::Corrupt {
            detail: detail.into(),
            source: None,
        }
    }

    /// A limit of the part of the request at `path`; other errors stay as they are.
    pub(crate) fn at(mut self, place: &str) -> Self {
        if let Self::LimitExceeded { path, .. } = &mut self {
            place.clone_into(path);
        }
        self
    }

    /// The same violations, of a part of the request that stands at `place`; other errors stay as they are.
    pub(crate) fn under(mut self, place: &str) -> Self {
        if let Self::InvalidQuery(violations) = &mut self {
            violations.lift("", &format!("{place}."));
        }
        self
    }

    /// A failure of the search library, sorted into what it means here.
    pub(crate) fn engine(doing: &'static str, source: tantivy::TantivyError) -> Self {
        use tantivy::directory::error::{OpenDirectoryError, OpenReadError};

        match source {
            TantivyError::IoError(source) => match AllowanceExceeded::carried_by(&source) {
                Some(exceeded) => exceeded.into(),
                None => Self::io(doing)(io::Error::new(source.kind(), source.to_string())),
            },
            TantivyError::DataCorruption(_)
            | TantivyError::IncompatibleIndex(_)
            | TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(_))
            | TantivyError::OpenReadError(OpenReadError::IncompatibleIndex(_))
            | TantivyError::OpenDirectoryError(OpenDirectoryError::NotADirectory(_)) => Self::Corrupt {
                detail: source.to_string(),
                source: Some(source),
            },
            other => Self::Engine { doing, source: other },
        }
    }

    /// A failure of reading a file, or what ended the reading.
    pub(crate) fn reading(doing: &'static str, source: io::Error) -> Self {
        match AllowanceExceeded::carried_by(&source) {
            Some(exceeded) => exceeded.into(),
            None => Self::Io { doing, source },
        }
    }
}

/// A search would hold more than [`MAX_SEARCH_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the search would hold {actual} bytes, {MAX_SEARCH_BYTES} are allowed")]
pub(crate) struct AllowanceExceeded {
    pub(crate) actual: usize,
}

impl AllowanceExceeded {
    /// The error for the part of the request at `path`.
    pub(crate) fn at(self, path: &str) -> Error {
        let advice = "narrow the query, repeat fewer words in it, skip fewer hits, sort or aggregate by shorter or \
                      fewer values, or ask for the parts in several searches";
        Error::limit(path, limit!(MAX_SEARCH_BYTES), self.actual, advice)
    }

    /// What an error of input and output carries.
    fn carried_by(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<AllowanceExceeded> for Error {
    fn from(exceeded: AllowanceExceeded) -> Self {
        exceeded.at("search")
    }
}

impl From<AllowanceExceeded> for io::Error {
    fn from(exceeded: AllowanceExceeded) -> Self {
        Self::other(exceeded)
    }
}

impl From<AllowanceExceeded> for TantivyError {
    fn from(exceeded: AllowanceExceeded) -> Self {
        io::Error::from(exceeded).into()
    }
}
