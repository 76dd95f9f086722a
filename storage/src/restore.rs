//! From backups to a database: a full backup and the incremental ones that follow it become a new directory.
//!
//! It is built beside its place and renamed when it is whole: the directory is there with all of the backup, or not.
//! With one backup every entry is as it was, but the database begins another history (`souk_kv::histories`). With more, rows are brought forward by the changes, and secondary indexes
//! are built anew from the rows. What is derived elsewhere, such as search indexes, isn't part of a backup.

mod fill;

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use souk_kv::{FjallKv, FjallOptions, Kv};

use self::fill::Fill;
use crate::backup::{Backup, BackupKind, BlockFileReader, blocking, parent, sync_directory};
use crate::check::{self, CheckReport};
use crate::error::{Error, Result};
use crate::limits::{self, MAX_BACKUP_CHAIN};

/// Ends the name of a directory that isn't restored yet.
const RESTORING: &str = ".restoring";
/// The lock file of a database.
const LOCK: &str = "LOCK";

/// A database that was restored.
#[derive(Debug, Clone)]
pub struct Restored {
    /// Its directory.
    pub directory: PathBuf,
    /// The last sequence that it includes.
    pub sequence: u64,
    /// What a check of it found. A problem that the database had when it was backed up is still there.
    pub check: CheckReport,
}

/// What is in backups that were read to their ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Entries of all files.
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Makes a database of backups: a full one and those that follow it, in order. The directory must be empty or not be
/// there. Dropping the future leaves no directory behind, but what was built of it beside it, until the next try.
///
/// # Errors
/// [`Error::UnusableBackup`] when one isn't as it was written or doesn't follow the one before, [`Error::Invalid`] when
/// the directory isn't empty, [`Error::Locked`] while it is being restored, [`Error::LimitExceeded`] for
/// [`MAX_BACKUP_CHAIN`]; [`Error::Io`], [`Error::DiskFull`].
pub async fn restore(backups: &[Backup], directory: impl Into<PathBuf>) -> Result<Restored> {
    let directory = directory.into();
    let last = check_chain(backups)?;
    let sequence = last.manifest.sequence;
    let building = blocking("starting to restore", {
        let directory = directory.clone();
        move || prepare(&directory)
    })
    .await?;
    let options = FjallOptions::default();
    let store = FjallKv::open(&building, &options).await?;
    fill::all(&mut Fill::new(&store), backups).await?;
    store.close().await?;
    drop(store);

    // Opened again, for that is what will be done with it, and it begins to remember how far the log is durable.
    let store = FjallKv::open(&building, &options).await?;
    let snapshot = store.snapshot().await?;
    if snapshot.sequence() != sequence {
        return Err(Error::UnusableBackup {
            backup: last.directory.clone(),
            problem: format!(
                "says that it goes up to change {sequence}, but its log to {}",
                snapshot.sequence()
            ),
        });
    }
    let check = check::snapshot(&*snapshot).await;
    drop(snapshot);
    store.close().await?;
    drop(store);
    blocking("ending to restore", move || {
        fs::rename(&building, &directory).map_err(Error::io("rename", &building))?;
        sync_directory(parent(&directory))?;
        Ok(Restored {
            directory,
            sequence,
            check,
        })
    })
    .await
}

/// Reads backups to their ends: a full one and those that follow it, in order.
///
/// # Errors
/// [`Error::UnusableBackup`] when one isn't as it was written or doesn't follow the one before; [`Error::Io`].
pub async fn verify(backups: &[Backup]) -> Result<Verified> {
    check_chain(backups)?;
    let mut verified = Verified { entries: 0, bytes: 0 };
    for backup in backups {
        for file in &backup.manifest.files {
            let (directory, expected) = (backup.directory.clone(), file.clone());
            blocking("reading a backup", move || {
                let mut blocks = BlockFileReader::open(&directory, &expected)?;
                while blocks.next()?.is_some() {}
                Ok(())
            })
            .await?;
            verified.entries += file.entries;
            verified.bytes += file.bytes;
        }
    }
    Ok(verified)
}

/// Refuses backups that don't follow each other; gives the last.
fn check_chain(backups: &[Backup]) -> Result<&Backup> {
    limits::check("MAX_BACKUP_CHAIN", MAX_BACKUP_CHAIN, backups.len())?;
    let mut before: Option<&Backup> = None;
    for backup in backups {
        let refuse = |problem: String| Error::UnusableBackup {
            backup: backup.directory.clone(),
            problem,
        };
        match (before, backup.manifest.kind) {
            (None, BackupKind::Full) => {}
            (None, BackupKind::Incremental { previous, .. }) => {
                return Err(refuse(format!(
                    "is incremental: it needs the backup {previous} before it"
                )));
            }
            (Some(_), BackupKind::Full) => {
                return Err(refuse("is full, and follows no other".to_owned()));
            }
            (Some(before), BackupKind::Incremental { previous, after }) => {
                if previous != before.manifest.id() || after != before.manifest.sequence {
                    return Err(refuse(format!(
                        "follows the backup {previous}, not {:?}",
                        before.directory
                    )));
                }
            }
        }
        before = Some(backup);
    }
    before.ok_or_else(|| Error::invalid("backups", "are none"))
}

/// Refuses a directory with something in it; removes what an interrupted restore left. Gives where to build.
fn prepare(directory: &Path) -> Result<PathBuf> {
    let mut entries = match fs::read_dir(directory) {
        Ok(entries) => entries.peekable(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return building(directory),
        Err(error) => return Err(Error::io("list", directory)(error)),
    };
    if entries.peek().is_some() {
        return Err(Error::invalid(
            format!("the directory to restore to, {directory:?},"),
            "is not empty",
        ));
    }
    building(directory)
}

fn building(directory: &Path) -> Result<PathBuf> {
    let Some(name) = directory.file_name() else {
        return Err(Error::invalid(
            format!("the directory to restore to, {directory:?},"),
            "has no name",
        ));
    };
    let mut name = OsString::from(name);
    name.push(RESTORING);
    let building = directory.with_file_name(name);
    if let Ok(lock) = File::open(building.join(LOCK))
        && let Err(TryLockError::WouldBlock) = lock.try_lock()
    {
        return Err(Error::Locked {
            directory: building,
            holder: "another restore".to_owned(),
        });
    }
    match fs::remove_dir_all(&building) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", &building)(error))
        }
        Ok(()) | Err(_) => Ok(building),
    }
}
