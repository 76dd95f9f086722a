//! One index, following the log.
//!
//! Three clocks: changes are taken as soon as they are durable in the store, or ten milliseconds later while nobody
//! searches. Searches see them with the next commit, by the [refresh policy](super::refresh_policy). A checkpoint each [`CHECKPOINT_INTERVAL`] makes the index durable, after which the
//! store may trim the log up to there. After a crash the index resumes from its last checkpoint.

use std::sync::Arc;
use std::time::Duration;

use souk_index::{Index, IndexWriter};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info_span;

use super::pending::Pending;
use super::refresh_policy::{RefreshDecision, RefreshInput, RefreshPolicy};
use super::verify::{self, VerifyOptions};
use super::{Keeping, Promotion};
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::index_state::{Serving, Unopened};
use crate::log_tail::ChangeBlock;
use crate::open_table::Home;

/// How often an index with changes is made durable.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);
/// How long nobody writes before the segments of the index are merged, and the time between two looks at how far that is.
const REST: Duration = Duration::from_secs(1);

/// When an index that is built beside another asks again whether it may replace it.
const PROMOTION_RETRY: Duration = Duration::from_millis(20);

/// How an index follows the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowOptions {
    /// The longest that changes may stay unseen while the index keeps up and somebody searches.
    pub(crate) commit_interval: Duration,
    /// How long an index isn't used before it is closed.
    pub(crate) close_idle_after: Duration,
    /// Memory of the writer, bytes.
    pub(crate) writer_memory: usize,
    /// Documents from which on the observer is told that the index is large.
    pub(crate) large_index_from: u64,
    /// How the files of the index are compared with their checksums.
    pub(crate) verify: VerifyOptions,
}

/// See the module's documentation.
pub(super) struct Follower {
    keeping: Arc<Keeping>,
    design: Arc<Design>,
    sequences: watch::Receiver<u64>,
    index: Index,
    writer: IndexWriter,
    /// Applied, but not seen by searches.
    pending: Pending,
    /// The last change that was taken from the log.
    taken: u64,
    /// Searches are answered from here on: an index never answers from a state that is older than the process, or than
    /// the index that answered before.
    ready_at: u64,
    /// Whether searches are answered from this index.
    serves: bool,
    /// When it commits.
    refresh: RefreshPolicy,
    /// When something that isn't durable has to become so.
    next_checkpoint: Option<Instant>,
    /// When to merge the segments of an index that nobody has written to lately; `None` when that is done.
    next_consolidation: Option<Instant>,
    /// Whether merges of this kind are under way.
    consolidating: bool,
    /// When it was searched, or changed, last.
    used_at: Instant,
    /// About how many documents it has: those at the beginning, and one for each operation since.
    documents: u64,
}

impl Follower {
    /// Follows the log with an index, from where its last commit ends.
    pub(super) fn new(keeping: Arc<Keeping>, design: Arc<Design>, index: Index, writer: IndexWriter) -> Self {
        let mut sequences = keeping.database.subscribe();
        sequences.mark_changed();
        let unchanged = *keeping.unchanged.lock();
        let applied = index.applied_sequence();
        Self {
            taken: unchanged.map_or(applied, |unchanged| unchanged.behind(applied)),
            ready_at: keeping.database.last_sequence(),
            refresh: RefreshPolicy::new(keeping.options.commit_interval, Instant::now()),
            keeping,
            design,
            sequences,
            index,
            writer,
            pending: Pending::default(),
            serves: false,
            next_checkpoint: None,
            next_consolidation: Some(Instant::now() + REST),
            consolidating: false,
            used_at: Instant::now(),
            documents: 0,
        }
    }

    /// Follows until it is told to stop.
    pub(super) fn run(mut self, stop: &CancellationToken) -> Result<()> {
        self.documents = self.index.size()?.documents;
        self.keeping.report_if_large(self.documents);
        self.serve_when_ready()?;
        let _verifying = verify::start(&self.keeping, &self.index)?;
        while !stop.is_cancelled() {
            self.check_condemned()?;
            self.index.undamaged()?;
            self.wait_for_merges(stop)?;
            let caught_up = self.take_changes()?;
            match self.decide(caught_up) {
                RefreshDecision::Wait => {}
                // Only an index that serves has searches that could wait for its refresh.
                RefreshDecision::Hold if self.serves => self.keeping.state().defer_refresh(self.taken),
                RefreshDecision::Hold => {}
                RefreshDecision::Commit => self.commit()?,
            }
            self.serve_when_ready()?;
            if self.next_checkpoint.is_some_and(|at| at <= Instant::now()) {
                self.checkpoint()?;
            }
            if self.next_consolidation.is_some_and(|at| at <= Instant::now()) {
                self.consolidate()?;
            }
            if caught_up && self.idle_at().is_some_and(|at| at <= Instant::now()) {
                let keeping = Arc::clone(&self.keeping);
                if let Some(_changing) = keeping.changing.try_lock()
                    && self.may_close()?
                {
                    return self.close_idle();
                }
                self.used_at = Instant::now();
            }
            if caught_up {
                let runtime = self.keeping.runtime.clone();
                runtime.block_on(self.rest(stop));
            }
        }
        self.close()
    }

