//! `souk restore`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use souk_engine::storage::restore::restore;

use super::check::print_report;
use super::stores::{self, CommandError, STORE, say};

/// Arguments of `souk restore`.
#[derive(Clone, Debug, Args)]
pub(super) struct RestoreArgs {
    /// Folder of backups of a service or of several, of which the newest are taken; or one backup.
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// Folder for the data of the service or services; it must be empty or not be there.
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
}

/// Restores; the code is 1 when what was restored has problems.
pub(super) fn main(args: &RestoreArgs) -> ExitCode {
    stores::main(args.run())
}

impl RestoreArgs {
    async fn run(&self) -> Result<bool, CommandError> {
        let places = stores::backups(&self.from)?;
        for place in &places {
            // An index of other data must not be found beside the rows.
            refuse_data(&self.data.join(&place.service))?;
        }
        let mut whole = true;
        for place in places {
            let chain = stores::chain(&place.path).await?;
            let service = self.data.join(&place.service);
            std::fs::create_dir_all(&service)
                .map_err(|error| format!("{} can't be made: {error}", service.display()))?;
            let restored = restore(&chain, service.join(STORE)).await?;
            say(format_args!(
                "{place}: {} backups restored to {}; search indexes are built at the first start",
                chain.len(),
                restored.directory.display()
            ))?;
            whole &= print_report(&restored.directory.display().to_string(), &restored.check)?;
        }
        Ok(whole)
    }
}

fn refuse_data(service: &Path) -> Result<(), CommandError> {
    for folder in [STORE, "index"] {
        let path = service.join(folder);
        if path.exists() {
            return Err(format!("{} holds data already; restore to another folder", path.display()).into());
        }
    }
    Ok(())
}
