//! Secondary indexes: the entries a row has, and the bytes of an entry: format, the version it lives by, and the
//! included columns, each with its place in the index's schema and its version.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::catalog::{NumberedIndex, Table};
use crate::codec::{Malformed, Reader, put_value, put_varint, put_zigzag};
use crate::error::Result;
use crate::expiry::{Expiry, life};
use crate::key;
use crate::limits;
use crate::row::Row;
use crate::schema::SecondaryIndexSchema;
use crate::value::Value;

const FORMAT: u8 = 1;

/// All index entries of a row: keys and values. A value that is too long for an index is refused.
pub(crate) fn entries(table: &Table, row: &Row) -> Result<BTreeMap<Bytes, Vec<u8>>> {
    let mut entries = BTreeMap::new();
    let schema = table.schema();
    for (number, index) in NumberedIndex::all(&schema) {
        let mut values = Vec::with_capacity(index.columns.len());
        let mut lives = life(row);
        for column in &index.columns {
            let key_value = schema
                .key_position(column)
                .and_then(|at| row.key.values().get(at));
            if let Some(value) = key_value {
                values.push(Value::from(value.clone()));
            } else if let Some(cell) = row.cells(column).first() {
                check_length(&cell.value)?;
                lives = lives.min(cell.version);
                values.push(cell.value.clone());
            }
        }
        if values.len() == index.columns.len() {
            let entry = key::index_entry(table.id(), number, &values, &row.key);
            entries.insert(entry, encode(index, row, lives));
        }
    }
    Ok(entries)
}

/// Refuses what can't stand in the key of an index entry.
pub(crate) fn check_length(value: &Value) -> Result<()> {
    match value {
        Value::String(_) | Value::Binary(_) => {
            limits::check("MAX_KEY_VALUE_BYTES", limits::MAX_KEY_VALUE_BYTES, value.size())
        }
        Value::Integer(_) | Value::Double(_) | Value::Boolean(_) => Ok(()),
    }
}

fn encode(index: &SecondaryIndexSchema, row: &Row, lives: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    out.push(FORMAT);
    out.extend_from_slice(&lives.to_be_bytes());
    for (place, column) in (0u64..).zip(&index.included) {
        if let Some(cell) = row.cells(column).first() {
            put_varint(&mut out, place);
            put_zigzag(&mut out, cell.version.wrapping_sub(lives));
            put_value(&mut out, &cell.value);
        }
    }
    out
}

/// The visible included columns of an entry; `None` when the entry has expired.
pub(crate) fn decode(
    index: &SecondaryIndexSchema,
    bytes: &[u8],
    expiry: Expiry,
) -> Result<Option<Vec<(String, Value)>>, Malformed> {
    let mut reader = Reader::new(bytes);
    if reader.u8()? != FORMAT {
        return Err(Malformed("an index entry of format 1"));
    }
    let lives = reader.i64()?;
    if !expiry.is_visible(lives) {
        return Ok(None);
    }
    let mut included = Vec::new();
    while !reader.is_empty() {
        let place = usize::try_from(reader.varint()?).ok();
        let column = place.and_then(|place| index.included.get(place));
        let column = column.ok_or(Malformed("an included column"))?;
        let version = reader.zigzag()?.wrapping_add(lives);
        let value = reader.value()?;
        if expiry.is_visible(version) {
            included.push((column.clone(), value));
        }
    }
    Ok(Some(included))
}
