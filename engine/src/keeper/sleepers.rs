//! Unopened indexes: one task for all of them looks through the log, opens those whose tables have changed, and moves the
//! positions of the others on, so that the log isn't kept for them.
//!
//! That no change up to some sequence is of an index's table stays true: the index begins there when it is opened, however
//! much of the log is between. Its own commit says so first, durably, then its consumer of the log.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use souk_storage::{Database, Error as StorageError, TableId};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Keeping;
use crate::error::{EngineError, Result};
use crate::log_tail::{ChangeBlock, LogTail};

/// How long changes gather before the log is looked through.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// How often positions are moved on: the log is kept that much longer for an unopened index.
const MOVE_INTERVAL: Duration = Duration::from_secs(300);
/// Woken indexes that are opened at a time. Those that are searched wait for none.
const OPENINGS_MAX: usize = 4;
/// How long an index that is opening takes one of [`OPENINGS_MAX`] places. Then others are opened next to it, while it goes on trying.
const OPENING_PATIENCE: Duration = Duration::from_secs(10);
/// Unopened indexes whose files are compared with their checksums in turn, each as often as those that are open.
const VERIFIED_IN_TURN: u32 = 1_024;
/// When the log is read again after it couldn't be.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    sleeping: Mutex<Sleeping>,
    /// Has the watch look again: an index has come, is open or gone, or is woken.
    look_again: Notify,
}

#[derive(Debug, Default)]
struct Sleeping {
    /// By the names of their indexes.
    indexes: BTreeMap<Arc<str>, Sleeper>,
    /// The log was looked through up to here.
    looked: u64,
}

#[derive(Debug)]
struct Sleeper {
    keeping: Weak<Keeping>,
    table: TableId,
    /// Since when.
    since: Instant,
    /// The last change that the index includes.
    from: u64,
    /// Set when it is to be opened: the sequence up to which the log has no change of its table. `None` while it sleeps.
    woken_at: Option<u64>,
}

/// A part of the log without changes of an index's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unchanged {
    /// The sequence in front of it.
    from: u64,
    /// Its last sequence.
    to: u64,
}

impl Unchanged {
    /// Where an index goes on that includes everything up to `applied`.
    pub(super) fn behind(self, applied: u64) -> u64 {
        match (self.from..self.to).contains(&applied) {
            true => self.to,
            false => applied,
        }
    }
}

impl Sleeper {
    fn unchanged(&self, looked: u64) -> Unchanged {
        Unchanged {
            from: self.from,
            to: self.woken_at.unwrap_or(looked).max(self.from),
        }
    }
}

impl Sleepers {
    /// Watches over an index that isn't open, and includes everything up to `from`.
    pub(super) fn add(&self, keeping: &Arc<Keeping>, from: u64) {
        let sleeper = Sleeper {
            keeping: Arc::downgrade(keeping),
            table: keeping.table.table.id(),
            since: Instant::now(),
            from,
            woken_at: None,
        };
        {
            let mut sleeping = self.sleeping.lock();
            sleeping.looked = match sleeping.indexes.is_empty() {
                true => from,
                false => sleeping.looked.min(from),
            };
            let name = Arc::clone(keeping.index.shared_name());
            sleeping.indexes.insert(name, sleeper);
        }
        self.look_again.notify_one();
    }

    /// Watches over an index no more, since it is open, or gone.
    pub(super) fn forget(&self, index: &str) -> Option<Unchanged> {
        let forgotten = {
            let mut sleeping = self.sleeping.lock();
            let looked = sleeping.looked;
            let sleeper = sleeping.indexes.remove(index);
            sleeper.map(|sleeper| sleeper.unchanged(looked))
        };
        self.look_again.notify_one();
        forgotten
    }

