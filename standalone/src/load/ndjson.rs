//! A user's own rows: proto3 JSON, one object a line.

use std::io::{self, BufRead};

use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use souk_proto::FILE_DESCRIPTOR_SET;

use super::kind::Kind;
use super::reject::Reject;
use super::source::{Item, ROW_BYTES};

/// Most bytes of a line: JSON takes more room than the row itself.
const LINE_BYTES: u64 = 2 * ROW_BYTES as u64;

/// Why the rows of a kind can't be read at all.
#[derive(Debug, thiserror::Error)]
#[error("the contract in this binary lacks {message}")]
pub struct ContractError {
    message: &'static str,
}

/// The rows of a file, numbered by their lines from 1. Empty lines are passed over.
///
/// # Errors
/// When the message isn't in the contract.
pub fn rows<K: Kind>(
    mut lines: impl BufRead + Send,
) -> Result<impl Iterator<Item = Item<K::Row>> + Send, ContractError> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).ok();
    let message = pool.and_then(|pool| pool.get_message_by_name(K::MESSAGE));
    let message = message.ok_or(ContractError { message: K::MESSAGE })?;
    let mut line = Vec::new();
    let mut number = 0;
    let mut over = false;
    Ok(std::iter::from_fn(move || {
        while !over {
            line.clear();
            number += 1;
            match io::Read::take(&mut lines, LINE_BYTES + 1).read_until(b'\n', &mut line) {
                Ok(0) => over = true,
                Ok(_) if line.len() as u64 > LINE_BYTES => {
                    let reason = format!("a line has at most {LINE_BYTES} bytes");
                    if let Err(error) = lines.skip_until(b'\n') {
                        over = true;
                        return Some(Item::Failed(error));
                    }
                    return Some(Item::Unreadable(Reject::new(number, "", "TOO_LARGE", reason)));
                }
                Ok(_) if line.trim_ascii().is_empty() => {}
                Ok(_) => {
                    return Some(match parse::<K>(&message, &line) {
                        Ok(row) => Item::Row(number, row),
                        Err(reason) => Item::Unreadable(Reject::new(number, "", "UNREADABLE", reason)),
                    });
                }
                Err(error) => {
                    over = true;
                    return Some(Item::Failed(error));
                }
            }
        }
        None
    }))
}

/// One row; the reason why not names the column.
fn parse<K: Kind>(message: &MessageDescriptor, line: &[u8]) -> Result<K::Row, String> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let read = DynamicMessage::deserialize(message.clone(), &mut reader).and_then(|row| {
        reader.end()?;
        Ok(row)
    });
    // Every line is line 1 to the reader; the number of the row says which it is.
    let row = read.map_err(|error| error.to_string().replace("at line 1 column", "at column"))?;
    K::Row::decode(row.encode_to_vec().as_slice()).map_err(|error| error.to_string())
}
