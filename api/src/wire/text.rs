//! Texts of requests.

use souk_chassis::status::{FieldPath, Violations};

/// Notes a violation when `text` has more than `chars_max` characters or holds a control character. Empty is fine.
pub fn check_text(text: &str, chars_max: usize, path: impl Into<FieldPath>, violations: &mut Violations) {
    let chars = text.chars().count();
    if chars > chars_max {
        let message = format!("has {chars} characters, at most {chars_max} are allowed");
        violations.push(path, "TOO_LONG", message);
    } else if text.chars().any(char::is_control) {
        let message = "contains a control character; use printable characters";
        violations.push(path, "INVALID_TEXT", message);
    }
}

/// [`check_text`] of a text that must not be empty.
pub fn check_name(text: &str, chars_max: usize, path: impl Into<FieldPath>, violations: &mut Violations) {
    if text.is_empty() {
        violations.required(path);
    } else {
        check_text(text, chars_max, path, violations);
    }
}
