//! `attributes`: what a resource holds beside its own fields.

use std::collections::BTreeMap;

use prost::Message;
use prost::encoding::{btree_map, message, string};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{ColumnReader, CorruptRow};
use souk_proto::r#type::v1::Value;

use super::column::message_of_column;

/// Largest value of an attribute, in bytes.
pub const ATTRIBUTE_BYTES_MAX: usize = 4 * 1024;

/// Notes the attributes that are too large. `at` is their field.
pub fn check_attributes(entries: &BTreeMap<String, Value>, at: &FieldPath, violations: &mut Violations) {
    for (key, value) in entries {
        let bytes = value.encoded_len();
        if bytes > ATTRIBUTE_BYTES_MAX {
            let message = format!("has {bytes} bytes, at most {ATTRIBUTE_BYTES_MAX} are allowed");
            violations.push(at.key(key), "TOO_LONG", message);
        }
    }
}

/// Attributes as [`souk_engine::ValueType::Attributes`] has them in a column.
#[must_use]
pub fn attributes_to_column(entries: &BTreeMap<String, Value>) -> Vec<u8> {
    let mut encoded = Vec::new();
    btree_map::encode(
        string::encode,
        string::encoded_len,
        message::encode,
        message::encoded_len,
        1,
        entries,
        &mut encoded,
    );
    encoded
}

/// The attributes of a column.
///
/// # Errors
/// When the column has another type or doesn't decode.
pub fn attributes_of_column(
    columns: &ColumnReader<'_>,
    name: &str,
) -> Result<BTreeMap<String, Value>, CorruptRow> {
    Ok(message_of_column::<AttributesColumn>(columns, name)?.entries)
}

/// How attributes stand in their column.
#[derive(Clone, PartialEq, prost::Message)]
struct AttributesColumn {
    #[prost(btree_map = "string, message", tag = "1")]
    entries: BTreeMap<String, Value>,
}
