//! Errors of the store as answers.

use souk_chassis::status::StatusBuilder;
use souk_engine::EngineError;
use souk_storage::{ConditionFailure, Error};
use tonic::{Code, Status};

use super::{RETRY_AFTER_FAILURE, RETRY_CONTENDED, request_id_reused};

pub(super) fn status(error: Error) -> Status {
    match error {
        Error::LimitExceeded { limit, max, actual } => StatusBuilder::invalid_argument(
            "LIMIT_EXCEEDED",
            format!("{limit} is {max}, but {actual} was given; send less at a time"),
        )
        .metadata("limit", limit)
        .metadata("max", max)
        .metadata("actual", actual)
        .build(),
        Error::RequestIdReused { .. } => request_id_reused(),
        Error::ChangesTrimmed { requested, oldest } => {
            super::of_engine(EngineError::ChangesTrimmed { after: requested, oldest })
        }
        Error::Contended { .. } => {
            let message = "others changed the same rows during each attempt; repeat after a pause";
            StatusBuilder::aborted("WRITE_CONTENDED", message).retry_after(RETRY_CONTENDED).build()
        }
        Error::DiskFull { .. } => StatusBuilder::resource_exhausted(
            "DISK_FULL",
            "the server's disk has too little room; nothing was written: delete what is not needed, or repeat it later",
        )
        .retry_after(RETRY_AFTER_FAILURE)
        .source(error)
        .build(),
        Error::OutcomeUnknown { .. } => StatusBuilder::unavailable(
            "OUTCOME_UNKNOWN",
            "whether this write happened is not known; repeat it with its request_id, or read before you repeat it",
        )
        .retry_after(RETRY_AFTER_FAILURE)
        .source(error)
        .build(),
        Error::Unavailable { .. } | Error::Io { .. } => {
            StatusBuilder::unavailable("STORE_FAILED", "the store takes no calls; retry later")
                .retry_after(RETRY_AFTER_FAILURE)
                .source(error)
                .build()
        }
        Error::Corrupt { .. } | Error::LogShortened { .. } => StatusBuilder::data_loss(
            "DATA_CORRUPT",
            "stored data is damaged; report it, and restore the store from a backup",
        )
        .source(error)
        .build(),
        // A condition that an RPC sets is named where it is set; this one the engine didn't expect to fail.
        Error::ConditionFailed { reason, .. } => {
            let code = match reason {
                ConditionFailure::AlreadyExists => Code::AlreadyExists,
                ConditionFailure::NotFound => Code::NotFound,
                ConditionFailure::RevisionMismatch { .. } | ConditionFailure::Column => Code::Aborted,
            };
            let message = "a condition of the write doesn't hold; read again and decide anew";
            StatusBuilder::new(code, "CONDITION_FAILED", message).build()
        }
        Error::Invalid { .. }
        | Error::TableExists { .. }
        | Error::TableNotFound { .. }
        | Error::IndexNotFound { .. }
        | Error::Locked { .. }
        | Error::NotADatabase { .. }
        | Error::UnsupportedFormat { .. } => {
            StatusBuilder::internal("the store was used in a wrong way; report it with the trace id").source(error).build()
        }
        // The error is open for more: what has no name here is a fault of the server, never of the client.
        _ => StatusBuilder::internal("the store failed; report it with the trace id").source(error).build(),
    }
}
