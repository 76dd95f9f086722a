//! How long the good callers' calls took, and which failed, in each part of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;

/// Failures that are told in full; all are counted.
const TOLD_MAX: usize = 5;

/// What was noted since it was last taken.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Page>);

/// What was noted in one part of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// Times of those that were answered, by kind of call.
    times: BTreeMap<&'static str, Vec<Duration>>,
    pub(super) failed: usize,
    pub(super) failures: Vec<String>,
}

impl Ledger {
    pub(super) fn answered(&self, kind: &'static str, after: Duration) {
        self.0.lock().times.entry(kind).or_default().push(after);
    }

    pub(super) fn failed(&self, how: String) {
        let mut page = self.0.lock();
        page.failed += 1;
        if page.failures.len() < TOLD_MAX {
            page.failures.push(how);
        }
    }

    /// Begins a new page, and gives the old one.
    pub(super) fn turn(&self) -> Page {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Page {
    /// Times of all calls together.
    pub(super) fn all(&self) -> Times {
        Times::new(self.times.values().flatten().copied().collect())
    }

    /// Times by kind of call.
    pub(super) fn kinds(&self) -> BTreeMap<&'static str, Times> {
        let kinds = self.times.iter();
        kinds
            .map(|(kind, times)| (*kind, Times::new(times.clone())))
            .collect()
    }
}

/// Times in order.
#[derive(Clone, Debug)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// So many of 100 are no longer (nearest rank); zero without any.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let at = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// As cells of a table: how many, p50, p99 and the slowest in milliseconds.
impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most_of, all] = [50, 99, 100].map(|percent| self.percentile(percent).as_secs_f64() * 1e3);
        write!(f, "{} | {half:.1}, {most_of:.1}, {all:.0} ms", self.count())
    }
}
