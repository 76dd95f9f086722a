//! Loads rows through the services' batch calls: several batches at a time, with retries and checkpoints, and with every
//! refused row reported.
//!
//! A batch carries a request id that depends on its rows alone. So when it is sent again, after a lost response or by a resumed
//! load, the service replays the response and doesn't write it twice.

pub mod checkpoint;
pub mod kind;
pub mod ndjson;
pub(crate) mod patience;
pub mod progress;
pub mod reject;
mod send;
pub mod source;

use std::io;
use std::time::{Duration, Instant};

use souk_chassis::client::Client;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use checkpoint::{CheckpointError, LoadCheckpoint};
use kind::Kind;
use progress::Progress;
use reject::Rejects;
use send::{BatchOutcome, Sender};
use source::{Batch, Item, batches};

/// Default of [`LoadPlan::patience`].
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Default of [`LoadPlan::streams`].
pub const STREAMS: usize = 4;
/// Highest [`LoadPlan::streams`].
pub const STREAMS_MAX: usize = 64;
/// How often the checkpoint is saved.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// How rows are loaded.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Name of the data set, with its parameters: request ids and checkpoints belong to it.
    pub dataset: String,
    /// Batches in flight at a time, 1 to [`STREAMS_MAX`].
    pub streams: usize,
    /// Whether a row that exists already is counted, as an interrupted load leaves some, and not refused.
    pub skip_existing: bool,
    /// How long a batch is retried before the load fails.
    pub patience: Duration,
}

impl LoadPlan {
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

/// The counts of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Rows that were written, by this run or, where the response was replayed, by an earlier one.
    pub created: u64,
    /// Rows that existed already.
    pub existed: u64,
    /// Rows that were refused, by this run and those that it resumes.
    pub rejected: u64,
}

impl std::ops::AddAssign for LoadReport {
    fn add_assign(&mut self, other: Self) {
        self.created += other.created;
        self.existed += other.existed;
        self.rejected += other.rejected;
    }
}

/// Why a load failed. The checkpoint says how far it got.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The service refuses everything, or couldn't be reached for too long.
    #[error("batch {batch} failed ({code:?}: {message}); continue later with --resume")]
    Service {
        /// Number of the batch, from 0.
        batch: u64,
        /// The status of its last attempt.
        code: tonic::Code,
        /// The message of that.
        message: String,
    },
    /// The table was dropped, or can't be opened. What was written of the load is there no more, so it can't go on.
    #[error("{message}; then start over without --resume")]
    TableGone {
        /// The words of the service.
        message: String,
    },
    /// The checkpoint can't be saved.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Refused rows can't be written to their file.
    #[error("rejected rows can't be written to their file")]
    Rejects(#[source] io::Error),
    /// The source can't be read.
    #[error("the rows can't be read")]
    Source(#[source] io::Error),
    /// A task of the load panicked, or was aborted.
    #[error("a task of the load ended early")]
    Task(#[from] tokio::task::JoinError),
}

/// What a load writes besides the rows.
pub struct LoadOutputs<'a> {
    /// How far the load is; it resumes from there.
    pub checkpoint: &'a mut LoadCheckpoint,
    /// The rows that were refused.
    pub rejects: &'a mut Rejects,
    /// The progress bar.
    pub progress: &'a Progress,
}

/// Loads the rows of `source`, which starts at the first row of the data set. Batches that the checkpoint has are skipped.
///
/// # Errors
/// [`LoadError`]. Refused rows are no error; they are counted.
pub async fn run<K: Kind>(
    target: Client,
    plan: &LoadPlan,
    source: impl Iterator<Item = Item<K::Row>> + Send + 'static,
    outputs: LoadOutputs<'_>,
) -> Result<LoadReport, LoadError> {
    let streams = plan.streams.clamp(1, STREAMS_MAX);
    let (mut batches, mut source) = produce::<K>(source, outputs.checkpoint.batches(), streams);
    let sender = Sender::<K>::new(target, plan);
    let mut in_flight: JoinSet<Result<BatchOutcome, LoadError>> = JoinSet::new();
    let mut report = LoadReport::default();
    let mut saved = Instant::now();
    let mut more = true;
    let ended = loop {
        tokio::select! {
            batch = batches.recv(), if more && in_flight.len() < streams => match batch {
                None => {
                    more = false;
                    // A source that panicked isn't at its end.
                    if let Err(error) = (&mut source).await {
                        break Err(LoadError::Task(error));
                    }
                }
                Some(Err(error)) => break Err(LoadError::Source(error)),
                Some(Ok(batch)) => {
                    let sender = sender.clone();
                    in_flight.spawn(async move { sender.send(batch).await });
                }
            },
            Some(done) = in_flight.join_next() => match done.map_err(LoadError::from).and_then(|done| done) {
                Ok(outcome) => {
                    let rows = outcome.created + outcome.existed + outcome.rejects.len() as u64;
                    for reject in &outcome.rejects {
                        outputs.rejects.write(reject).map_err(LoadError::Rejects)?;
                    }
                    report.created += outcome.created;
                    report.existed += outcome.existed;
                    outputs.checkpoint.finish(outcome.batch, rows, outcome.rejects.len() as u64);
                    outputs.progress.add(rows);
                    if saved.elapsed() >= CHECKPOINT_INTERVAL {
                        saved = Instant::now();
                        // First: a load that is killed and goes on doesn't see these rows again.
                        outputs.rejects.flush().map_err(LoadError::Rejects)?;
                        outputs.checkpoint.save()?;
                    }
                }
                Err(error) => break Err(error),
            },
            else => break Ok(()),
        }
    };
    outputs.rejects.flush().map_err(LoadError::Rejects)?;
    outputs.checkpoint.save()?;
    ended?;
    report.rejected = outputs.checkpoint.rejected();
    Ok(report)
}

/// Batches as they come, or why there are no more.
type Batches<R> = mpsc::Receiver<io::Result<Batch<R>>>;

/// Divides the rows into batches on a blocking thread, up to `ahead` batches in advance, without the first `skip`.
fn produce<K: Kind>(
    source: impl Iterator<Item = Item<K::Row>> + Send + 'static,
    skip: u64,
    ahead: usize,
) -> (Batches<K::Row>, JoinHandle<()>) {
    let (sender, receiver) = mpsc::channel(ahead);
    let source = tokio::task::spawn_blocking(move || {
        let is_done = |batch: &io::Result<Batch<K::Row>>| matches!(batch, Ok(batch) if batch.number < skip);
        for batch in batches::<K>(source).filter(|batch| !is_done(batch)) {
            // Nobody receives any more when the load was given up.
            if sender.blocking_send(batch).is_err() {
                return;
            }
        }
    });
    (receiver, source)
}

#[cfg(test)]
mod tests;
