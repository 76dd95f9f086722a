//! Builds a new index from its table (a reindex), while another may serve.
//!
//! A feed of the store delivers the rows, and the changes of those that it has delivered. The index commits its position
//! in the feed together with the documents from there. So a build that was interrupted resumes at its last checkpoint,
//! without a row too many or too few, and the log is kept for it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use souk_index::{Completeness, Error as IndexError, Index, IndexWriter, Operation};
use souk_storage::{
    Direction, Error as StorageError, Feed, FeedBatch, FeedOptions, FeedPhase, FeedRecord, FeedSource,
    FeedToken, RangeRequest, RecordKind,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Keeping, folder, verify};
use crate::design::Design;
use crate::error::Result;
use crate::index_state::Step;

/// Rows and changes of one read of the feed.
const RECORDS_PER_READ: usize = 2_000;
/// How often an unfinished index is made durable: the work that a crash loses at most.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);
/// Changes behind the end of the log at which the build ends, and the index follows the log like any other.
const NEARLY_CAUGHT_UP: u64 = 10_000;

/// The payload of an unfinished index's commits, by which the build resumes.
#[derive(Serialize, Deserialize)]
struct Resume {
    /// The position in the feed, in base64.
    token: String,
    /// Rows that are in the index.
    rows: u64,
}

/// A build under way.
struct Draft<'a> {
    keeping: &'a Keeping,
    design: &'a Design,
    feed: Feed,
    index: Index,
    writer: IndexWriter,
    /// The position behind what is in the index; `None` at the beginning.
    token: Option<FeedToken>,
    /// Rows that are in the index.
    rows: u64,
    /// Estimate of the table's rows.
    about: u64,
}

/// Builds the index of a design, up to a sequence from which it can follow the log. `None` when it was asked to stop.
///
/// # Errors
/// What disk, store and index refuse. The build resumes when it is called again.
pub(super) fn fill(
    keeping: &Keeping,
    design: &Design,
    stop: &CancellationToken,
) -> Result<Option<(Index, IndexWriter)>> {
    match build_of_empty_table(keeping, design, stop)? {
        Some(filled) => Ok(Some(filled)),
        None => fill_from_feed(keeping, design, stop),
    }
}

fn fill_from_feed(
    keeping: &Keeping,
    design: &Design,
    stop: &CancellationToken,
) -> Result<Option<(Index, IndexWriter)>> {
    let path = folder::of(&keeping.folder, design.fingerprint());
    let feed = folder::feed_name(keeping.name(), design.fingerprint());
    fs::create_dir_all(&keeping.folder).map_err(folder::refused("creating the folder of indexes"))?;
    if let Some(draft) = resume(keeping, design, &path, &feed, stop)? {
        match draft.run(stop) {
            Err(error) if is_lost(&error) => {
                warn!(index = keeping.name(), %error, "the build begins anew");
            }
            filled => return filled,
        }
    }
    begin(keeping, design, &path, &feed, stop)?.run(stop)
}

/// Whether an error means that the feed is lost to an interrupted build, which has to begin anew.
fn is_lost(error: &crate::error::EngineError) -> bool {
    matches!(
        error,
        crate::error::EngineError::Storage(
            StorageError::ChangesTrimmed { .. }
                | StorageError::FeedAheadOfLog { .. }
                | StorageError::FeedNotFound { .. }
                | StorageError::FeedTokenInvalid { .. }
        )
    )
}

/// Opens a build that a stop or a crash interrupted; `None` when there is none that can be resumed.
fn resume<'a>(
    keeping: &'a Keeping,
    design: &'a Design,
    path: &Path,
    feed: &str,
    stop: &CancellationToken,
) -> Result<Option<Draft<'a>>> {
    let (true, Some(feed)) = (path.is_dir(), keeping.database.feed(feed)) else {
        return Ok(None);
    };
    let options = keeping.index_options(design, stop);
    let index = match Index::open(path, design.schema.clone(), options) {
        Ok(index) => index,
        Err(error @ IndexError::Corrupt { .. }) => {
            verify::found(keeping, &error);
            return Ok(None);
        }
        Err(error @ IndexError::SchemaMismatch { .. }) => {
            warn!(index = keeping.name(), %error, "the build begins anew");
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let Completeness::Partial { resume } = index.completeness() else {
        return Ok(None);
    };
    if !folder::is_of_this_history(keeping, path)? {
        return Ok(None);
    }
    let Ok(resume) = serde_json::from_str::<Resume>(&resume) else {
        return Ok(None);
    };
    let Ok(token) = BASE64.decode(&resume.token) else {
        return Ok(None);
    };
    info!(index = keeping.name(), rows = resume.rows, "the build goes on");
    Ok(Some(Draft {
        keeping,
        design,
        feed,
        writer: index.writer()?,
        index,
        token: Some(FeedToken::from_bytes(token)),
        rows: resume.rows,
        about: about(keeping)?,
    }))
}

/// Begins a build anew: removes the folder and the feed that an earlier one left.
fn begin<'a>(
    keeping: &'a Keeping,
    design: &'a Design,
    path: &Path,
    feed: &str,
    stop: &CancellationToken,
) -> Result<Draft<'a>> {
    folder::remove(path)?;
    let database = &keeping.database;
    let feed = keeping.runtime.block_on(async {
        if let Some(old) = database.feed(feed) {
            old.remove().await?;
        }
        let options = FeedOptions::new(FeedSource::BaseAndChanges).table(&keeping.table.table);
        database.create_feed(feed, options).await
    })?;
    let index = Index::open(path, design.schema.clone(), keeping.index_options(design, stop))?;
    folder::sync(&keeping.folder)?;
    Ok(Draft {
        keeping,
        design,
        feed,
        writer: index.writer()?,
        index,
        token: None,
        rows: 0,
        about: about(keeping)?,
    })
}

