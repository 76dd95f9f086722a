//! What the index of a table is made for: its fields, where the values of added ones come from, and the version of the
//! documents.
//!
//! A design is kept with the index that was made for it (its schema by the index, the rest as the index's label), so
//! that an index goes on serving and following the log after the declaration has changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use souk_index::{Document, FieldKind, FieldValue, Kept, Operation, Schema};
use souk_storage::{Row, RowChange, Value};
use tracing::error;
use xxhash_rust::xxh3::Xxh3;

use crate::attributes::{Attributes, field_value};
use crate::columns::{ColumnReader, CorruptRow};
use crate::declaration::Declaration;
use crate::error::Result;
use crate::key;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Design {
    pub(crate) schema: Schema,
    /// Fields that the resource doesn't fill in itself, each with the column that it is filled from, or with
    /// `<column>.<name>` for one of the attributes in a column.
    pub(crate) sources: BTreeMap<String, String>,
    pub(crate) document_version: u32,
}

/// The part of a design that its index doesn't know.
#[derive(Serialize, Deserialize)]
struct Label {
    document_version: u32,
    #[serde(default)]
    sources: BTreeMap<String, String>,
    /// Of the database whose changes the index counts.
    #[serde(default)]
    history: u64,
}

impl Design {
    /// The design of a table's index, as the resource declares it.
    ///
    /// # Errors
    /// [`souk_index::Error::InvalidSchema`].
    pub(crate) fn declared(declaration: &Declaration) -> Result<Self> {
        Ok(Self {
            schema: Schema::new(declaration.fields.clone())?,
            sources: BTreeMap::new(),
            document_version: declaration.document_version,
        })
    }

    /// What tells an index that answers like this from all others.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(&self.schema.fingerprint().to_be_bytes());
        hash.update(&self.document_version.to_be_bytes());
        hash.update(&key::DOCUMENT_KEYS.to_be_bytes());
        for text in self.sources.iter().flat_map(|(field, source)| [field, source]) {
            hash.update(&text.len().to_be_bytes());
            hash.update(text.as_bytes());
        }
        hash.digest()
    }

    /// The label of an index that is made for this, in a history of the database.
    pub(crate) fn label(&self, history: u64) -> String {
        let label = Label {
            document_version: self.document_version,
            sources: self.sources.clone(),
            history,
        };
        // Strings and numbers: there is nothing that can't be written.
        serde_json::to_string(&label).unwrap_or_default()
    }

    /// The design of an index that was made by this version or an earlier one; `None` when it can't be known.
    pub(crate) fn kept(kept: Kept) -> Option<Self> {
        let label: Label = serde_json::from_str(&kept.label).ok()?;
        Some(Self {
            schema: kept.schema,
            sources: label.sources,
            document_version: label.document_version,
        })
    }

    /// The history of the database that an index was made in; `None` when it can't be known.
    pub(crate) fn kept_history(kept: &Kept) -> Option<u64> {
        serde_json::from_str(&kept.label)
            .ok()
            .map(|label: Label| label.history)
    }

    /// The document of a row.
    pub(crate) fn document(&self, table: &Declaration, row: &Row) -> Result<Document, CorruptRow> {
        let mut document = table.document(row)?;
        for (field, source) in &self.sources {
            if let Some(kind) = self.schema.resolve(field).map(|field| &field.kind) {
                // Columns that hold something else have no value for the field; the row is found by its others.
                let value = value_of(kind, &ColumnReader::of_row(row), source);
                if let Some(value) = value.ok().flatten() {
                    document.fields.push(field.as_str(), value);
                }
            }
        }
        Ok(document)
    }

    /// What a change of a row is to the index.
    pub(crate) fn operation(&self, table: &Declaration, change: &RowChange) -> Operation {
        match &change.row {
            Some(row) => self.upsert(table, row),
            None => Operation::Delete {
                key: key::to_document_key(&change.key),
            },
        }
    }

    /// A row, in the place of what it was before.
    pub(crate) fn upsert(&self, table: &Declaration, row: &Row) -> Operation {
        match self.document(table, row) {
            Ok(document) => Operation::Upsert(document),
            Err(corrupt) => {
                // The row stays readable by those who can; what it was before must not be found any more.
                error!(table = table.name, error = %corrupt, "a row can't be indexed");
                Operation::Delete {
                    key: key::to_document_key(&row.key),
                }
            }
        }
    }

    /// A row of which the index has nothing yet; `None` when it can't be indexed.
    pub(crate) fn insert(&self, table: &Declaration, row: &Row) -> Option<Operation> {
        match self.document(table, row) {
            Ok(document) => Some(Operation::Insert(document)),
            Err(corrupt) => {
                error!(table = table.name, error = %corrupt, "a row can't be indexed");
                None
            }
        }
    }
}

/// The value that a column or an attribute has for a field of some type.
fn value_of(
    kind: &FieldKind,
    columns: &ColumnReader<'_>,
    source: &str,
) -> Result<Option<FieldValue>, CorruptRow> {
    Ok(match source.split_once('.') {
        Some((column, attribute)) => {
            let attributes = Attributes::from_column(columns, column)?;
            let value = attributes.into_entries().remove(attribute);
            // Bytes are for no field that can be added.
            value
                .map(field_value)
                .filter(|value| !matches!(value, FieldValue::Bytes(_)))
        }
        None if *kind == FieldKind::GeoPoint => columns.optional_point(source)?.map(FieldValue::GeoPoint),
        None => columns.value(source).and_then(|value| of_column(value, kind)),
    })
}

fn of_column(value: &Value, kind: &FieldKind) -> Option<FieldValue> {
    Some(match value {
        Value::String(text) => FieldValue::from(text.as_str()),
        Value::Integer(nanoseconds) if *kind == FieldKind::Date => FieldValue::Date(*nanoseconds),
        Value::Integer(number) => FieldValue::Long(*number),
        Value::Double(number) => FieldValue::Double(*number),
        Value::Boolean(flag) => FieldValue::Boolean(*flag),
        Value::Binary(_) => return None,
    })
}
