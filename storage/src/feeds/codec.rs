//! Encodes and decodes feeds and their tokens.
//!
//! A feed: format, time of creation i64, what it delivers, hold in nanoseconds i64, number of tables and tables, of a
//! shard (format 2) its number and the number of shards, then its checkpoint. A token: format, time of creation of its feed i64, number of the history of its position u64, checkpoint. A
//! checkpoint: stage, position u64, within a change (a bit of the stage) the number of its rows, and in the base stage the cursor.

#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use souk_kv::histories::Histories;

use crate::clock::nanos;
use crate::codec::{Malformed, Reader, put_bytes, put_varint};
use crate::error::{Error, Result};
use crate::feeds::checkpoint::{BaseCursor, Checkpoint, Delivers, FeedDefinition, Stage};
use crate::feeds::shard::FeedShard;
use crate::id::TableId;

const FORMAT: u8 = 1;
const SHARD_FORMAT: u8 = 2;
const TOKEN_FORMAT: u8 = 2;

/// As what is delivered, and as a stage; [`CHANGES`] likewise.
const BASE: u8 = 1;
const CHANGES: u8 = 2;
/// Only as what is delivered; [`FINISHED`] is a stage.
const BASE_AND_CHANGES: u8 = 3;
const FINISHED: u8 = 3;
const LOST: u8 = 4;
/// Bit set in the stage of a checkpoint that is within a change.
const WITHIN: u8 = 0x80;

/// A checkpoint of a feed, encoded: a reader may keep it, even elsewhere, and acknowledge it later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedToken(Bytes);

impl FeedToken {
    pub(crate) fn new(definition: &FeedDefinition, checkpoint: &Checkpoint, histories: &Histories) -> Self {
        let mut out = vec![TOKEN_FORMAT];
        out.extend_from_slice(&definition.created.to_be_bytes());
        out.extend_from_slice(&histories.of(checkpoint.reached()).to_be_bytes());
        put_checkpoint(&mut out, checkpoint);
        Self(out.into())
    }

    /// The encoded token.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A token from its bytes; whether it fits a feed is checked when it is used.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// The checkpoint, if it is of this feed, and of a history that the database has had.
    pub(crate) fn checkpoint(
        &self,
        definition: &FeedDefinition,
        histories: &Histories,
    ) -> Result<Checkpoint> {
        let read = || -> Result<Checkpoint, Malformed> {
            let mut reader = Reader::new(&self.0);
            if reader.u8()? != TOKEN_FORMAT {
                return Err(Malformed("format 2"));
            }
            if reader.i64()? != definition.created {
                return Err(Malformed(
                    "this feed; it is of another, maybe one that had its name before",
                ));
            }
            let history = reader.u64()?;
            let checkpoint = read_checkpoint(&mut reader)?;
            reader.finish()?;
            if histories.of(checkpoint.reached()) != history {
                return Err(Malformed(
                    "this history; it is of one that a restore or an accepted loss has ended",
                ));
            }
            let fits = match checkpoint.stage {
                Stage::Base { .. } => definition.delivers != Delivers::Changes,
                Stage::Changes => definition.delivers != Delivers::Base,
                Stage::Finished => definition.delivers == Delivers::Base,
                Stage::Lost => false,
            };
            if !fits {
                return Err(Malformed("a stage of this feed"));
            }
            Ok(checkpoint)
        };
        read().map_err(|Malformed(expected)| Error::feed_token(format!("lacks {expected}")))
    }
}

/// The bytes of a feed.
pub(crate) fn encode(definition: &FeedDefinition, checkpoint: &Checkpoint) -> Vec<u8> {
    let mut out = vec![match definition.shard {
        None => FORMAT,
        Some(_) => SHARD_FORMAT,
    }];
    out.extend_from_slice(&definition.created.to_be_bytes());
    out.push(match definition.delivers {
        Delivers::Base => BASE,
        Delivers::Changes => CHANGES,
        Delivers::BaseAndChanges => BASE_AND_CHANGES,
    });
    out.extend_from_slice(&nanos(definition.hold).to_be_bytes());
    put_varint(&mut out, definition.tables.len() as u64);
    for table in &definition.tables {
        put_varint(&mut out, u64::from(table.0));
    }
    if let Some(shard) = definition.shard {
        put_varint(&mut out, u64::from(shard.index));
        put_varint(&mut out, u64::from(shard.count));
    }
    put_checkpoint(&mut out, checkpoint);
    out
}

