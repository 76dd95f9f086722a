//! `souk backup`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use souk_engine::storage::backup::{BackupFolder, BackupPolicy};
use souk_engine::storage::{Database, DatabaseOptions};

use super::stores::{self, CommandError, say};

/// Arguments of `souk backup`.
#[derive(Clone, Debug, Args)]
pub(super) struct BackupArgs {
    /// Folder of a service's data, or of several services' data. The services must be stopped.
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Folder for the backups; those of several services get a folder each.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Incremental backups after a full one before the next full one; 0 makes each a full one.
    #[arg(long, value_name = "COUNT", default_value_t = BackupPolicy::default().increments)]
    increments: usize,
    /// Full backups that are kept, each with those that follow it.
    #[arg(long, value_name = "COUNT", default_value_t = BackupPolicy::default().keep)]
    keep: usize,
}

/// Takes backups.
pub(super) fn main(args: &BackupArgs) -> ExitCode {
    stores::main(args.run())
}

impl BackupArgs {
    async fn run(&self) -> Result<bool, CommandError> {
        let policy = BackupPolicy {
            increments: self.increments,
            keep: self.keep,
        };
        for store in stores::stores(&self.data)? {
            let folder = BackupFolder::new(self.to.join(&store.service));
            let database = Database::open(&store.path, DatabaseOptions::default()).await?;
            let taken = folder.take(&database, policy).await;
            database.close().await?;
            match taken? {
                Some(backup) => say(format_args!(
                    "{store}: up to change {} in {}, {} bytes",
                    backup.manifest.sequence,
                    backup.directory.display(),
                    backup.manifest.bytes()
                ))?,
                None => say(format_args!(
                    "{store}: nothing was written since the newest backup"
                ))?,
            }
        }
        Ok(true)
    }
}
