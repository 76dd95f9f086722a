//! `souk check`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use souk_engine::storage::{self, restore};

use super::stores::{self, CommandError, say};

/// Arguments of `souk check`.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct CheckArgs {
    /// Folder of a service's data, or of several services' data.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Folder of backups: the newest and those that it needs are read to their ends.
    #[arg(long, value_name = "FOLDER")]
    backups: Option<PathBuf>,
}

/// Checks, and says by the exit code whether all is well.
pub(super) fn main(args: &CheckArgs) -> ExitCode {
    stores::main(async {
        match (&args.data, &args.backups) {
            (Some(data), _) => check_data(data).await,
            (None, Some(backups)) => check_backups(backups).await,
            (None, None) => Err("nothing to check; use --data or --backups".into()),
        }
    })
}

async fn check_data(data: &Path) -> Result<bool, CommandError> {
    let mut whole = true;
    for store in stores::stores(data)? {
        let report = storage::check(&store.path).await?;
        for space in &report.spaces {
            say(format_args!(
                "{store}: {:?}: {} entries, {} bytes",
                space.space, space.entries, space.bytes
            ))?;
        }
        whole &= print_report(&store.to_string(), &report)?;
    }
    Ok(whole)
}

/// Prints what a check found; whether that was nothing.
pub(super) fn print_report(store: &str, report: &storage::CheckReport) -> Result<bool, CommandError> {
    for problem in &report.problems {
        say(format_args!("{store}: {problem}"))?;
    }
    let mut kinds: Vec<_> = report.problems.iter().map(|problem| problem.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        say(format_args!(
            "{store}: {}: advice: {}",
            kind.code(),
            kind.remedy()
        ))?;
    }
    if report.is_whole() {
        let sequence = report.contents.sequence;
        say(format_args!("{store}: whole, up to change {sequence}"))?;
    } else {
        say(format_args!("{store}: {} problems", report.problem_count))?;
    }
    Ok(report.is_whole())
}

async fn check_backups(folder: &Path) -> Result<bool, CommandError> {
    for place in stores::backups(folder)? {
        let chain = stores::chain(&place.path).await?;
        let verified = restore::verify(&chain).await?;
        let sequence = chain.last().map_or(0, |last| last.manifest.sequence);
        say(format_args!(
            "{place}: {} backups are whole, up to change {sequence}: {} entries, {} bytes",
            chain.len(),
            verified.entries,
            verified.bytes
        ))?;
    }
    Ok(true)
}
