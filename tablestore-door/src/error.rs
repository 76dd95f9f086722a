//! The engine's errors as Tablestore's: codes, statuses and texts.

use souk_engine::storage::Error as StoreError;
use souk_engine::{EngineError, index};
use souk_tablestore::{ErrorCode, Reason, ServiceError};

/// What a client is told of an error of the engine. Internal errors, and failures of the store, go to the log.
pub(crate) fn refused(error: EngineError) -> ServiceError {
    match error {
        EngineError::TableNotFound { .. } => Reason::NoSuchTable.into(),
        EngineError::TableClosed { .. } => Reason::PartitionUnavailable.into(),
        EngineError::TableExists { .. } => Reason::TableExists.into(),
        EngineError::InvalidDefinition { problem, .. } => invalid(format!("The table {problem}.")),
        EngineError::InvalidRow { problem, .. } => invalid(format!("The row {problem}.")),
        EngineError::LimitExceeded { limit, max, actual } => limit_exceeded(limit, max, actual),
        EngineError::RowsTooLarge { .. } => invalid("The rows of the request are too large for one answer."),
        EngineError::NotSearched { .. } | EngineError::NotFound { name: "index", .. } => no_index(),
        EngineError::IndexExists { .. } => index_exists(),
        EngineError::IndexNeeded { .. } => {
            invalid("The index can't be deleted: another one of the table has to answer first.")
        }
        EngineError::PageTokenInvalid { detail } => invalid(format!("Invalid token: {detail}.")),
        EngineError::ViewExpired | EngineError::ExportExpired => Reason::ScanExpired.into(),
        EngineError::SequenceAhead { field, given, last } => invalid(format!(
            "{field} is {given}, which no write has; the last is {last}."
        )),
        EngineError::ViewBehind { wanted, reached } | EngineError::SnapshotBehind { wanted, reached } => {
            invalid(format!(
                "The token's view ends at {reached}, before the sequence {wanted} that is asked for."
            ))
        }
        EngineError::TooManyExports { .. }
        | EngineError::TooManyViews { .. }
        | EngineError::TooManyWatches { .. }
        | EngineError::TooManySplits { .. }
        | EngineError::TooManyScans { .. }
        | EngineError::TooManyTransactions { .. }
        | EngineError::TooBusy { .. } => Reason::ServerBusy.into(),
        EngineError::Contended { .. } => Reason::RowConflict.into(),
        EngineError::DeadlineExceeded(_) | EngineError::IndexStalled { .. } => {
            Reason::OperationTimeout.into()
        }
        EngineError::IndexBuilding { .. } | EngineError::IndexDamaged { .. } => {
            ServiceError::new(ErrorCode::TableNotReady, "The index is not ready.")
        }
        EngineError::IndexFailed { .. } | EngineError::IndexUnreadable { .. } => {
            Reason::PartitionUnavailable.into()
        }
        EngineError::Closing => Reason::ServerUnavailable.into(),
        EngineError::Storage(error) => store_error(error),
        EngineError::Index(error) => index_error(error),
        error => internal(&error),
    }
}

/// What a client is told of an error of the store.
pub(crate) fn store_error(error: StoreError) -> ServiceError {
    match error {
        StoreError::Invalid { subject, problem } => invalid(format!("{subject} {problem}.")),
        StoreError::LimitExceeded { limit, max, actual } => limit_exceeded(limit, max, actual),
        StoreError::MatchedTooMuch { .. } => invalid("The patterns of the filter look at too much text."),
        StoreError::TableNotFound { .. } => Reason::NoSuchTable.into(),
        StoreError::TableExists { .. } => Reason::TableExists.into(),
        StoreError::IndexNotFound { .. } => no_index(),
        StoreError::IndexExists { .. } => index_exists(),
        StoreError::IndexNotReady { .. } => Reason::TableNotReady.into(),
        StoreError::IndexFailed { reason, .. } => invalid(format!("The index couldn't be built: {reason}.")),
        StoreError::ConditionFailed { .. } => Reason::ConditionCheckFailed.into(),
        StoreError::Contended { .. } | StoreError::TransactionConflict { .. } => Reason::RowConflict.into(),
        StoreError::TransactionNotFound { .. } => Reason::NoSuchTransaction.into(),
        StoreError::TransactionBusy { .. } => Reason::TransactionBusy.into(),
        StoreError::OutsidePartition { .. } => Reason::OutsideOfTransaction.into(),
        StoreError::ChangesTrimmed { .. } => Reason::ChangesTrimmed.into(),
        StoreError::DiskFull { .. } | StoreError::Unavailable { .. } | StoreError::OutcomeUnknown { .. } => {
            tracing::warn!(%error, "a call to the Tablestore endpoint failed");
            Reason::ServerUnavailable.into()
        }
        error => internal(&error),
    }
}

