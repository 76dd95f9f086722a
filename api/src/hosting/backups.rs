//! Backups of a running service: at an interval, and when the process gets SIGUSR1. Only the process that has a store
//! open can read it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use souk_chassis::config::{Problems, duration};
use souk_chassis::host::Host;
use souk_engine::Engine;
use souk_storage::backup::{BackupFolder, BackupPolicy};
use souk_storage::limits::MAX_BACKUP_CHAIN;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Shortest time between two backups.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Settings of the backups of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackupSettings {
    /// Folder in which each service has a folder with its backups; empty for no backups.
    pub to: PathBuf,
    /// Time between two backups; what was written after the last may be lost with the disk.
    #[serde(with = "duration")]
    pub every: Duration,
    /// Incremental backups after a full one before the next full one.
    pub increments: usize,
    /// Full backups that are kept, each with those that follow it.
    pub keep: usize,
}

impl Default for BackupSettings {
    fn default() -> Self {
        let policy = BackupPolicy::default();
        Self {
            to: PathBuf::new(),
            every: Duration::from_secs(3_600),
            increments: policy.increments,
            keep: policy.keep,
        }
    }
}

impl BackupSettings {
    pub(super) fn check(&self, path: &str, problems: &mut Problems) {
        if self.every < INTERVAL_MIN {
            problems.push(&format!("{path}.every"), "must be at least 1s");
        }
        if self.increments >= MAX_BACKUP_CHAIN {
            let message = format!("must be below {MAX_BACKUP_CHAIN}");
            problems.push(&format!("{path}.increments"), message);
        }
        if self.keep == 0 {
            problems.push(&format!("{path}.keep"), "must be at least 1");
        }
    }
}

/// Takes backups of a service until the process stops.
///
/// # Errors
/// When the operating system refuses a signal handler.
pub(super) fn start(
    folder: &'static str,
    engine: &Engine,
    settings: &BackupSettings,
    host: &Host,
) -> std::io::Result<()> {
    if settings.to.as_os_str().is_empty() {
        return Ok(());
    }
    let backups = Backups {
        folder: BackupFolder::new(settings.to.join(folder)),
        engine: engine.clone(),
        policy: BackupPolicy {
            increments: settings.increments,
            keep: settings.keep,
        },
    };
    let every = settings.every;
    let mut sigusr1 = signal(SignalKind::user_defined1())?;
    let stopping = host.stopping.clone();
    let draining = host.draining.clone();
    host.spawn("backups", async move {
        let mut wait = backups.first_wait(every).await;
        loop {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = sigusr1.recv() => tracing::info!("SIGUSR1"),
                () = draining.cancelled() => return,
            }
            backups.take(&stopping).await;
            wait = every;
        }
    });
    Ok(())
}

/// What backups of a service are taken of, and where they go.
struct Backups {
    folder: BackupFolder,
    engine: Engine,
    policy: BackupPolicy,
}

impl Backups {
    /// How long to wait for the first backup: it is due one interval after the newest that is there.
    async fn first_wait(&self, every: Duration) -> Duration {
        let backups = self.folder.backups().await.unwrap_or_default();
        let Some(newest) = backups.last() else {
            return Duration::ZERO;
        };
        let age = self.engine.now().saturating_sub(newest.manifest.time);
        let age = Duration::from_nanos(u64::try_from(age).unwrap_or(0));
        every.saturating_sub(age)
    }

    /// Takes a backup and logs the result. The end of the process cancels it; an unfinished backup is never restored.
    async fn take(&self, stopping: &CancellationToken) {
        let folder: &Path = self.folder.path();
        let taken = tokio::select! {
            taken = self.folder.take(self.engine.database(), self.policy) => taken,
            () = stopping.cancelled() => return,
        };
        match taken {
            Ok(Some(backup)) => tracing::info!(
                directory = %backup.directory.display(),
                sequence = backup.manifest.sequence,
                bytes = backup.manifest.bytes(),
                "took a backup"
            ),
            Ok(None) => tracing::info!(folder = %folder.display(), "nothing to back up: nothing was written"),
            Err(error) => tracing::error!(
                code = error.code(),
                folder = %folder.display(),
                advice = error.advice(),
                "no backup: {error}"
            ),
        }
    }
}
