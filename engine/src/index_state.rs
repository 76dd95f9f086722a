//! The state that searches and the follower of one index share: its phase, the sequence up to which searches see changes, the highest
//! one that they wait for, and why it doesn't advance.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, RwLock};
use souk_index::{Index, IndexSize, MisfitReport, Opening, Searcher};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::deadline::Wait;
use crate::design::Design;
use crate::error::{EngineError, Result, Waiting};

/// Time after which an index that can't apply changes counts as stalled, for health and for searches that wait for a change.
pub(crate) const STALLED_AFTER: Duration = Duration::from_secs(5);
/// How long a search of an index that won't be opened any more waits to learn that it is gone; otherwise the engine closes.
const ENDING_MAX: Duration = Duration::from_secs(1);

/// Whether an index answers.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// It has been dropped, or its table is.
    Absent,
    /// It is being opened, or built from the table.
    Building,
    /// It is complete, and is opened when it is first used, or when the log has a change of its table.
    Unopened(Arc<Unopened>),
    /// It answers, and follows the change log.
    Serving(Serving),
    /// It doesn't answer, for this reason, until a restart of the process.
    Failed(String),
}

/// An index that answers.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) index: Index,
    pub(crate) design: Arc<Design>,
}

/// What is known of an index that isn't open.
#[derive(Debug)]
pub(crate) struct Unopened {
    pub(crate) design: Arc<Design>,
    pub(crate) size: IndexSize,
    pub(crate) misfits: MisfitReport,
}

/// Begins to open an index, unless that is under way; `false` when it won't be opened any more.
pub(crate) struct Opener(pub(crate) Box<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Opener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Opener").finish_non_exhaustive()
    }
}

/// Progress of a reindex: of the index that is built, while the one before, if any, goes on answering.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    pub(crate) step: Step,
    /// Rows that are in it.
    pub(crate) rows: u64,
    /// Estimate of the rows of the table.
    pub(crate) about: u64,
    /// Sequence of the snapshot of which it has these rows.
    pub(crate) sequence: u64,
    /// Why it is paused; it is retried by itself.
    pub(crate) waiting: Option<String>,
}

/// Step of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It reads the rows of the table.
    Reading,
    /// It has them, and applies the changes since.
    CatchingUp,
    /// It has failed, for this reason; a restart of the process begins it again.
    Failed(String),
}

/// Why searches don't see new changes, and since when. The index manager retries by itself.
#[derive(Clone, Debug)]
pub(crate) struct Stall {
    /// When it began, by the clock of the machine.
    pub(crate) since: SystemTime,
    began: Instant,
    /// What clients are told.
    pub(crate) why: &'static str,
    /// What the log is told: the last failure.
    pub(crate) reason: String,
}

impl Stall {
    /// How long it lasts.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }
}

/// The state shared by the searches and the follower of one index.
#[derive(Debug)]
pub(crate) struct IndexState {
    /// The index's, or that of the table that couldn't be opened.
    name: Arc<str>,
    phase: RwLock<Phase>,
    build: RwLock<Option<Build>>,
    opener: OnceLock<Opener>,
    /// Since when an unopened index is being opened.
    opening: Mutex<Option<Instant>>,
    /// Notifies of every change of `phase`.
    phase_changed: watch::Sender<()>,
    /// Searches that begin now see every change up to here.
    applied: watch::Sender<u64>,
    /// The highest sequence that somebody waits for.
    wanted: AtomicU64,
    /// Up to where the follower defers the refresh until there is a search, which then waits for it.
    deferred: AtomicU64,
    /// Whether somebody has searched since the follower last looked.
    searched: AtomicBool,
    /// Wakes the follower when `wanted` has grown.
    pub(crate) wake: Notify,
    /// Whether its segments are as few as they become while nobody writes.
    consolidated: AtomicBool,
    /// Whether it has answered, or should.
    expected: AtomicBool,
    /// Why it doesn't advance, while it can't.
    stall: Mutex<Option<Stall>>,
    /// Which index is damaged, and how that showed: for its follower.
    condemned: Mutex<Option<(Opening, String)>>,
    /// Why the log is kept for it longer than it needs.
    log_held: Mutex<Option<String>>,
}

