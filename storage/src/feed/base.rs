//! The base rows of a feed, and the changes that lead from one snapshot to the next.

use std::sync::Arc;

use souk_kv::{Direction, KvSnapshot, Space};

use crate::catalog::Table;
use crate::change::ChangeKind;
use crate::error::Result;
use crate::feed::{Feed, FeedRecord, RecordKind, changes};
use crate::feeds::checkpoint::{BaseCursor, Checkpoint, Delivers, FeedDefinition, Stage};
use crate::id::TableId;
use crate::key;
use crate::limits::MAX_FEED_BYTES;
use crate::read::{KeyBound, RangeRequest, Snapshot, log};

/// The next base rows; or changes, until a snapshot is there from which base rows can be read.
pub(super) async fn read(
    feed: &Feed,
    definition: &FeedDefinition,
    checkpoint: &mut Checkpoint,
    limit: usize,
) -> Result<Vec<FeedRecord>> {
    let snapshot = snapshot(feed, checkpoint.position).await?;
    let Stage::Base { cursor } = &checkpoint.stage else {
        return Ok(Vec::new());
    };
    if definition.delivers == Delivers::Base {
        checkpoint.position = snapshot.sequence();
    } else {
        log::check_kept(&*snapshot, checkpoint.position).await?;
        let at = (&mut checkpoint.position, &mut checkpoint.rows);
        let records = catch_up(feed, definition, cursor, at, &snapshot, limit).await?;
        if !records.is_empty() || checkpoint.position < snapshot.sequence() {
            return Ok(records);
        }
    }
    let (records, next) = rows(feed, definition, cursor.clone(), snapshot, limit).await?;
    checkpoint.stage = match next {
        Some(cursor) => Stage::Base { cursor },
        None if definition.delivers == Delivers::Base => Stage::Finished,
        None => Stage::Changes,
    };
    Ok(records)
}

/// The snapshot that is being read, or a new one.
async fn snapshot(feed: &Feed, position: u64) -> Result<Arc<dyn KvSnapshot>> {
    let shared = &feed.shared;
    let now = shared.options.clock.now();
    if let Some(snapshot) = shared.feeds.snapshot(&feed.name, position, now) {
        return Ok(snapshot);
    }
    let snapshot: Arc<dyn KvSnapshot> = Arc::from(shared.kv.snapshot().await?);
    shared.feeds.hold_snapshot(&feed.name, snapshot.clone(), now);
    Ok(snapshot)
}

/// Brings the rows before the cursor to the sequence of the snapshot: the changes of them; and of the rows behind it,
/// which the snapshot will give as they are, the deletes of those that it doesn't have.
async fn catch_up(
    feed: &Feed,
    definition: &FeedDefinition,
    cursor: &BaseCursor,
    (position, rows): (&mut u64, &mut usize),
    snapshot: &Arc<dyn KvSnapshot>,
    limit: usize,
) -> Result<Vec<FeedRecord>> {
    let last = snapshot.sequence();
    let handed = feed.shared.feeds.may_have_handed(&feed.name, cursor);
    if !handed && *cursor == BaseCursor::start() {
        (*position, *rows) = (last, 0);
        return Ok(Vec::new());
    }
    let wanted = |table: TableId, kind: ChangeKind, key: &[u8]| {
        definition.has_row(table, key)
            && (cursor.is_above(table, key) || (handed && kind == ChangeKind::Delete))
    };
    // It is the reader's to go on, by the token, when it was nothing but what it isn't told.
    let step = limit.max(changes::SIFTED_CHANGES);
    let records = changes::until(&**snapshot, (position, rows), last, limit, step, Some(&wanted)).await?;
    without_present(records, cursor, &**snapshot).await
}

/// Drops the records of rows behind the cursor that the snapshot has.
async fn without_present(
    records: Vec<FeedRecord>,
    cursor: &BaseCursor,
    snapshot: &dyn KvSnapshot,
) -> Result<Vec<FeedRecord>> {
    let is_behind = |record: &FeedRecord| BaseCursor::row(record.table, &record.key) >= *cursor;
    let keys: Vec<_> = records
        .iter()
        .filter(|record| is_behind(record))
        .map(|record| key::row(record.table, &record.key))
        .collect();
    if keys.is_empty() {
        return Ok(records);
    }
    let mut present = snapshot.multi_get(Space::Rows, keys).await?.into_iter();
    let kept = records
        .into_iter()
        .filter(|record| !is_behind(record) || present.next().flatten().is_none());
    Ok(kept.collect())
}

/// A page of rows behind a cursor, and the cursor behind them; `None` when all tables are read.
async fn rows(
    feed: &Feed,
    definition: &FeedDefinition,
    mut cursor: BaseCursor,
    snapshot: Arc<dyn KvSnapshot>,
    limit: usize,
) -> Result<(Vec<FeedRecord>, Option<BaseCursor>)> {
    let snapshot = Snapshot {
        kv: snapshot,
        // No index is read by it.
        generation: 0,
        shared: Arc::clone(&feed.shared),
    };
    loop {
        let (at, next) = cursor.place();
        let Some(table) = next_table(feed, definition, at) else {
            feed.shared
                .feeds
                .hand(&feed.name, &BaseCursor::table(TableId(u32::MAX)));
            return Ok((Vec::new(), None));
        };
        let id = table.id();
        let parts = definition.shard.map_or(1, |shard| usize::from(shard.count));
        let mut request = RangeRequest::all(Direction::Forward).limit(limit.saturating_mul(parts));
        request.returned_bytes = MAX_FEED_BYTES;
        if let Some(key) = next.filter(|_| id == at) {
            request.start = KeyBound::Before(key);
        }
        let mut page = snapshot.range(&table, &request).await?;
        let is_empty = page.rows.is_empty();
        page.rows.retain(|row| definition.has_row(id, &row.key.encode()));
        if let Some(beyond) = page.rows.get(limit) {
            page.next = Some(beyond.key.clone());
            page.rows.truncate(limit);
        }
        cursor = match &page.next {
            Some(key) => BaseCursor::row(id, key),
            None => BaseCursor::table(TableId(id.0.saturating_add(1))),
        };
        if is_empty {
            continue;
        }
        feed.shared.feeds.hand(&feed.name, &cursor);
        let records = page.rows.into_iter().map(|row| FeedRecord {
            table: id,
            key: row.key.clone(),
            sequence: row.revision,
            index: 0,
            time: row.written,
            trace: None,
            kind: RecordKind::Base,
            row: Some(row),
        });
        return Ok((records.collect(), Some(cursor)));
    }
}

/// The first of the feed's tables from a number on. Of a table that is created later, the snapshot has no rows.
fn next_table(feed: &Feed, definition: &FeedDefinition, from: TableId) -> Option<Table> {
    let tables = feed.shared.catalog.read().tables();
    let behind = tables
        .into_iter()
        .filter(|table| table.id() >= from && definition.has(table.id()));
    behind.min_by_key(Table::id)
}
