//! [`Row`], the one message that isn't generated. Its map of names is dear to make and to encode, and a server that tells rows has no use for
//! it: it writes them by a [`RowWriter`], value by value, as they lie in the store.
//!
//! ```
//! use prost::Message as _;
//! use souk_proto::row::{RowWriter, ValueRef};
//! use souk_proto::table::v1::Row;
//!
//! let mut writer = RowWriter::with_capacity(64);
//! writer.key(ValueRef::String("o1"));
//! writer.column("paid", ValueRef::Bool(true));
//! let told = writer.finish(7);
//! let received = Row::decode(&*told.encode_to_vec())?;
//! assert_eq!((received.key.len(), received.columns.len(), received.revision), (1, 1, 7));
//! # Ok::<_, prost::DecodeError>(())
//! ```

mod writer;

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{DecodeContext, WireType, btree_map, int64, message, skip_field, string};
use prost::{DecodeError, Message};

pub use self::writer::{RowWriter, ValueRef};
use crate::table::v1::Cell;
use crate::r#type::v1::Value;

// The fields of the message.
const KEY: u32 = 1;
const COLUMNS: u32 = 2;
const CELLS: u32 = 3;
const REVISION: u32 = 4;

/// A row, or the parts of it that a read asked for: the message `souk.table.v1.Row`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The values of its key columns, in their order.
    pub key: Vec<Value>,
    /// Its columns, each with its newest value. Empty when versions were asked for.
    pub columns: BTreeMap<String, Value>,
    /// When versions were asked for: its cells, by column, the newest version first.
    pub cells: Vec<Cell>,
    /// The sequence of its last write.
    pub revision: i64,
    /// What a [`RowWriter`] has encoded of it, beside the other fields; empty in what was received.
    pub encoded: Bytes,
}

impl Message for Row {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        message::encode_repeated(KEY, &self.key, buf);
        btree_map::encode(
            string::encode,
            string::encoded_len,
            message::encode,
            message::encoded_len,
            COLUMNS,
            &self.columns,
            buf,
        );
        message::encode_repeated(CELLS, &self.cells, buf);
        if self.revision != 0 {
            int64::encode(REVISION, &self.revision, buf);
        }
        buf.put_slice(&self.encoded);
    }

    fn encoded_len(&self) -> usize {
        let revision = match self.revision {
            0 => 0,
            revision => int64::encoded_len(REVISION, &revision),
        };
        message::encoded_len_repeated(KEY, &self.key)
            + btree_map::encoded_len(string::encoded_len, message::encoded_len, COLUMNS, &self.columns)
            + message::encoded_len_repeated(CELLS, &self.cells)
            + revision
            + self.encoded.len()
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            KEY => message::merge_repeated(wire_type, &mut self.key, buf, ctx),
            COLUMNS => btree_map::merge(string::merge, message::merge, &mut self.columns, buf, ctx),
            CELLS => message::merge_repeated(wire_type, &mut self.cells, buf, ctx),
            REVISION => int64::merge(wire_type, &mut self.revision, buf, ctx),
            _ => skip_field(wire_type, tag, buf, ctx),
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests;
