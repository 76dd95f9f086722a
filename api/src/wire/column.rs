//! Columns that hold messages, and integers that are narrower in a message.

use bytes::{Buf, Bytes};
use prost::encoding::{DecodeContext, WireType, decode_key, message, skip_field};
use prost::{DecodeError, Message};
use souk_engine::{ColumnReader, CorruptRow};

/// The field of a column's message that holds its objects.
const OBJECTS: u32 = 1;

/// Reads a message that stands in a column as [`souk_engine::Columns::message`] wrote it; the empty message when absent.
///
/// # Errors
/// When the column has another type or doesn't decode.
pub(super) fn message_of_column<M: Message + Default>(
    columns: &ColumnReader<'_>,
    name: &str,
) -> Result<M, CorruptRow> {
    M::decode(columns.message(name)?).map_err(|error| CorruptRow::new(name, error.to_string()))
}

/// Objects as a column holds them: a message with each as its field 1.
#[must_use]
pub fn objects_to_column<M: Message>(objects: &[M]) -> Vec<u8> {
    let mut encoded = Vec::new();
    message::encode_repeated(OBJECTS, objects, &mut encoded);
    encoded
}

/// The objects of a column.
///
/// # Errors
/// When the column has another type or doesn't decode.
pub fn objects_of_column<M: Message + Default>(
    columns: &ColumnReader<'_>,
    name: &str,
) -> Result<Vec<M>, CorruptRow> {
    let read = |mut encoded: Bytes| -> Result<Vec<M>, DecodeError> {
        let mut objects = Vec::new();
        while encoded.has_remaining() {
            let (field, wire_type) = decode_key(&mut encoded)?;
            if field == OBJECTS && wire_type == WireType::LengthDelimited {
                message::merge_repeated(wire_type, &mut objects, &mut encoded, DecodeContext::default())?;
            } else {
                skip_field(wire_type, field, &mut encoded, DecodeContext::default())?;
            }
        }
        Ok(objects)
    };
    read(columns.message(name)?).map_err(|error| CorruptRow::new(name, error.to_string()))
}

/// The value of an INTEGER column of which a message has fewer bits.
///
/// # Errors
/// When it is beyond those bits.
pub fn narrow<N: TryFrom<i64>>(wide: Option<i64>, name: &str) -> Result<Option<N>, CorruptRow> {
    let narrow = |wide: i64| {
        N::try_from(wide).map_err(|_| CorruptRow::new(name, format!("is {wide}, beyond its type")))
    };
    wide.map(narrow).transpose()
}
