//! The bytes of a table's definition: its schema, then the numbers and states of its indexes.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::catalog::{Definition, ExpiryIndex, NumberedIndex, SecondaryIndexState};
use crate::codec::{Malformed, Reader, put_bytes, put_varint};
use crate::error::{Error, Result};
use crate::id::TableId;
use crate::schema::{IndexScope, KeyKind, SecondaryIndexSchema, TableSchema};

/// The format that is written. Format 1 lacks numbered keys, flags, scopes, and the numbers and states of indexes,
/// which are their places, all ready; it is still read.
const FORMAT: u8 = 2;
const FORMAT_1: u8 = 1;

const ALLOWS_UPDATE: u8 = 1;
const HAS_TRANSACTIONS: u8 = 2;

const BUILDING: u8 = 1;
const READY: u8 = 2;
const FAILED: u8 = 3;
/// Or'ed to the state of an index that was created without the rows there were.
const PARTIAL: u8 = 0x80;

/// The bytes of a definition.
pub(crate) fn encode(definition: &Definition) -> Vec<u8> {
    let mut out = vec![FORMAT];
    put_schema(&mut out, &definition.schema);
    for index in &definition.indexes {
        put_varint(&mut out, u64::from(index.number));
        let (state, reason) = match &index.state {
            SecondaryIndexState::Building => (BUILDING, ""),
            SecondaryIndexState::Ready => (READY, ""),
            SecondaryIndexState::Failed { reason } => (FAILED, reason.as_str()),
        };
        out.push(state | if index.partial { PARTIAL } else { 0 });
        put_bytes(&mut out, reason.as_bytes());
    }
    put_varint(&mut out, u64::from(definition.next_index));
    out.push(match definition.expiry {
        ExpiryIndex::Absent => 0,
        ExpiryIndex::Building => BUILDING,
        ExpiryIndex::Ready => READY,
    });
    out
}

fn put_schema(out: &mut Vec<u8>, schema: &TableSchema) {
    put_bytes(out, schema.name.as_bytes());
    put_varint(out, schema.key.len() as u64);
    for (column, kind) in &schema.key {
        put_bytes(out, column.as_bytes());
        out.push(match kind {
            KeyKind::String => 1,
            KeyKind::Integer => 2,
            KeyKind::Binary => 3,
        });
    }
    put_varint(out, u64::from(schema.max_versions));
    out.push(u8::from(schema.time_to_live.is_some()));
    put_duration(out, schema.time_to_live.unwrap_or_default());
    put_duration(out, schema.max_version_offset);
    put_varint(out, schema.auto_increment.unwrap_or(0) as u64);
    let mut flags = 0;
    if schema.allow_update {
        flags |= ALLOWS_UPDATE;
    }
    if schema.transactions {
        flags |= HAS_TRANSACTIONS;
    }
    out.push(flags);
    put_varint(out, schema.indexes.len() as u64);
    for index in &schema.indexes {
        put_bytes(out, index.name.as_bytes());
        for columns in [&index.columns, &index.included] {
            put_varint(out, columns.len() as u64);
            for column in columns {
                put_bytes(out, column.as_bytes());
            }
        }
        out.push(match index.scope {
            IndexScope::Global => 1,
            IndexScope::Local => 2,
        });
    }
}

/// The definition of a table.
pub(crate) fn decode(table: TableId, bytes: &[u8]) -> Result<Definition> {
    read(bytes).map_err(|Malformed(expected)| {
        Error::corrupt(format!(
            "definition of table number {}: expected {expected}",
            table.0
        ))
    })
}

