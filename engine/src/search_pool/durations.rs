//! How long searches of one class took lately.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Classes that are known at a time: a further one takes the place of one of these.
const PLACES: usize = 1_024;
/// Searches of a class are brief when they take less on average.
const BRIEF: Duration = Duration::from_micros(250);
/// The longest that counts: a slow search among many brief ones doesn't make its class slow.
const LONGEST: Duration = Duration::from_millis(1);
/// The last search counts as one of so many.
const WINDOW: u32 = 8;
/// The bits of a place that tell of which class it is.
const OWNER: u64 = !(u32::MAX as u64);

/// Averages by class: the upper half of a class's number tells whose the place is, and in the lower half of a place is its average in
/// nanoseconds, 0 for one that was never seen.
#[derive(Debug)]
pub(super) struct Durations(Box<[AtomicU64]>);

impl Default for Durations {
    fn default() -> Self {
        Self((0..PLACES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Durations {
    /// Whether searches of the class are known to be brief.
    pub(super) fn are_brief(&self, class: u64) -> bool {
        let average = self.place(class).map_or(0, |place| average(place, class));
        average != 0 && u128::from(average) < BRIEF.as_nanos()
    }

    /// Takes a search into the average; how long one took that has no answer counts only if that was long. Two at once may lose one of
    /// them.
    pub(super) fn note(&self, class: u64, took: Duration, is_answered: bool) {
        let Some(place) = self.place(class).filter(|_| is_answered || took >= LONGEST) else {
            return;
        };
        let took = u32::try_from(took.min(LONGEST).as_nanos())
            .unwrap_or(u32::MAX)
            .max(1);
        let average = match average(place, class) {
            0 => took,
            before => before - before / WINDOW + took / WINDOW,
        };
        place.store(class & OWNER | u64::from(average.max(1)), Ordering::Relaxed);
    }

    fn place(&self, class: u64) -> Option<&AtomicU64> {
        self.0.get(class as usize % PLACES)
    }
}

/// That of the class, if the place is its own.
fn average(place: &AtomicU64, class: u64) -> u32 {
    let place = place.load(Ordering::Relaxed);
    if place & OWNER == class & OWNER {
        place as u32
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_brief_when_its_searches_were() {
        let durations = Durations::default();
        assert!(!durations.are_brief(7), "nothing is known of it");
        durations.note(7, Duration::from_micros(50), true);
        assert!(durations.are_brief(7));
        assert!(!durations.are_brief(8));
        for _ in 0..20 {
            durations.note(7, Duration::from_millis(1), true);
        }
        assert!(!durations.are_brief(7));
        for _ in 0..20 {
            durations.note(7, Duration::from_micros(50), true);
        }
        assert!(durations.are_brief(7));
    }

    #[test]
    fn one_slow_search_is_soon_forgotten() {
        let durations = Durations::default();
        durations.note(1, Duration::from_micros(50), true);
        durations.note(1, Duration::from_secs(60), true);
        durations.note(1, Duration::from_micros(50), true);
        durations.note(1, Duration::from_micros(50), true);
        assert!(durations.are_brief(1));
    }

    #[test]
    fn what_fails_at_once_says_nothing_and_what_fails_late_says_that_it_is_slow() {
        let durations = Durations::default();
        durations.note(1, Duration::from_micros(1), false);
        assert!(!durations.are_brief(1), "nothing is known of it");
        durations.note(1, Duration::from_micros(200), true);
        durations.note(1, Duration::from_secs(1), false);
        assert!(!durations.are_brief(1));
    }

    #[test]
    fn a_class_that_comes_to_the_place_of_another_is_unknown() {
        let (durations, other) = (Durations::default(), 1 | 1 << 40);
        durations.note(1, Duration::from_micros(50), true);
        assert!(!durations.are_brief(other));
        durations.note(other, Duration::from_micros(50), true);
        assert!(durations.are_brief(other) && !durations.are_brief(1));
    }
}
