//! `attributes`: what a resource holds beside its own fields.

use std::collections::BTreeMap;

use prost::Message as _;
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::Attributes;
use souk_proto::r#type::v1::Value;

use super::value::{query_value, value_to_wire};

/// Largest value of an attribute, in bytes.
pub const ATTRIBUTE_BYTES_MAX: usize = 4 * 1024;

/// Reads the attributes of the resource that stands at `resource`, and notes those that are too large. What is wrong is left
/// out.
pub fn attributes(
    entries: &BTreeMap<String, Value>,
    resource: &FieldPath,
    violations: &mut Violations,
) -> Attributes {
    let read = entries.iter().filter_map(|(key, value)| {
        let bytes = value.encoded_len();
        if bytes > ATTRIBUTE_BYTES_MAX {
            let message = format!("has {bytes} bytes, at most {ATTRIBUTE_BYTES_MAX} are allowed");
            violations.push(resource.field("attributes").key(key), "TOO_LONG", message);
            return None;
        }
        Some((key.clone(), query_value(value)?))
    });
    read.collect()
}

/// Attributes on the wire.
#[must_use]
pub fn attributes_to_wire(attributes: Attributes) -> BTreeMap<String, Value> {
    let entries = attributes.into_entries().into_iter();
    entries.map(|(key, value)| (key, value_to_wire(value))).collect()
}
