//! Which part of a row names its owner, or its partition.

use souk_storage::{ColumnName, KeyValue, PrimaryKey, Row, Value};

use crate::definition::{OwnerDefinition, TableDefinition};

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerPlace {
    /// The field of the index.
    pub(crate) field: String,
    /// The column, where it isn't a part of the key.
    pub(crate) column: String,
    /// Its place in the key.
    pub(crate) key: Option<usize>,
}

impl OwnerPlace {
    pub(crate) fn new(definition: &TableDefinition, owner: &OwnerDefinition) -> Self {
        let column = definition.owner_column(owner);
        let mut key = definition.schema.key.iter();
        Self {
            key: key.position(|(name, _)| *name == column),
            field: owner.field.clone(),
            column,
        }
    }

    /// The first key column, in fields of its name.
    pub(crate) fn partition(column: &str) -> Self {
        Self {
            field: column.to_owned(),
            column: column.to_owned(),
            key: Some(0),
        }
    }
}

/// The owner that a row names.
pub(crate) fn named<'a>(place: &OwnerPlace, row: &'a Row) -> Option<&'a str> {
    match place.key {
        Some(at) => key_text(&row.key, at),
        None => row.get(&place.column)?.as_str(),
    }
}

/// The owner that columns to be written name.
pub(crate) fn named_by<'a>(place: &OwnerPlace, columns: &'a [(ColumnName, Value)]) -> Option<&'a str> {
    // The last one counts.
    let mut columns = columns.iter().rev();
    let (_, value) = columns.find(|(name, _)| *name == place.column)?;
    value.as_str()
}

/// The text of a key column.
pub(crate) fn key_text(key: &PrimaryKey, at: usize) -> Option<&str> {
    key.values().get(at).and_then(KeyValue::as_str)
}
