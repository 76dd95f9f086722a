//! A folder with many backups of one database: which belong together, which is the newest, which may go.

use std::path::{Path, PathBuf};

use super::directory::{is_partial, names, remove, remove_interrupted};
use super::{Backup, BackupKind, blocking, unusable};
use crate::database::Database;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::MAX_BACKUP_CHAIN;

/// Which backups are taken and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupPolicy {
    /// Incremental backups that follow a full one before the next full one, at most [`MAX_BACKUP_CHAIN`] - 1.
    pub increments: usize,
    /// Full backups that are kept, each with the incremental ones that follow it; at least 1.
    pub keep: usize,
}

impl Default for BackupPolicy {
    fn default() -> Self {
        Self {
            increments: 23,
            keep: 7,
        }
    }
}

/// A folder with backups of one database, each named by its time: `20261121T130640Z-full`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFolder {
    path: PathBuf,
}

impl BackupFolder {
    /// A folder; it is created by the first backup.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All whole backups, the oldest first. One that isn't readable is reported to the log of the process and left
    /// out: those before and after it may still be good.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub async fn backups(&self) -> Result<Vec<Backup>> {
        let path = self.path.clone();
        blocking("listing backups", move || list(&path)).await
    }

    /// The backups that belong to the newest one: a full one and those that follow it, in order.
    ///
    /// # Errors
    /// [`Error::UnusableBackup`] when there is none, or one of the chain is missing.
    pub async fn newest_chain(&self) -> Result<Vec<Backup>> {
        let backups = self.backups().await?;
        let newest = backups.last();
        let newest = newest.ok_or_else(|| unusable(&self.path, "holds no backup"))?;
        chain(&backups, newest)
    }

    /// The backups that are needed to restore one of this folder, it included, in order.
    ///
    /// # Errors
    /// [`Error::UnusableBackup`] when one of them is missing.
    pub async fn chain_of(&self, backup: &Backup) -> Result<Vec<Backup>> {
        chain(&self.backups().await?, backup)
    }

    /// Takes a backup: an incremental one after the newest, or a full one when it is time for it or there can't be
    /// another. `None` when nothing was written since the newest. Then removes what needn't be kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the policy; else as [`Database::backup`].
    pub async fn take(&self, database: &Database, policy: BackupPolicy) -> Result<Option<Backup>> {
        if policy.keep == 0 || policy.increments >= MAX_BACKUP_CHAIN {
            return Err(Error::invalid(
                "backup policy",
                format!(
                    "keeps {} full backups with {} incremental ones; at least 1, and below {MAX_BACKUP_CHAIN}",
                    policy.keep, policy.increments
                ),
            ));
        }
        let path = self.path.clone();
        blocking("removing interrupted backups", move || remove_interrupted(&path)).await?;
        let backups = self.backups().await?;
        let newest = backups.last();
        if let Some(newest) = newest
            && database.is_held_by(newest).await?
        {
            return Ok(None);
        }
        let chain = newest.and_then(|newest| chain(&backups, newest).ok());
        let previous = newest.filter(|_| chain.is_some_and(|chain| chain.len() <= policy.increments));
        let time = database.shared.options.clock.now();
        let taken = match previous {
            None => database.backup(self.place(time, "full"), None).await?,
            Some(_) => match database.backup(self.place(time, "incremental"), previous).await {
                Ok(taken) => taken,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ChangesTrimmed | ErrorKind::UnusableBackup
                    ) =>
                {
                    tracing::info!(code = error.code(), "a full backup instead: {error}");
                    database.backup(self.place(time, "full"), None).await?
                }
                Err(error) => return Err(error),
            },
        };
        let path = self.path.clone();
        blocking("removing old backups", move || prune(&path, policy.keep)).await?;
        Ok(Some(taken))
    }

    fn place(&self, time: i64, kind: &str) -> PathBuf {
        self.path.join(format!("{}-{kind}", stamp(time)))
    }
}

fn list(path: &Path) -> Result<Vec<Backup>> {
    let mut backups = Vec::new();
    for name in names(path)?.into_iter().filter(|name| !is_partial(name)) {
        let directory = path.join(name);
        if !directory.is_dir() {
            continue;
        }
        match Backup::read(directory) {
            Ok(backup) => backups.push(backup),
            Err(error) if error.kind() == ErrorKind::UnusableBackup => {
                tracing::warn!(code = error.code(), "left out: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    backups.sort_by_key(|backup| (backup.manifest.time, backup.manifest.sequence));
    Ok(backups)
}

fn chain(backups: &[Backup], last: &Backup) -> Result<Vec<Backup>> {
    let mut chain = vec![last.clone()];
    let mut wanted = last;
    while let BackupKind::Incremental { previous, .. } = wanted.manifest.kind {
        wanted = backups
            .iter()
            .find(|backup| backup.manifest.id() == previous)
            .filter(|_| chain.len() < MAX_BACKUP_CHAIN)
            .ok_or_else(|| {
                unusable(
                    &wanted.directory,
                    format!("follows the backup {previous}, which is not here"),
                )
            })?;
        chain.push(wanted.clone());
    }
    chain.reverse();
    Ok(chain)
}

/// Removes all but the newest `keep` full backups and what follows them; the last of a chain goes first.
fn prune(path: &Path, keep: usize) -> Result<()> {
    let backups = list(path)?;
    let full = |backup: &&Backup| backup.manifest.kind == BackupKind::Full;
    let Some(oldest_kept) = backups.iter().filter(full).rev().nth(keep - 1) else {
        return Ok(());
    };
    let kept_from = oldest_kept.manifest.time;
    for backup in backups.iter().rev() {
        if backup.manifest.time < kept_from {
            remove(&backup.directory)?;
        }
    }
    Ok(())
}

/// A time in UTC as `20261121T130640.123Z`. Days to a date after Howard Hinnant's `civil_from_days`.
fn stamp(time: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    let ms = time.div_euclid(1_000_000);
    let (days, ms) = (ms.div_euclid(DAY_MS) + 719_468, ms.rem_euclid(DAY_MS));
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let seconds = ms / 1_000;
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}.{:03}Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        ms % 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::stamp;

    #[test]
    fn times_are_written_as_dates() {
        for (seconds, expected) in [
            (0, "19700101T000000.000Z"),
            (951_782_399, "20000228T235959.000Z"),
            (951_782_400, "20000229T000000.000Z"),
            (1_795_266_400, "20261121T130640.000Z"),
            (-1, "19691231T235959.000Z"),
        ] {
            assert_eq!(stamp(seconds * 1_000_000_000), expected);
        }
    }
}
