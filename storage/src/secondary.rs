//! Secondary indexes: the entries a row has, and the bytes of an entry: format, the version it lives by, and the
//! included columns, each with its place in the index's schema and its version. Beside them the hidden index, whose
//! entries are empty.

use std::collections::BTreeMap;

use bytes::Bytes;
use souk_kv::{Mutation, Space};

use crate::catalog::{Definition, ExpiryIndex, NumberedIndex, Table};
use crate::codec::{Malformed, Reader, put_value, put_varint, put_zigzag};
use crate::error::Result;
use crate::expiry::{Expiry, newest_version, oldest_version};
use crate::id::TableId;
use crate::key;
use crate::limits::{self, MAX_INDEX_NUMBER};
use crate::row::Row;
use crate::schema::SecondaryIndexSchema;
use crate::value::Value;

const FORMAT: u8 = 1;

/// Number of the hidden index by which expired cells are found.
pub(crate) const EXPIRY_INDEX: u16 = MAX_INDEX_NUMBER + 1;

/// Keys and values of index entries.
pub(crate) type Entries = BTreeMap<Bytes, Vec<u8>>;

/// All index entries of a row that is to be written. A value that is too long for an index is refused, unless the index was created
/// without the rows there were, and the row has had the value since: the index goes on lacking it. `before` is the stored row
/// that is replaced, decoded only when a value is too long.
pub(crate) fn entries(table: &Table, row: &Row, before: impl Fn() -> Result<Option<Row>>) -> Result<Entries> {
    let definition = table.definition();
    let mut entries = Entries::new();
    for index in definition.indexes.iter().filter(|index| index.is_kept()) {
        match entry(table.id(), &definition, index, row) {
            Ok(entry) => entries.extend(entry),
            Err(refused) => {
                let lacks = |before: &Row| {
                    entry(table.id(), &definition, index, before).is_err() && keeps_long(index, before, row)
                };
                if !index.partial || !before()?.as_ref().is_some_and(lacks) {
                    return Err(refused);
                }
            }
        }
    }
    entries.extend(expiry_entry(table.id(), &definition, row));
    Ok(entries)
}

/// Whether all values of a row that are too long for an index are as they were.
fn keeps_long(index: &SecondaryIndexSchema, before: &Row, row: &Row) -> bool {
    let newest = |row: &Row, column: &String| row.cells(column).first().map(|cell| cell.value.clone());
    index.columns.iter().all(|column| {
        let value = newest(row, column);
        value.as_ref().is_none_or(|value| check_length(value).is_ok()) || value == newest(before, column)
    })
}

/// The index entries of a row as far as it can stand in the indexes. A row from before an index was created may hold
/// what can't.
pub(crate) fn fitting_entries(table: &Table, row: &Row) -> Entries {
    let definition = table.definition();
    let kept = definition.indexes.iter().filter(|index| index.is_kept());
    let mut entries: Entries = kept
        .filter_map(|index| entry(table.id(), &definition, index, row).ok().flatten())
        .collect();
    entries.extend(expiry_entry(table.id(), &definition, row));
    entries
}

/// The index entries that a stored row may have, with their values as far as they are known: it lacks those of an
/// index that isn't filled yet.
pub(crate) fn stored_entries(table: &Table, row: &Row) -> Entries {
    let mut entries = fitting_entries(table, row);
    for index in table.definition().indexes.iter().filter(|index| index.partial) {
        let (low, high) = key::entries_of_index(table.id(), index.number);
        for (_, value) in entries.range_mut(low..high) {
            // Never equal to what a write makes of it: so the next write of the row adds what may be missing.
            value.clear();
        }
    }
    entries
}

/// What turns the entries of a stored row into those of the row that replaces it: deletes those that are gone, writes
/// those that are new or differ.
pub(crate) fn moves(old: &Entries, new: Entries) -> Vec<Mutation> {
    let space = Space::Index;
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    let mut moves: Vec<_> = gone
        .map(|key| Mutation::Delete {
            space,
            key: key.clone(),
        })
        .collect();
    let written = new.into_iter().filter(|(key, value)| old.get(key) != Some(value));
    moves.extend(written.map(|(key, value)| Mutation::Put {
        space,
        key,
        value,
        stamp: false,
    }));
    moves
}

/// The entry of a row in one index; `None` when the row lacks one of its columns: then the others may hold what can't stand in it.
pub(crate) fn entry(
    table: TableId,
    definition: &Definition,
    index: &NumberedIndex,
    row: &Row,
) -> Result<Option<(Bytes, Vec<u8>)>> {
    let mut values = Vec::with_capacity(index.columns.len());
    let mut lives = newest_version(row);
    for column in &index.columns {
        let key_value = definition
            .schema
            .key_position(column)
            .and_then(|at| row.key.values().get(at));
        if let Some(value) = key_value {
            values.push(Value::from(value.clone()));
        } else if let Some(cell) = row.cells(column).first() {
            lives = lives.min(cell.version);
            values.push(cell.value.clone());
        } else {
            return Ok(None);
        }
    }
    values.iter().try_for_each(check_length)?;
    let key = key::index_entry(table, index.number, &values, &row.key);
    Ok(Some((key, encode(index, row, lives))))
}

/// The entry of a row in the hidden index; `None` when nothing of the table expires.
pub(crate) fn expiry_entry(table: TableId, definition: &Definition, row: &Row) -> Option<(Bytes, Vec<u8>)> {
    match definition.expiry {
        ExpiryIndex::Absent => None,
        ExpiryIndex::Building | ExpiryIndex::Ready => {
            let oldest = Value::Integer(oldest_version(row));
            let key = key::index_entry(table, EXPIRY_INDEX, [&oldest], &row.key);
            Some((key, Vec::new()))
        }
    }
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