    /// Takes the place of the index that answered before, if there was one, once it is as far.
    fn serve_when_ready(&mut self) -> Result<()> {
        if self.serves || self.taken < self.ready_at || !self.pending.is_empty() {
            return Ok(());
        }
        match self.keeping.promote(self.design.fingerprint()) {
            Promotion::Later => return Ok(()),
            Promotion::Alone { reached } if reached > self.taken => {
                self.ready_at = reached;
                return Ok(());
            }
            Promotion::Alone { .. } => {}
        }
        // First the index, then the number: searches may see more than they are told, never less.
        self.keeping.state().serve(Serving {
            index: self.index.clone(),
            design: Arc::clone(&self.design),
        });
        self.keeping.state().set_applied(self.taken);
        self.serves = true;
        tracing::info!(
            index = self.keeping.name(),
            sequence = self.taken,
            "the index serves"
        );
        // Durable before what it replaces is removed.
        self.checkpoint()
    }

    /// Ends when somebody has found the index damaged.
    fn check_condemned(&self) -> Result<()> {
        let damage = self.keeping.state().take_condemned(self.index.opening());
        damage.map_or(Ok(()), |detail| {
            Err(EngineError::Index(souk_index::Error::Corrupt {
                detail,
                source: None,
            }))
        })
    }

    /// Merges hold the removals of all changes since they began: while these take all memory that there is for them, the
    /// log holds the changes. What was taken in is seen meanwhile.
    fn wait_for_merges(&mut self, stop: &CancellationToken) -> Result<()> {
        if !self.writer.is_full() {
            return Ok(());
        }
        if !self.pending.is_empty() {
            self.commit()?;
            self.serve_when_ready()?;
        }
        let is_awaited = || self.serves && self.keeping.state().awaited().is_some();
        self.keeping.wait_for_merges(&self.writer, stop, is_awaited);
        Ok(())
    }

    /// Takes the next changes from the log; `true` when there are no more.
    fn take_changes(&mut self) -> Result<bool> {
        self.sequences.borrow_and_update();
        let read = self.keeping.tail.read(self.taken);
        let Some(block) = self.keeping.runtime.block_on(read)? else {
            return Ok(true);
        };
        self.apply(&block)?;
        self.taken = block.last();
        if self.serves && self.pending.is_empty() {
            // None of the changes concerns this table: what searches see includes them already.
            self.keeping.state().set_applied(self.taken);
        }
        if self.next_checkpoint.is_none() {
            self.next_checkpoint = Some(Instant::now() + CHECKPOINT_INTERVAL);
        }
        Ok(self.taken >= self.keeping.database.last_sequence())
    }

    fn apply(&mut self, block: &ChangeBlock) -> Result<()> {
        let entries = block.behind(self.taken);
        let operations = self.pending.take_in(&self.keeping.table, &self.design, entries)?;
        super::apply_in_batches(&mut self.writer, operations)
    }

    fn decide(&mut self, caught_up: bool) -> RefreshDecision {
        let state = self.keeping.state();
        let searched = self.serves && state.take_searched();
        if searched || !self.pending.is_empty() {
            self.used_at = Instant::now();
        }
        let awaited = state.awaited();
        let input = RefreshInput {
            operations: self.pending.operations(),
            full: self.writer.wants_commit(),
            age: self.pending.age(),
            caught_up,
            awaited: awaited.is_some_and(|wanted| caught_up || wanted <= self.taken),
            opens: !self.serves && self.taken >= self.ready_at,
            searched,
        };
        self.refresh.decide(Instant::now(), input)
    }

    /// Lets searches see what is applied.
    fn commit(&mut self) -> Result<()> {
        let span = info_span!(
            "index.apply",
            otel.kind = "internal",
            db.system.name = "souk",
            db.collection.name = self.keeping.table.name(),
            souk.index.name = self.keeping.index.told_name(),
            souk.sequence = self.taken,
            souk.operations = self.pending.operations(),
        );
        self.pending.link(&span);
        let _entered = span.enter();
        let began = Instant::now();
        self.writer.commit(self.taken)?;
        self.documents += u64::try_from(self.pending.operations()).unwrap_or_default();
        self.keeping.report_if_large(self.documents);
        self.keeping
            .observer
            .applied(self.keeping.table.shared_name(), began.elapsed());
        self.pending = Pending::default();
        let segments = self.writer.segments();
        self.refresh.committed(Instant::now(), began.elapsed(), segments);
        self.next_consolidation = Some(Instant::now() + REST);
        self.keeping.state().set_consolidated(false);
        if self.serves {
            self.keeping.state().set_applied(self.taken);
        }
        Ok(())
    }

