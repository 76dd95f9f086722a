//! Errors, with Tablestore's codes, HTTP statuses and texts.

mod reason;

use bytes::Bytes;
use http::StatusCode;
use prost::Message as _;

pub use self::reason::Reason;
use crate::messages;

/// Tablestore's error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "their names say it")]
pub enum ErrorCode {
    AuthFailed,
    RequestBodyTooLarge,
    RequestTimeout,
    MethodNotAllowed,
    ParameterInvalid,
    InternalServerError,
    QuotaExhausted,
    ServerBusy,
    PartitionUnavailable,
    Timeout,
    ServerUnavailable,
    RowOperationConflict,
    ObjectAlreadyExist,
    ObjectNotExist,
    TableNotReady,
    ConditionCheckFail,
    OutOfRowSizeLimit,
    InvalidPk,
    SessionNotExist,
    SessionBusy,
    OutOfTransactionDataSizeLimit,
    DataOutOfRange,
    SessionExpired,
    TrimmedDataAccess,
    TunnelExpired,
    TunnelExist,
    SequenceNumberNotMatch,
    ResourceGone,
    TunnelServerUnavailable,
}

impl ErrorCode {
    /// The code as clients read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AuthFailed => "OTSAuthFailed",
            Self::RequestBodyTooLarge => "OTSRequestBodyTooLarge",
            Self::RequestTimeout => "OTSRequestTimeout",
            Self::MethodNotAllowed => "OTSMethodNotAllowed",
            Self::ParameterInvalid => "OTSParameterInvalid",
            Self::InternalServerError => "OTSInternalServerError",
            Self::QuotaExhausted => "OTSQuotaExhausted",
            Self::ServerBusy => "OTSServerBusy",
            Self::PartitionUnavailable => "OTSPartitionUnavailable",
            Self::Timeout => "OTSTimeout",
            Self::ServerUnavailable => "OTSServerUnavailable",
            Self::RowOperationConflict => "OTSRowOperationConflict",
            Self::ObjectAlreadyExist => "OTSObjectAlreadyExist",
            Self::ObjectNotExist => "OTSObjectNotExist",
            Self::TableNotReady => "OTSTableNotReady",
            Self::ConditionCheckFail => "OTSConditionCheckFail",
            Self::OutOfRowSizeLimit => "OTSOutOfRowSizeLimit",
            Self::InvalidPk => "OTSInvalidPK",
            Self::SessionNotExist => "OTSSessionNotExist",
            Self::SessionBusy => "OTSSessionBusy",
            Self::OutOfTransactionDataSizeLimit => "OTSOutOfTransactionDataSizeLimit",
            Self::DataOutOfRange => "OTSDataOutOfRange",
            Self::SessionExpired => "OTSSessionExpired",
            Self::TrimmedDataAccess => "OTSTrimmedDataAccess",
            Self::TunnelExpired => "OTSTunnelExpired",
            Self::TunnelExist => "OTSTunnelExist",
            Self::SequenceNumberNotMatch => "OTSSequenceNumberNotMatch",
            Self::ResourceGone => "OTSResourceGone",
            Self::TunnelServerUnavailable => "OTSTunnelServerUnavailable",
        }
    }

    /// The HTTP status that goes with it. The statuses of transactions' codes aren't published: those here are ours.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::ParameterInvalid
            | Self::OutOfRowSizeLimit
            | Self::InvalidPk
            | Self::OutOfTransactionDataSizeLimit
            | Self::DataOutOfRange
            | Self::SessionExpired
            | Self::TunnelExpired
            | Self::SequenceNumberNotMatch => StatusCode::BAD_REQUEST,
            Self::AuthFailed | Self::QuotaExhausted | Self::ConditionCheckFail => StatusCode::FORBIDDEN,
            Self::ObjectNotExist | Self::TableNotReady | Self::SessionNotExist | Self::TrimmedDataAccess => {
                StatusCode::NOT_FOUND
            }
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::RowOperationConflict | Self::ObjectAlreadyExist | Self::SessionBusy | Self::TunnelExist => {
                StatusCode::CONFLICT
            }
            Self::ResourceGone => StatusCode::GONE,
            Self::RequestBodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::InternalServerError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::ServerBusy
            | Self::PartitionUnavailable
            | Self::Timeout
            | Self::ServerUnavailable
            | Self::TunnelServerUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error as clients read it: a code and a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ServiceError {
    /// What clients branch on.
    pub code: ErrorCode,
    /// What is wrong, for people.
    pub message: String,
}

impl ServiceError {
    /// An error with a text that [`Reason`] doesn't have.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// As the message of one row in a batch.
    #[must_use]
    pub fn to_message(&self) -> messages::Error {
        messages::Error {
            code: self.code.as_str().to_owned(),
            message: Some(self.message.clone()),
            access_denied_detail: None,
        }
    }

    /// As the body of an answer.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        self.to_message().encode_to_vec().into()
    }
}

impl From<Reason> for ServiceError {
    fn from(reason: Reason) -> Self {
        Self::new(reason.code(), reason.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorCode, Reason, ServiceError};

    #[test]
    fn an_error_is_a_status_and_a_message() {
        let error = ServiceError::from(Reason::ConditionCheckFailed);
        assert_eq!(error.code.status(), 403);
        let mut expected = vec![0x0a, 21];
        expected.extend(b"OTSConditionCheckFail");
        expected.extend([0x12, 23]);
        expected.extend(b"Condition check failed.");
        assert_eq!(error.encode(), expected);
    }

    #[test]
    fn what_clients_repeat_has_the_codes_and_statuses_of_the_original() {
        for (code, name, status) in [
            (ErrorCode::InternalServerError, "OTSInternalServerError", 500),
            (ErrorCode::QuotaExhausted, "OTSQuotaExhausted", 403),
            (ErrorCode::ServerBusy, "OTSServerBusy", 503),
            (ErrorCode::PartitionUnavailable, "OTSPartitionUnavailable", 503),
            (ErrorCode::Timeout, "OTSTimeout", 503),
            (ErrorCode::ServerUnavailable, "OTSServerUnavailable", 503),
            (ErrorCode::RowOperationConflict, "OTSRowOperationConflict", 409),
            (ErrorCode::TableNotReady, "OTSTableNotReady", 404),
        ] {
            assert_eq!((code.as_str(), code.status().as_u16()), (name, status));
        }
    }

    #[test]
    fn texts_carry_what_they_are_about_as_the_original_writes_it() {
        // Texts that tests of the official clients compare.
        let cases = [
            (
                Reason::KeyValueTooLong {
                    name: "pk_0".into(),
                    limit: 1024,
                    length: 1025,
                },
                "The length of primary key column: 'pk_0' exceeds the MaxLength:1024 with CurrentLength:1025.",
            ),
            (
                Reason::ValueTooLong {
                    name: "Column".into(),
                    limit: 2_097_152,
                    length: 2_097_153,
                },
                "The length of attribute column: 'Column' exceeds the MaxLength:2097152 with CurrentLength:2097153.",
            ),
            (
                Reason::TooManyColumns {
                    limit: 1024,
                    count: 2000,
                },
                "The number of attribute columns exceeds the limit, limit count: 1024, column count: 2000.",
            ),
            (
                Reason::TooManyRows { limit: 200 },
                "Rows count exceeds the upper limit: 200.",
            ),
            (
                Reason::InvalidColumnName { name: "1a".into() },
                "Invalid column name: '1a'.",
            ),
        ];
        for (reason, text) in cases {
            assert_eq!(reason.to_string(), text);
        }
    }
}
