//! Statistics of the store.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::failure;
use super::internals;
use super::options::FjallOptions;
use super::published::Published;
use super::setup::MemoryPlan;
use crate::error::Error;
use crate::space::Space;
use crate::statistics::{
    CompactionStatistics, DiskStatistics, JournalStatistics, MemoryStatistics, Statistics,
};

/// Reads all counters, and lists the directory.
pub(super) fn report(
    published: &Published,
    options: &FjallOptions,
    waiting_commits: usize,
) -> Result<Statistics, Error> {
    let store = &published.store;
    let database = store.database();
    let plan = MemoryPlan::new(options);
    let sum = |of: fn(&::fjall::Keyspace) -> u64| -> u64 {
        Space::ALL
            .into_iter()
            .map(|space| of(store.keyspace(space)))
            .sum()
    };
    let journals = internals::journal_bytes(database).map_err(|error| Error::Unavailable {
        reason: format!("cannot look at the journals: {}", failure::describe(&error)),
    })?;
    let (flushes_waiting, active, completed, time) = internals::background(database);
    Ok(Statistics {
        memory: MemoryStatistics {
            limit: plan.limit,
            cache: internals::cache_bytes(database),
            cache_limit: plan.cache(),
            memtables: internals::all_memtables_bytes(database),
            memtables_limit: plan.memtables(),
            pinned: sum(internals::pinned_bytes),
        },
        journals: JournalStatistics {
            files: database.journal_count(),
            bytes: journals,
        },
        compactions: CompactionStatistics {
            flushes_waiting,
            active,
            completed,
            time,
            major: published.major_compactions.load(Ordering::Acquire),
            quiesced: published.quiesced.load(Ordering::Acquire),
        },
        spaces: Space::ALL
            .into_iter()
            .map(|space| internals::statistics(space, store.keyspace(space)))
            .collect(),
        disk: Some(DiskStatistics {
            used: used_bytes(store.directory()).map_err(|error| Error::Unavailable {
                reason: format!("cannot list {:?}: {error}", store.directory()),
            })?,
            free: options.free_space.free_bytes(store.directory()).ok(),
            reserve: options.reserve_bytes,
        }),
        waiting_commits,
    })
}

/// What the files below a directory take on the disk. A file that is removed meanwhile counts nothing.
fn used_bytes(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => used_bytes(&entry.path())?,
            Ok(metadata) => allocated(&metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(bytes)
}

/// Not the length: of a journal most is reserved, but takes no room yet.
#[cfg(unix)]
fn allocated(metadata: &fs::Metadata) -> u64 {
    /// Unit of the blocks of a file, whatever the file system's own.
    const BLOCK_BYTES: u64 = 512;
    std::os::unix::fs::MetadataExt::blocks(metadata) * BLOCK_BYTES
}

#[cfg(not(unix))]
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}
