//! Maps errors of the store to gRPC statuses.

use souk_chassis::status::StatusBuilder;
use souk_engine::EngineError;
use souk_storage::limits::MAX_MATCHED_BYTES;
use souk_storage::{ConditionFailure, Error};
use tonic::{Code, Status};

use super::{RETRY_AFTER_FAILURE, RETRY_CONTENDED, RETRY_WHILE_BUILDING, request_id_reused};

pub(super) fn status(error: Error) -> Status {
    match error {
        Error::LimitExceeded { limit, max, actual } => {
            let (code, advice) = match limit {
                // Limits that several transactions share: nothing is wrong with this call.
                "MAX_STAGED_BYTES" | "MAX_TRANSACTIONS" => {
                    (Code::ResourceExhausted, ", of all callers together; repeat later")
                }
                "MAX_STAGED_OF_CALLER_BYTES" => (
                    Code::ResourceExhausted,
                    ", of all transactions of its caller; end one, or repeat later",
                ),
                "MAX_SPLITS" | "MAX_SPLITS_BYTES" => (Code::InvalidArgument, "; ask for larger parts"),
                _ => (Code::InvalidArgument, "; send less at a time"),
            };
            let message = format!("{limit} is {max}, but {actual} was given{advice}");
            let status = StatusBuilder::new(code, "LIMIT_EXCEEDED", message)
                .metadata("limit", limit)
                .metadata("max", max)
                .metadata("actual", actual);
            match code {
                Code::ResourceExhausted => status.retry_after(RETRY_CONTENDED).build(),
                _ => status.build(),
            }
        }
        Error::MatchedTooMuch { .. } => StatusBuilder::invalid_argument(
            "LIMIT_EXCEEDED",
            format!("{error}; use fewer patterns, or leave this row out"),
        )
        .metadata("limit", "MAX_MATCHED_BYTES")
        .metadata("max", MAX_MATCHED_BYTES)
        .build(),
        Error::RequestIdReused { .. } => request_id_reused(),
        Error::ChangesTrimmed { requested, oldest } => {
            super::engine_status(EngineError::ChangesTrimmed { after: requested, oldest })
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
        // A condition of the client's own. Those that RPCs of resources set, by etags, have become their own errors before.
        Error::ConditionFailed { write, reason } => {
            let code = match reason {
                ConditionFailure::AlreadyExists => Code::AlreadyExists,
                ConditionFailure::NotFound => Code::NotFound,
                ConditionFailure::RevisionMismatch { .. } | ConditionFailure::Column => Code::Aborted,
            };
            let message = format!("a condition of the write doesn't hold: {reason}; read again and decide anew");
            StatusBuilder::new(code, "CONDITION_FAILED", message).metadata("write", write).build()
        }
        Error::TransactionConflict { table, .. } => StatusBuilder::aborted(
            "TRANSACTION_CONFLICT",
            format!("a transaction holds the partition of this row in {table}; write in it, or repeat later"),
        )
        .metadata("table", table)
        .retry_after(RETRY_CONTENDED)
        .build(),
        Error::TransactionNotFound { id } => StatusBuilder::not_found(
            "TRANSACTION_NOT_FOUND",
            format!("transaction {id} isn't open here: it has ended, by a call or because its time was up, or is another caller's; begin again"),
        )
        .metadata("transaction_id", id)
        .build(),
        Error::TransactionBusy { id } => StatusBuilder::aborted(
            "TRANSACTION_BUSY",
            format!("another call of transaction {id} is worked on; make one after the other"),
        )
        .metadata("transaction_id", id)
        .retry_after(RETRY_CONTENDED)
        .build(),
        Error::OutsidePartition { write, .. } => StatusBuilder::invalid_argument(
            "OUTSIDE_PARTITION",
            format!("write {write} isn't in the partition that the transaction holds; write it outside of the transaction"),
        )
        .metadata("write", write)
        .build(),
        Error::TimeTrimmed { .. } => StatusBuilder::new(
            Code::OutOfRange,
            "CHANGES_TRIMMED",
            "changes of that time may no longer be kept; export, then watch from the export's sequence on",
        )
        .build(),
        Error::FeedTokenStale { .. } => StatusBuilder::aborted(
            "CHECKPOINT_STALE",
            "the shard's checkpoint is this one already, or further; with a write, nothing was written: read on from the checkpoint",
        )
        .build(),
        Error::FeedAheadOfLog { position, .. } => StatusBuilder::failed_precondition(
            "CONSUMER_GROUP_AHEAD",
            "the consumer group is ahead of a change log that was shortened; delete it, and create it again",
        )
        .metadata("sequence", position)
        .build(),
        Error::TableNotFound { table } => super::engine_status(EngineError::TableNotFound { table }),
        Error::IndexNotFound { table, index } => StatusBuilder::not_found(
            "SECONDARY_INDEX_NOT_FOUND",
            format!("{table} has no secondary index {index:?}; check the name, or add it to the table"),
        )
        .metadata("table", table)
        .metadata("index", index)
        .build(),
        Error::IndexNotReady { table, index } => StatusBuilder::unavailable(
            "SECONDARY_INDEX_BUILDING",
            format!("{index} of {table} is being backfilled; read it later"),
        )
        .metadata("table", table)
        .metadata("index", &index)
        .resource("secondary index", &index, "is being backfilled")
        .retry_after(RETRY_WHILE_BUILDING)
        .build(),
        Error::IndexFailed { table, index, reason } => StatusBuilder::failed_precondition(
            "SECONDARY_INDEX_FAILED",
            format!("{index} of {table} can't be built, since a row doesn't fit in it; drop it"),
        )
        .metadata("table", table)
        .metadata("index", index)
        .source(reason)
        .build(),
        Error::Invalid { .. }
        | Error::FeedTokenInvalid { .. }
        | Error::TableExists { .. }
        | Error::Locked { .. }
        | Error::NotADatabase { .. }
        | Error::UnsupportedFormat { .. } => {
            StatusBuilder::internal("the store was used in a wrong way; report it with the trace id").source(error).build()
        }
        // The enum is non-exhaustive: a variant that isn't listed is a fault of the server, never of the client.
        _ => StatusBuilder::internal("the store failed; report it with the trace id").source(error).build(),
    }
}