fn index_error(error: index::Error) -> ServiceError {
    match error {
        index::Error::InvalidSchema(wrong) => invalid(format!("The search index can't be: {wrong}.")),
        index::Error::InvalidQuery(wrong) => invalid(format!("The search can't be: {wrong}.")),
        error @ index::Error::LimitExceeded { .. } => invalid(error.to_string()),
        index::Error::PageTokenInvalid { detail } => invalid(format!("Invalid token: {detail}.")),
        index::Error::DeadlineExceeded { .. } | index::Error::Cancelled => Reason::OperationTimeout.into(),
        error => internal(&error),
    }
}

/// `OTSParameterInvalid` with a text of ours, where Tablestore's isn't published.
pub(crate) fn invalid(text: impl Into<String>) -> ServiceError {
    ServiceError::new(ErrorCode::ParameterInvalid, text)
}

/// What is asked for can't be done here, though Tablestore can.
pub(crate) fn unsupported(what: impl std::fmt::Display) -> ServiceError {
    invalid(format!("Unsupported: {what}."))
}

/// A part of a search request that has to be there isn't.
pub(crate) fn missing(part: &str) -> ServiceError {
    Reason::SearchPartMissing { part: part.into() }.into()
}

pub(crate) fn no_index() -> ServiceError {
    ServiceError::new(ErrorCode::ObjectNotExist, "Requested index does not exist.")
}

fn index_exists() -> ServiceError {
    ServiceError::new(ErrorCode::ObjectAlreadyExist, "Requested index already exists.")
}

/// What a client is told of a limit of the engine or the store, by the name that it has there.
fn limit_exceeded(limit: &str, max: usize, actual: usize) -> ServiceError {
    match limit {
        "MAX_ROW_BYTES" => Reason::RowTooLarge.into(),
        "MAX_TRANSACTION_BYTES" => Reason::TransactionTooLarge.into(),
        "MAX_BATCH_BYTES" => Reason::BatchTooLarge {
            limit: max,
            size: actual,
        }
        .into(),
        "MAX_STAGED_BYTES" | "MAX_STAGED_OF_CALLER_BYTES" | "MAX_TRANSACTIONS" => Reason::ServerBusy.into(),
        "MAX_CREATED_TABLES" | "MAX_TABLES" => Reason::TooManyTables.into(),
        // Without `actual`, which counts the channels of other instances, too.
        "SHARDS_MAX" => invalid(format!(
            "The tunnels of all instances have {max} channels at most."
        )),
        "MAX_FILTER_NODES" => Reason::TooManyFilters { limit: max }.into(),
        limit => invalid(format!("{actual} exceeds {limit}, which is {max}.")),
    }
}

pub(crate) fn internal(error: &(dyn std::error::Error + 'static)) -> ServiceError {
    tracing::error!(error, "a call to the Tablestore endpoint failed");
    Reason::Internal.into()
}

#[cfg(test)]
mod tests {
    use souk_engine::error::Waiting;
    use souk_engine::{EngineError, LimitOf, MAX_CREATED_TABLES};
    use souk_tablestore::ErrorCode;

    use super::{StoreError, refused};

    #[test]
    fn what_may_be_retried_has_the_codes_that_clients_retry() {
        let text = String::new;
        let (max, of) = (8, LimitOf::Caller);
        for (error, code) in [
            (EngineError::TooManySplits { max, of }, ErrorCode::ServerBusy),
            (
                EngineError::TooManyTransactions { max, of },
                ErrorCode::ServerBusy,
            ),
            (EngineError::TooManyViews { max, of }, ErrorCode::ServerBusy),
            (EngineError::TooManyExports { max, of }, ErrorCode::ServerBusy),
            (
                EngineError::TableClosed {
                    table: text(),
                    reason: text(),
                },
                ErrorCode::PartitionUnavailable,
            ),
            (
                EngineError::DeadlineExceeded(Waiting::Searchers),
                ErrorCode::Timeout,
            ),
            (EngineError::Closing, ErrorCode::ServerUnavailable),
            (
                EngineError::Contended {
                    name: "row",
                    id: text(),
                    attempts: 32,
                },
                ErrorCode::RowOperationConflict,
            ),
            (
                EngineError::IndexBuilding { index: text() },
                ErrorCode::TableNotReady,
            ),
            (
                EngineError::IndexDamaged {
                    index: text(),
                    reason: text(),
                },
                ErrorCode::TableNotReady,
            ),
            (
                EngineError::IndexUnreadable {
                    index: text(),
                    reason: text(),
                },
                ErrorCode::PartitionUnavailable,
            ),
            (
                EngineError::Storage(StoreError::IndexNotReady {
                    table: text(),
                    index: text(),
                }),
                ErrorCode::TableNotReady,
            ),
            (EngineError::Defect("a test"), ErrorCode::InternalServerError),
        ] {
            let shown = format!("{error:?}");
            assert_eq!(refused(error).code, code, "{shown}");
        }
    }

    #[test]
    fn more_tables_than_there_may_be_are_a_quota() {
        let error = refused(EngineError::LimitExceeded {
            limit: "MAX_CREATED_TABLES",
            max: MAX_CREATED_TABLES,
            actual: MAX_CREATED_TABLES + 1,
        });
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::QuotaExhausted, "Number of tables exceeded the quota.")
        );
    }
}
