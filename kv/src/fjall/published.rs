//! What the committer publishes: the state that readers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::RwLock;
use tokio::sync::watch;

use super::conflict_window::ConflictWindow;
use super::disk_guard;
use super::failure::StoreFailure;
use super::snapshot::GroupSnapshot;
use super::store::Store;
use crate::engine::Health;

/// The last snapshot, sequence and health, and counters for statistics.
pub(super) struct Published {
    pub(super) store: Arc<Store>,
    pub(super) conflicts: Arc<ConflictWindow>,
    pub(super) snapshot: RwLock<Arc<GroupSnapshot>>,
    pub(super) sequence: watch::Sender<u64>,
    pub(super) health: watch::Sender<Health>,
    /// Set when the committer has closed: what is still queued then was never written.
    pub(super) ended: AtomicBool,
    /// Groups written since the opening.
    pub(super) groups: AtomicU64,
    /// Times the store was quiesced since the opening.
    pub(super) quiesced: AtomicU64,
    /// Major compactions of a space since the opening.
    pub(super) major_compactions: AtomicU64,
}

impl Published {
    pub(super) fn new(store: Arc<Store>, sequence: u64, group: u64) -> Self {
        let conflicts = Arc::new(ConflictWindow::new(group));
        let snapshot = GroupSnapshot::take(store.clone(), conflicts.clone(), sequence, group);
        Self {
            snapshot: RwLock::new(Arc::new(snapshot)),
            conflicts,
            store,
            sequence: watch::Sender::new(sequence),
            health: watch::Sender::new(Health::Serving),
            ended: AtomicBool::new(false),
            groups: AtomicU64::new(0),
            quiesced: AtomicU64::new(0),
            major_compactions: AtomicU64::new(0),
        }
    }

    /// Publishes the present state. Only right in the committer, between two groups.
    pub(super) fn publish(&self, sequence: u64, group: u64) {
        let conflicts = self.conflicts.clone();
        let snapshot = GroupSnapshot::take(self.store.clone(), conflicts, sequence, group);
        let snapshot = Arc::new(snapshot);
        let mut published = self.snapshot.write();
        // Set under the lock of the snapshot, so that no reader sees a change above the sequence; watchers are woken after it, so
        // that no reader waits for that.
        let mut advanced = false;
        self.sequence.send_if_modified(|last| {
            advanced = *last != sequence;
            *last = sequence;
            false
        });
        // Dropped by its last reader, or at the end of this function, but not under the lock.
        let _before = std::mem::replace(&mut *published, snapshot);
        drop(published);
        self.sequence.send_if_modified(|_| advanced);
    }

    /// Publishes that the store has failed; the first reason stays.
    pub(super) fn fail(&self, failure: &StoreFailure) {
        self.health.send_if_modified(|health| {
            if matches!(health, Health::Failed { .. }) {
                return false;
            }
            tracing::error!(
                reason = failure.reason,
                "the store failed and takes no more commits"
            );
            *health = Health::Failed {
                reason: failure.reason.clone(),
            };
            true
        });
    }

    /// Publishes whether the device has too little space: its free bytes and the reserve when it has.
    pub(super) fn set_shortage(&self, shortage: Option<(u64, u64)>) {
        self.health.send_if_modified(|health| {
            let now = match (&*health, shortage) {
                (Health::Serving, Some((free, reserve))) => {
                    let reason = disk_guard::reason(free, reserve);
                    tracing::warn!(reason, "writes are refused until there is room");
                    Health::Full { reason }
                }
                (Health::Full { .. }, None) => {
                    tracing::info!("there is room on the device; writes are taken again");
                    Health::Serving
                }
                _ => return false,
            };
            *health = now;
            true
        });
    }
}
