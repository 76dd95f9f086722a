//! Where searches run: blocking and bounded, stopped when their call is.
//!
//! A search that takes no longer than handing it to another thread runs on the thread of its call: searches of its class were
//! brief lately. All others run on blocking threads.

mod durations;

use std::hash::{BuildHasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use souk_index::{Cancellation, SearchRequest, SearchResult, Searcher};
use tokio::sync::Semaphore;

use self::durations::Durations;
use crate::deadline::Wait;
use crate::error::{EngineError, Result, Waiting};
use crate::trace::TraceScope;

/// Searches that may wait for a place; further ones are refused.
const WAITING_MAX: usize = 1_024;
/// How long the thread of a call may search, while other calls on it wait. What takes longer begins anew on another, so this is
/// what it costs more: few searches of a brief class may take that long. Of those for words that all have to match one in ten takes more
/// than 0.5 ms.
const BRIEF_MAX: Duration = Duration::from_millis(2);

/// Runs searches, so many at a time as it has places; brief ones on the threads of their calls take none.
#[derive(Debug)]
pub(crate) struct SearchPool {
    places: Semaphore,
    places_max: usize,
    waiting: AtomicUsize,
    durations: Arc<Durations>,
    /// Seeded by chance: nobody can work out which searches share a class.
    hasher: RandomState,
    /// [`BRIEF_MAX`], or what a test has instead.
    brief_max: Duration,
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
    /// A pool of `places` searches at a time; 0 is twice the number of cores.
    pub(crate) fn new(places: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let places = if places == 0 { 2 * cores } else { places };
        Self {
            places: Semaphore::new(places),
            places_max: places,
            waiting: AtomicUsize::new(0),
            durations: Arc::default(),
            hasher: RandomState::new(),
            brief_max: BRIEF_MAX,
        }
    }

    /// Searches that hold a place.
    pub(crate) fn active(&self) -> usize {
        self.places_max.saturating_sub(self.places.available_permits())
    }

    /// Searches that wait for a place.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
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
        let class = self.class(&view, &request);
        let is_brief = self.durations.are_brief(class);
        if is_brief && let Some(result) = self.search_here(class, &view, &request, wait)? {
            return Ok(result);
        }
        // What was cut off is noted already.
        let durations = (!is_brief).then(|| Arc::clone(&self.durations));
        self.run(wait, move |cancellation| {
            let began = Instant::now();
            let result = view.search(&request, cancellation);
            if let Some(durations) = durations {
                durations.note(class, began.elapsed(), result.is_ok());
            }
            result
        })
        .await
    }

    /// The class of a search: what is brief on a small index may not be on another.
    fn class(&self, view: &Searcher, request: &SearchRequest) -> u64 {
        self.hasher.hash_one((view.opening(), request.class()))
    }

    /// Searches on the thread of the call; `None` when that takes too long. Nothing can cancel it meanwhile.
    fn search_here(
        &self,
        class: u64,
        view: &Searcher,
        request: &SearchRequest,
        wait: Wait,
    ) -> Result<Option<Result<SearchResult, souk_index::Error>>> {
        let began = Instant::now();
        let end = began + self.brief_max;
        let deadline = wait.until().map(tokio::time::Instant::into_std);
        let cancellation = Cancellation::at(deadline.map_or(end, |deadline| deadline.min(end)));
        let result = catch_unwind(AssertUnwindSafe(|| view.search(request, &cancellation)));
        let result = result.map_err(|_| EngineError::Defect("a search panicked"))?;
        self.durations.note(class, began.elapsed(), result.is_ok());
        let is_over = matches!(result, Err(souk_index::Error::DeadlineExceeded { .. }));
        Ok((!is_over || deadline.is_some_and(|deadline| deadline <= Instant::now())).then_some(result))
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
        let trace = TraceScope::current();
        let result = tokio::task::spawn_blocking(move || trace.run(|| work(&cancellation))).await;
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

#[cfg(test)]
mod tests;
