//! `attributes`: what a resource holds beside its own fields.

use std::collections::BTreeMap;

use prost::Message as _;
use souk_chassis::status::{FieldPath, Violations};
use souk_index::{FieldValue, Object, QueryValue};
use souk_proto::r#type::v1::Value;

use super::query_value;
use crate::columns::{ColumnReader, Columns, CorruptRow};

/// Most attributes of one resource.
pub const ATTRIBUTES_MAX: usize = 64;
/// Longest name of an attribute, in characters.
pub const ATTRIBUTE_KEY_CHARS_MAX: usize = 128;
/// Largest value of an attribute, in bytes.
pub const ATTRIBUTE_BYTES_MAX: usize = 4 * 1024;

/// Checked attributes: names that aren't empty, each with a value of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    entries: BTreeMap<String, Value>,
}

fn field_value(value: QueryValue) -> FieldValue {
    match value {
        QueryValue::String(text) => FieldValue::from(text),
        QueryValue::Integer(number) => FieldValue::Long(number),
        QueryValue::Double(number) => FieldValue::Double(number),
        QueryValue::Boolean(flag) => FieldValue::Boolean(flag),
        QueryValue::Bytes(bytes) => FieldValue::Bytes(bytes),
        QueryValue::Time(nanos) => FieldValue::Date(nanos),
    }
}

/// How attributes stand in their column.
#[derive(Clone, PartialEq, prost::Message)]
struct AttributesColumn {
    #[prost(btree_map = "string, message", tag = "1")]
    entries: BTreeMap<String, Value>,
}

impl Attributes {
    /// Checks the attributes of a request. What is wrong is noted and left out.
    pub fn from_wire(
        entries: &BTreeMap<String, Value>,
        path: impl Into<FieldPath>,
        violations: &mut Violations,
    ) -> Self {
        let path = path.into();
        if entries.len() > ATTRIBUTES_MAX {
            let message = format!(
                "has {} entries, at most {ATTRIBUTES_MAX} are allowed",
                entries.len()
            );
            violations.push(&path, "TOO_MANY", message);
            return Self::default();
        }
        let mut checked = BTreeMap::new();
        for (key, value) in entries {
            let path = path.key(key);
            let chars = key.chars().count();
            if chars == 0 || chars > ATTRIBUTE_KEY_CHARS_MAX || key.chars().any(char::is_control) {
                let message = format!(
                    "a name has 1 to {ATTRIBUTE_KEY_CHARS_MAX} characters, none of them a control character"
                );
                violations.push(&path, "INVALID_NAME", message);
            } else if value.encoded_len() > ATTRIBUTE_BYTES_MAX {
                let message = format!(
                    "has {} bytes, at most {ATTRIBUTE_BYTES_MAX} are allowed",
                    value.encoded_len()
                );
                violations.push(&path, "TOO_LONG", message);
            } else if query_value(Some(value), &path, violations).is_some() {
                checked.insert(key.clone(), value.clone());
            }
        }
        Self { entries: checked }
    }

    /// The attributes on the wire.
    #[must_use]
    pub fn into_wire(self) -> BTreeMap<String, Value> {
        self.entries
    }

    /// The attributes by name.
    #[must_use]
    pub fn entries(&self) -> &BTreeMap<String, Value> {
        &self.entries
    }

    /// Adds the attributes to a document, as field `name`; none when there are none.
    pub fn to_document(&self, document: &mut Object, name: &str) {
        let mut object = Object::new();
        for (key, value) in &self.entries {
            // They were checked when they were written.
            let mut unchecked = Violations::new();
            let value = query_value(Some(value), FieldPath::root(name), &mut unchecked);
            if let Some(value) = value {
                object.push(key.as_str(), field_value(value));
            }
        }
        if object.fields().next().is_some() {
            document.push(name, vec![object]);
        }
    }

    /// Adds the attributes to a row, as column `name`.
    #[must_use]
    pub fn to_column(&self, columns: Columns, name: &str) -> Columns {
        columns.message(
            name,
            &AttributesColumn {
                entries: self.entries.clone(),
            },
        )
    }

    /// Reads the attributes from column `name`.
    ///
    /// # Errors
    /// When the column doesn't hold attributes.
    pub fn from_column(columns: &ColumnReader<'_>, name: &str) -> Result<Self, CorruptRow> {
        Ok(Self {
            entries: columns.message::<AttributesColumn>(name)?.entries,
        })
    }
}
