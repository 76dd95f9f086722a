//! The changes of a feed.

use souk_kv::KvSnapshot;

use crate::change::codec::{self, Wanted};
use crate::error::Result;
use crate::feed::{Feed, FeedRecord, RecordKind};
use crate::feeds::checkpoint::{Checkpoint, FeedDefinition};
use crate::limits::{MAX_FEED_BYTES, MAX_FEED_SCANNED_BYTES, MAX_FEED_SCANNED_CHANGES};
use crate::read::log;

/// Fewest changes that are read at a time when some of them may not be delivered.
pub(super) const SIFTED_CHANGES: usize = 256;

/// The next changes, and whether the end of the log is reached.
pub(super) async fn read(
    feed: &Feed,
    definition: &FeedDefinition,
    checkpoint: &mut Checkpoint,
    limit: usize,
) -> Result<(Vec<FeedRecord>, bool)> {
    let snapshot = feed.shared.kv.snapshot().await?;
    let last = snapshot.sequence();
    let at = (&mut checkpoint.position, &mut checkpoint.rows);
    let records = if definition.has_all() {
        until(&*snapshot, at, last, limit, limit, None).await?
    } else {
        let wanted = |table, _, key: &[u8]| definition.has_row(table, key);
        let step = limit.max(SIFTED_CHANGES);
        until(&*snapshot, at, last, limit, step, Some(&wanted)).await?
    };
    Ok((records, checkpoint.position >= last))
}

/// The wanted changes behind a position, and so many rows of the next change, up to `last`: about `limit` records, and
/// [`MAX_FEED_BYTES`] of them, or one that is larger. They are found in `step` changes at a time, and in
/// [`MAX_FEED_SCANNED_CHANGES`] and [`MAX_FEED_SCANNED_BYTES`]. Moves the position to the last change that was looked at.
pub(super) async fn until(
    snapshot: &dyn KvSnapshot,
    (position, rows): (&mut u64, &mut usize),
    last: u64,
    limit: usize,
    step: usize,
    wanted: Option<Wanted<'_>>,
) -> Result<Vec<FeedRecord>> {
    let mut records: Vec<FeedRecord> = Vec::new();
    let (mut looked_at, mut seen, mut room) = (0, 0, MAX_FEED_BYTES);
    while records.is_empty() && looked_at < MAX_FEED_SCANNED_CHANGES && seen < MAX_FEED_SCANNED_BYTES {
        let entries = log::entries_until(snapshot, *position, last, step).await?;
        if entries.is_empty() {
            break;
        }
        looked_at += entries.len();
        for entry in entries {
            if records.len() >= limit {
                break;
            }
            seen += entry.size();
            let sequence = entry.sequence();
            let part = codec::decode_part(sequence, &entry.bytes, wanted, *rows, room)?;
            let is_whole = part.next.is_none() && part.bytes <= room;
            // Only one that is larger than an answer is told in parts.
            if !records.is_empty() && !is_whole {
                break;
            }
            room = room.saturating_sub(part.bytes);
            records.extend(part.rows.into_iter().map(|(index, row)| FeedRecord {
                table: row.table,
                key: row.key,
                sequence,
                index,
                time: part.time,
                trace: part.trace.clone(),
                kind: RecordKind::Change(row.kind),
                row: row.row,
            }));
            if let Some(next) = part.next {
                *rows = next;
                break;
            }
            (*position, *rows) = (sequence, 0);
        }
    }
    Ok(records)
}
