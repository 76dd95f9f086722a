//! Writes the rows of a table to a file, from one snapshot, and goes on with a file that was cut short.
//!
//! A snapshot is kept for minutes. An export that goes on later has the rows behind its last key as they are then.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parquet::errors::ParquetError;
use souk_chassis::client::Client;
use souk_chassis::status;
use souk_proto::table::v1::table_service_client::TableServiceClient;
use souk_proto::table::v1::{
    ExportRowsRequest, ExportRowsResponse, Key, KeyRange, Row, StreamRowsRequest, StreamRowsResponse, Table,
    key_range,
};
use tonic::{Code, Status, Streaming};

use super::columns::{ColumnsError, FileColumns};
use super::csv::Records;
use super::export_checkpoint::{ExportCheckpoint, ExportCheckpointError};
use super::format::FileFormat;
use super::ndjson::Lines;
use super::parquet::Pieces;
use crate::contract::{ContractError, MessageJson};
use crate::load::PATIENCE;
use crate::load::checkpoint::sync_folder;
use crate::load::patience::Patience;
use crate::load::progress::Progress;

/// Most bytes of an answer: the largest row with its names comes alone, and has 16 MiB.
pub const ANSWER_BYTES_MAX: usize = 20 << 20;
/// How often the checkpoint of an export is saved.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
/// What a key is kept as in a checkpoint.
const KEY: &str = "souk.table.v1.Key";

/// What is exported, and to where.
#[derive(Clone, Debug)]
pub struct ExportPlan {
    /// The server, by which an export that is resumed is known.
    pub server: String,
    /// The table.
    pub table: Table,
    /// The format of the file.
    pub format: FileFormat,
    /// Columns that get one of their own in the file, beside those of the key and declared ones.
    pub columns: Vec<String>,
    /// The file; `None` is standard output, which Parquet can't be written to.
    pub path: Option<PathBuf>,
    /// Whether it is gone on with, if it is there, and was cut short.
    pub resume: bool,
}

