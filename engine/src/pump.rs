//! The pump of one index: takes changes from the log, applies them, lets searches see them, and makes them durable.
//!
//! It runs on a thread of its own, for the writer blocks. Three clocks: changes are taken as soon as they are durable
//! in the store; searches see them after [`PumpOptions::commit_interval`], or at once when somebody waits; a checkpoint
//! each [`CHECKPOINT_INTERVAL`] makes the index durable, after which the store may trim the log up to there. After a
//! crash the index resumes from its last checkpoint; applying a change twice changes nothing.

mod batch;

use std::sync::Arc;
use std::time::Duration;

use souk_chassis::telemetry::Role;
use souk_index::{Index, IndexWriter};
use souk_storage::{Change, Consumer, Database};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, info_span};

use self::batch::Pending;
use crate::build;
use crate::error::Result;
use crate::index_state::{IndexState, Phase};
use crate::table::OpenTable;

/// How often an index with changes is made durable.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);
/// Changes that are taken from the log at a time.
const CHANGES_PER_READ: usize = 1_000;
/// Operations after which searches are let see them, whatever the interval: what waits is bounded.
const OPERATIONS_PER_COMMIT: usize = 20_000;

/// How a pump works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PumpOptions {
    /// How long changes may stay unseen while nobody waits for them.
    pub(crate) commit_interval: Duration,
    /// Memory of the writer, bytes.
    pub(crate) writer_memory: usize,
}

/// A running pump.
#[derive(Debug)]
pub(crate) struct Pump {
    thread: std::thread::JoinHandle<()>,
}

impl Pump {
    /// Starts the pump of a table, which first opens its index or builds it.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(
        table: Arc<OpenTable>,
        database: Database,
        folder: build::Folder,
        options: PumpOptions,
        stop: CancellationToken,
    ) -> Result<Self, std::io::Error> {
        let runtime = Handle::current();
        let role = Role::current();
        let thread = std::thread::Builder::new()
            .name(format!("pump-{}", table.declaration.name))
            .spawn(move || {
                let _entered = role.map(Role::enter);
                let state = Arc::clone(&table.index);
                let name = table.declaration.name;
                if let Err(failure) = run(&runtime, table, &database, folder, options, &stop) {
                    error!(table = name, error = %failure, "the index has failed");
                    state.set_phase(Phase::Failed(failure.to_string()));
                }
            })?;
        Ok(Self { thread })
    }

    /// Waits for the thread, which ends after its stop was asked for.
    pub(crate) fn join(self) {
        if self.thread.join().is_err() {
            error!("a pump panicked");
        }
    }
}

fn run(
    runtime: &Handle,
    table: Arc<OpenTable>,
    database: &Database,
    folder: build::Folder,
    options: PumpOptions,
    stop: &CancellationToken,
) -> Result<()> {
    let consumer = runtime.block_on(database.consumer(&format!("index_{}", table.declaration.name)))?;
    let Some(index) = build::open_or_build(runtime, &table, database, &folder, options.writer_memory, stop)?
    else {
        return Ok(());
    };
    let mut follower = Follower::new(table, database.clone(), index, consumer, options)?;
    runtime.block_on(follower.advance_consumer())?;
    info!(
        table = follower.table.declaration.name,
        sequence = follower.taken,
        "index is open"
    );
    while !stop.is_cancelled() {
        let caught_up = follower.take_changes(runtime)?;
        if follower.must_commit(caught_up) {
            follower.commit()?;
        }
        if follower.next_checkpoint.is_some_and(|at| at <= Instant::now()) {
            follower.checkpoint(runtime)?;
        }
        if caught_up {
            runtime.block_on(follower.rest(stop));
        }
    }
    follower.close(runtime)
}

/// One index, following the log.
struct Follower {
    table: Arc<OpenTable>,
    state: Arc<IndexState>,
    database: Database,
    sequences: watch::Receiver<u64>,
    consumer: Consumer,
    options: PumpOptions,
    index: Index,
    writer: IndexWriter,
    /// Applied, but not seen by searches.
    pending: Pending,
    /// The last change that was taken from the log.
    taken: u64,
    /// When something that isn't durable has to become so.
    next_checkpoint: Option<Instant>,
}

