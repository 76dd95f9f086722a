//! A row in a record of CSV (RFC 4180, in UTF-8). The first record names the columns, with their types.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Read};

use csv::{ByteRecord, ReaderBuilder, WriterBuilder};
use souk_proto::table::v1::{PutRowRequest, Row, Table};

use super::columns::FileColumns;
use super::format::TableFileError;
use super::text;
use crate::load::ndjson::LINE_BYTES;
use crate::load::reject::Reject;
use crate::load::source::Item;

/// The rows of a file, numbered by the lines that they begin on, from 1.
///
/// # Errors
/// When the first record isn't there, or doesn't name columns of `table`.
pub(super) fn rows<R: Read + Send>(
    file: R,
    table: &Table,
) -> Result<impl Iterator<Item = Item<PutRowRequest>> + Send + use<R>, TableFileError> {
    // How many values a record has is seen here, and of one row.
    let mut options = ReaderBuilder::new();
    options.has_headers(false).flexible(true);
    let mut reader = options.from_reader(Bounded {
        inner: file,
        left: LINE_BYTES,
        lines: LineStarts::default(),
    });
    let mut record = ByteRecord::new();
    if !reader.read_byte_record(&mut record).map_err(io::Error::from)? {
        return Err(TableFileError::Empty);
    }
    let names = record.iter().map(|name| String::from_utf8(name.to_vec()));
    let names: Vec<_> = names
        .collect::<Result<_, _>>()
        .map_err(|_| TableFileError::HeaderEncoding)?;
    let columns = FileColumns::of_header(&names, table)?;
    let mut over = false;
    Ok(std::iter::from_fn(move || {
        if over {
            return None;
        }
        reader.get_mut().left = LINE_BYTES;
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => {
                over = true;
                return Some(Item::Failed(error.into()));
            }
        }
        // Its line isn't that of the record when there are line ends before that, as the second half of CRLF.
        let behind = record.position().map_or(0, |position| position.byte());
        let number = reader.get_mut().lines.behind(behind);
        Some(match row(&columns, &record) {
            Ok(row) => Item::Row(number, row),
            Err(reason) => Item::Unreadable(Reject::new(number, "", "UNREADABLE", reason)),
        })
    }))
}

fn row(columns: &FileColumns, record: &ByteRecord) -> Result<PutRowRequest, String> {
    let (given, wanted) = (record.len(), columns.iter().len());
    if given != wanted {
        return Err(format!(
            "the record has {given} values, but the header names {wanted} columns"
        ));
    }
    let cells = columns.iter().zip(record).map(|(column, cell)| {
        let cell = std::str::from_utf8(cell).map_err(|_| "isn't UTF-8".to_owned())?;
        text::value(column.cells, cell)
    });
    columns.row(cells)
}

/// Ends a file with an error in a record that is too large to be one: where a quotation mark isn't closed, all the rest is.
struct Bounded<R> {
    inner: R,
    /// Bytes that may still be read of this record.
    left: u64,
    lines: LineStarts,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let words =
                format!("a record has more than {LINE_BYTES} bytes; look for an unclosed quotation mark");
            io::Error::new(io::ErrorKind::InvalidData, words)
        })?;
        self.lines.see(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// Where lines begin that aren't empty: those of the record that is read, and of what is read ahead.
#[derive(Default)]
struct LineStarts {
    bytes: u64,
    line_ends: u64,
    /// Whether the line that these bytes end in has begun.
    is_within: bool,
    /// The first byte of each, and its line, from 1.
    starts: VecDeque<(u64, u64)>,
}

impl LineStarts {
    /// Takes the next bytes of the file.
    fn see(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let is_end = matches!(byte, b'\n' | b'\r');
            if !is_end && !self.is_within {
                self.starts.push_back((self.bytes, self.line_ends + 1));
            }
            self.is_within = !is_end;
            self.line_ends += u64::from(*byte == b'\n');
            self.bytes += 1;
        }
    }

    /// The line of what comes first behind so many bytes; what comes before isn't asked for any more.
    fn behind(&mut self, bytes: u64) -> u64 {
        while self.starts.front().is_some_and(|(start, _)| *start < bytes) {
            self.starts.pop_front();
        }
        self.starts.front().map_or(0, |(_, line)| *line)
    }
}

/// Writes rows.
pub(super) struct Records(FileColumns);

impl Records {
    pub(super) fn new(columns: FileColumns) -> Self {
        Self(columns)
    }

    /// The record that names the columns.
    pub(super) fn header(&self) -> Result<Vec<u8>, String> {
        record(self.0.header().iter().map(String::as_bytes))
    }

    /// The record of a row.
    pub(super) fn record(&self, row: Row) -> Result<Vec<u8>, String> {
        let cells = self.0.cells(row)?;
        let texts: Vec<_> = cells
            .iter()
            .map(|cell| cell.as_ref().map_or(Cow::Borrowed(""), text::of_value))
            .collect();
        record(texts.iter().map(|text| text.as_bytes()))
    }
}

fn record<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>, String> {
    let mut writer = WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record(fields).map_err(|error| error.to_string())?;
    writer.into_inner().map_err(|error| error.to_string())
}