/// What an export has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// Rows in the file.
    pub rows: u64,
    /// The sequence of the snapshot; 0 when the rows aren't of one.
    pub sequence: i64,
}

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The service.
    #[error("reading the rows failed ({:?}: {}); an export to a file continues with --resume", .0.code(), .0.message())]
    Service(Status),
    /// The columns.
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    /// Its checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] ExportCheckpointError),
    /// The file.
    #[error("the rows can't be written")]
    Io(#[from] io::Error),
    /// The file, of Parquet.
    #[error("the rows can't be written")]
    Parquet(#[from] ParquetError),
    /// A row.
    #[error("a row can't be written: {0}")]
    Row(String),
    /// Parquet isn't written in one go.
    #[error("Parquet can't be written to standard output; name a file")]
    NoFile,
    /// This binary isn't whole.
    #[error(transparent)]
    Contract(#[from] ContractError),
}

/// Exports a table.
///
/// # Errors
/// [`ExportError`]. With a file, `--resume` goes on behind what is in it.
pub async fn run(target: Client, plan: ExportPlan, progress: &Progress) -> Result<ExportReport, ExportError> {
    let columns = FileColumns::of_table(&plan.table, &plan.columns)?;
    let mut checkpoint = ExportCheckpoint {
        server: plan.server.clone(),
        table: plan.table.name.clone(),
        shape: match plan.format {
            FileFormat::Ndjson => "ndjson".to_owned(),
            FileFormat::Csv | FileFormat::Parquet => {
                format!("{:?} of {}", plan.format, columns.header().join(","))
            }
        },
        ..ExportCheckpoint::default()
    };
    let _lock = plan.path.as_deref().map(ExportCheckpoint::lock).transpose()?;
    let kept = plan.path.as_deref().map(ExportCheckpoint::path);
    if let Some(kept) = kept.as_deref().filter(|_| plan.resume) {
        checkpoint = ExportCheckpoint::read(kept, checkpoint)?;
    }
    progress.add(checkpoint.rows);
    let keys = MessageJson::of(KEY)?;
    let mut pages = Pages::open(target, &plan.table.name, &checkpoint, &keys)?;
    // Before the file is opened, which empties it: an older one stays when the service has no rows for us.
    let mut next = pages.next().await?;
    if let Some(kept) = kept.as_deref().filter(|_| !plan.resume) {
        ExportCheckpoint::remove(kept)?;
    }
    let mut sink = Sink::open(&plan, columns, checkpoint.mark)?;
    let (mut saved, mut report) = (Instant::now(), ExportReport::default());
    while let Some(page) = next {
        if let Some(last) = page.rows.last() {
            let values = last.key.clone();
            checkpoint.key = keys.write(&Key { values }).map_err(ExportError::Row)?;
        }
        (checkpoint.token, report.sequence) = (page.token, page.sequence);
        let rows = page.rows.len() as u64;
        for row in page.rows {
            sink.write(row)?;
        }
        checkpoint.rows += rows;
        progress.add(rows);
        if let Some(kept) = &kept
            && let Some(mark) = sink.settle(saved.elapsed() >= CHECKPOINT_INTERVAL)?
        {
            saved = Instant::now();
            checkpoint.mark = mark;
            checkpoint.save(kept)?;
        }
        next = pages.next().await?;
    }
    sink.finish(kept.as_deref())?;
    report.rows = checkpoint.rows;
    Ok(report)
}

/// Rows that came together.
struct Page {
    rows: Vec<Row>,
    /// Goes on behind them in the snapshot; empty when they aren't of one.
    token: String,
    /// The last write that the snapshot sees; 0 without one.
    sequence: i64,
}

/// The rows of a table, behind those that a file has.
struct Pages {
    service: TableServiceClient<Client>,
    table: String,
    /// The last key so far.
    key: Option<Key>,
    source: Source,
}

/// Where they come from.
enum Source {
    /// A snapshot, behind this token.
    Snapshot(String),
    /// It, as it comes.
    Exported(String, Streaming<ExportRowsResponse>),
    /// The table, as it is when the rows are read.
    Table,
    /// It, as it comes.
    Streamed(Streaming<StreamRowsResponse>),
}

impl Pages {
    fn open(
        target: Client,
        table: &str,
        checkpoint: &ExportCheckpoint,
        keys: &MessageJson,
    ) -> Result<Self, ExportError> {
        let key = match checkpoint.key.as_str() {
            "" => None,
            json => Some(keys.read(json.as_bytes()).map_err(ExportError::Row)?),
        };
        let source = match &key {
            Some(_) if checkpoint.token.is_empty() => Source::Table,
            _ => Source::Snapshot(checkpoint.token.clone()),
        };
        Ok(Self {
            service: TableServiceClient::new(target).max_decoding_message_size(ANSWER_BYTES_MAX),
            table: table.to_owned(),
            key,
            source,
        })
    }

    /// The next rows; `None` at the end. A stream that broke is opened again behind the rows that it gave.
    async fn next(&mut self) -> Result<Option<Page>, ExportError> {
        let mut patience = Patience::new(PATIENCE);
        loop {
            let status = match self.receive().await {
                Ok(page) => {
                    if let Some(last) = page.as_ref().and_then(|page| page.rows.last()) {
                        let values = last.key.clone();
                        self.key = Some(Key { values });
                    }
                    return Ok(page);
                }
                Err(status) => status,
            };
            let is_gone = status.code() == Code::FailedPrecondition
                && status::reason(&status).as_deref() == Some("EXPORT_EXPIRED");
            self.source = match std::mem::replace(&mut self.source, Source::Table) {
                Source::Snapshot(_) | Source::Exported(..) if is_gone && self.key.is_some() => Source::Table,
                Source::Snapshot(_) | Source::Exported(..) if is_gone => Source::Snapshot(String::new()),
                Source::Snapshot(token) | Source::Exported(token, _) => Source::Snapshot(token),
                Source::Table | Source::Streamed(_) => Source::Table,
            };
            if !is_gone && !patience.again(&status).await {
                return Err(ExportError::Service(status));
            }
        }
    }

    async fn receive(&mut self) -> Result<Option<Page>, Status> {
        loop {
            match &mut self.source {
                Source::Snapshot(token) => {
                    let request = ExportRowsRequest {
                        table: self.table.clone(),
                        resume_token: token.clone(),
                        ..ExportRowsRequest::default()
                    };
                    let rows = self.service.export_rows(request).await?.into_inner();
                    self.source = Source::Exported(std::mem::take(token), rows);
                }
                Source::Table => {
                    let behind = self.key.clone().map(|key| KeyRange {
                        low: Some(key_range::Low::Gt(key)),
                        ..KeyRange::default()
                    });
                    let request = StreamRowsRequest {
                        table: self.table.clone(),
                        range: behind,
                        ..StreamRowsRequest::default()
                    };
                    self.source = Source::Streamed(self.service.stream_rows(request).await?.into_inner());
                }
                Source::Exported(token, rows) => {
                    let Some(answer) = rows.message().await? else {
                        return Ok(None);
                    };
                    token.clone_from(&answer.resume_token);
                    return Ok(Some(Page {
                        rows: answer.rows,
                        token: answer.resume_token,
                        sequence: answer.sequence,
                    }));
                }
                Source::Streamed(rows) => {
                    let page = rows.message().await?.map(|answer| Page {
                        rows: answer.rows,
                        token: String::new(),
                        sequence: 0,
                    });
                    return Ok(page);
                }
            }
        }
    }
}

/// What rows are written to.
pub(super) enum Sink {
    Ndjson(Lines, Text),
    Csv(Box<Records>, Text),
    Parquet(Box<Pieces>),
}

impl Sink {
    /// The file of a plan, of which so much is there.
    pub(super) fn open(plan: &ExportPlan, columns: FileColumns, mark: u64) -> Result<Self, ExportError> {
        let path = plan.path.as_deref();
        Ok(match plan.format {
            FileFormat::Ndjson => Self::Ndjson(Lines::new()?, Text::open(path, mark)?),
            FileFormat::Csv => {
                let records = Records::new(columns);
                let mut text = Text::open(path, mark)?;
                if mark == 0 {
                    text.write(&records.header().map_err(ExportError::Row)?)?;
                }
                Self::Csv(Box::new(records), text)
            }
            FileFormat::Parquet => {
                let path = path.ok_or(ExportError::NoFile)?;
                let pieces = Pieces::new(columns, path, mark)?;
                if let Some(path) = pieces.missing() {
                    return Err(ExportCheckpointError::Missing { path }.into());
                }
                Self::Parquet(Box::new(pieces))
            }
        })
    }

    pub(super) fn write(&mut self, row: Row) -> Result<(), ExportError> {
        match self {
            Self::Ndjson(lines, text) => {
                let line = lines.line(row).map_err(ExportError::Row)?;
                Ok(text.write(line.as_bytes())?)
            }
            Self::Csv(records, text) => Ok(text.write(&records.record(row).map_err(ExportError::Row)?)?),
            Self::Parquet(pieces) => pieces.push(row).map_err(ExportError::Row),
        }
    }

    /// Brings to the disk what was written, if that is `due`, or there is enough of it. Tells how much there is if it is all there.
    fn settle(&mut self, is_due: bool) -> Result<Option<u64>, ExportError> {
        Ok(match self {
            Self::Ndjson(_, text) | Self::Csv(_, text) if is_due => Some(text.sync()?),
            Self::Ndjson(..) | Self::Csv(..) => None,
            Self::Parquet(pieces) => pieces.settle()?,
        })
    }

    /// Ends the file, and removes the one that says how far it is.
    pub(super) fn finish(self, kept: Option<&Path>) -> Result<(), ExportError> {
        match self {
            Self::Ndjson(_, mut text) | Self::Csv(_, mut text) => {
                text.sync()?;
                // A file that is new is one when its folder says so.
                kept.map_or(Ok(()), sync_folder)?;
                kept.map_or(Ok(()), ExportCheckpoint::remove)?;
            }
            Self::Parquet(mut pieces) => {
                pieces.put_together()?;
                // Before the pieces: an export that went on would look for them.
                kept.map_or(Ok(()), ExportCheckpoint::remove)?;
                pieces.remove()?;
            }
        }
        Ok(())
    }
}

/// A file of text, or standard output.
pub(super) struct Text {
    to: To,
    bytes: u64,
}

enum To {
    File(BufWriter<File>),
    StandardOutput(BufWriter<io::Stdout>),
}

impl Text {
    /// A file of which so many bytes are kept.
    fn open(path: Option<&Path>, bytes: u64) -> Result<Self, ExportError> {
        let Some(path) = path else {
            let to = To::StandardOutput(BufWriter::new(io::stdout()));
            return Ok(Self { to, bytes });
        };
        let mut file = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)?;
        if file.metadata()?.len() < bytes {
            let path = path.to_owned();
            return Err(ExportCheckpointError::Shorter { path }.into());
        }
        file.set_len(bytes)?;
        file.seek(SeekFrom::Start(bytes))?;
        let to = To::File(BufWriter::new(file));
        Ok(Self { to, bytes })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        match &mut self.to {
            To::File(to) => to.write_all(bytes),
            To::StandardOutput(to) => to.write_all(bytes),
        }
    }

    /// Brings all to the disk, and tells how many bytes there are.
    fn sync(&mut self) -> io::Result<u64> {
        match &mut self.to {
            To::File(to) => {
                to.flush()?;
                to.get_ref().sync_data()?;
            }
            To::StandardOutput(to) => to.flush()?,
        }
        Ok(self.bytes)
    }
}
