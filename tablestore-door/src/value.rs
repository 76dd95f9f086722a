//! Values and keys: the wire's as the engine's, and back.

use souk_engine::storage::{KeyKind, KeyValue, PrimaryKey, Row, TableSchema, Value as Stored};
use souk_tablestore::plainbuffer::PlainBufferEncoder;
use souk_tablestore::{KeyColumn, KeyElement, Reason, ServiceError, Value};

/// What a cell is to hold.
pub(crate) fn stored(value: Value) -> Stored {
    match value {
        Value::Integer(number) => Stored::Integer(number),
        Value::Double(number) => Stored::Double(number),
        Value::Boolean(truth) => Stored::Boolean(truth),
        Value::String(text) => Stored::String(text),
        Value::Binary(bytes) => Stored::Binary(bytes),
    }
}

/// What a cell holds.
pub(crate) fn told(value: &Stored) -> Value {
    match value {
        Stored::Integer(number) => Value::Integer(*number),
        Stored::Double(number) => Value::Double(*number),
        Stored::Boolean(truth) => Value::Boolean(*truth),
        Stored::String(text) => Value::String(text.clone()),
        Stored::Binary(bytes) => Value::Binary(bytes.clone()),
    }
}

/// A value of a key column; `None` of what stands for others.
pub(crate) fn key_value(element: &KeyElement) -> Option<KeyValue> {
    match element {
        KeyElement::Integer(number) => Some(KeyValue::Integer(*number)),
        KeyElement::String(text) => Some(KeyValue::String(text.clone())),
        KeyElement::Binary(bytes) => Some(KeyValue::Binary(bytes.clone())),
        KeyElement::Minimum | KeyElement::Maximum | KeyElement::AutoIncrement => None,
    }
}

/// A value of a key as one of a cell: bounds of indexes are.
pub(crate) fn stored_key(value: &KeyValue) -> Stored {
    value.clone().into()
}

/// What a key column holds.
pub(crate) fn key_element(value: &KeyValue) -> KeyElement {
    match value {
        KeyValue::Integer(number) => KeyElement::Integer(*number),
        KeyValue::String(text) => KeyElement::String(text.clone()),
        KeyValue::Binary(bytes) => KeyElement::Binary(bytes.clone()),
    }
}

/// Refuses a key that has other columns than the table, by name, order or type. What stands for values is of any type.
pub(crate) fn check_key(schema: &TableSchema, key: &[KeyColumn]) -> Result<(), Reason> {
    let names = key.iter().map(|column| column.name.as_str());
    let is_named = names.eq(schema.key.iter().map(|(name, _)| name.as_str()));
    let mut places = key.iter().enumerate();
    match is_named && places.all(|(at, column)| fits(schema, at, &column.value)) {
        true => Ok(()),
        false => Err(Reason::KeySchemaMismatch),
    }
}

/// Whether a value is of the type of a key column; what stands for values is of any.
pub(crate) fn fits(schema: &TableSchema, at: usize, value: &KeyElement) -> bool {
    let kind = schema.key.get(at).map(|(_, kind)| *kind);
    match value {
        KeyElement::Integer(_) => kind == Some(KeyKind::Integer),
        KeyElement::String(_) => kind == Some(KeyKind::String),
        KeyElement::Binary(_) => kind == Some(KeyKind::Binary),
        KeyElement::Minimum | KeyElement::Maximum | KeyElement::AutoIncrement => kind.is_some(),
    }
}

/// The values of a whole key, of a table or of a secondary index.
pub(crate) fn key_values(schema: &TableSchema, key: &[KeyColumn]) -> Result<Vec<KeyValue>, Reason> {
    check_key(schema, key)?;
    let values: Option<Vec<KeyValue>> = key.iter().map(|column| key_value(&column.value)).collect();
    values.ok_or(Reason::KeySchemaMismatch)
}

/// The key of one row, as the table has it.
pub(crate) fn primary_key(schema: &TableSchema, key: &[KeyColumn]) -> Result<PrimaryKey, ServiceError> {
    PrimaryKey::new(key_values(schema, key)?).map_err(|error| crate::error::refused(error.into()))
}

/// Writes the key of a row of a table.
pub(crate) fn write_key(
    schema: &TableSchema,
    key: &PrimaryKey,
    row: &mut souk_tablestore::plainbuffer::RowEncoder<'_>,
) {
    for ((name, _), value) in schema.key.iter().zip(key.values()) {
        row.key(name, &key_element(value));
    }
}

/// Writes a row of a table with all cells that it has, each with its version, the newest of a column first.
pub(crate) fn write_row(schema: &TableSchema, row: &Row, out: &mut PlainBufferEncoder) {
    let mut written = out.row();
    write_key(schema, &row.key, &mut written);
    for (column, cells) in row.columns().iter() {
        for cell in cells {
            written.cell(column, Some(&told(&cell.value)), None, Some(cell.version));
        }
    }
    written.finish(false, None);
}

/// One row in plainbuffer; none is no bytes.
pub(crate) fn one_row(schema: &TableSchema, row: Option<&Row>) -> bytes::Bytes {
    let mut out = PlainBufferEncoder::new();
    if let Some(row) = row {
        write_row(schema, row, &mut out);
    }
    out.finish()
}

/// A key alone in plainbuffer.
pub(crate) fn one_key(schema: &TableSchema, key: &PrimaryKey) -> bytes::Bytes {
    let mut out = PlainBufferEncoder::new();
    let mut row = out.row();
    write_key(schema, key, &mut row);
    row.finish(false, None);
    out.finish()
}
