//! The changes of a feed.

use souk_kv::KvSnapshot;

use crate::change::RowChange;
use crate::change::codec::Wanted;
use crate::error::Result;
use crate::feed::{Feed, FeedRecord, RecordKind};
use crate::feeds::checkpoint::{Checkpoint, Definition};
use crate::limits::{MAX_FEED_BYTES, MAX_FEED_SCANNED_CHANGES};
use crate::read::log;

/// Fewest changes that are read at a time when some of them may not be delivered.
pub(super) const SIFTED_CHANGES: usize = 256;

/// The next changes, and whether the end of the log is reached.
pub(super) async fn read(
    feed: &Feed,
    definition: &Definition,
    checkpoint: &mut Checkpoint,
    limit: usize,
) -> Result<(Vec<FeedRecord>, bool)> {
    let snapshot = feed.shared.kv.snapshot().await?;
    let last = snapshot.sequence();
    let position = &mut checkpoint.position;
    let records = if definition.has_all() {
        until(&*snapshot, position, last, limit, limit, None).await?
    } else {
        let wanted = |table, _, key: &[u8]| definition.has_row(table, key);
        until(
            &*snapshot,
            position,
            last,
            limit,
            limit.max(SIFTED_CHANGES),
            Some(&wanted),
        )
        .await?
    };
    Ok((records, checkpoint.position >= last))
}

/// The wanted changes behind a position up to `last`: about `limit` records and [`MAX_FEED_BYTES`], found in `step` changes at a time.
/// Moves the position to the last change that was looked at.
pub(super) async fn until(
    snapshot: &dyn KvSnapshot,
    position: &mut u64,
    last: u64,
    limit: usize,
    step: usize,
    wanted: Option<Wanted<'_>>,
) -> Result<Vec<FeedRecord>> {
    let mut records: Vec<FeedRecord> = Vec::new();
    let (mut looked_at, mut room) = (0, MAX_FEED_BYTES);
    while records.is_empty() && looked_at < MAX_FEED_SCANNED_CHANGES {
        let changes = log::changes_until(snapshot, *position, last, step, wanted).await?;
        if changes.is_empty() {
            break;
        }
        looked_at += changes.len();
        for change in changes {
            let bytes: usize = change.rows.iter().map(RowChange::message_bytes).sum();
            if records.len() >= limit || (bytes > room && !records.is_empty()) {
                break;
            }
            room = room.saturating_sub(bytes);
            *position = change.sequence;
            records.extend(change.rows.into_iter().map(|row| FeedRecord {
                table: row.table,
                key: row.key,
                sequence: change.sequence,
                time: change.time,
                trace: change.trace.clone(),
                kind: RecordKind::Change(row.kind),
                row: row.row,
            }));
        }
    }
    Ok(records)
}
