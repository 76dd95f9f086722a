//! The statuses of calls that authentication or authorization refuses. They never tell whether something exists, nor which
//! part of the credentials was wrong.

use std::time::Duration;

use souk_chassis::status::StatusBuilder;
use tonic::{Code, Status};

use crate::caller::{Caller, Identity};
use crate::rules::{Rules, Verdict};

/// Retry delay while an issuer's keys aren't known.
const RETRY_ISSUER: Duration = Duration::from_secs(1);

/// Retry delay while a service has no credential key: an operator has to set it.
const RETRY_UNCHECKED: Duration = Duration::from_secs(10);

/// UNAUTHENTICATED: the call has no credentials.
pub fn missing() -> Status {
    let message = "this call needs credentials: an API key as x-api-key, or a token as authorization: Bearer";
    StatusBuilder::new(Code::Unauthenticated, "CREDENTIALS_MISSING", message).build()
}

/// UNAUTHENTICATED: the credentials are malformed, unknown or revoked.
pub fn invalid() -> Status {
    let message =
        "nobody is known by these credentials; check that they are whole, and ask for new ones if they are";
    StatusBuilder::new(Code::Unauthenticated, "CREDENTIALS_INVALID", message).build()
}

/// UNAUTHENTICATED: the token is genuine, but has expired.
pub fn expired() -> Status {
    let message = "the token has expired; get a new one from its issuer";
    StatusBuilder::new(Code::Unauthenticated, "TOKEN_EXPIRED", message).build()
}

/// UNAVAILABLE: the issuer's keys, which tokens are verified with, couldn't be read since the start, or for too long.
pub fn issuer_unknown() -> Status {
    let message = "tokens can't be checked now: their issuer's keys can't be had; come back later";
    StatusBuilder::unavailable("ISSUER_KEYS_UNKNOWN", message)
        .retry_after(RETRY_ISSUER)
        .build()
}

/// The reason of [`unproven`].
pub const CALLER_UNPROVEN: &str = "CALLER_UNPROVEN";

/// UNAUTHENTICATED: a service was called without a credential of its gateway.
pub fn unproven() -> Status {
    let message = "this service takes calls from its gateway only; call the gateway";
    StatusBuilder::new(Code::Unauthenticated, CALLER_UNPROVEN, message).build()
}

/// UNAVAILABLE: the call has a credential, and this service no key to verify it with. Not UNAUTHENTICATED, since another
/// process of the service may have the key.
pub fn unchecked() -> Status {
    let message =
        "this service can't check who calls: whoever runs it must set auth.credential_key to the gateway's";
    StatusBuilder::unavailable("CALLER_UNCHECKED", message)
        .retry_after(RETRY_UNCHECKED)
        .build()
}

/// Authorizes `identity` to call the RPC at the request path `path`. `None` when there is no such RPC.
///
/// # Errors
/// PERMISSION_DENIED when the role isn't named by the rule.
pub fn admit(rules: &Rules, path: &str, identity: Identity) -> Result<Option<Caller>, Box<Status>> {
    match rules.verdict(path, identity.role()) {
        Verdict::May(row_access) => Ok(Some(identity.with_row_access(row_access))),
        Verdict::NoRule => Ok(None),
        Verdict::MayNot => {
            let (role, method) = (identity.role(), path.trim_start_matches('/'));
            let message = format!(
                "the role {role} may not call {method}; use credentials of a role that its rule names, see the comment \
                 of the RPC"
            );
            let status = StatusBuilder::new(Code::PermissionDenied, "ROLE_NOT_ALLOWED", message);
            Err(Box::new(
                status.metadata("role", role).metadata("method", method).build(),
            ))
        }
    }
}
