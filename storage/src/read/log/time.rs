//! Finding a place in the log by the time of its changes.

use crate::change::codec;
use crate::clock::nanos;
use crate::error::{Error, Result};
use crate::key;
use crate::kv::{Direction, KvSnapshot, Scan, Space};
use crate::limits::{CHANGE_TIME_DISORDER, MAX_SCANNED_BYTES, SWEEP_STEP};
use crate::read::log::{missing, trimmed};

/// The sequence after which the changes since `time` are; see [`crate::Snapshot::sequence_at`].
pub(crate) async fn sequence_at(snapshot: &dyn KvSnapshot, time: i64) -> Result<u64> {
    let trimmed = trimmed(snapshot).await?;
    // Writers take their time before their sequence: around a moment, a later sequence may have an earlier time.
    // So the search looks for a while before, and what comes then is looked at one by one.
    let early = time.saturating_sub(nanos(CHANGE_TIME_DISORDER));
    let (mut before, mut last) = (trimmed, snapshot.sequence());
    while before < last {
        let middle = before + (last - before).div_ceil(2);
        if time_of(snapshot, middle).await? < early {
            before = middle;
        } else {
            last = middle - 1;
        }
    }
    let found = first_since(snapshot, before, time).await?;
    if found == trimmed && trimmed > 0 {
        // Nothing that is kept shows that nothing of this time is gone.
        let gone = trimmed_time(snapshot).await?;
        if gone.is_none_or(|gone| gone >= time) {
            return Err(Error::TimeTrimmed {
                requested: time,
                trimmed: gone,
            });
        }
    }
    Ok(found)
}

/// Time of the newest change that is trimmed; `None` when there is none, or its time isn't known.
pub(crate) async fn trimmed_time(snapshot: &dyn KvSnapshot) -> Result<Option<i64>> {
    let Some(value) = snapshot.get(Space::Catalog, key::TRIMMED_TIME).await? else {
        return Ok(None);
    };
    <[u8; 8]>::try_from(&*value)
        .map(|time| Some(i64::from_be_bytes(time)))
        .map_err(|_| Error::corrupt(format!("the time of trimming has {} bytes", value.len())))
}

/// Time of a change that is in the log.
pub(crate) async fn time_of(snapshot: &dyn KvSnapshot, sequence: u64) -> Result<i64> {
    match snapshot.get(Space::Log, &key::log(sequence)).await? {
        Some(entry) => codec::time(sequence, &entry),
        None => Err(missing(sequence, sequence.saturating_add(1))),
    }
}

/// The sequence before the first change after `before` that isn't earlier than `time`.
async fn first_since(snapshot: &dyn KvSnapshot, before: u64, time: i64) -> Result<u64> {
    let last = snapshot.sequence();
    let mut before = before;
    while before < last {
        let scan = Scan {
            space: Space::Log,
            low: key::log(before.saturating_add(1)),
            high: key::log(last.saturating_add(1)),
            direction: Direction::Forward,
            rows: SWEEP_STEP,
            bytes: MAX_SCANNED_BYTES,
        };
        let page = snapshot.scan(scan).await?;
        if page.entries.is_empty() {
            return Err(missing(before.saturating_add(1), last.saturating_add(1)));
        }
        for (key, entry) in page.entries {
            let sequence = key::sequence_of_log(&key)?;
            if codec::time(sequence, &entry)? >= time {
                return Ok(before);
            }
            before = sequence;
        }
    }
    Ok(last)
}