/// The feed of these bytes.
pub(crate) fn decode(name: &str, bytes: &[u8]) -> Result<(FeedDefinition, Checkpoint)> {
    read(bytes).map_err(|Malformed(expected)| Error::corrupt(format!("feed {name:?}: expected {expected}")))
}

fn read(bytes: &[u8]) -> Result<(FeedDefinition, Checkpoint), Malformed> {
    let mut reader = Reader::new(bytes);
    let is_shard = match reader.u8()? {
        FORMAT => false,
        SHARD_FORMAT => true,
        _ => return Err(Malformed("a feed of format 1 or 2")),
    };
    let created = reader.i64()?;
    let delivers = match reader.u8()? {
        BASE => Delivers::Base,
        CHANGES => Delivers::Changes,
        BASE_AND_CHANGES => Delivers::BaseAndChanges,
        _ => return Err(Malformed("what a feed delivers")),
    };
    let hold = u64::try_from(reader.i64()?).map_err(|_| Malformed("a duration"))?;
    let tables = (0..reader.count()?)
        .map(|_| {
            let table = u32::try_from(reader.varint()?).map_err(|_| Malformed("a table"))?;
            Ok(TableId(table))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let shard = match is_shard {
        true => Some(read_shard(&mut reader)?),
        false => None,
    };
    let checkpoint = read_checkpoint(&mut reader)?;
    reader.finish()?;
    let definition = FeedDefinition {
        created,
        delivers,
        tables,
        hold: Duration::from_nanos(hold),
        shard,
    };
    Ok((definition, checkpoint))
}

fn read_shard(reader: &mut Reader<'_>) -> Result<FeedShard, Malformed> {
    let mut number = || u16::try_from(reader.varint()?).map_err(|_| Malformed("a shard"));
    let shard = FeedShard {
        index: number()?,
        count: number()?,
    };
    (shard.index < shard.count)
        .then_some(shard)
        .ok_or(Malformed("a shard"))
}

fn put_checkpoint(out: &mut Vec<u8>, checkpoint: &Checkpoint) {
    let (stage, cursor) = match &checkpoint.stage {
        Stage::Base { cursor } => (BASE, Some(cursor)),
        Stage::Changes => (CHANGES, None),
        Stage::Finished => (FINISHED, None),
        Stage::Lost => (LOST, None),
    };
    let is_within = checkpoint.rows > 0;
    out.push(if is_within { stage | WITHIN } else { stage });
    out.extend_from_slice(&checkpoint.position.to_be_bytes());
    if is_within {
        put_varint(out, checkpoint.rows as u64);
    }
    if let Some(cursor) = cursor {
        put_bytes(out, cursor.as_bytes());
    }
}

fn read_checkpoint(reader: &mut Reader<'_>) -> Result<Checkpoint, Malformed> {
    let stage = reader.u8()?;
    let position = reader.u64()?;
    let rows = match stage & WITHIN {
        0 => 0,
        _ => usize::try_from(reader.varint()?).map_err(|_| Malformed("a number of rows"))?,
    };
    let stage = match stage & !WITHIN {
        BASE => Stage::Base {
            cursor: BaseCursor::from_bytes(reader.bytes()?)
                .ok_or(Malformed("a table or the key of a row"))?,
        },
        CHANGES => Stage::Changes,
        FINISHED => Stage::Finished,
        LOST => Stage::Lost,
        _ => return Err(Malformed("a stage")),
    };
    Ok(Checkpoint {
        stage,
        position,
        rows,
    })
}
