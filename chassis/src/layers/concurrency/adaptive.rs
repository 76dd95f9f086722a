//! How many calls work at a time, found out from how long they take: the gradient of Netflix's concurrency-limits (Gradient2).
//!
//! Each method has a long mean of its own. When the calls of a window take more than twice theirs, the limit falls in
//! proportion; while they don't, it rises by its square root. So it settles where more calls at a time would only wait for
//! each other, whatever the mix of methods is.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::methods::Methods;

/// Least time between two changes of the limit.
const WINDOW: Duration = Duration::from_millis(250);

/// Fewest calls that a change goes by.
const WINDOW_CALLS: u32 = 50;

/// How much longer than usual calls may take without an effect.
const TOLERANCE: f64 = 2.0;

/// Part of the way to a new limit that is gone at once.
const SMOOTHING: f64 = 0.2;

/// Calls of a method whose plain mean its long mean begins with.
const FIRST_CALLS: u32 = 100;

/// Part that each later call has in it: a minute or more of load that doesn't end becomes what is usual.
const LONG_SHARE: f64 = 1.0 / 30_000.0;

/// Longest that one call counts, in long means: one that waited for something else is no sign of load.
const RATIO_MAX: f64 = 10.0;

/// The limit, and what it goes by.
#[derive(Debug)]
pub(super) struct Adaptive {
    min: usize,
    max: usize,
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

/// How long a method usually takes.
#[derive(Debug, Default)]
struct Mean {
    seconds: f64,
    /// Up to [`FIRST_CALLS`].
    calls: u32,
}

#[derive(Debug)]
struct State {
    limit: f64,
    /// Places that aren't given out.
    held: Vec<OwnedSemaphorePermit>,
    /// By method.
    means: FxHashMap<Box<str>, Mean>,
    began: Instant,
    calls: u32,
    /// Sum over the window's calls of their times in long means.
    ratios: f64,
    /// Most calls at work in the window.
    at_work: usize,
}

impl Adaptive {
    /// Between `min` and `max` of `places`, which has `max`. Only calls of `methods` are looked at.
    pub(super) fn new(min: usize, max: usize, places: Arc<Semaphore>, methods: &Methods) -> Self {
        Self {
            min: min.min(max),
            max,
            places,
            state: Mutex::new(State {
                limit: whole_to_real(max),
                held: Vec::new(),
                means: methods
                    .iter()
                    .map(|name| (name.into(), Mean::default()))
                    .collect(),
                began: Instant::now(),
                calls: 0,
                ratios: 0.0,
                at_work: 0,
            }),
        }
    }

    /// A call of `path` ended after `took`, and gives its place back.
    pub(super) fn ended(&self, path: &str, took: Duration, place: OwnedSemaphorePermit) {
        let mut state = self.state.lock();
        let at_work = self
            .max
            .saturating_sub(self.places.available_permits() + state.held.len());
        state.at_work = state.at_work.max(at_work);
        if let Some(ratio) = state.note(path.strip_prefix('/').unwrap_or(path), took) {
            state.calls += 1;
            state.ratios += ratio;
        }
        if state.calls >= WINDOW_CALLS && state.began.elapsed() >= WINDOW {
            self.adapt(&mut state);
        }
        let away = self.max - real_to_whole(state.limit).clamp(self.min, self.max);
        if state.held.len() < away {
            state.held.push(place);
        } else {
            state.held.truncate(away);
            drop(place);
        }
    }

    fn adapt(&self, state: &mut State) {
        let mean = state.ratios / f64::from(state.calls.max(1));
        let gradient = (TOLERANCE / mean.max(f64::MIN_POSITIVE)).clamp(0.5, 1.0);
        let wanted = state.limit * gradient + state.limit.sqrt();
        // A limit that nobody comes near to says nothing about what would be if somebody did.
        let tested = whole_to_real(state.at_work) * 2.0 >= state.limit;
        if gradient < 1.0 || tested {
            let next = state.limit + (wanted - state.limit) * SMOOTHING;
            state.limit = next.clamp(whole_to_real(self.min.max(1)), whole_to_real(self.max));
        }
        (state.calls, state.ratios, state.at_work) = (0, 0.0, 0);
        state.began = Instant::now();
    }

    /// The limit now.
    pub(super) fn limit(&self) -> usize {
        real_to_whole(self.state.lock().limit)
    }

    /// Places that aren't given out.
    pub(super) fn held(&self) -> usize {
        self.state.lock().held.len()
    }
}

impl State {
    /// The time of a call in long means of its method; `None` of what isn't one of ours.
    fn note(&mut self, method: &str, took: Duration) -> Option<f64> {
        let mean = self.means.get_mut(method)?;
        let took = took.as_secs_f64().max(f64::MIN_POSITIVE);
        let share = if mean.calls < FIRST_CALLS {
            mean.calls += 1;
            1.0 / f64::from(mean.calls)
        } else {
            LONG_SHARE
        };
        if mean.calls == 1 {
            mean.seconds = took;
        }
        let ratio = (took / mean.seconds).min(RATIO_MAX);
        mean.seconds += (took.min(mean.seconds * RATIO_MAX) - mean.seconds) * share;
        Some(ratio)
    }
}

/// Limits are far below where a double stops being exact.
fn whole_to_real(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// A cast from a double saturates.
fn real_to_whole(limit: f64) -> usize {
    limit.round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::{CALL, methods};

    const MAX: usize = 100;

    /// Lets so many windows pass in which `at_work` calls work at a time and take so long.
    async fn windows(adaptive: &Adaptive, count: u32, at_work: usize, took: Duration) {
        for _ in 0..count {
            tokio::time::advance(WINDOW).await;
            let mut ended = 0;
            while ended < WINDOW_CALLS {
                let place = || Arc::clone(&adaptive.places).try_acquire_owned().ok();
                let working: Vec<_> = (0..at_work).map_while(|_| place()).collect();
                for place in working {
                    adaptive.ended(CALL, took, place);
                    ended += 1;
                }
            }
        }
    }

    fn adaptive() -> Adaptive {
        let places = Arc::new(Semaphore::new(MAX));
        Adaptive::new(10, MAX, places, &methods())
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_falls_when_calls_take_longer_and_rises_again() {
        let adaptive = adaptive();
        let usual = Duration::from_millis(10);
        windows(&adaptive, 20, MAX, usual).await;
        assert_eq!(adaptive.limit(), MAX);
        windows(&adaptive, 10, MAX, usual * 8).await;
        let fallen = adaptive.limit();
        assert!(fallen < MAX / 2, "{fallen}");
        let free = adaptive.places.available_permits();
        assert!(free.abs_diff(fallen) <= 1, "{free} places of {fallen}");
        windows(&adaptive, 100, MAX, usual).await;
        assert_eq!(adaptive.limit(), MAX);
        assert_eq!(adaptive.places.available_permits(), MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn it_never_falls_below_its_least() {
        let adaptive = adaptive();
        windows(&adaptive, 5, MAX, Duration::from_millis(1)).await;
        windows(&adaptive, 40, MAX, Duration::from_secs(5)).await;
        assert!(adaptive.limit() >= 10, "{}", adaptive.limit());
        assert!(adaptive.places.available_permits() >= 10);
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_descriptor_knows_is_not_looked_at() {
        let adaptive = adaptive();
        for _ in 0..1_000 {
            let place = Arc::clone(&adaptive.places).try_acquire_owned().expect("a place");
            tokio::time::advance(WINDOW).await;
            adaptive.ended("/made.up/Name", Duration::from_secs(9), place);
        }
        assert_eq!(adaptive.limit(), MAX);
    }
}
