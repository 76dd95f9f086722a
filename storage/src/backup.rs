//! Backups: copies of a database that were taken while it works, or while it doesn't.
//!
//! A backup is a folder of block files and a `MANIFEST` that is written last, under another name first: what has no
//! manifest is no backup. A full backup holds every entry of one snapshot. An incremental one follows another and
//! holds the changes since, and the catalog: tables, feeds, and what is kept of requests.
//!
//! | file              | what it holds                                                                     |
//! |-------------------|-----------------------------------------------------------------------------------|
//! | `MANIFEST`        | see [`manifest`](crate::backup::Manifest): what follows what, and each file's sum |
//! | `SPACE-N.blocks`  | entries of a space, see `blocks`                                                  |
//! | `*.partial`       | beside the backup: one that is being taken, or was interrupted; of no value       |
//!
//! A backup blocks no write. While it is taken its snapshot keeps old data on the disk. On the device of its database
//! it leaves writers their room: it ends with [`Error::DiskFull`], and gives back what it took, while there is still
//! [`BACKUP_RESERVES`](crate::limits::BACKUP_RESERVES) times the reserve.

mod blocks;
mod directory;
mod disk_guard;
mod folder;
mod manifest;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use souk_kv::{KvSnapshot, Space};
use xxhash_rust::xxh3::xxh3_128;

pub(crate) use self::blocks::BlockFileReader;
use self::directory::Partial;
pub(crate) use self::directory::{parent, sync_directory};
use self::disk_guard::BackupDiskGuard;
pub use self::folder::{BackupFolder, BackupPolicy};
pub use self::manifest::{BackupFile, BackupId, BackupKind, Manifest};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::key;
use crate::read::log;
use crate::walk::Walk;

/// A finished backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Its folder.
    pub directory: PathBuf,
    /// What it holds.
    pub manifest: Manifest,
}

impl Backup {
    /// The backup in a folder. Reads its manifest, not its data; see [`crate::restore::verify`].
    ///
    /// # Errors
    /// [`Error::UnusableBackup`] when there is none, or its manifest isn't as it was written.
    pub async fn open(directory: impl Into<PathBuf>) -> Result<Self> {
        let directory = directory.into();
        blocking("reading a backup", move || Self::read(directory)).await
    }

    fn read(directory: PathBuf) -> Result<Self> {
        let manifest = Manifest::read(&directory)?;
        Ok(Self { directory, manifest })
    }
}

impl Database {
    /// Takes a backup into a folder that doesn't exist yet, while writes go on: a full one, or with `previous` an
    /// incremental one, of the changes since that. Dropping the future leaves no backup.
    ///
    /// # Errors
    /// [`Error::ChangesTrimmed`] when changes since `previous` are no longer kept, [`Error::UnusableBackup`] when
    /// `previous` isn't of this database's history: take a full one. [`Error::Invalid`] when the folder exists,
    /// [`Error::Locked`] while another backup is taken into it; [`Error::Io`], [`Error::DiskFull`],
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub async fn backup(&self, directory: impl Into<PathBuf>, previous: Option<&Backup>) -> Result<Backup> {
        let snapshot = self.shared.kv.snapshot().await?;
        let time = self.shared.options.clock.now();
        let guard = BackupDiskGuard::new(&self.shared);
        take(&*snapshot, time, directory.into(), previous, guard).await
    }

    /// Whether nothing was written since a backup. A last change that isn't kept any more is taken for the backup's.
    pub(super) async fn is_held_by(&self, backup: &Backup) -> Result<bool> {
        let snapshot = self.shared.kv.snapshot().await?;
        let Manifest {
            sequence,
            last_change: backed_up,
            ..
        } = backup.manifest;
        let own = last_change(&*snapshot, sequence).await?;
        Ok(sequence == snapshot.sequence() && (own.is_none() || own == backed_up))
    }
}

async fn take(
    snapshot: &dyn KvSnapshot,
    time: i64,
    directory: PathBuf,
    previous: Option<&Backup>,
    guard: BackupDiskGuard,
) -> Result<Backup> {
    let trimmed = log::trimmed(snapshot).await?;
    let kind = match previous {
        None => BackupKind::Full,
        Some(previous) => follow(snapshot, trimmed, previous).await?,
    };
    let mut walks = vec![Walk::all(Space::Catalog)];
    match &kind {
        BackupKind::Full => walks.extend([Space::Rows, Space::Index, Space::Log].map(Walk::all)),
        BackupKind::Incremental { after, .. } => walks.push(Walk::between(
            Space::Log,
            key::log(after.saturating_add(1)),
            key::log(snapshot.sequence().saturating_add(1)),
        )),
    }
    let mut partial = blocking("starting a backup", {
        let directory = directory.clone();
        move || Partial::create(&directory, guard)
    })
    .await?;
    for mut walk in walks {
        while let Some(page) = walk.next(snapshot).await? {
            let space = walk.space;
            partial = blocking("writing a backup", move || {
                partial.add(space, &page)?;
                Ok(partial)
            })
            .await?;
        }
    }
    let sequence = snapshot.sequence();
    let last_change = last_change(snapshot, sequence).await?;
    blocking("finishing a backup", move || {
        let files = partial.finish_files()?;
        let manifest = Manifest::new(kind, time, sequence, last_change, files);
        partial.publish(&manifest)?;
        Ok(Backup { directory, manifest })
    })
    .await
}

/// What an incremental backup after `previous` is, if there can be one.
async fn follow(snapshot: &dyn KvSnapshot, trimmed: u64, previous: &Backup) -> Result<BackupKind> {
    let after = previous.manifest.sequence;
    let other_history = |problem: String| Error::UnusableBackup {
        backup: previous.directory.clone(),
        problem,
    };
    if after > snapshot.sequence() {
        return Err(other_history(format!(
            "goes up to change {after}, but the database only to {}",
            snapshot.sequence()
        )));
    }
    // The last change that both have shows that they share a history.
    if after > 0 && after <= trimmed {
        return Err(Error::ChangesTrimmed {
            requested: after - 1,
            oldest: trimmed.saturating_add(1),
        });
    }
    if last_change(snapshot, after).await? != previous.manifest.last_change {
        return Err(other_history(format!(
            "has another change {after} than the database"
        )));
    }
    Ok(BackupKind::Incremental {
        previous: previous.manifest.id(),
        after,
    })
}

/// The checksum of a change as it is stored; `None` when it isn't there.
async fn last_change(snapshot: &dyn KvSnapshot, sequence: u64) -> Result<Option<u128>> {
    let entry = snapshot.get(Space::Log, &key::log(sequence)).await?;
    Ok(entry.map(|entry| xxh3_128(&entry)))
}

/// Runs file work off the async runtime's threads.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(stopped) => Err(Error::Unavailable {
            reason: format!("{what} was stopped: {stopped}"),
        }),
    }
}

/// Reading or writing a file of a backup failed.
fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |error| match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Error::DiskFull {
            reason: format!("cannot {action} {path:?}: {error}"),
        },
        _ => Error::io(action, path)(error),
    }
}

/// The backup is not as it was written.
fn unusable(path: &Path, problem: impl Into<String>) -> Error {
    Error::UnusableBackup {
        backup: path.to_owned(),
        problem: problem.into(),
    }
}

/// An entry as it stands in a block.
type Entry = (Bytes, Bytes);
