//! Disk space guard of a backup: on the device of its database it may not take the room that writers and flushes need.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use souk_kv::FreeSpace;

use super::io;
use crate::database::DatabaseState;
use crate::error::{Error, Result};
use crate::limits::BACKUP_RESERVES;

/// Refuses to write a backup into the reserve of its database.
#[derive(Debug)]
pub(super) struct BackupDiskGuard {
    source: Arc<dyn FreeSpace>,
    /// Where the database is; `None` in memory.
    database: Option<PathBuf>,
    /// Bytes that stay free.
    kept: u64,
}

impl BackupDiskGuard {
    pub(super) fn new(shared: &DatabaseState) -> Self {
        Self {
            source: Arc::clone(&shared.options.fjall.free_space),
            database: shared.kv.directory().map(Path::to_owned),
            kept: shared.options.fjall.reserve_bytes.saturating_mul(BACKUP_RESERVES),
        }
    }

    /// Refuses to write so many bytes more into a folder if they would take what has to stay free.
    pub(super) fn check(&self, folder: &Path, bytes: u64) -> Result<()> {
        let Some(database) = self.database.as_deref().filter(|_| self.kept > 0) else {
            return Ok(());
        };
        let device = |path: &Path| {
            fs::metadata(path)
                .map(|metadata| metadata.dev())
                .map_err(io("look at", path))
        };
        if device(folder)? != device(database)? {
            return Ok(());
        }
        // A device that can't tell is used as if there were room, as by writers.
        match self.source.free_bytes(folder) {
            Ok(free) if free < self.kept.saturating_add(bytes) => Err(Error::DiskFull {
                reason: format!(
                    "the backup in {folder:?} is on the device of its database, where {free} bytes are free: \
                     {} are kept for writes, BACKUP_RESERVES times the reserve",
                    self.kept
                ),
            }),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
