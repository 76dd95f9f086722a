//! The rules of the contract, enforced on what was received.

use souk_chassis::status::{FieldPath, VIOLATIONS_LISTED_MAX, Violations};
use souk_proto::rules::{Path, Validate, Violation};
use tonic::Request;

use super::settled;
use crate::error::Result;

/// The message of a request, and all that breaks its rules. Who receives it adds what no rule can say, and ends with
/// [`super::settled`] or [`super::checked`].
pub fn received<M: Validate>(request: Request<M>) -> (M, Violations) {
    let message = request.into_inner();
    let violations = broken(&message, &FieldPath::message());
    (message, violations)
}

/// The message of a request that keeps its rules, about which there is nothing else to check.
///
/// # Errors
/// [`crate::Error::Invalid`] with all violations.
pub fn valid<M: Validate>(request: Request<M>) -> Result<M> {
    let (message, violations) = received(request);
    settled(violations)?;
    Ok(message)
}

/// All that breaks the rules of a message that stands at `at`.
#[must_use]
pub fn broken(message: &dyn Validate, at: &FieldPath) -> Violations {
    let mut violations = Violations::default();
    message.validate(&Path::at(at.as_str()), &mut |violation| {
        note(&violation, &mut violations);
    });
    violations
}

/// Notes a violation. Its words are made if somebody reads them.
pub(crate) fn note(violation: &Violation<'_>, violations: &mut Violations) {
    if violations.len() < VIOLATIONS_LISTED_MAX {
        let path = violation.path.to_string();
        violations.push(path, violation.reason, violation.message.to_string());
    } else {
        violations.push(FieldPath::message(), violation.reason, "");
    }
}
