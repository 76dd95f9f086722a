//! Columns that hold messages of a service's own.

use prost::Message;
use souk_engine::{ColumnReader, CorruptRow};

/// Reads a message that stands in a column as [`souk_engine::Columns::message`] wrote it; the empty message when absent.
///
/// # Errors
/// When the column has another type or doesn't decode.
pub fn message_of_column<M: Message + Default>(
    columns: &ColumnReader<'_>,
    name: &str,
) -> Result<M, CorruptRow> {
    M::decode(columns.message(name)?).map_err(|error| CorruptRow::new(name, error.to_string()))
}