impl Follower {
    fn new(
        table: Arc<OpenTable>,
        database: Database,
        index: Index,
        consumer: Consumer,
        options: PumpOptions,
    ) -> Result<Self> {
        let writer = index.writer()?;
        let state = Arc::clone(&table.index);
        let taken = index.applied_sequence();
        state.set_applied(taken);
        let mut sequences = database.subscribe();
        sequences.mark_changed();
        let mut follower = Self {
            table,
            state,
            sequences,
            database,
            consumer,
            options,
            index,
            writer,
            pending: Pending::default(),
            taken,
            next_checkpoint: None,
        };
        follower.publish_when_caught_up();
        Ok(follower)
    }

    /// Searches are answered once the index has caught up with what was in the log when it was opened: an index never
    /// answers from a state that is older than the process.
    fn publish_when_caught_up(&mut self) {
        if !matches!(self.state.phase(), Phase::Serving(_)) && self.taken >= self.database.last_sequence() {
            self.state.set_phase(Phase::Serving(self.index.clone()));
        }
    }

    /// Takes the next changes from the log; `true` when there are no more.
    fn take_changes(&mut self, runtime: &Handle) -> Result<bool> {
        self.sequences.borrow_and_update();
        let changes = runtime.block_on(self.database.changes(self.taken, CHANGES_PER_READ))?;
        let Some(last) = changes.last().map(|change| change.sequence) else {
            return Ok(true);
        };
        self.apply(&changes)?;
        self.taken = last;
        if self.pending.is_empty() {
            // None of the changes concerns this table: what searches see includes them already.
            self.state.set_applied(last);
            self.publish_when_caught_up();
        }
        if self.next_checkpoint.is_none() {
            self.next_checkpoint = Some(Instant::now() + CHECKPOINT_INTERVAL);
        }
        Ok(last >= self.database.last_sequence())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<()> {
        let operations = self.pending.take_in(&self.table, changes);
        if !operations.is_empty() {
            self.writer.apply(operations)?;
        }
        Ok(())
    }

    fn must_commit(&self, caught_up: bool) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let opening = !matches!(self.state.phase(), Phase::Serving(_));
        self.pending.operations() >= OPERATIONS_PER_COMMIT
            || self.pending.age() >= self.options.commit_interval
            || (caught_up && opening)
            || self
                .state
                .awaited()
                .is_some_and(|wanted| caught_up || wanted <= self.taken)
    }

    /// Lets searches see what is applied.
    fn commit(&mut self) -> Result<()> {
        let span = info_span!(
            "index.apply",
            otel.kind = "internal",
            db.system.name = "souk",
            db.collection.name = self.table.declaration.name,
            souk.sequence = self.taken,
            souk.operations = self.pending.operations(),
        );
        self.pending.link(&span);
        let _entered = span.enter();
        self.writer.commit(self.taken)?;
        self.pending = Pending::default();
        self.state.set_applied(self.taken);
        self.publish_when_caught_up();
        Ok(())
    }

    /// Makes the index durable, and lets the store trim what is in it.
    fn checkpoint(&mut self, runtime: &Handle) -> Result<()> {
        if !self.pending.is_empty() {
            self.commit()?;
        }
        // Moves the position also over changes of other tables, so that the log can be trimmed.
        self.writer.commit(self.taken)?;
        self.writer.checkpoint()?;
        self.next_checkpoint = None;
        runtime.block_on(self.advance_consumer())
    }

    async fn advance_consumer(&self) -> Result<()> {
        Ok(self.consumer.advance(self.index.durable_sequence()).await?)
    }

    /// Waits until there is something to do.
    async fn rest(&mut self, stop: &CancellationToken) {
        let due = match (self.pending.since(), self.next_checkpoint) {
            (Some(since), _) => Some(since + self.options.commit_interval),
            (None, checkpoint) => checkpoint,
        };
        let due = async {
            match due {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = stop.cancelled() => {}
            () = self.state.wake.notified() => {}
            result = self.sequences.changed() => {
                if result.is_err() {
                    stop.cancelled().await;
                }
            }
        }
    }

    fn close(mut self, runtime: &Handle) -> Result<()> {
        if self.taken > self.index.durable_sequence() {
            self.checkpoint(runtime)?;
        }
        Ok(self.writer.close()?)
    }
}
