//! Names that clients give.

use crate::error::Reason;
use crate::limits;
use crate::value::Text;

/// Whether a table, column or index may be named so: a letter or `_`, then letters, digits and `_`, at most
/// [`limits::MAX_NAME_BYTES`].
#[must_use]
pub fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        && name.len() <= limits::MAX_NAME_BYTES
}

/// Whether an instance may be named so: letters, digits and hyphens, a letter first; at least 3, and more than the original's 16
/// bytes.
#[must_use]
pub fn is_instance_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_alphanumeric())
        && (3..=limits::MAX_INSTANCE_BYTES).contains(&name.len())
}

/// A name in a text about it: it may be as long as the request.
#[must_use]
pub fn told(name: &str) -> Text {
    name.chars().take(limits::MAX_NAME_BYTES).collect()
}

/// Refuses a name that no column may have.
///
/// # Errors
/// [`Reason::InvalidColumnName`].
pub fn check_column(name: &str) -> Result<(), Reason> {
    match is_name(name) {
        true => Ok(()),
        false => Err(Reason::InvalidColumnName { name: told(name) }),
    }
}
