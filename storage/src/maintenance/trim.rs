//! Trimming the change log.

use souk_kv::{Direction, Mutation, Scan, Space};

use crate::change;
use crate::clock::nanos;
use crate::database::DatabaseState;
use crate::error::Result;
use crate::key;
use crate::limits::{MAX_SCANNED_BYTES, MAX_SWEEP_STEPS, SWEEP_STEP};
use crate::maintenance::commit;
use crate::read::log;
use crate::read::log::time::Noticed;

/// Deletes the changes that are past the retention, the oldest first, as far as every consumer has taken them and
/// every feed has acknowledged or lost its hold on them.
///
/// A clock that was ahead may have dated changes in the future; their date would hold back all behind them until it
/// comes. When trimming meets the first, it keeps the end of the log and the time, and from then on no change up to
/// there counts as younger: they stay for a retention longer than others at most. The time of a later change would
/// not do: that one's clock may have been behind.
pub(super) async fn trim(shared: &DatabaseState) -> Result<()> {
    let now = shared.options.clock.now();
    let cutoff = now.saturating_sub(nanos(shared.options.retention));
    for _ in 0..MAX_SWEEP_STEPS {
        // No consumer or feed may be registered below what is about to go.
        let _admin = shared.admin.lock().await;
        let snapshot = shared.kv.snapshot().await?;
        let taken = shared.consumers.lock().values().min().copied();
        let last = taken.unwrap_or(u64::MAX).min(snapshot.sequence());
        let holds = shared.feeds.holds();
        let trimmed = log::trimmed(&*snapshot).await?;
        let scan = Scan {
            space: Space::Log,
            low: key::log(trimmed.saturating_add(1)),
            high: key::log(last.saturating_add(1)),
            direction: Direction::Forward,
            entries: SWEEP_STEP,
            bytes: MAX_SCANNED_BYTES,
        };
        let page = snapshot.scan(scan).await?;
        let mut newest = log::time::trimmed_time(&*snapshot).await?.unwrap_or(i64::MIN);
        let noticed = Noticed::read(&*snapshot, now).await?;
        let end = snapshot.sequence();
        drop(snapshot);
        let mut gone = trimmed;
        let mut mutations = Vec::with_capacity(page.entries.len() + 3);
        let mut stored = Vec::with_capacity(3);
        for (key, entry) in page.entries {
            let sequence = key::sequence_of_log(&key)?;
            let time = Noticed::bound(noticed, sequence, change::codec::time(sequence, &entry)?);
            if log::time::is_future(time, now) {
                let noticed = Noticed {
                    sequence: end,
                    time: now,
                };
                stored.push((key::NOTICED, noticed.encode()));
            }
            if time > cutoff || holds.iter().any(|hold| hold.keeps(sequence, time, now)) {
                break;
            }
            gone = sequence;
            newest = newest.max(time);
            let space = Space::Log;
            mutations.push(Mutation::Delete { space, key });
        }
        let trims = gone > trimmed;
        if trims {
            stored.push((key::TRIMMED, gone.to_be_bytes().to_vec()));
            stored.push((key::TRIMMED_TIME, newest.to_be_bytes().to_vec()));
        }
        if stored.is_empty() {
            return Ok(());
        }
        mutations.extend(stored.into_iter().map(|(key, value)| Mutation::Put {
            space: Space::Catalog,
            key: key.into(),
            value,
            stamp: false,
        }));
        commit(shared, mutations).await?;
        if !trims {
            return Ok(());
        }
    }
    Ok(())
}
