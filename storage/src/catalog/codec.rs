//! The bytes of a table's definition.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::catalog::TableId;
use crate::codec::{Malformed, Reader, put_bytes, put_varint};
use crate::error::{Error, Result};
use crate::schema::{IndexScope, KeyKind, SecondaryIndexSchema, TableSchema};

/// The format that is written. Format 1 lacks numbered keys, flags and scopes; it is still read.
const FORMAT: u8 = 2;
const FORMAT_1: u8 = 1;

const ALLOWS_UPDATE: u8 = 1;
const HAS_TRANSACTIONS: u8 = 2;

/// The bytes of a schema.
pub(crate) fn encode(schema: &TableSchema) -> Vec<u8> {
    let mut out = vec![FORMAT];
    put_bytes(&mut out, schema.name.as_bytes());
    put_varint(&mut out, schema.key.len() as u64);
    for (column, kind) in &schema.key {
        put_bytes(&mut out, column.as_bytes());
        out.push(match kind {
            KeyKind::String => 1,
            KeyKind::Integer => 2,
            KeyKind::Binary => 3,
        });
    }
    put_varint(&mut out, u64::from(schema.max_versions));
    out.push(u8::from(schema.time_to_live.is_some()));
    put_duration(&mut out, schema.time_to_live.unwrap_or_default());
    put_duration(&mut out, schema.max_version_offset);
    put_varint(&mut out, schema.auto_increment.unwrap_or(0) as u64);
    let mut flags = 0;
    if schema.allow_update {
        flags |= ALLOWS_UPDATE;
    }
    if schema.transactions {
        flags |= HAS_TRANSACTIONS;
    }
    out.push(flags);
    put_varint(&mut out, schema.indexes.len() as u64);
    for index in &schema.indexes {
        put_bytes(&mut out, index.name.as_bytes());
        for columns in [&index.columns, &index.included] {
            put_varint(&mut out, columns.len() as u64);
            for column in columns {
                put_bytes(&mut out, column.as_bytes());
            }
        }
        out.push(match index.scope {
            IndexScope::Global => 1,
            IndexScope::Local => 2,
        });
    }
    out
}

/// The schema of a table's definition.
pub(crate) fn decode(table: TableId, bytes: &[u8]) -> Result<TableSchema> {
    read(bytes).map_err(|Malformed(expected)| {
        Error::corrupt(format!(
            "definition of table number {}: expected {expected}",
            table.0
        ))
    })
}

fn read(bytes: &[u8]) -> Result<TableSchema, Malformed> {
    let mut reader = Reader::new(bytes);
    let format = reader.u8()?;
    if format != FORMAT && format != FORMAT_1 {
        return Err(Malformed("a table of format 1 or 2"));
    }
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
    let lifetime = read_duration(&mut reader)?;
    schema.time_to_live = expires.then_some(lifetime);
    schema.max_version_offset = read_duration(&mut reader)?;
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
        let columns = read_columns(&mut reader)?;
        let included = read_columns(&mut reader)?;
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
    reader.finish()?;
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
