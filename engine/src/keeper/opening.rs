//! When an index is open: left unopened at the start, opened when it is used or its table has changed, and closed again.

use std::sync::Arc;

use souk_index::Index;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::backoff::Backoff;
use super::supervisor::Failure;
use super::{Keeping, OPENING, Running, SERVING, folder};
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::index_state::{Phase, Unopened};
use crate::open_table::Home;

impl Keeping {
    /// Leaves the index unopened, if nothing has to be done for it but to follow the log; whether it does. `is_fed` is whether it
    /// has a feed.
    ///
    /// # Errors
    /// [`EngineError::Defect`].
    pub(super) async fn stay_unopened(self: &Arc<Self>, is_fed: bool) -> Result<bool> {
        if self.table.home != Home::Catalog || is_fed {
            return Ok(false);
        }
        let keeping = Arc::clone(self);
        let found = tokio::task::spawn_blocking(move || folder::unopened(&keeping)).await;
        let found = found.map_err(|_| EngineError::Defect("looking at an index panicked"))?;
        // What is wrong with one that can't be looked at is told when it is opened.
        let Some((sequence, unopened)) = found.ok().flatten() else {
            return Ok(false);
        };
        self.state().set_applied(sequence);
        self.state().set_phase(Phase::Unopened(Arc::new(unopened)));
        self.sleepers.add(self, sequence);
        Ok(true)
    }

    /// Begins to open the index, unless it is open, or being opened; `false` when its keeping ends.
    ///
    /// # Errors
    /// [`EngineError::Io`] when the system gives no thread: it is tried again by itself.
    pub(super) fn wake(self: &Arc<Self>) -> Result<bool> {
        let mut threads = self.threads.lock();
        if self.closing.is_cancelled() {
            return Ok(false);
        }
        if threads.opening.is_some() || !self.state().is_unopened() {
            return Ok(true);
        }
        let opening = self.spawn(OPENING, None, |keeping, stop| {
            // Once it is noted.
            let closed = keeping.threads.lock().closed.take();
            closed.into_iter().for_each(Running::join);
            keeping.open_until_done(stop);
        });
        match opening {
            Ok(opening) => {
                self.state().begins_to_open();
                threads.opening = Some(opening);
                Ok(true)
            }
            Err(error) => {
                self.state().stall("it can't be opened", &error.to_string());
                drop(threads);
                self.sleepers.open_later(self.name());
                Err(error)
            }
        }
    }

    /// Whether the index may be closed until it is used again, as far as its threads know.
    pub(super) fn may_close(&self, design: &Design) -> bool {
        !self.closing.is_cancelled()
            && self.index.wanted().fingerprint() == design.fingerprint()
            && self.state().build().is_none()
            && self.threads.lock().draft.is_none()
    }

    /// Says that the index is closed, by its serving thread, which ends: it includes everything up to `sequence`. Nothing else
    /// may change it meanwhile.
    pub(super) fn is_closed(self: &Arc<Self>, sequence: u64, unopened: Unopened) {
        // Until it is among the sleepers nobody may try to wake it: what gets no thread is tried again by them.
        let mut threads = self.threads.lock();
        threads.closed = threads.serving.take();
        threads.opening = None;
        self.state().set_phase(Phase::Unopened(Arc::new(unopened)));
        self.sleepers.add(self, sequence);
    }

    /// Moves the position of an unopened index on: no change up to `sequence` is of its table.
    ///
    /// # Errors
    /// What disk and store refuse.
    pub(super) fn move_on(&self, sequence: u64) -> Result<()> {
        let Some(_changing) = self.changing.try_lock() else {
            return Ok(());
        };
        let Phase::Unopened(unopened) = self.state().phase() else {
            return Ok(());
        };
        let is_asleep = self.threads.lock().opening.is_none();
        if !is_asleep || self.closing.is_cancelled() || self.consumer.position() >= sequence {
            return Ok(());
        }
        // Another one may be wanted by now.
        let folder = folder::of(&self.folder, unopened.design.fingerprint());
        Index::move_on(&folder, sequence)?;
        Ok(self.runtime.block_on(self.consumer.advance(sequence))?)
    }

    /// [`Self::open`], tried until it succeeds.
    pub(super) fn open_until_done(self: &Arc<Self>, stop: &CancellationToken) {
        let mut backoff = Backoff::default();
        while let Some(failure) = Failure::of(|| self.open(stop)) {
            if stop.is_cancelled() {
                return;
            }
            let (name, reason) = (self.name(), failure.to_string());
            error!(index = name, reason, "the index can't be opened; it tries again");
            self.state().stall(failure.why(), &reason);
            if !backoff.wait(&self.runtime, stop) {
                return;
            }
        }
    }

    /// Opens the index in the folder, if there is one to serve, and starts a build if its design isn't the wanted one.
    fn open(self: &Arc<Self>, stop: &CancellationToken) -> Result<()> {
        let _changing = self.changing.lock();
        let wanted = self.index.wanted();
        let found = folder::find(self, &wanted, stop)?;
        let serving = found.as_ref().map(|found| found.design.fingerprint());
        let needs_draft = serving != Some(wanted.fingerprint());
        let kept: Vec<u64> = serving.into_iter().chain([wanted.fingerprint()]).collect();
        if let Some(unchanged) = self.sleepers.forget(self.name()) {
            *self.unchanged.lock() = Some(unchanged);
        }
        if found.is_none() && self.state().is_unopened() {
            self.state().set_phase(Phase::Building);
        }
        // The feed of a complete index is removed when the index is known to be durable beyond it.
        self.retain(&kept, &[wanted.fingerprint()]);
        if let Some(found) = found {
            if needs_draft {
                warn!(
                    index = self.name(),
                    "the index was made for another declaration; it answers until the new one is built"
                );
            }
            let mut threads = self.threads.lock();
            if threads.serving.is_none() {
                threads.serving = Some(self.supervise(SERVING, found.design, Some(found.index))?);
            }
        }
        if needs_draft {
            self.draft(wanted)?;
        }
        Ok(())
    }
}
