//! Where searches run: blocking and bounded, stopped when their call is.

use std::sync::atomic::{AtomicUsize, Ordering};

use souk_index::{Cancellation, SearchRequest, SearchResult, Searcher};
use tokio::sync::Semaphore;
use tracing::Span;

use crate::deadline::Wait;
use crate::error::{EngineError, Result, Waiting};

/// Searches that may wait for a place; further ones are refused.
const WAITING_MAX: usize = 1_024;

/// Places to search in.
#[derive(Debug)]
pub(crate) struct SearchPool {
    places: Semaphore,
    waiting: AtomicUsize,
}

/// Stops the search when the call is dropped.
struct CancelOnDrop(Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Counts a waiting search as long as it lives.
struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SearchPool {
    /// `places` searches at a time; 0 is twice the number of cores.
    pub(crate) fn new(places: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            places: Semaphore::new(if places == 0 { 2 * cores } else { places }),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Searches a view. The inner error is the index's.
    ///
    /// # Errors
    /// [`EngineError::TooBusy`], [`EngineError::DeadlineExceeded`].
    pub(crate) async fn search(
        &self,
        view: Searcher,
        request: SearchRequest,
        wait: Wait,
    ) -> Result<Result<SearchResult, souk_index::Error>> {
        self.run(wait, move |cancellation| view.search(&request, cancellation))
            .await
    }

    /// Does some of a search's work on a place of its own, until the deadline of the call.
    ///
    /// # Errors
    /// [`EngineError::TooBusy`], [`EngineError::DeadlineExceeded`].
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        wait: Wait,
        work: impl FnOnce(&Cancellation) -> T + Send + 'static,
    ) -> Result<T> {
        let place = match self.places.try_acquire() {
            Ok(place) => place,
            Err(_) => self.wait_for_place(wait).await?,
        };
        let cancellation = match wait.until() {
            Some(until) => Cancellation::at(until.into_std()),
            None => Cancellation::default(),
        };
        let guard = CancelOnDrop(cancellation.clone());
        let span = Span::current();
        let result = tokio::task::spawn_blocking(move || span.in_scope(|| work(&cancellation))).await;
        drop((guard, place));
        result.map_err(|_| EngineError::Defect("a search panicked"))
    }

    async fn wait_for_place(&self, wait: Wait) -> Result<tokio::sync::SemaphorePermit<'_>> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        if waiting >= WAITING_MAX {
            return Err(EngineError::TooBusy { waiting });
        }
        match wait.for_end(self.places.acquire()).await {
            Some(Ok(place)) => Ok(place),
            Some(Err(_)) => Err(EngineError::Closing),
            None => Err(EngineError::DeadlineExceeded(Waiting::Searchers)),
        }
    }
}
