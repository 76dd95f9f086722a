//! A row in a line: a `souk.table.v1.RowPut` in JSON, as over HTTP. It takes all rows, with the type of each value.

use std::io::BufRead;

use souk_proto::table::v1::{PutRowRequest, Row, RowPut};

use crate::contract::{ContractError, MessageJson};
use crate::load::ndjson::parsed;
use crate::load::source::Item;

/// What a line is.
const MESSAGE: &str = "souk.table.v1.RowPut";

/// The rows of a file.
///
/// # Errors
/// When the message isn't in the contract.
pub(super) fn rows(
    lines: impl BufRead + Send,
    table: String,
) -> Result<impl Iterator<Item = Item<PutRowRequest>> + Send, ContractError> {
    let json = MessageJson::of(MESSAGE)?;
    Ok(parsed(lines, move |line| {
        let RowPut { key, columns, cells } = json.read(line)?;
        Ok(PutRowRequest {
            table: table.clone(),
            key,
            columns,
            cells,
            ..PutRowRequest::default()
        })
    }))
}

/// Writes rows.
pub(super) struct Lines(MessageJson);

impl Lines {
    pub(super) fn new() -> Result<Self, ContractError> {
        MessageJson::of(MESSAGE).map(Self)
    }

    /// The line of a row, with its end.
    pub(super) fn line(&self, row: Row) -> Result<String, String> {
        let row = RowPut {
            key: row.key,
            columns: row.columns,
            cells: row.cells,
        };
        let mut line = self.0.write(&row)?;
        line.push('\n');
        Ok(line)
    }
}
