//! Loading rows through the services' batch calls: several at a time, retried, resumable, and each refused row named.
//!
//! A batch carries a request id that depends on its rows alone, so a batch that is sent again (after a lost answer, or by
//! a resumed load) is replayed by the service and not written twice.

pub mod checkpoint;
pub mod kind;
pub mod ndjson;
pub mod progress;
pub mod reject;
mod send;
pub mod source;

use std::io;
use std::time::{Duration, Instant};

use souk_chassis::client::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use checkpoint::{Checkpoint, CheckpointError};
use kind::Kind;
use progress::Progress;
use reject::Rejects;
use send::{Outcome, Sender};
use source::{Batch, Item, batches};

/// How long a batch is tried again before the load gives up.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Batches under way at a time when nothing else is asked for.
pub const STREAMS: usize = 4;
/// Most batches under way at a time.
pub const STREAMS_MAX: usize = 64;
/// How often the place is written down.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// How rows are loaded.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is loaded and from which parameters: the name of request ids and checkpoints.
    pub dataset: String,
    /// Batches under way at a time, 1 to [`STREAMS_MAX`].
    pub streams: usize,
    /// Whether a row that exists already is fine: a load that goes on after an interruption.
    pub skip_existing: bool,
    /// How long one batch is tried again.
    pub patience: Duration,
}

impl Plan {
    /// A plan with the defaults.
    pub fn new(dataset: impl Into<String>) -> Self {
        Self {
            dataset: dataset.into(),
            streams: STREAMS,
            skip_existing: false,
            patience: PATIENCE,
        }
    }
}

/// What a load did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows that were written, by this run or, replayed, an earlier one.
    pub created: u64,
    /// Rows that existed already.
    pub existed: u64,
    /// Rows that were refused, by this run and those that it goes on from.
    pub rejected: u64,
}

/// Why a load ended before its last row. What it did is in the checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The service refuses everything, or couldn't be reached for too long.
    #[error("the service doesn't take batch {batch} ({code:?}: {message}); go on later with --resume")]
    Service {
        /// Which batch.
        batch: u64,
        /// The status.
        code: tonic::Code,
        /// Its message.
        message: String,
    },
    /// The checkpoint can't be kept.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Refused rows can't be written down.
    #[error("refused rows can't be written to their file")]
    Rejects(#[source] io::Error),
    /// The source can't be read on.
    #[error("the rows can't be read")]
    Source(#[source] io::Error),
    /// A task of the load died.
    #[error("a task of the load ended early")]
    Task(#[from] tokio::task::JoinError),
}

/// Where a load writes what happens.
pub struct Record<'a> {
    /// The place to go on from.
    pub checkpoint: &'a mut Checkpoint,
    /// Rows that were refused.
    pub rejects: &'a mut Rejects,
    /// The bar.
    pub progress: &'a Progress,
}

/// Loads the rows of `source`, which starts at the first row of the data set. Batches that the checkpoint has are skipped.
///
/// # Errors
/// When the service or the source fails; refused rows are no error but counted.
pub async fn run<K: Kind>(
    target: Client,
    plan: &Plan,
    source: impl Iterator<Item = Item<K::Row>> + Send + 'static,
    record: Record<'_>,
) -> Result<Report, LoadError> {
    let streams = plan.streams.clamp(1, STREAMS_MAX);
    let mut batches = produce::<K>(source, record.checkpoint.batches(), streams);
    let sender = Sender::<K>::new(target, plan);
    let mut under_way: JoinSet<Result<Outcome, LoadError>> = JoinSet::new();
    let mut report = Report::default();
    let mut saved = Instant::now();
    let mut more = true;
    let ended = loop {
        tokio::select! {
            batch = batches.recv(), if more && under_way.len() < streams => match batch {
                None => more = false,
                Some(Err(error)) => break Err(LoadError::Source(error)),
                Some(Ok(batch)) => {
                    let sender = sender.clone();
                    under_way.spawn(async move { sender.send(batch).await });
                }
            },
            Some(done) = under_way.join_next() => match done.map_err(LoadError::from).and_then(|done| done) {
                Ok(outcome) => {
                    let rows = outcome.created + outcome.existed + outcome.rejects.len() as u64;
                    for reject in &outcome.rejects {
                        record.rejects.write(reject).map_err(LoadError::Rejects)?;
                    }
                    report.created += outcome.created;
                    report.existed += outcome.existed;
                    record.checkpoint.finish(outcome.batch, rows, outcome.rejects.len() as u64);
                    record.progress.add(rows);
                    if saved.elapsed() >= CHECKPOINT_EVERY {
                        saved = Instant::now();
                        record.checkpoint.save()?;
                    }
                }
                Err(error) => break Err(error),
            },
            else => break Ok(()),
        }
    };
    record.rejects.flush().map_err(LoadError::Rejects)?;
    record.checkpoint.save()?;
    ended?;
    report.rejected = record.checkpoint.rejected();
    Ok(report)
}

/// Cuts the source into batches on a thread of its own, at most `ahead` of them at a time.
fn produce<K: Kind>(
    source: impl Iterator<Item = Item<K::Row>> + Send + 'static,
    skip: u64,
    ahead: usize,
) -> mpsc::Receiver<io::Result<Batch<K::Row>>> {
    let (sender, receiver) = mpsc::channel(ahead);
    tokio::task::spawn_blocking(move || {
        for batch in batches::<K>(source).skip(skip as usize) {
            // Nobody receives any more when the load was given up.
            if sender.blocking_send(batch).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests;