    /// Watches until the engine closes.
    pub(crate) fn watch(
        self: Arc<Self>,
        tail: Arc<LogTail>,
        database: &Database,
        verified_each: Duration,
        closing: CancellationToken,
    ) -> JoinHandle<()> {
        let mut sequences = database.subscribe();
        sequences.mark_changed();
        tokio::spawn(async move {
            // Beside the watch, which syncs of many indexes would keep waiting.
            let moving = async {
                let mut moves = tokio::time::interval_at(Instant::now() + MOVE_INTERVAL, MOVE_INTERVAL);
                moves.set_missed_tick_behavior(MissedTickBehavior::Delay);
                while !closing.is_cancelled() {
                    tokio::select! {
                        () = closing.cancelled() => {}
                        _ = moves.tick() => self.move_on(&closing).await,
                    }
                }
            };
            let verify_pause = (verified_each / VERIFIED_IN_TURN).clamp(LOOK_PAUSE, MOVE_INTERVAL);
            let mut verifications = tokio::time::interval_at(Instant::now() + verify_pause, verify_pause);
            verifications.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let watching = async {
                while !closing.is_cancelled() {
                    let pause = match self.look(&tail, &closing).await {
                        Ok(()) => LOOK_PAUSE,
                        Err(error) => {
                            warn!(%error, "the log can't be looked through for unopened indexes");
                            RETRY_PAUSE
                        }
                    };
                    let wait_for_a_place = self.open_woken();
                    tokio::select! {
                        () = closing.cancelled() => {}
                        () = tokio::time::sleep(pause) => {}
                        () = self.look_again.notified(), if wait_for_a_place => {}
                    }
                    if wait_for_a_place {
                        continue;
                    }
                    tokio::select! {
                        () = closing.cancelled() => {}
                        result = sequences.changed() => if result.is_err() { break },
                        () = self.look_again.notified() => {}
                        _ = verifications.tick() => self.wake_oldest(verified_each),
                    }
                }
            };
            tokio::join!(watching, moving);
        })
    }

