//! What a client is told of a search that fails.

use souk_engine::{EngineError, index};
use souk_tablestore::{Reason, ServiceError};

use crate::error::{invalid, refused};

/// An error of the engine about a search.
pub(super) fn failed(error: EngineError) -> ServiceError {
    match error {
        EngineError::Index(error) => of_index(error),
        error => refused(error),
    }
}

fn of_index(error: index::Error) -> ServiceError {
    match error {
        index::Error::InvalidQuery(wrong) => invalid(format!("The search can't be: {wrong}.")),
        index::Error::LimitExceeded {
            path,
            limit,
            max,
            actual,
            advice,
        } => invalid(format!(
            "{path}: {actual} exceeds {limit}, which is {max}; {advice}."
        )),
        index::Error::PageTokenInvalid { detail } => invalid(format!("Invalid token: {detail}.")),
        index::Error::DeadlineExceeded { .. } | index::Error::Cancelled => Reason::OperationTimeout.into(),
        error => refused(error.into()),
    }
}

/// A part of a request that has to be there isn't.
pub(super) fn missing(part: &str) -> ServiceError {
    Reason::SearchPartMissing { part: part.into() }.into()
}
