//! The way of a batch: validate, lock its rows in this process, read them in one snapshot, decide, commit with checks
//! that they are still what was read. The locks make conflicts rare; the checks make them harmless.

mod decide;
mod locks;
mod row_change;
mod validate;

use bytes::Bytes;

use crate::batch::{Committed, Durability, RequestRecord, WriteBatch};
use crate::database::Shared;
use crate::error::{Error, Result};
use crate::key;
use crate::kv::{self, KvSnapshot, Space};
use crate::limits::MAX_WRITE_ATTEMPTS;
use crate::replay;
pub(crate) use decide::unchanged;
pub(crate) use locks::RowLocks;

/// Writes a batch.
pub(crate) async fn write(shared: &Shared, batch: WriteBatch) -> Result<Committed> {
    // Until the commit: so no write misses an index that is created, or keeps one that is dropped.
    let _tables = shared.schema_lock.read().await;
    let keys = {
        let catalog = shared.catalog.read();
        validate::batch(&catalog, &batch, shared.options.clock.now())?
    };
    let request_key = batch.request.as_ref().map(|request| key::request(request.id));
    let _locked = shared.locks.lock(keys.iter().chain(&request_key)).await;
    for _ in 0..MAX_WRITE_ATTEMPTS {
        let snapshot = shared.kv.snapshot().await?;
        if let (Some(request), Some(key)) = (&batch.request, &request_key)
            && let Some(replayed) = replay(shared, &*snapshot, request, key, batch.durability).await?
        {
            return Ok(replayed);
        }
        let rows = snapshot.multi_get(Space::Rows, keys.clone()).await?;
        let sequence = snapshot.sequence();
        // Old data isn't kept while the commit waits.
        drop(snapshot);
        let now = shared.options.clock.now();
        let decided = decide::batch(&batch, &keys, &rows, sequence, now)?;
        let unlogged = decided.log.is_none();
        if unlogged && batch.request.is_none() {
            return Ok(Committed {
                sequence,
                replayed: None,
            });
        }
        match shared.kv.commit(decided).await {
            Ok(committed) => {
                return Ok(Committed {
                    sequence: if unlogged { sequence } else { committed.sequence },
                    replayed: None,
                });
            }
            Err(kv::Error::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Contended {
        attempts: MAX_WRITE_ATTEMPTS,
    })
}

/// The answer of the first request with this id, if it was written.
pub(crate) async fn replayed(shared: &Shared, request: &RequestRecord) -> Result<Option<Committed>> {
    let snapshot = shared.kv.snapshot().await?;
    let key = key::request(request.id);
    replay(shared, &*snapshot, request, &key, Durability::Disk).await
}

/// The answer of the first request with this id.
async fn replay(
    shared: &Shared,
    snapshot: &dyn KvSnapshot,
    request: &RequestRecord,
    key: &Bytes,
    durability: Durability,
) -> Result<Option<Committed>> {
    let Some(bytes) = snapshot.get(Space::Catalog, key).await? else {
        return Ok(None);
    };
    let first = replay::decode(&bytes)?;
    if first.fingerprint != request.fingerprint {
        return Err(Error::RequestIdReused {
            sequence: first.sequence,
        });
    }
    // Whoever repeats it may ask for more than whoever was first.
    if (first.durability, durability) == (Durability::Buffered, Durability::Disk) {
        shared.kv.sync().await?;
    }
    Ok(Some(Committed {
        sequence: first.sequence,
        replayed: Some(first.reply),
    }))
}
