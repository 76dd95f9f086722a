//! What goes wrong on the way to another process.

use tonic::Status;

use crate::status::{RETRY_AFTER, StatusBuilder};
use crate::tls::TlsError;

/// Why no channel can be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address isn't one.
    #[error("no channel can be made to {0}; it must be http://host:port or https://host:port")]
    Address(String),
    /// An address with TLS, and nobody to believe its server by.
    #[error(
        "no channel can be made to {0}: client.tls.ca must name the authorities that its certificate is checked by"
    )]
    Authority(String),
    /// The files of `client.tls`.
    #[error("the files of client.tls can't be used")]
    Tls(#[source] Box<TlsError>),
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server gave none, as far as is known.
    #[error("no answer")]
    NoAnswer(#[source] Status),
    /// The call's time was over before, which says nothing of the server: it may have been short.
    #[error("no answer in time")]
    TimedOut(#[source] Status),
    /// The request broke off: its sender has failed, not the server.
    #[error("the request broke off")]
    Request(#[source] Status),
}

/// UNAVAILABLE: what a backend did `how`.
pub(super) fn unavailable(backend: &str, how: &str) -> StatusBuilder {
    let message = format!("backend {backend} {how}; retry with backoff");
    let status = StatusBuilder::unavailable("BACKEND_UNAVAILABLE", message);
    status.metadata("backend", backend).retry_after(RETRY_AFTER)
}
