//! What an error has to say: its code, one `ErrorInfo` of the domain `souk`, and the fields at fault.

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// An error as a client program reads it.
#[derive(Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The gRPC code.
    pub code: Code,
    /// `ErrorInfo.reason`.
    pub reason: String,
    /// The paths in `BadRequest`, in order.
    pub fields: Vec<String>,
    /// Whether it says when to try again.
    pub has_retry_info: bool,
}

impl Rejection {
    /// Reads an error's details.
    ///
    /// # Errors
    /// When it lacks an `ErrorInfo` of the domain `souk`, a message, or advice for a field.
    pub fn of(status: &Status) -> anyhow::Result<Self> {
        let details = status.get_error_details();
        let info = details
            .error_info()
            .ok_or_else(|| anyhow::anyhow!("no ErrorInfo: {status:?}"))?;
        anyhow::ensure!(
            info.domain == "souk",
            "the domain is {:?}: {status:?}",
            info.domain
        );
        anyhow::ensure!(!status.message().is_empty(), "no message: {status:?}");
        let violations = details
            .bad_request()
            .map(|b| b.field_violations.as_slice())
            .unwrap_or_default();
        for violation in violations {
            anyhow::ensure!(violation.description.len() > 10, "no advice: {violation:?}");
        }
        Ok(Self {
            code: status.code(),
            reason: info.reason.clone(),
            fields: violations
                .iter()
                .map(|violation| violation.field.clone())
                .collect(),
            has_retry_info: details.retry_info().is_some(),
        })
    }
}
