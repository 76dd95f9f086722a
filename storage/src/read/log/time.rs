//! Finding a place in the log by the time of its changes.

use souk_kv::{Direction, KvSnapshot, Scan, Space};

use crate::change::codec;
use crate::clock::nanos;
use crate::error::{Error, Result};
use crate::key;
use crate::limits::{CHANGE_TIME_DISORDER, MAX_SCANNED_BYTES, SWEEP_STEP};
use crate::read::log::{missing, trimmed};

/// The sequence after which the changes since `time` are; see [`crate::Snapshot::sequence_at`].
pub(crate) async fn sequence_at(snapshot: &dyn KvSnapshot, time: i64, now: i64) -> Result<u64> {
    let trimmed = trimmed(snapshot).await?;
    // Writers take their time before their sequence: around a moment, a later sequence may have an earlier time.
    // So the search looks for a while before, and what comes then is looked at one by one.
    let early = time.saturating_sub(nanos(CHANGE_TIME_DISORDER));
    let (mut before, mut last) = (trimmed, snapshot.sequence());
    while before < last {
        let middle = before + (last - before).div_ceil(2);
        match first_dated(snapshot, middle, last, now).await? {
            Some((sequence, dated)) if dated < early => before = sequence,
            Some(_) | None => last = middle - 1,
        }
    }
    let found = first_since(snapshot, before, time, now).await?;
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

/// Whether a clock that was ahead gave this time: it says nothing about when the change was made.
pub(crate) fn is_future(time: i64, now: i64) -> bool {
    time > now.saturating_add(nanos(CHANGE_TIME_DISORDER))
}

/// What trimming noticed of changes dated in the future: they were there at a time, whatever theirs is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noticed {
    /// The last change that was there.
    pub(crate) sequence: u64,
    /// When, nanoseconds since the Unix epoch.
    pub(crate) time: i64,
}

impl Noticed {
    /// What is kept under [`key::NOTICED`].
    pub(crate) fn encode(self) -> Vec<u8> {
        [self.sequence.to_be_bytes(), self.time.to_be_bytes()].concat()
    }

    /// What was noticed last; `None` also when the clock was ahead then.
    pub(crate) async fn read(snapshot: &dyn KvSnapshot, now: i64) -> Result<Option<Self>> {
        let Some(value) = snapshot.get(Space::Catalog, key::NOTICED).await? else {
            return Ok(None);
        };
        let ([sequence, time], []) = value.as_chunks::<8>() else {
            return Err(Error::corrupt(format!(
                "what was noticed of the log has {} bytes",
                value.len()
            )));
        };
        let noticed = Self {
            sequence: u64::from_be_bytes(*sequence),
            time: i64::from_be_bytes(*time),
        };
        Ok((!is_future(noticed.time, now)).then_some(noticed))
    }

    /// The time by which a change was made.
    pub(crate) fn bound(noticed: Option<Self>, sequence: u64, time: i64) -> i64 {
        match noticed {
            Some(noticed) if sequence <= noticed.sequence => time.min(noticed.time),
            Some(_) | None => time,
        }
    }
}

/// A change from `from` up to `last` that isn't dated in the future, and its time: the first, unless many are.
async fn first_dated(
    snapshot: &dyn KvSnapshot,
    from: u64,
    last: u64,
    now: i64,
) -> Result<Option<(u64, i64)>> {
    let (mut sequence, mut stride) = (from, 1);
    while sequence <= last {
        let time = time_of(snapshot, sequence).await?;
        if !is_future(time, now) {
            return Ok(Some((sequence, time)));
        }
        sequence = sequence.saturating_add(stride);
        stride = stride.saturating_mul(2);
    }
    Ok(None)
}

/// The sequence before the first change after `before` that isn't earlier than `time`, nor dated in the future.
async fn first_since(snapshot: &dyn KvSnapshot, before: u64, time: i64, now: i64) -> Result<u64> {
    let last = snapshot.sequence();
    let mut before = before;
    while before < last {
        let scan = Scan {
            space: Space::Log,
            low: key::log(before.saturating_add(1)),
            high: key::log(last.saturating_add(1)),
            direction: Direction::Forward,
            entries: SWEEP_STEP,
            bytes: MAX_SCANNED_BYTES,
        };
        let page = snapshot.scan(scan).await?;
        if page.entries.is_empty() {
            return Err(missing(before.saturating_add(1), last.saturating_add(1)));
        }
        for (key, entry) in page.entries {
            let sequence = key::sequence_of_log(&key)?;
            let dated = codec::time(sequence, &entry)?;
            if dated >= time && !is_future(dated, now) {
                return Ok(before);
            }
            before = sequence;
        }
    }
    Ok(last)
}
