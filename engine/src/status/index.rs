//! Errors of the index as answers.

use souk_chassis::status::{StatusBuilder, Violations};
use souk_index::{Error, Reason};
use tonic::Status;

use super::{RETRY_AFTER_FAILURE, deadline_exceeded, page_token_invalid, unsupported};
use crate::error::Waiting;

pub(super) fn status(error: Error) -> Status {
    match error {
        Error::InvalidQuery(violations) => {
            let mut listed = Violations::new();
            for violation in violations.listed() {
                let description = format!("{}; {}", violation.message, violation.advice);
                listed.push(
                    violation.path.as_str(),
                    violation_reason(&violation.reason),
                    description,
                );
            }
            for _ in 0..violations.unlisted() {
                listed.push("search", "INVALID_QUERY", "is one of many violations");
            }
            match listed.into_result() {
                Err(status) => status,
                Ok(()) => StatusBuilder::invalid_argument("INVALID_QUERY", "the search is invalid").build(),
            }
        }
        Error::Unsupported {
            path,
            feature,
            advice,
        } => unsupported(&path, feature, advice),
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
        Error::PageTokenInvalid { detail } => page_token_invalid("page_token", detail),
        Error::DeadlineExceeded => deadline_exceeded(Waiting::Search),
        Error::Cancelled => StatusBuilder::new(
            tonic::Code::Cancelled,
            "CANCELLED",
            "the call was given up by its caller",
        )
        .build(),
        Error::Corrupt { .. } | Error::WriterFailed { .. } | Error::Io { .. } => StatusBuilder::unavailable(
            "INDEX_FAILED",
            "the index has failed; it recovers when the server is restarted",
        )
        .retry_after(RETRY_AFTER_FAILURE)
        .source(error)
        .build(),
        Error::InvalidSchema(_)
        | Error::SchemaMismatch { .. }
        | Error::WriterBusy
        | Error::InvalidKey { .. }
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

/// The reason of a violation, which programs may compare.
fn violation_reason(reason: &Reason) -> &'static str {
    reason.code()
}
