//! How long searches of one class took lately.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Classes that are told apart; others share a place with one of these.
const PLACES: usize = 1_024;
/// Searches of a class are brief when they take less on average.
const BRIEF: Duration = Duration::from_micros(250);
/// The longest that counts: a slow search among many brief ones doesn't make its class slow.
const LONGEST: Duration = Duration::from_millis(1);
/// The last search counts as one of so many.
const WINDOW: u32 = 8;

/// Averages by class: in nanoseconds, 0 for one that was never seen.
#[derive(Debug)]
pub(super) struct Durations(Box<[AtomicU32]>);

impl Default for Durations {
    fn default() -> Self {
        Self((0..PLACES).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Durations {
    /// Whether searches of the class are known to be brief.
    pub(super) fn are_brief(&self, class: u64) -> bool {
        let average = self.place(class).map_or(0, |place| place.load(Ordering::Relaxed));
        average != 0 && u128::from(average) < BRIEF.as_nanos()
    }

    /// Takes a search into the average. Two at once may lose one of them.
    pub(super) fn note(&self, class: u64, took: Duration) {
        let Some(place) = self.place(class) else {
            return;
        };
        let took = u32::try_from(took.min(LONGEST).as_nanos())
            .unwrap_or(u32::MAX)
            .max(1);
        let average = match place.load(Ordering::Relaxed) {
            0 => took,
            before => before - before / WINDOW + took / WINDOW,
        };
        place.store(average.max(1), Ordering::Relaxed);
    }

    fn place(&self, class: u64) -> Option<&AtomicU32> {
        self.0.get(class as usize % PLACES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_brief_when_its_searches_were() {
        let durations = Durations::default();
        assert!(!durations.are_brief(7), "nothing is known of it");
        durations.note(7, Duration::from_micros(50));
        assert!(durations.are_brief(7));
        assert!(!durations.are_brief(8));
        for _ in 0..20 {
            durations.note(7, Duration::from_millis(1));
        }
        assert!(!durations.are_brief(7));
        for _ in 0..20 {
            durations.note(7, Duration::from_micros(50));
        }
        assert!(durations.are_brief(7));
    }

    #[test]
    fn one_slow_search_is_soon_forgotten() {
        let durations = Durations::default();
        durations.note(1, Duration::from_micros(50));
        durations.note(1, Duration::from_secs(60));
        durations.note(1, Duration::from_micros(50));
        durations.note(1, Duration::from_micros(50));
        assert!(durations.are_brief(1));
    }
}
