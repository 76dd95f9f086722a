//! What searches and the follower of one index know of each other: how far the index is, and how far somebody needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use souk_index::{Index, Searcher};
use tokio::sync::{Notify, watch};

use crate::deadline::Wait;
use crate::design::Design;
use crate::error::{EngineError, Result, Waiting};

/// Whether an index answers.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// It is being opened, or built from the table.
    Building,
    /// It answers, and follows the change log.
    Serving(Serving),
    /// It doesn't any more.
    Failed(String),
}

/// An index that answers.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) index: Index,
    pub(crate) design: Arc<Design>,
}

/// How far an index is that is built beside the one that answers, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    pub(crate) step: Step,
    /// Rows that are in it.
    pub(crate) rows: u64,
    /// Rows of the table, about.
    pub(crate) about: u64,
    /// It has those rows as of this sequence.
    pub(crate) sequence: u64,
}

/// What a build is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It takes the rows of the table.
    Reading,
    /// It has them, and takes the changes since.
    CatchingUp,
    /// It has ended, for this reason, and begins again with the process.
    Failed(String),
}

/// The meeting point of one index's searches and its follower.
#[derive(Debug)]
pub(crate) struct IndexState {
    table: &'static str,
    phase: RwLock<Phase>,
    build: RwLock<Option<Build>>,
    /// Tells of every change of `phase`.
    phase_changed: watch::Sender<()>,
    /// Searches that begin now see every change up to here.
    applied: watch::Sender<u64>,
    /// The highest sequence that somebody waits for.
    wanted: AtomicU64,
    /// What searches would see if the follower knew of any: the next one waits for it.
    held: AtomicU64,
    /// Whether somebody has searched since the follower last looked.
    searched: AtomicBool,
    /// Wakes the follower when `wanted` has grown.
    pub(crate) wake: Notify,
    /// Whether its segments are as few as they become while nobody writes.
    consolidated: AtomicBool,
}

impl IndexState {
    pub(crate) fn new(table: &'static str) -> Self {
        Self {
            table,
            phase: RwLock::new(Phase::Building),
            build: RwLock::new(None),
            phase_changed: watch::Sender::new(()),
            applied: watch::Sender::new(0),
            wanted: AtomicU64::new(0),
            held: AtomicU64::new(0),
            searched: AtomicBool::new(false),
            wake: Notify::new(),
            consolidated: AtomicBool::new(false),
        }
    }

    pub(crate) fn table(&self) -> &'static str {
        self.table
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.read().clone()
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        *self.phase.write() = phase;
        self.phase_changed.send_replace(());
        // Whoever waits for a sequence looks at the phase again.
        self.applied.send_modify(|_| ());
    }

    /// Lets an index answer from now on.
    pub(crate) fn serve(&self, serving: Serving) {
        self.set_phase(Phase::Serving(serving));
    }

    /// The index that answers.
    pub(crate) fn serving(&self) -> Option<Serving> {
        match &*self.phase.read() {
            Phase::Serving(serving) => Some(serving.clone()),
            Phase::Building | Phase::Failed(_) => None,
        }
    }

    pub(crate) fn build(&self) -> Option<Build> {
        self.build.read().clone()
    }

    pub(crate) fn set_build(&self, build: Option<Build>) {
        *self.build.write() = build;
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

    /// Says that searches would see every change up to `sequence` by now, had there been any lately: those that begin from
    /// now on wait for it.
    pub(crate) fn hold(&self, sequence: u64) {
        self.held.store(sequence, Ordering::Release);
    }

    /// Whether somebody has searched since this was asked last.
    pub(crate) fn take_searched(&self) -> bool {
        self.searched.load(Ordering::Acquire) && self.searched.swap(false, Ordering::AcqRel)
    }

    /// Says that searches that begin from now on see every change up to `sequence`.
    pub(crate) fn set_applied(&self, sequence: u64) {
        self.applied
            .send_modify(|applied| *applied = sequence.max(*applied));
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

    /// A view that includes `min_sequence` and what is held, and the sequence that it includes.
    ///
    /// # Errors
    /// [`EngineError::IndexBuilding`], [`EngineError::IndexFailed`], [`EngineError::DeadlineExceeded`].
    pub(crate) async fn view(&self, min_sequence: u64, wait: Wait) -> Result<(Searcher, u64)> {
        // Read before it is written: searches by the thousand share the line.
        if !self.searched.load(Ordering::Acquire) {
            self.searched.store(true, Ordering::Release);
        }
        let min_sequence = min_sequence.max(self.held.load(Ordering::Acquire));
        let mut applied = self.applied.subscribe();
        if *applied.borrow_and_update() < min_sequence {
            self.wanted.fetch_max(min_sequence, Ordering::AcqRel);
            self.wake.notify_one();
            let reached = wait
                .for_value(&mut applied, |reached| {
                    *reached >= min_sequence || !matches!(*self.phase.read(), Phase::Serving(_))
                })
                .await;
            if !reached {
                return Err(EngineError::DeadlineExceeded(Waiting::Index {
                    wanted: min_sequence,
                    reached: self.applied(),
                }));
            }
        }
        // First the number, then the view: the view may be younger, never older.
        let sequence = self.applied();
        match self.phase() {
            Phase::Serving(serving) => {
                let searcher = serving.index.searcher();
                let sequence = sequence.max(searcher.sequence());
                Ok((searcher, sequence))
            }
            Phase::Building => Err(EngineError::IndexBuilding { table: self.table }),
            Phase::Failed(reason) => Err(EngineError::IndexFailed {
                table: self.table,
                reason,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use souk_index::{Field, IndexOptions, Schema};

    use super::*;

    /// A state whose index answers.
    fn serving() -> IndexState {
        let schema = Schema::new(vec![Field::long("number")]).expect("a schema");
        let index = Index::create_in_ram(schema.clone(), IndexOptions::default()).expect("an index");
        let design = Arc::new(Design {
            schema,
            sources: BTreeMap::new(),
            document_version: 1,
        });
        let state = IndexState::new("numbers");
        state.serve(Serving { index, design });
        state
    }

    #[tokio::test]
    async fn a_search_waits_for_what_is_held_and_asks_for_it() {
        let state = serving();
        state.set_applied(3);
        state.hold(5);
        assert_eq!(state.awaited(), None, "nobody waits yet");
        let follow = async {
            state.wake.notified().await;
            assert_eq!(state.awaited(), Some(5));
            state.set_applied(5);
        };
        let (view, ()) = tokio::join!(state.view(0, Wait::of_call()), follow);
        assert_eq!(view.expect("a view").1, 5);
        // What was held is seen now: nobody waits any more.
        assert_eq!(state.view(0, Wait::of_call()).await.expect("a view").1, 5);
        assert_eq!(state.awaited(), None);
    }

    #[tokio::test]
    async fn the_follower_learns_once_that_somebody_searched() {
        let state = serving();
        assert!(!state.take_searched());
        for _ in 0..2 {
            state.view(0, Wait::of_call()).await.expect("a view");
        }
        assert!(state.take_searched());
        assert!(!state.take_searched());
    }
}