/// How many rows the table has, about: as many as an index of it that answers has documents, else at most as many as the
/// store has rows.
fn about(keeping: &Keeping) -> Result<u64> {
    if let Some(size) = keeping.table.measured() {
        return Ok(size.documents);
    }
    let statistics = keeping.runtime.block_on(keeping.database.statistics())?;
    let rows = statistics.spaces.iter();
    let rows = rows.filter(|space| space.space == souk_storage::Space::Rows);
    Ok(rows.map(|space| space.entries).sum())
}

/// Builds the index of a table without rows, which takes no feed. `None` when the table has rows.
fn build_of_empty_table(
    keeping: &Keeping,
    design: &Design,
    stop: &CancellationToken,
) -> Result<Option<(Index, IndexWriter)>> {
    let (is_empty, sequence) = keeping.runtime.block_on(async {
        let snapshot = keeping.database.snapshot().await?;
        let first = RangeRequest::all(Direction::Forward).limit(1);
        let page = snapshot.range(&keeping.table.table, &first).await?;
        Ok::<_, StorageError>((page.rows.is_empty() && page.next.is_none(), snapshot.sequence()))
    })?;
    if !is_empty {
        return Ok(None);
    }
    let path = folder::of(&keeping.folder, design.fingerprint());
    fs::create_dir_all(&keeping.folder).map_err(folder::refused("creating the folder of indexes"))?;
    folder::remove(&path)?;
    let index = Index::open(&path, design.schema.clone(), keeping.index_options(design, stop))?;
    let mut writer = index.writer()?;
    writer.commit(sequence)?;
    writer.checkpoint()?;
    folder::sync(&keeping.folder)?;
    Ok(Some((index, writer)))
}

impl Draft<'_> {
    fn run(mut self, stop: &CancellationToken) -> Result<Option<(Index, IndexWriter)>> {
        self.keeping.report_if_large(self.about);
        let mut next_checkpoint = Instant::now() + CHECKPOINT_INTERVAL;
        loop {
            if !self.keeping.wait_for_room(self.design, stop) {
                return Ok(None);
            }
            // It isn't searched yet, so its changes aren't awaited.
            self.keeping.wait_for_merges(&self.writer, stop, || false);
            let batch = self.keeping.runtime.block_on(async {
                match &self.token {
                    Some(token) => self.feed.read_after(token, RECORDS_PER_READ).await,
                    None => self.feed.read(RECORDS_PER_READ).await,
                }
            })?;
            self.take(&batch)?;
            self.tell(&batch);
            if batch.phase == FeedPhase::Changes && self.is_nearly_caught_up(&batch) {
                self.finish(batch.sequence)?;
                return Ok(Some((self.index, self.writer)));
            }
            let stopped = stop.is_cancelled();
            if stopped || next_checkpoint <= Instant::now() || self.writer.wants_commit() {
                self.checkpoint(&batch)?;
                next_checkpoint = Instant::now() + CHECKPOINT_INTERVAL;
            }
            if stopped {
                return Ok(None);
            }
            self.token = Some(batch.token);
        }
    }

    fn is_nearly_caught_up(&self, batch: &FeedBatch) -> bool {
        let behind = self
            .keeping
            .database
            .last_sequence()
            .saturating_sub(batch.sequence);
        batch.caught_up || behind <= NEARLY_CAUGHT_UP
    }

    /// Applies the records to the index.
    fn take(&mut self, batch: &FeedBatch) -> Result<()> {
        let records = batch.records.iter();
        let operations: Vec<_> = records.map(|record| self.operation(record)).collect();
        let rows = batch
            .records
            .iter()
            .filter(|record| record.kind == RecordKind::Base);
        self.rows += u64::try_from(rows.count()).unwrap_or_default();
        super::apply_in_batches(&mut self.writer, operations)
    }

    fn operation(&self, record: &FeedRecord) -> Operation {
        match (&record.row, record.kind) {
            (Some(row), RecordKind::Base) => self.design.insert(row),
            (Some(row), RecordKind::Change(_)) => self.design.upsert(row),
            (None, _) => self.design.delete(&record.key),
        }
    }

    /// Reports the progress of the build.
    fn tell(&self, batch: &FeedBatch) {
        let step = if batch.phase == FeedPhase::Changes {
            Step::CatchingUp
        } else {
            Step::Reading
        };
        let (rows, about) = (self.rows, self.about.max(self.rows));
        if self.keeping.builds(self.design) {
            self.keeping.show_build(step, rows, about, batch.sequence);
        }
    }

    /// Makes the index durable up to the end of a batch, and lets the log be trimmed up to there.
    fn checkpoint(&mut self, batch: &FeedBatch) -> Result<()> {
        let resume = Resume {
            token: BASE64.encode(batch.token.as_bytes()),
            rows: self.rows,
        };
        let resume = serde_json::to_string(&resume).unwrap_or_default();
        self.writer.commit_partial(batch.sequence, resume)?;
        self.writer.checkpoint()?;
        self.keeping
            .runtime
            .block_on(self.feed.acknowledge(&batch.token))?;
        Ok(())
    }

    /// Marks the index complete up to a sequence, durably. The feed still holds the log back until the index serves.
    fn finish(&mut self, sequence: u64) -> Result<()> {
        self.writer.commit(sequence)?;
        self.writer.checkpoint()?;
        let name = self.keeping.name();
        info!(index = name, rows = self.rows, sequence, "the index is built");
        Ok(())
    }
}
