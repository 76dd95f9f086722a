//! Reading the change log.

pub(crate) mod statistics;
pub(crate) mod time;

use souk_kv::{Direction, KvSnapshot, Scan, Space};

use crate::change::codec::Wanted;
use crate::change::{Change, LogEntry, codec};
use crate::error::{Error, Result};
use crate::key;
use crate::limits::{MAX_CHANGES_BYTES, MAX_CHANGES_PER_READ, MAX_SCANNED_BYTES, SWEEP_STEP};

/// The last sequence that is trimmed; 0 for none.
pub(crate) async fn trimmed(snapshot: &dyn KvSnapshot) -> Result<u64> {
    let Some(value) = snapshot.get(Space::Catalog, key::TRIMMED).await? else {
        return Ok(0);
    };
    <[u8; 8]>::try_from(&*value)
        .map(u64::from_be_bytes)
        .map_err(|_| Error::corrupt(format!("the end of trimming has {} bytes", value.len())))
}

/// Changes after `after`, at most `limit`; see [`crate::Snapshot::changes`].
pub(super) async fn changes(snapshot: &dyn KvSnapshot, after: u64, limit: usize) -> Result<Vec<Change>> {
    changes_until(snapshot, after, snapshot.sequence(), limit, None).await
}

/// Changes after `after` up to `last` (at most the snapshot's), with the wanted rows only (`None`: all); a change
/// without any is there all the same.
pub(crate) async fn changes_until(
    snapshot: &dyn KvSnapshot,
    after: u64,
    last: u64,
    limit: usize,
    wanted: Option<Wanted<'_>>,
) -> Result<Vec<Change>> {
    let entries = entries_until(snapshot, after, last, limit).await?;
    let decode = |LogEntry { sequence, bytes }| match wanted {
        None => codec::decode(sequence, &bytes),
        Some(wanted) => codec::decode_where(sequence, &bytes, wanted),
    };
    entries.into_iter().map(decode).collect()
}

/// The entries of the changes after `after` up to `last` (at most the snapshot's), not decoded.
pub(crate) async fn entries_until(
    snapshot: &dyn KvSnapshot,
    after: u64,
    last: u64,
    limit: usize,
) -> Result<Vec<LogEntry>> {
    check_kept(snapshot, after).await?;
    if after >= last {
        return Ok(Vec::new());
    }
    let scan = Scan {
        space: Space::Log,
        low: key::log(after.saturating_add(1)),
        high: key::log(last.saturating_add(1)),
        direction: Direction::Forward,
        entries: limit.clamp(1, MAX_CHANGES_PER_READ),
        bytes: MAX_CHANGES_BYTES,
    };
    let page = snapshot.scan(scan).await?;
    let mut entries = Vec::with_capacity(page.entries.len());
    let mut expected = after;
    for (key, bytes) in page.entries {
        expected += 1;
        let sequence = key::sequence_of_log(&key)?;
        if sequence != expected {
            return Err(missing(expected, sequence));
        }
        entries.push(LogEntry { sequence, bytes });
    }
    if page.next.is_none() && expected != last {
        return Err(missing(expected + 1, last + 1));
    }
    Ok(entries)
}

/// Refuses to read after a sequence when changes behind it are trimmed.
pub(crate) async fn check_kept(snapshot: &dyn KvSnapshot, after: u64) -> Result<()> {
    let trimmed = trimmed(snapshot).await?;
    if after < trimmed {
        return Err(Error::ChangesTrimmed {
            requested: after,
            oldest: trimmed.saturating_add(1),
        });
    }
    Ok(())
}

/// Refuses a log with a gap among its last `depth` changes, or among the last ones of about `bytes` in all: they are read.
pub(crate) async fn check_gap_free(snapshot: &dyn KvSnapshot, depth: usize, bytes: usize) -> Result<()> {
    let last = snapshot.sequence();
    let depth = u64::try_from(depth).unwrap_or(u64::MAX);
    let first = trimmed(snapshot).await?.max(last.saturating_sub(depth));
    let (mut expected, mut read) = (last, 0);
    while expected > first && read < bytes {
        let scan = Scan {
            space: Space::Log,
            low: key::log(first + 1),
            high: key::log(expected + 1),
            direction: Direction::Backward,
            entries: SWEEP_STEP,
            bytes: MAX_SCANNED_BYTES.min(bytes - read),
        };
        let page = snapshot.scan(scan).await?;
        if page.entries.is_empty() {
            return Err(missing(first + 1, expected + 1));
        }
        for (key, value) in page.entries {
            read += value.len();
            let sequence = key::sequence_of_log(&key)?;
            if sequence != expected {
                return Err(missing(sequence + 1, expected + 1));
            }
            expected -= 1;
        }
    }
    Ok(())
}

/// The changes from `first` to before `next` are not there.
fn missing(first: u64, next: u64) -> Error {
    Error::corrupt(format!(
        "the change log lacks the changes {first} to {}",
        next.saturating_sub(1)
    ))
}
