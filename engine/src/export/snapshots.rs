//! Snapshots that are kept between the calls of an export, each for [`LEASE`](super::LEASE) after its last use.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use souk_storage::Snapshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{LEASE, SNAPSHOTS_MAX};
use crate::error::{EngineError, Result};

/// The snapshots that are kept, by a number that can't be guessed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshots {
    kept: Arc<Mutex<HashMap<u64, Kept>>>,
}

#[derive(Debug)]
struct Kept {
    snapshot: Snapshot,
    used: Instant,
}

impl Snapshots {
    /// Keeps a snapshot.
    ///
    /// # Errors
    /// [`EngineError::TooManyExports`].
    pub(crate) fn keep(&self, snapshot: Snapshot) -> Result<u64> {
        let mut kept = self.kept.lock();
        sweep(&mut kept);
        if kept.len() >= SNAPSHOTS_MAX {
            return Err(EngineError::TooManyExports { max: SNAPSHOTS_MAX });
        }
        let (number, _) = Uuid::new_v4().as_u64_pair();
        let used = Instant::now();
        kept.insert(number, Kept { snapshot, used });
        Ok(number)
    }

    /// A snapshot that is kept.
    ///
    /// # Errors
    /// [`EngineError::ExportExpired`].
    pub(crate) fn take(&self, number: u64) -> Result<Snapshot> {
        let mut kept = self.kept.lock();
        sweep(&mut kept);
        let found = kept.get_mut(&number).ok_or(EngineError::ExportExpired)?;
        found.used = Instant::now();
        Ok(found.snapshot.clone())
    }

    /// Says that a snapshot is in use.
    pub(crate) fn touch(&self, number: u64) {
        if let Some(found) = self.kept.lock().get_mut(&number) {
            found.used = Instant::now();
        }
    }

    /// Lets all of them go.
    pub(crate) fn clear(&self) {
        self.kept.lock().clear();
    }

    /// Lets go of snapshots in time also when nobody exports any more: they keep old data on the disk.
    pub(crate) fn sweep_until(&self, closing: CancellationToken) {
        let snapshots = self.clone();
        tokio::spawn(async move {
            while closing
                .run_until_cancelled(tokio::time::sleep(LEASE))
                .await
                .is_some()
            {
                sweep(&mut snapshots.kept.lock());
            }
        });
    }
}

fn sweep(kept: &mut HashMap<u64, Kept>) {
    kept.retain(|_, kept| kept.used.elapsed() < LEASE);
}