    /// Makes the index durable, and lets the store trim what is in it.
    fn checkpoint(&mut self) -> Result<()> {
        if !self.pending.is_empty() {
            self.commit()?;
        }
        // Moves the position also over changes of other tables, so that the log can be trimmed.
        self.writer.commit(self.taken)?;
        self.writer.checkpoint()?;
        self.next_checkpoint = None;
        if self.serves {
            let released = self.release();
            if released.is_err() {
                // The index goes on without: it is durable, only the store doesn't know it yet.
                self.next_checkpoint = Some(Instant::now() + CHECKPOINT_INTERVAL);
            }
            let held = released.err().map(|error| error.to_string());
            self.keeping.state().set_log_held(held);
        }
        Ok(())
    }

    /// Lets go of what the index doesn't need since it is durable: of the log, and of what it has replaced.
    fn release(&self) -> Result<()> {
        let keeping = &self.keeping;
        keeping.runtime.block_on(async {
            // An index that was given up has let go of the consumer; the feed of its successor keeps the log until here.
            let consumer = keeping.database.consumer(keeping.consumer.name()).await?;
            consumer.advance(self.index.durable_sequence()).await
        })?;
        keeping.remove_others(&self.design)
    }

    /// Merges the segments that searches go through, while nobody writes.
    fn consolidate(&mut self) -> Result<()> {
        if !self.pending.is_empty() {
            // The commit sets the clock again.
            self.next_consolidation = None;
            return Ok(());
        }
        let merges = self.writer.consolidate()?;
        if self.consolidating && !merges {
            // The files of merged segments stay until the index is durable without them.
            self.next_checkpoint = Some(Instant::now());
        }
        self.consolidating = merges;
        self.next_consolidation = merges.then(|| Instant::now() + REST);
        self.keeping.state().set_consolidated(!merges);
        Ok(())
    }

    /// Waits until there is something to do.
    async fn rest(&mut self, stop: &CancellationToken) {
        let pause = self.refresh.pause(Instant::now());
        if !pause.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => return,
                () = self.keeping.index.state.wake.notified() => return,
            }
        }
        let due = match (self.pending.since(), self.next_checkpoint) {
            (Some(since), _) => Some(self.refresh.next_decision(since)),
            (None, _) if !self.serves => Some(Instant::now() + PROMOTION_RETRY),
            (None, checkpoint) => {
                let dues = [checkpoint, self.next_consolidation, self.idle_at()];
                dues.into_iter().flatten().min()
            }
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
            () = self.keeping.index.state.wake.notified() => {}
            result = self.sequences.changed() => {
                if result.is_err() {
                    stop.cancelled().await;
                }
            }
        }
    }

    /// When it counts as unused; `None` of one that stays open.
    fn idle_at(&self) -> Option<Instant> {
        let at = self.used_at.checked_add(self.keeping.options.close_idle_after);
        at.filter(|_| self.keeping.table.home == Home::Catalog && self.serves)
    }

    /// Whether the index may be closed until it is used again. Makes it durable first.
    fn may_close(&mut self) -> Result<bool> {
        let is_small = self.documents < self.keeping.options.large_index_from;
        let is_done = self.pending.is_empty() && self.next_consolidation.is_none();
        if !is_small || !is_done || !self.keeping.may_close(&self.design) {
            return Ok(false);
        }
        self.checkpoint()?;
        // Otherwise the store couldn't be told.
        Ok(self.next_checkpoint.is_none())
    }

    /// Closes an index that nobody uses; searches that come now open it again.
    fn close_idle(self) -> Result<()> {
        let unopened = Unopened {
            design: Arc::clone(&self.design),
            size: self.index.size()?,
            misfits: self.index.misfits(),
        };
        let (index, sequence) = (self.keeping.name(), self.index.durable_sequence());
        self.writer.close()?;
        tracing::info!(index, sequence, "the index is closed until it is used again");
        self.keeping.is_closed(sequence, unopened);
        Ok(())
    }

    /// When the engine closes, the index is left as it is on the disk. One that was replaced is left to be removed.
    fn close(mut self) -> Result<()> {
        if !self.keeping.closing.is_cancelled() {
            if self.serves && !self.pending.is_empty() {
                // Searches may wait for what is held, and this index answers them until it is replaced.
                self.commit()?;
            }
            return Ok(());
        }
        if self.taken > self.index.durable_sequence() {
            self.checkpoint()?;
        }
        Ok(self.writer.close()?)
    }
}