fn read(bytes: &[u8]) -> Result<Definition, Malformed> {
    let mut reader = Reader::new(bytes);
    let format = reader.u8()?;
    if format != FORMAT && format != FORMAT_1 {
        return Err(Malformed("a table of format 1 or 2"));
    }
    let schema = read_schema(&mut reader, format)?;
    let mut definition = Definition::new(schema);
    if format == FORMAT_1 {
        // Its rows have no entries in the hidden index yet.
        definition.expiry = ExpiryIndex::Absent;
    } else {
        let indexes = definition.schema.indexes.clone();
        definition.indexes = indexes
            .into_iter()
            .map(|index| read_state(&mut reader, index))
            .collect::<Result<_, _>>()?;
        definition.next_index = read_number(&mut reader)?;
        definition.expiry = match reader.u8()? {
            0 => ExpiryIndex::Absent,
            BUILDING => ExpiryIndex::Building,
            READY => ExpiryIndex::Ready,
            _ => return Err(Malformed("a state of the hidden index")),
        };
    }
    reader.finish()?;
    Ok(definition)
}

fn read_state(reader: &mut Reader<'_>, index: SecondaryIndexSchema) -> Result<NumberedIndex, Malformed> {
    let number = read_number(reader)?;
    let state = reader.u8()?;
    let reason = reader.str()?.to_owned();
    let partial = state & PARTIAL != 0;
    let state = match state & !PARTIAL {
        BUILDING => SecondaryIndexState::Building,
        READY => SecondaryIndexState::Ready,
        FAILED => SecondaryIndexState::Failed { reason },
        _ => return Err(Malformed("a state of an index")),
    };
    Ok(NumberedIndex::new(number, state, partial, index))
}

fn read_number(reader: &mut Reader<'_>) -> Result<u16, Malformed> {
    u16::try_from(reader.varint()?).map_err(|_| Malformed("a number of an index"))
}

fn read_schema(reader: &mut Reader<'_>, format: u8) -> Result<TableSchema, Malformed> {
    let mut schema = TableSchema::new(reader.str()?);
    for _ in 0..reader.count()? {
        let column = reader.str()?;
        let kind = match reader.u8()? {
            1 => KeyKind::String,
            2 => KeyKind::Integer,
            3 => KeyKind::Binary,
            _ => return Err(Malformed("a kind of key column")),
        };
        schema = schema.key(column, kind);
    }
    schema.max_versions = u32::try_from(reader.varint()?).map_err(|_| Malformed("a number of versions"))?;
    let expires = reader.u8()? != 0;
    let lifetime = read_duration(reader)?;
    schema.time_to_live = expires.then_some(lifetime);
    schema.max_version_offset = read_duration(reader)?;
    if format != FORMAT_1 {
        let position = usize::try_from(reader.varint()?).map_err(|_| Malformed("a key column"))?;
        // The first column is never numbered, so that 0 stands for none.
        schema.auto_increment = (position > 0).then_some(position);
        let flags = reader.u8()?;
        if flags & !(ALLOWS_UPDATE | HAS_TRANSACTIONS) != 0 {
            return Err(Malformed("flags of a table"));
        }
        schema.allow_update = flags & ALLOWS_UPDATE != 0;
        schema.transactions = flags & HAS_TRANSACTIONS != 0;
    }
    for _ in 0..reader.count()? {
        let name = reader.str()?;
        let columns = read_columns(reader)?;
        let included = read_columns(reader)?;
        let scope = match format {
            FORMAT_1 => IndexScope::Global,
            _ => match reader.u8()? {
                1 => IndexScope::Global,
                2 => IndexScope::Local,
                _ => return Err(Malformed("a scope of an index")),
            },
        };
        schema = schema.index(SecondaryIndexSchema {
            name: name.to_owned(),
            columns,
            included,
            scope,
        });
    }
    Ok(schema)
}

fn read_columns(reader: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    (0..reader.count()?)
        .map(|_| reader.str().map(str::to_owned))
        .collect()
}

fn put_duration(out: &mut Vec<u8>, duration: Duration) {
    put_varint(out, duration.as_secs());
    put_varint(out, u64::from(duration.subsec_nanos()));
}

fn read_duration(reader: &mut Reader<'_>) -> Result<Duration, Malformed> {
    let seconds = reader.varint()?;
    let nanos = u32::try_from(reader.varint()?)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000);
    Ok(Duration::new(
        seconds,
        nanos.ok_or(Malformed("a part of a second"))?,
    ))
}
