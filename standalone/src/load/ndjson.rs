//! A user's own rows: JSON as over HTTP, one object a line.

use std::io::{self, BufRead};

use super::kind::Kind;
use super::reject::Reject;
use super::source::{Item, ROW_BYTES};
use crate::contract::{ContractError, MessageJson};

/// Most bytes of a line without its end, or of a record of a CSV file: text takes more room than the row itself.
pub(crate) const LINE_BYTES: u64 = 2 * ROW_BYTES as u64;

/// The rows of a file, numbered by their lines from 1. Empty lines are passed over.
///
/// # Errors
/// When the message isn't in the contract.
pub fn rows<K: Kind>(
    lines: impl BufRead + Send,
) -> Result<impl Iterator<Item = Item<K::Row>> + Send, ContractError> {
    let json = MessageJson::of(K::MESSAGE)?;
    Ok(parsed(lines, move |line| json.read(line)))
}

/// The rows that the lines of a file are, numbered from 1. Empty lines are passed over; `parse` tells why a line is none.
pub(crate) fn parsed<R>(
    mut lines: impl BufRead + Send,
    parse: impl Fn(&[u8]) -> Result<R, String> + Send,
) -> impl Iterator<Item = Item<R>> + Send {
    let mut line = Vec::new();
    let mut number = 0;
    let mut over = false;
    std::iter::from_fn(move || {
        while !over {
            line.clear();
            number += 1;
            // The end of a line is one byte or two.
            match io::Read::take(&mut lines, LINE_BYTES + 2).read_until(b'\n', &mut line) {
                Ok(0) => over = true,
                Ok(_) => {
                    let (text, has_end) = without_end(&line);
                    if text.len() as u64 > LINE_BYTES {
                        let reason = format!("a line has at most {LINE_BYTES} bytes");
                        // The rest of this line, and no more.
                        if !has_end && let Err(error) = lines.skip_until(b'\n') {
                            over = true;
                            return Some(Item::Failed(error));
                        }
                        return Some(Item::Unreadable(Reject::new(number, "", "TOO_LARGE", reason)));
                    }
                    if text.trim_ascii().is_empty() {
                        continue;
                    }
                    return Some(match parse(text) {
                        Ok(row) => Item::Row(number, row),
                        Err(reason) => {
                            // Every line is line 1 to the reader; the number of the row says which it is. Columns are those of the row.
                            let reason = reason.replace("at line 1 column", "at byte");
                            Item::Unreadable(Reject::new(number, "", "UNREADABLE", reason))
                        }
                    });
                }
                Err(error) => {
                    over = true;
                    return Some(Item::Failed(error));
                }
            }
        }
        None
    })
}

/// A line without its end, and whether it has one.
fn without_end(line: &[u8]) -> (&[u8], bool) {
    match line.strip_suffix(b"\n") {
        Some(text) => (text.strip_suffix(b"\r").unwrap_or(text), true),
        None => (line, false),
    }
}
