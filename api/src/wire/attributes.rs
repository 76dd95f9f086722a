//! `attributes`: what a resource holds beside its own fields.

use std::collections::BTreeMap;

use prost::Message as _;
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::Attributes;
use souk_proto::r#type::v1::Value;

use super::value::{query_value, value_to_wire};

/// Most attributes of one resource.
pub const ATTRIBUTES_MAX: usize = 64;
/// Longest name of an attribute, in characters.
pub const ATTRIBUTE_KEY_CHARS_MAX: usize = 128;
/// Largest value of an attribute, in bytes.
pub const ATTRIBUTE_BYTES_MAX: usize = 4 * 1024;

/// Checks the attributes of a request: names that aren't empty, each with a value of one kind. What is wrong is noted and
/// left out.
pub fn attributes(
    entries: &BTreeMap<String, Value>,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
) -> Attributes {
    let path = path.into();
    if entries.len() > ATTRIBUTES_MAX {
        let message = format!(
            "has {} entries, at most {ATTRIBUTES_MAX} are allowed",
            entries.len()
        );
        violations.push(&path, "TOO_MANY", message);
        return Attributes::default();
    }
    let checked = entries.iter().filter_map(|(key, value)| {
        let path = path.key(key);
        let chars = key.chars().count();
        if chars == 0 || chars > ATTRIBUTE_KEY_CHARS_MAX || key.chars().any(char::is_control) {
            let message = format!(
                "a name has 1 to {ATTRIBUTE_KEY_CHARS_MAX} characters, none of them a control character"
            );
            violations.push(&path, "INVALID_NAME", message);
            None
        } else if value.encoded_len() > ATTRIBUTE_BYTES_MAX {
            let message = format!(
                "has {} bytes, at most {ATTRIBUTE_BYTES_MAX} are allowed",
                value.encoded_len()
            );
            violations.push(&path, "TOO_LONG", message);
            None
        } else {
            Some((key.clone(), query_value(Some(value), &path, violations)?))
        }
    });
    checked.collect()
}

/// Attributes on the wire.
#[must_use]
pub fn attributes_to_wire(attributes: Attributes) -> BTreeMap<String, Value> {
    let entries = attributes.into_entries().into_iter();
    entries.map(|(key, value)| (key, value_to_wire(value))).collect()
}
