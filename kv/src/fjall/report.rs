//! Collects the statistics of a store: memory, journals, compactions, spaces, disk.

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

/// Reads the counters of fjall and of the committer, and adds up the files in the directory.
pub(super) fn report(
    published: &Published,
    options: &FjallOptions,
    waiting_commits: usize,
) -> Result<Statistics, Error> {
    let store = &published.store;
    let database = store.database();
    let plan = MemoryPlan::new(options);
    let keyspaces = Space::ALL.into_iter().map(|space| store.keyspace(space));
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
            pinned: keyspaces.map(internals::pinned_bytes).sum(),
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

/// Bytes that the files below a directory take on the disk. A file that is removed meanwhile counts nothing.
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

/// Bytes allocated to a file: less than its length for a journal, most of which is a hole that was reserved.
#[cfg(unix)]
fn allocated(metadata: &fs::Metadata) -> u64 {
    /// Unit of `st_blocks`, whatever the block size of the file system.
    const BLOCK_BYTES: u64 = 512;
    std::os::unix::fs::MetadataExt::blocks(metadata) * BLOCK_BYTES
}

#[cfg(not(unix))]
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}
