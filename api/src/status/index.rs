//! Errors of the index as answers.

use souk_chassis::status::StatusBuilder;
use souk_engine::error::Waiting;
use souk_index::Error;
use tonic::Status;

use super::deadline_exceeded;
use crate::error::rerooted;

pub(super) fn status(error: Error) -> Status {
    match error {
        // The same for a request whose fields have no prefix.
        Error::InvalidQuery(_) | Error::PageTokenInvalid { .. } => rerooted(error, str::to_owned).into(),
        Error::LimitExceeded {
            path,
            limit,
            max,
            actual,
            advice,
        } => StatusBuilder::invalid_argument(
            "LIMIT_EXCEEDED",
            format!("{path}: {actual} is above the limit {limit} of {max}; {advice}"),
        )
        .metadata("field", &path)
        .metadata("limit", limit)
        .metadata("max", max)
        .field_violation(&path, format!("{actual} is above the limit {limit} of {max}"))
        .build(),
        Error::DeadlineExceeded { walked } => deadline_exceeded(Waiting::Search { walked }),
        Error::Cancelled => StatusBuilder::new(
            tonic::Code::Cancelled,
            "CANCELLED",
            "the call was given up by its caller",
        )
        .build(),
        Error::InvalidSchema(_)
        | Error::SchemaMismatch { .. }
        | Error::WriterBusy
        | Error::EmptyKey
        | Error::KeyNotText
        | Error::SequenceWentBack { .. }
        | Error::Engine { .. } => {
            StatusBuilder::internal("the index contradicts itself; report it with the trace id")
                .source(error)
                .build()
        }
        // The error is open for more: what has no name here is a fault of the server, never of the client.
        _ => StatusBuilder::internal("the index failed; report it with the trace id")
            .source(error)
            .build(),
    }
}
