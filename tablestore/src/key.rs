//! Primary keys of requests: what may stand in them depends on what they are for.

use bytes::Bytes;

use crate::error::Reason;
use crate::limits;
use crate::name::check_column;
use crate::plainbuffer::decode_row;
use crate::value::{KeyColumn, KeyElement};

/// What a primary key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// Reading one row, of a table or of a secondary index, or holding one partition: all values are given.
    Get,
    /// An end of a range, of a table or of a secondary index: [`KeyElement::Minimum`] and [`KeyElement::Maximum`] may stand for values.
    RangeEnd,
    /// Putting or updating a row: a column that isn't the first may be [`KeyElement::AutoIncrement`].
    Write,
    /// Deleting a row: all values are given.
    Delete,
}

impl KeyUse {
    /// Decodes the primary key of a request that reads, from plainbuffer.
    ///
    /// # Errors
    /// What is wrong with the bytes, with the key, or that there is more than a key.
    pub fn decode(self, bytes: Bytes) -> Result<Vec<KeyColumn>, Reason> {
        let row = decode_row(bytes)?;
        if !row.cells.is_empty() {
            return Err(Reason::ReadColumns);
        }
        if row.delete_marker {
            return Err(Reason::ReadDeleteMarker);
        }
        self.check(&row.key)?;
        Ok(row.key)
    }

    /// Checks the number, names and values of a key's columns. Whether the table has these columns isn't known here.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(self, key: &[KeyColumn]) -> Result<(), Reason> {
        let limit = match self {
            Self::Get | Self::RangeEnd => limits::MAX_INDEX_KEY_COLUMNS,
            Self::Write | Self::Delete => limits::MAX_KEY_COLUMNS,
        };
        match key.len() {
            0 => return Err(Reason::KeyWithoutColumns),
            count if count > limit => return Err(Reason::KeyColumnCount { limit }),
            _ => {}
        }
        let numbered = key
            .iter()
            .filter(|column| column.value == KeyElement::AutoIncrement)
            .count();
        if numbered > 1 && self == Self::Write {
            return Err(Reason::AutoIncrementsInRow { count: numbered });
        }
        for (at, column) in key.iter().enumerate() {
            if column.name.is_empty() {
                return Err(Reason::NoKeyName);
            }
            check_column(&column.name)?;
            if key.iter().take(at).any(|before| before.name == column.name) {
                return Err(Reason::DuplicatedKeyColumn {
                    name: column.name.clone(),
                });
            }
            self.check_value(at, column)?;
        }
        Ok(())
    }

    fn check_value(self, at: usize, column: &KeyColumn) -> Result<(), Reason> {
        match (&column.value, self) {
            (KeyElement::Integer(_), _) => Ok(()),
            (KeyElement::String(_) | KeyElement::Binary(_), _) => match column.value.size() {
                length if length <= limits::MAX_KEY_VALUE_BYTES => Ok(()),
                length => Err(Reason::KeyValueTooLong {
                    name: column.name.clone(),
                    limit: limits::MAX_KEY_VALUE_BYTES,
                    length,
                }),
            },
            (KeyElement::Minimum | KeyElement::Maximum, Self::RangeEnd) => Ok(()),
            (KeyElement::Minimum, _) => Err(Reason::InvalidKeyType {
                kind: "VT_INF_MIN".into(),
            }),
            (KeyElement::Maximum, _) => Err(Reason::InvalidKeyType {
                kind: "VT_INF_MAX".into(),
            }),
            (KeyElement::AutoIncrement, Self::Write) if at == 0 => Err(Reason::FirstColumnAutoIncrement),
            (KeyElement::AutoIncrement, Self::Write) => Ok(()),
            (KeyElement::AutoIncrement, Self::Delete) => Err(Reason::AutoIncrementDelete),
            (KeyElement::AutoIncrement, Self::Get | Self::RangeEnd) => Err(Reason::AutoIncrementRead),
        }
    }
}
