//! What can go wrong in a call, as a type. [`crate::status`] says what a client is told.

use souk_chassis::status::{FieldPath, Violations};
use souk_engine::EngineError;
use souk_index::Error as IndexError;

/// Why a call wasn't answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is wrong, whatever the state of the system.
    #[error("the request is invalid: {0:?}")]
    Invalid(Violations),
    /// The query or the order of a search is wrong, maybe with other parts of its request.
    #[error("the search is invalid: {0:?}")]
    InvalidQuery(Violations),
    /// A page token was changed, belongs to another request, or is none.
    #[error("the page token can't be used: {detail}")]
    PageTokenInvalid {
        /// The path of the token in the request.
        path: String,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// A reference names a resource that doesn't exist.
    #[error("{field} names {name} {id:?}, which doesn't exist")]
    UnknownReference {
        /// The path of the field that refers to it.
        field: String,
        /// The name of what is referred to, for example `product`.
        name: &'static str,
        /// The id that is unknown.
        id: String,
    },
    /// The store can't take what a caller gave of a table or its rows, whatever is there.
    #[error("{subject} {problem}")]
    Refused {
        /// What is wrong: `column "price"`, `primary key`, …
        subject: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The engine refused or failed, for a reason that isn't a part of the request.
    #[error(transparent)]
    Engine(EngineError),
}

impl From<Violations> for Error {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}

/// Errors about a part of the request become those that name its path.
impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::PageTokenInvalid { detail } => Self::PageTokenInvalid {
                path: "page_token".to_owned(),
                detail,
            },
            EngineError::DuplicateIds { table, id_field, at } => {
                let mut violations = Violations::default();
                for at in at {
                    // Batch requests carry their resources in a field with the table's name.
                    let path = FieldPath::root(table).index(at).field(id_field);
                    violations.push(path, "DUPLICATE", "is in the batch twice; send each id once");
                }
                Self::Invalid(violations)
            }
            EngineError::SnapshotBehind { wanted, reached } => conflicting(
                FieldPath::root("min_sequence"),
                format!(
                    "is {wanted}, but the snapshot of snapshot_token ends at {reached}; start again without snapshot_token"
                ),
            ),
            EngineError::ViewBehind { wanted, reached } => {
                view_behind(FieldPath::root("min_sequence"), wanted, reached)
            }
            error => Self::Engine(error),
        }
    }
}

/// [`EngineError::ViewBehind`], with the path of what asks for more.
pub(crate) fn view_behind(path: FieldPath, wanted: u64, reached: u64) -> Error {
    let message =
        format!("is {wanted}, but the view of page_token ends at {reached}; start again without page_token");
    conflicting(path, message)
}

fn conflicting(path: FieldPath, message: String) -> Error {
    let mut violations = Violations::default();
    violations.push(path, "CONFLICTING_FIELDS", message);
    Error::Invalid(violations)
}

/// An error about a request, its paths as `at` translates them from the index's.
pub(crate) fn rerooted(error: IndexError, at: impl Fn(&str) -> String) -> Error {
    match error {
        IndexError::InvalidQuery(violations) => {
            let mut listed = Violations::default();
            for violation in violations.listed() {
                let description = format!("{}; {}", violation.message, violation.advice);
                listed.push(at(&violation.path), violation.reason.code(), description);
            }
            for _ in 0..violations.unlisted() {
                listed.push(at("query"), "INVALID_QUERY", "is one of many violations");
            }
            Error::InvalidQuery(listed)
        }
        IndexError::LimitExceeded {
            path,
            limit,
            max,
            actual,
            advice,
        } => EngineError::from(IndexError::LimitExceeded {
            path: at(&path),
            limit,
            max,
            actual,
            advice,
        })
        .into(),
        IndexError::PageTokenInvalid { detail } => Error::PageTokenInvalid {
            path: at("page_token"),
            detail,
        },
        // All others are not about a part of the request.
        error => EngineError::Index(error).into(),
    }
}

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