    /// Looks through what is new in the log.
    ///
    /// # Errors
    /// What the store refuses now.
    async fn look(&self, tail: &LogTail, closing: &CancellationToken) -> Result<()> {
        while let (Some(position), false) = (self.position(), closing.is_cancelled()) {
            match tail.read(position).await {
                Ok(Some(block)) => {
                    if let Err(error) = self.take_in(&block, position) {
                        self.wake_all(&error);
                    }
                    // Its end may be far.
                    self.tell();
                    self.open_woken();
                }
                Ok(None) => break,
                Err(EngineError::Storage(
                    error @ (StorageError::ChangesTrimmed { .. } | StorageError::Corrupt { .. }),
                )) => {
                    // Each finds out by itself what that means to it.
                    self.wake_all(&error.into());
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        self.tell();
        Ok(())
    }

    /// From where the log is looked through; `None` when there is nobody to look for.
    fn position(&self) -> Option<u64> {
        let sleeping = self.sleeping.lock();
        let mut asleep = sleeping.indexes.values();
        asleep
            .any(|sleeper| sleeper.woken_at.is_none())
            .then_some(sleeping.looked)
    }

    /// Notes which indexes have to be opened for changes behind `position`.
    ///
    /// # Errors
    /// When an entry is damaged.
    fn take_in(&self, block: &ChangeBlock, position: u64) -> Result<()> {
        let mut changes: BTreeMap<TableId, Vec<u64>> = BTreeMap::new();
        for entry in block.behind(position) {
            for table in entry.tables()? {
                changes.entry(table).or_default().push(entry.sequence());
            }
        }
        let mut sleeping = self.sleeping.lock();
        if sleeping.looked != position {
            // One was added meanwhile that isn't as far: from there again.
            return Ok(());
        }
        for sleeper in sleeping.indexes.values_mut() {
            if sleeper.woken_at.is_some() {
                continue;
            }
            let mut own = changes.get(&sleeper.table).into_iter().flatten();
            let first = own.find(|sequence| **sequence > sleeper.from);
            sleeper.woken_at = first.map(|sequence| sequence.saturating_sub(1));
        }
        sleeping.looked = block.last();
        Ok(())
    }

    /// Has an index opened that couldn't be when it was wanted.
    pub(super) fn open_later(&self, index: &str) {
        let mut sleeping = self.sleeping.lock();
        let looked = sleeping.looked;
        if let Some(sleeper) = sleeping.indexes.get_mut(index)
            && sleeper.woken_at.is_none()
        {
            sleeper.woken_at = Some(looked);
            self.look_again.notify_one();
        }
    }

    fn wake_all(&self, error: &EngineError) {
        warn!(%error, "all unopened indexes are opened: the log that they would follow can't be read");
        let mut sleeping = self.sleeping.lock();
        let looked = sleeping.looked;
        for sleeper in sleeping.indexes.values_mut() {
            sleeper.woken_at.get_or_insert(looked);
        }
    }

    /// Tells how far searches of unopened indexes would see.
    fn tell(&self) {
        let sleeping = self.sleeping.lock();
        for sleeper in sleeping.indexes.values() {
            // One that is being opened, for a search maybe, says itself how that goes: it hasn't advanced since others have.
            if let (None, Some(keeping)) = (sleeper.woken_at, sleeper.keeping.upgrade())
                && keeping.state().opening().is_none()
            {
                keeping.state().set_applied(sleeper.unchanged(sleeping.looked).to);
            }
        }
    }

    /// Has the index that has been unopened for longest opened, if that is so long: its files are compared with their checksums
    /// then.
    fn wake_oldest(&self, than: Duration) {
        let mut sleeping = self.sleeping.lock();
        let looked = sleeping.looked;
        let asleep = sleeping
            .indexes
            .values_mut()
            .filter(|sleeper| sleeper.woken_at.is_none());
        let oldest = asleep.min_by_key(|sleeper| sleeper.since);
        if let Some(oldest) = oldest.filter(|oldest| oldest.since.elapsed() >= than) {
            oldest.woken_at = Some(looked);
        }
    }

    /// Begins to open woken indexes, up to [`OPENINGS_MAX`] at a time. Returns whether some still wait, for a place or a thread.
    fn open_woken(&self) -> bool {
        let mut woken = Vec::new();
        {
            let mut sleeping = self.sleeping.lock();
            sleeping
                .indexes
                .retain(|_, sleeper| sleeper.keeping.strong_count() > 0);
            for sleeper in sleeping.indexes.values() {
                if let (Some(_), Some(keeping)) = (sleeper.woken_at, sleeper.keeping.upgrade()) {
                    woken.push(keeping);
                }
            }
        }
        let (opening, waiting): (Vec<_>, Vec<_>) = woken
            .into_iter()
            .partition(|keeping| keeping.state().opening().is_some());
        let since = opening.iter().filter_map(|keeping| keeping.state().opening());
        let busy = since.filter(|since| since.elapsed() < OPENING_PATIENCE).count();
        let places = OPENINGS_MAX.saturating_sub(busy);
        let mut is_refused = false;
        for keeping in waiting.iter().take(places) {
            // One that gets no thread has a stall.
            is_refused |= keeping.wake().is_err();
        }
        is_refused || waiting.len() > places
    }

    /// Lets the log go up to where it was looked through, for each index that isn't to be opened.
    pub(super) async fn move_on(&self, closing: &CancellationToken) {
        let asleep: Vec<(Arc<Keeping>, u64)> = {
            let sleeping = self.sleeping.lock();
            let asleep = sleeping
                .indexes
                .values()
                .filter(|sleeper| sleeper.woken_at.is_none());
            let asleep = asleep.filter_map(|sleeper| {
                let unchanged = sleeper.unchanged(sleeping.looked);
                Some((sleeper.keeping.upgrade()?, unchanged.to))
            });
            asleep.collect()
        };
        for (keeping, to) in asleep {
            if closing.is_cancelled() {
                return;
            }
            let index = Arc::clone(keeping.index.shared_name());
            let moved = tokio::task::spawn_blocking(move || keeping.move_on(to)).await;
            match moved.unwrap_or(Err(EngineError::Defect("moving an index on panicked"))) {
                Ok(()) => {}
                Err(error) => warn!(index = &*index, %error, "the log is kept for an unopened index"),
            }
        }
    }
}

#[cfg(test)]
mod tests;
