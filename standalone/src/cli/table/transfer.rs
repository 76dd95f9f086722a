//! `souk table import` and `export`.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use http::Uri;
use souk_chassis::client::Client;
use uuid::Uuid;

use super::table;
use crate::cli::stores::{CommandError, say};
use crate::load::checkpoint::LoadCheckpoint;
use crate::load::progress::Progress;
use crate::load::reject::Rejects;
use crate::load::{self, LoadError, LoadOutputs, LoadPlan, STREAMS};
use crate::table::export::{self, ExportPlan};
use crate::table::format::FileFormat;
use crate::table::rows::TableRows;

#[derive(Clone, Debug, Args)]
pub(super) struct ImportArgs {
    /// The table.
    table: String,
    /// The file.
    file: PathBuf,
    /// File format; by default that of the file name extension.
    #[arg(long)]
    format: Option<FileFormat>,
    /// Writes rejected rows to this file, one JSON object each with row, id, code and reason, instead of to standard error.
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Resumes an interrupted import of the same file from its checkpoint.
    #[arg(long)]
    resume: bool,
    /// Folder of the checkpoints of imports.
    #[arg(long, value_name = "FOLDER", default_value = ".souk-load")]
    state: PathBuf,
    /// Batches in flight at a time; with 1, rows are written in the order of the file.
    #[arg(long, value_name = "COUNT", default_value_t = STREAMS as u64, value_parser = clap::value_parser!(u64).range(1..=load::STREAMS_MAX as u64))]
    streams: u64,
    /// Shows progress on standard error even if that isn't a terminal.
    #[arg(long)]
    progress: bool,
}

impl ImportArgs {
    /// The name of the import, and its checkpoint. Imports with different names may run at the same time.
    pub(super) fn state(&self, server: &Uri) -> (String, PathBuf) {
        let Self {
            file, table, state, ..
        } = self;
        let import = format!("{} into table {table} of {server}", file.display());
        let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, import.as_bytes());
        (import, state.join(format!("table-{table}-{id}.json")))
    }

    /// Imports; `true` when no row was refused.
    pub(super) async fn run(&self, target: Client, server: &Uri) -> Result<bool, CommandError> {
        let Self { file: path, .. } = self;
        let format = format(self.format, path)?;
        let table = table(target.clone(), &self.table).await?;
        let unread = |error: &dyn std::fmt::Display| format!("{} can't be read: {error}", path.display());
        let file = File::open(path).map_err(|error| unread(&error))?;
        let bytes = file.metadata()?.len();
        let rows = format
            .rows(file, &table)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        std::fs::create_dir_all(&self.state)?;
        let (import, state) = self.state(server);
        // Before anything that another import reads or empties.
        let _lock = LoadCheckpoint::lock(&state)?;
        // With its length: a file that has changed isn't gone on with.
        let name = format!("{import}, {bytes} bytes");
        let mut checkpoint = match self.resume {
            true if !state.try_exists()? => {
                let words =
                    "the import completed, or was started elsewhere; leave out --resume to import all rows";
                return Err(format!(
                    "there is no checkpoint {} to resume from: {words}",
                    state.display()
                )
                .into());
            }
            true => LoadCheckpoint::resume(&state, &name)?,
            false => LoadCheckpoint::start(Some(&state), &name),
        };
        let mut rejects = match &self.rejects {
            Some(path) => Rejects::file(path, self.resume)?,
            None => Rejects::StandardError,
        };
        // Before the first row is sent: those that resume it have the same request ids, and no other import has. One of the same file
        // writes its rows again.
        checkpoint.save()?;
        let plan = LoadPlan {
            streams: self.streams as usize,
            ..LoadPlan::new(format!("{name}, {}", checkpoint.run()))
        };
        let progress = progress(&self.table, checkpoint.rows(), self.progress);
        let outputs = LoadOutputs {
            checkpoint: &mut checkpoint,
            rejects: &mut rejects,
            progress: &progress,
        };
        let report = load::run::<TableRows>(target, &plan, rows, outputs).await;
        progress.finish();
        let report = match report {
            Err(gone @ LoadError::TableGone { .. }) => {
                // A table that is created by that name has none of the rows.
                checkpoint.remove()?;
                return Err(gone.into());
            }
            report => report?,
        };
        let taken = checkpoint.rows() - report.rejected;
        say(format_args!(
            "{}: {taken} rows imported, {} rejected",
            self.table, report.rejected
        ))?;
        // Last: an import that is killed before goes on, and tells the same.
        checkpoint.remove()?;
        Ok(report.rejected == 0)
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct ExportArgs {
    /// The table.
    table: String,
    /// The file; standard output by default.
    file: Option<PathBuf>,
    /// File format; by default that of the file name extension.
    #[arg(long)]
    format: Option<FileFormat>,
    /// Additional columns of CSV and Parquet, as name:type, after the key columns and the declared ones.
    #[arg(long, value_name = "NAME:TYPE", value_delimiter = ',')]
    columns: Vec<String>,
    /// Resumes an interrupted export to the same file, after the last key in it.
    #[arg(long, requires = "file")]
    resume: bool,
    /// Shows progress on standard error even if that isn't a terminal.
    #[arg(long)]
    progress: bool,
}

impl ExportArgs {
    /// Exports.
    pub(super) async fn run(&self, target: Client, server: &Uri) -> Result<(), CommandError> {
        let plan = ExportPlan {
            server: server.to_string(),
            format: format(self.format, self.file.as_deref().unwrap_or(Path::new("")))?,
            table: table(target.clone(), &self.table).await?,
            columns: self.columns.clone(),
            path: self.file.clone(),
            resume: self.resume,
        };
        let progress = progress(&self.table, 0, self.progress);
        let report = export::run(target, plan, &progress).await;
        progress.finish();
        let report = report?;
        let of = match report.sequence {
            0 => "the last of them as of now, since the snapshot had expired".to_owned(),
            sequence => format!("all as of sequence {sequence}"),
        };
        // Standard output may have the rows.
        writeln!(io::stderr(), "{}: {} rows, {of}", self.table, report.rows)?;
        Ok(())
    }
}

fn format(given: Option<FileFormat>, path: &Path) -> Result<FileFormat, CommandError> {
    let format = given.or_else(|| FileFormat::of_name(path));
    Ok(format.ok_or("unknown file name extension; pass --format ndjson, csv or parquet")?)
}

/// Shown on a terminal, and where it is asked for.
fn progress(name: &str, done: u64, is_asked: bool) -> Progress {
    match is_asked || io::stderr().is_terminal() {
        true => Progress::new(name, done, None),
        false => Progress::quiet(),
    }
}
