//! What the log holds, counted.

use std::collections::BTreeMap;

use souk_kv::{Direction, KvSnapshot, Scan, Space};

use crate::change::{ChangeKind, codec};
use crate::error::Result;
use crate::id::TableId;
use crate::key;
use crate::limits::{MAX_SCANNED_BYTES, MAX_SCANNED_ROWS};
use crate::read::log::{missing, trimmed};

/// What the log of a snapshot holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogStatistics {
    /// Changes, of all tables.
    pub changes: u64,
    /// Bytes of their entries.
    pub bytes: u64,
    /// Sequence and time (nanoseconds since the Unix epoch) of the oldest change; `None` when there is none.
    pub oldest: Option<(u64, i64)>,
    /// The same of the newest.
    pub newest: Option<(u64, i64)>,
    /// What was done to the rows of each table.
    pub tables: BTreeMap<TableId, TableLogStatistics>,
}

/// What the log holds of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableLogStatistics {
    /// Rows replaced or created as a whole.
    pub puts: u64,
    /// Rows updated.
    pub updates: u64,
    /// Rows deleted.
    pub deletes: u64,
    /// Bytes of the keys and after images.
    pub bytes: u64,
    /// Sequence of the oldest change of one of its rows.
    pub oldest: u64,
    /// Sequence of the newest change of one of its rows.
    pub newest: u64,
}

/// Reads the whole log; see [`crate::Snapshot::log_statistics`].
pub(crate) async fn statistics(snapshot: &dyn KvSnapshot) -> Result<LogStatistics> {
    let mut statistics = LogStatistics::default();
    let last = snapshot.sequence();
    let mut before = trimmed(snapshot).await?;
    while before < last {
        let scan = Scan {
            space: Space::Log,
            low: key::log(before.saturating_add(1)),
            high: key::log(last.saturating_add(1)),
            direction: Direction::Forward,
            entries: MAX_SCANNED_ROWS,
            bytes: MAX_SCANNED_BYTES,
        };
        let page = snapshot.scan(scan).await?;
        if page.entries.is_empty() {
            return Err(missing(before.saturating_add(1), last.saturating_add(1)));
        }
        for (key, entry) in page.entries {
            let sequence = key::sequence_of_log(&key)?;
            let tables = &mut statistics.tables;
            let time = codec::outline(sequence, &entry, |table, kind, bytes| {
                let table = tables.entry(table).or_default();
                match kind {
                    ChangeKind::Put => table.puts += 1,
                    ChangeKind::Update => table.updates += 1,
                    ChangeKind::Delete => table.deletes += 1,
                }
                table.bytes += bytes as u64;
                if table.oldest == 0 {
                    table.oldest = sequence;
                }
                table.newest = sequence;
            })?;
            statistics.changes += 1;
            statistics.bytes += entry.len() as u64;
            statistics.oldest.get_or_insert((sequence, time));
            statistics.newest = Some((sequence, time));
            before = sequence;
        }
    }
    Ok(statistics)
}