impl IndexState {
    /// That of an index that is to be opened, or built.
    pub(crate) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            phase: RwLock::new(Phase::Building),
            build: RwLock::new(None),
            opener: OnceLock::new(),
            opening: Mutex::default(),
            phase_changed: watch::Sender::new(()),
            applied: watch::Sender::new(0),
            wanted: AtomicU64::new(0),
            deferred: AtomicU64::new(0),
            searched: AtomicBool::new(false),
            wake: Notify::new(),
            consolidated: AtomicBool::new(false),
            expected: AtomicBool::new(true),
            stall: Mutex::default(),
            condemned: Mutex::default(),
            log_held: Mutex::default(),
        }
    }

    /// That of a table that couldn't be opened.
    pub(crate) fn of_closed(table: Arc<str>, reason: String) -> Self {
        let state = Self::new(table);
        state.set_phase(Phase::Failed(reason));
        state
    }

    /// The index's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.read().clone()
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        *self.opening.lock() = None;
        *self.phase.write() = phase;
        self.announce();
    }

    /// Says how it is opened when it is used while it is unopened.
    pub(crate) fn opened_by(&self, opener: Opener) {
        // There is one keeper of an index.
        let _first = self.opener.set(opener);
    }

    /// Whether it could answer, and isn't open.
    pub(crate) fn is_unopened(&self) -> bool {
        matches!(*self.phase.read(), Phase::Unopened(_))
    }

    /// Whether it answers, or would once it is open.
    pub(crate) fn answers(&self) -> bool {
        matches!(*self.phase.read(), Phase::Serving(_) | Phase::Unopened(_))
    }

    /// Says that it is being opened. Why it didn't advance before is no reason to refuse those who wait for that.
    pub(crate) fn begins_to_open(&self) {
        self.opening.lock().get_or_insert_with(Instant::now);
        let ended = self.stall.lock().take();
        if ended.is_some() {
            self.announce();
        }
    }

    /// Since when it is being opened, while it is unopened.
    pub(crate) fn opening(&self) -> Option<Instant> {
        *self.opening.lock()
    }

    /// Opens it unless it is open, and waits for that; it may not answer then.
    ///
    /// # Errors
    /// [`EngineError::IndexStalled`], [`EngineError::DeadlineExceeded`], [`EngineError::Closing`].
    pub(crate) async fn opened(&self, wait: Wait) -> Result<()> {
        let mut phase = self.watch_phase();
        if !self.is_unopened() {
            return Ok(());
        }
        let opens = self.opener.get().is_none_or(|Opener(open)| open());
        let wait = match opens {
            true => wait,
            false => wait.at_most(ENDING_MAX),
        };
        let has_ended = |(): &()| !self.is_unopened() || self.lasting_stall().is_some();
        // Why it ended is looked at below.
        let _in_time = wait.for_value(&mut phase, has_ended).await;
        let reached = self.applied();
        match (self.is_unopened(), self.current_stall()) {
            (false, _) => Ok(()),
            (true, _) if !opens => Err(EngineError::Closing),
            (true, Some(stall)) => Err(self.stalled_at(reached, stall)),
            (true, None) => {
                let wanted = reached;
                Err(EngineError::DeadlineExceeded(Waiting::Index { wanted, reached }))
            }
        }
    }

    /// Waits until searches see a write, or would once it is open: it isn't opened for that.
    ///
    /// # Errors
    /// As [`Self::view`].
    pub(crate) async fn refreshed(&self, sequence: u64, wait: Wait) -> Result<()> {
        let is_known =
            |reached: &u64| *reached >= sequence || !self.is_unopened() || self.lasting_stall().is_some();
        let known = wait.for_value(&mut self.applied.subscribe(), is_known).await;
        if known && self.is_unopened() && self.applied() >= sequence {
            return Ok(());
        }
        self.view(sequence, wait).await.map(drop)
    }

    /// Says that it is created while its table is served: that it doesn't answer is no trouble before it has for the first time.
    pub(crate) fn expect_later(&self) {
        self.expected.store(false, Ordering::Release);
    }

    /// Whether it has answered, or should.
    pub(crate) fn is_expected(&self) -> bool {
        self.expected.load(Ordering::Acquire)
    }

    /// Lets an index answer from now on.
    pub(crate) fn serve(&self, serving: Serving) {
        self.expected.store(true, Ordering::Release);
        self.set_phase(Phase::Serving(serving));
        self.advances();
    }

    /// Says that an index is damaged: if it is the one that answers, searches are refused from now on, and it is built anew
    /// from its table, by itself. Does nothing when another answers by now.
    pub(crate) fn condemn(&self, damaged: Opening, how: &str) {
        let condemned = || *self.condemned.lock() = Some((damaged, how.to_owned()));
        if self.stop_serving(|serving| serving.index.opening() == damaged, condemned, how) {
            self.wake.notify_one();
        }
    }

    /// Refuses searches from now on if the index that answers has the design with this fingerprint, whose files are damaged. Unlike
    /// [`Self::condemn`] it doesn't tell the follower: the caller has them rebuilt.
    pub(crate) fn stop_serving_design(&self, fingerprint: u64, how: &str) {
        self.stop_serving(|serving| serving.design.fingerprint() == fingerprint, || (), how);
    }

    /// Refuses searches from now on if the index that answers `is_damaged`; returns whether it is. `before` runs under the lock of the
    /// phase, before that changes.
    fn stop_serving(&self, is_damaged: impl Fn(&Serving) -> bool, before: impl FnOnce(), how: &str) -> bool {
        let answered = {
            let mut phase = self.phase.write();
            match &*phase {
                Phase::Serving(serving) if is_damaged(serving) => {}
                _ => return false,
            }
            before();
            std::mem::replace(&mut *phase, Phase::Building)
        };
        // It may be the last to hold the index: not under the lock.
        drop(answered);
        self.stall("it was damaged and is being built anew", how);
        true
    }

    /// How the damage of an index showed that was [condemned](Self::condemn); taken once.
    pub(crate) fn take_condemned(&self, index: Opening) -> Option<String> {
        let mut condemned = self.condemned.lock();
        let (_, how) = condemned.take_if(|(of, _)| *of == index)?;
        Some(how)
    }

    /// Says that searches don't see new changes: `why` for clients, `reason` for the log. The stall began with the first call since the
    /// last one ended, whatever reasons follow.
    pub(crate) fn stall(&self, why: &'static str, reason: &str) {
        {
            let mut stall = self.stall.lock();
            let known = stall.get_or_insert_with(|| Stall {
                since: SystemTime::now(),
                began: Instant::now(),
                why,
                reason: String::new(),
            });
            known.why = why;
            reason.clone_into(&mut known.reason);
        }
        // The deferred refresh won't come soon: searches that don't ask for it needn't wait.
        self.defer_refresh(0);
        self.announce();
    }

    /// Says that what was [told](Self::stall) with this `why` isn't so any more.
    pub(crate) fn stall_ends(&self, why: &'static str) {
        let ended = self.stall.lock().take_if(|stall| stall.why == why);
        if ended.is_some() {
            self.announce();
        }
    }

    /// Why searches don't see new changes, if that is so.
    pub(crate) fn current_stall(&self) -> Option<Stall> {
        self.stall.lock().clone()
    }

    /// [`Self::current_stall`], once it has lasted for [`STALLED_AFTER`]: it is no hiccup then.
    pub(crate) fn lasting_stall(&self) -> Option<Stall> {
        self.current_stall().filter(|stall| stall.age() >= STALLED_AFTER)
    }

    /// Wakes whoever waits for a phase or a sequence.
    pub(crate) fn announce(&self) {
        self.phase_changed.send_replace(());
        self.applied.send_modify(|_| ());
    }

    fn advances(&self) {
        // Not under the lock: waiters for a phase take it while they hold that of `phase_changed`, which is taken below.
        let ended = self.stall.lock().take();
        if let Some(stall) = ended {
            let (index, stood_still) = (self.name(), stall.age());
            info!(
                index,
                ?stood_still,
                reason = stall.reason,
                "the index advances again"
            );
            self.phase_changed.send_replace(());
        }
    }

    /// Says why the log is kept for the index longer than it needs, or that it isn't any more.
    pub(crate) fn set_log_held(&self, reason: Option<String>) {
        let mut held = self.log_held.lock();
        match (&*held, &reason) {
            (None, Some(reason)) => {
                warn!(
                    index = self.name(),
                    reason, "the index can't say how far it is: the log is kept for it"
                );
            }
            (Some(_), None) => info!(index = self.name(), "the log is trimmed behind the index again"),
            _ => {}
        }
        *held = reason;
    }

    /// Why the log is kept for the index longer than it needs.
    pub(crate) fn log_held(&self) -> Option<String> {
        self.log_held.lock().clone()
    }

    /// The index that answers.
    pub(crate) fn serving(&self) -> Option<Serving> {
        match &*self.phase.read() {
            Phase::Serving(serving) => Some(serving.clone()),
            Phase::Absent | Phase::Building | Phase::Unopened(_) | Phase::Failed(_) => None,
        }
    }

    /// The design of the index that answers, or would once it is open.
    pub(crate) fn served_design(&self) -> Option<Arc<Design>> {
        match &*self.phase.read() {
            Phase::Serving(serving) => Some(Arc::clone(&serving.design)),
            Phase::Unopened(unopened) => Some(Arc::clone(&unopened.design)),
            Phase::Absent | Phase::Building | Phase::Failed(_) => None,
        }
    }

    /// How big it is, if that can be told.
    pub(crate) fn size(&self) -> Option<IndexSize> {
        match self.phase() {
            Phase::Serving(serving) => serving.index.size().ok(),
            Phase::Unopened(unopened) => Some(unopened.size),
            Phase::Absent | Phase::Building | Phase::Failed(_) => None,
        }
    }

    pub(crate) fn build(&self) -> Option<Build> {
        self.build.read().clone()
    }

    pub(crate) fn set_build(&self, build: Option<Build>) {
        *self.build.write() = build;
    }

    /// Changes what is known of the build under way, if there is one.
    pub(crate) fn with_build(&self, change: impl FnOnce(&mut Build)) {
        if let Some(build) = &mut *self.build.write() {
            change(build);
        }
    }

    /// Follows the changes of the phase.
    pub(crate) fn watch_phase(&self) -> watch::Receiver<()> {
        self.phase_changed.subscribe()
    }

    /// The highest sequence that somebody waits for, if searches don't see it yet.
    pub(crate) fn awaited(&self) -> Option<u64> {
        let wanted = self.wanted.load(Ordering::Acquire);
        (wanted > *self.applied.borrow()).then_some(wanted)
    }

    /// Defers the refresh that would show every change up to `sequence`, since nobody searches: the next search waits for it.
    pub(crate) fn defer_refresh(&self, sequence: u64) {
        self.deferred.store(sequence, Ordering::Release);
    }

    /// Whether somebody has searched since this was asked last.
    pub(crate) fn take_searched(&self) -> bool {
        self.searched.load(Ordering::Acquire) && self.searched.swap(false, Ordering::AcqRel)
    }

    /// Says that searches that begin from now on see every change up to `sequence`.
    pub(crate) fn set_applied(&self, sequence: u64) {
        let mut advances = false;
        self.applied.send_modify(|applied| {
            advances = sequence > *applied;
            *applied = sequence.max(*applied);
        });
        if advances {
            self.advances();
        }
    }

    pub(crate) fn set_consolidated(&self, consolidated: bool) {
        self.consolidated.store(consolidated, Ordering::Release);
    }

    /// Whether its segments are as few as they become while nobody writes.
    pub(crate) fn is_consolidated(&self) -> bool {
        self.consolidated.load(Ordering::Acquire)
    }

    /// Searches that begin now see every change up to here.
    pub(crate) fn applied(&self) -> u64 {
        *self.applied.borrow()
    }

    /// A view that includes `min_sequence` and a deferred refresh, and the sequence that it includes.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::IndexBuilding`], [`EngineError::IndexFailed`],
    /// [`EngineError::IndexStalled`], [`EngineError::DeadlineExceeded`].
    pub(crate) async fn view(&self, min_sequence: u64, wait: Wait) -> Result<(Searcher, u64)> {
        // Read before it is written: thousands of searches share the cache line.
        if !self.searched.load(Ordering::Acquire) {
            self.searched.store(true, Ordering::Release);
        }
        let needed = || min_sequence.max(self.deferred.load(Ordering::Acquire));
        loop {
            // First the number, then the view: the view may be younger, never older.
            let reached = self.applied();
            let serving = match self.phase() {
                Phase::Serving(serving) => serving,
                Phase::Unopened(_) => {
                    self.opened(wait).await?;
                    continue;
                }
                Phase::Absent => return Err(EngineError::no_index(self.name())),
                Phase::Building => {
                    return Err(EngineError::IndexBuilding {
                        index: self.name().to_owned(),
                    });
                }
                Phase::Failed(reason) => {
                    return Err(EngineError::IndexFailed {
                        index: self.name().to_owned(),
                        reason,
                    });
                }
            };
            let wanted = needed();
            if reached >= wanted {
                let searcher = serving.index.searcher();
                let sequence = reached.max(searcher.sequence());
                return Ok((searcher, sequence));
            }
            if let Some(stall) = self.lasting_stall() {
                return Err(self.stalled_at(wanted, stall));
            }
            self.wanted.fetch_max(wanted, Ordering::AcqRel);
            self.wake.notify_one();
            let answers = || matches!(*self.phase.read(), Phase::Serving(_));
            let look_again =
                |reached: &u64| *reached >= needed() || !answers() || self.lasting_stall().is_some();
            let mut applied = self.applied.subscribe();
            if !wait.for_value(&mut applied, look_again).await {
                let reached = self.applied();
                return Err(match self.current_stall() {
                    Some(stall) => self.stalled_at(wanted, stall),
                    None => EngineError::DeadlineExceeded(Waiting::Index { wanted, reached }),
                });
            }
        }
    }

    fn stalled_at(&self, wanted: u64, stall: Stall) -> EngineError {
        EngineError::IndexStalled {
            index: self.name().to_owned(),
            why: stall.why,
            reason: stall.reason,
            wanted,
            reached: self.applied(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
