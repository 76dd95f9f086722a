//! What runs in the background: trimming the log, forgetting requests, freeing expired cells, syncing what was
//! buffered.

mod reclaim;

pub(crate) mod trim;

use std::sync::Arc;

use bytes::Bytes;
use souk_kv::{Commit, Direction, Durability, Health, Mutation, Scan, Space};
use tokio::task::JoinHandle;

use crate::clock::nanos;
use crate::database::{Database, DatabaseState};
use crate::error::Result;
use crate::key;
use crate::limits::{CHANGE_TIME_DISORDER, MAX_SCANNED_BYTES, MAX_SWEEP_STEPS, SWEEP_STEP};

impl Database {
    /// What runs in the background each [`crate::DatabaseOptions::maintenance_interval`]: trims the log, sweeps request ids,
    /// frees expired cells, syncs what was buffered.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Corrupt`].
    pub async fn maintain(&self) -> Result<()> {
        while pass(&self.shared).await? {}
        Ok(())
    }
}

/// Runs [`pass`] at the database's interval until the database is dropped, closed, or fails.
pub(crate) fn start(shared: &Arc<DatabaseState>) -> JoinHandle<()> {
    let interval = shared.options.maintenance_interval;
    let shared = Arc::downgrade(shared);
    tokio::spawn(async move {
        let mut more = false;
        loop {
            if !more {
                tokio::time::sleep(interval).await;
            }
            let Some(shared) = shared.upgrade() else {
                return;
            };
            match pass(&shared).await {
                Ok(left) => more = left,
                Err(error) => {
                    more = false;
                    tracing::warn!(code = error.code(), "maintenance of the database failed: {error}");
                    if let Health::Failed { .. } = &*shared.kv.health().borrow() {
                        return;
                    }
                }
            }
        }
    })
}

/// Trims, sweeps, reclaims and syncs once; returns whether expired cells may be left.
pub(crate) async fn pass(shared: &Arc<DatabaseState>) -> Result<bool> {
    shared.partitions.sweep(shared.options.clock.now());
    trim::trim(shared).await?;
    shared.feeds.release_snapshots(shared.options.clock.now());
    sweep_requests(shared).await?;
    let more = reclaim::reclaim_expired(shared).await?;
    shared.kv.sync().await?;
    Ok(more)
}

/// Forgets the requests that are older than their retention. Those that a clock that was ahead dated in the future count
/// from now on.
async fn sweep_requests(shared: &DatabaseState) -> Result<()> {
    let now = shared.options.clock.now();
    let cutoff = now.saturating_sub(nanos(shared.options.request_retention));
    let forget = |id, age| {
        [key::request(id), age].map(|key| {
            let space = Space::Catalog;
            Mutation::Delete { space, key }
        })
    };
    sweep_ages(shared, key::request_ages_before(cutoff), forget).await?;
    let latest = now.saturating_add(nanos(CHANGE_TIME_DISORDER));
    let date = |id, age| {
        let space = Space::Catalog;
        let anew = Mutation::Put {
            space,
            key: key::request_age(now, id),
            value: Vec::new(),
            stamp: false,
        };
        [anew, Mutation::Delete { space, key: age }]
    };
    sweep_ages(shared, key::request_ages_after(latest), date).await
}

/// Does something to requests that are found by their age, by which they aren't found in these ages any more.
async fn sweep_ages(
    shared: &DatabaseState,
    (low, high): (Bytes, Bytes),
    mutations: impl Fn([u8; 16], Bytes) -> [Mutation; 2],
) -> Result<()> {
    for _ in 0..MAX_SWEEP_STEPS {
        let scan = Scan {
            space: Space::Catalog,
            low: low.clone(),
            high: high.clone(),
            direction: Direction::Forward,
            entries: SWEEP_STEP,
            bytes: MAX_SCANNED_BYTES,
        };
        let page = shared.kv.snapshot().await?.scan(scan).await?;
        if page.entries.is_empty() {
            return Ok(());
        }
        let mut all = Vec::with_capacity(2 * page.entries.len());
        for (age, _) in page.entries {
            all.extend(mutations(key::request_of_age(&age)?, age));
        }
        commit(shared, all).await?;
    }
    Ok(())
}

async fn commit(shared: &DatabaseState, mutations: Vec<Mutation>) -> Result<()> {
    let commit = Commit {
        mutations,
        durability: Durability::Buffered,
        ..Commit::default()
    };
    shared.kv.commit(commit).await?;
    Ok(())
}
