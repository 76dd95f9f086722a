//! The commit delay: how long a commit group waits for more commits before it is written.
//!
//! A sync costs the same for one commit as for a hundred, and while many writers wait for each other's syncs a group that begins at once
//! finds only those whose clients were quickest. So a group that follows a large one waits for a part of what a sync takes; one
//! behind a small group, as of a lone writer, never does. PostgreSQL knows this as `commit_delay`, half of a sync, and `commit_siblings`.

use std::time::Duration;

/// Fewest commits of a group that delay the next.
const SIBLINGS_MIN: usize = 8;

/// Longest delay.
const DELAY_MAX: Duration = Duration::from_micros(500);

/// Delays a group by the size and the sync time of the one before. See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CommitDelay {
    /// Commits of the last group; 0 when it wasn't synced.
    commits: usize,
    /// Time it took to write and sync the last group.
    took: Duration,
}

impl CommitDelay {
    /// Records a group that was written, and maybe synced.
    pub(super) fn record(&mut self, commits: usize, synced: bool, took: Duration) {
        *self = match synced {
            true => Self { commits, took },
            false => Self::default(),
        };
    }

    /// Time to wait before a group is written while `queued` requests are there for it.
    pub(super) fn before_group(&self, queued: usize) -> Option<Duration> {
        let expects_more = self.commits >= SIBLINGS_MIN && queued < self.commits;
        expects_more.then(|| (self.took / 2).min(DELAY_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_micros(600);

    #[test]
    fn a_lone_writer_is_never_delayed() {
        let mut delay = CommitDelay::default();
        assert_eq!(delay.before_group(1), None);
        delay.record(SIBLINGS_MIN - 1, true, SYNC);
        assert_eq!(delay.before_group(1), None);
    }

    #[test]
    fn a_group_waits_for_the_writers_of_the_last_half_a_sync_at_most() {
        let mut delay = CommitDelay::default();
        delay.record(20, true, SYNC);
        assert_eq!(delay.before_group(1), Some(SYNC / 2));
        assert_eq!(delay.before_group(19), Some(SYNC / 2));
        assert_eq!(delay.before_group(20), None, "all are there");
        delay.record(20, true, Duration::from_secs(1));
        assert_eq!(delay.before_group(1), Some(DELAY_MAX));
        delay.record(20, false, SYNC);
        assert_eq!(delay.before_group(1), None, "what isn't synced costs little");
        delay.record(20, true, SYNC);
        delay.record(1, true, SYNC);
        assert_eq!(delay.before_group(1), None, "the others are gone");
    }
}
