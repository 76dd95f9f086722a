//! How long a group waits for company before it is written.
//!
//! A sync costs the same for one commit as for a hundred, and while many writers wait for each other's syncs a group that begins at once
//! finds only those whose clients were quickest. So a group that follows a large one waits for a part of what a sync takes; one
//! behind a small group, as of a lone writer, never does. PostgreSQL knows this as `commit_delay`, half of a sync, and `commit_siblings`.

use std::time::Duration;

/// Commits of a group that has company.
const SIBLINGS_MIN: usize = 8;

/// Longest wait.
const WAIT_MAX: Duration = Duration::from_micros(500);

/// What the last group tells about the next. See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Company {
    /// Commits of the last group.
    commits: usize,
    /// What it took to write and sync it.
    took: Duration,
}

impl Company {
    /// Takes note of a group that was synced, or just written.
    pub(super) fn wrote(&mut self, commits: usize, synced: bool, took: Duration) {
        *self = match synced {
            true => Self { commits, took },
            false => Self::default(),
        };
    }

    /// How long to wait with a group when so many requests are there for it.
    pub(super) fn wait(&self, there: usize) -> Option<Duration> {
        let expected = self.commits >= SIBLINGS_MIN && there < self.commits;
        expected.then(|| (self.took / 2).min(WAIT_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_micros(600);

    #[test]
    fn who_writes_alone_never_waits() {
        let mut company = Company::default();
        assert_eq!(company.wait(1), None);
        company.wrote(SIBLINGS_MIN - 1, true, SYNC);
        assert_eq!(company.wait(1), None);
    }

    #[test]
    fn a_group_waits_for_those_of_the_last_half_a_sync_at_most() {
        let mut company = Company::default();
        company.wrote(20, true, SYNC);
        assert_eq!(company.wait(1), Some(SYNC / 2));
        assert_eq!(company.wait(19), Some(SYNC / 2));
        assert_eq!(company.wait(20), None, "all are there");
        company.wrote(20, true, Duration::from_secs(1));
        assert_eq!(company.wait(1), Some(WAIT_MAX));
        company.wrote(20, false, SYNC);
        assert_eq!(company.wait(1), None, "what isn't synced costs little");
        company.wrote(20, true, SYNC);
        company.wrote(1, true, SYNC);
        assert_eq!(company.wait(1), None, "the others are gone");
    }
}
