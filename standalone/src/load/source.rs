//! Rows with their numbers, cut into batches that a service takes.

use std::io;

use prost::Message;

use super::kind::Kind;
use super::reject::Reject;

/// Most rows of a batch: the services' limit.
pub const BATCH_ROWS: usize = 200;
/// Most bytes of a batch: below the services' 4 MiB, with room for what surrounds the rows.
pub const BATCH_BYTES: usize = 3 << 20;
/// Most bytes of one row.
pub const ROW_BYTES: usize = BATCH_BYTES;

/// What a source gives for one row.
#[derive(Debug)]
pub enum Item<R> {
    /// The row with its number.
    Row(u64, R),
    /// It can't be read.
    Unreadable(Reject),
    /// The source itself failed; it ends here.
    Failed(io::Error),
}

/// Rows that are written together.
#[derive(Clone, Debug)]
pub struct Batch<R> {
    /// Its number in the data set, from 0.
    pub number: u64,
    /// The rows with their numbers.
    pub rows: Vec<(u64, R)>,
    /// Rows between them that couldn't be read.
    pub unreadable: Vec<Reject>,
}

/// Numbers the rows of a generator from 0.
pub fn numbered<R>(rows: impl Iterator<Item = R>) -> impl Iterator<Item = Item<R>> {
    (0..).zip(rows).map(|(number, row)| Item::Row(number, row))
}

/// Cuts a source into batches: always the same way, so that a checkpoint can count them.
pub(super) fn batches<K: Kind>(
    mut source: impl Iterator<Item = Item<K::Row>>,
) -> impl Iterator<Item = io::Result<Batch<K::Row>>> {
    let mut number = 0;
    let mut next: Option<(u64, K::Row)> = None;
    std::iter::from_fn(move || {
        let mut bytes = next.as_ref().map_or(0, |(_, row)| row.encoded_len());
        let mut batch = Batch {
            number,
            rows: next.take().into_iter().collect(),
            unreadable: Vec::new(),
        };
        while batch.rows.len() + batch.unreadable.len() < BATCH_ROWS {
            match source.next() {
                None => break,
                Some(Item::Unreadable(reject)) => batch.unreadable.push(reject),
                // Without the rows before it: when the cause has passed, this batch is a longer one.
                Some(Item::Failed(error)) => return Some(Err(error)),
                Some(Item::Row(number, row)) => {
                    let length = row.encoded_len();
                    if length > ROW_BYTES {
                        let reason = format!("the row has {length} bytes, at most {ROW_BYTES} are taken");
                        let id = K::id(&row).into_owned();
                        batch
                            .unreadable
                            .push(Reject::new(number, id, "TOO_LARGE", reason));
                    } else if bytes + length > BATCH_BYTES {
                        next = Some((number, row));
                        break;
                    } else {
                        bytes += length;
                        batch.rows.push((number, row));
                    }
                }
            }
        }
        if batch.rows.is_empty() && batch.unreadable.is_empty() {
            return None;
        }
        number += 1;
        Some(Ok(batch))
    })
}
