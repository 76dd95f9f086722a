//! When an index lets searches see what it has taken in: the times of its commits.
//!
//! A commit begins when the one before has ended and as long again has passed: commits that take longer come less often,
//! and leave the index thread half of its time at least. Two things make them rarer, since each makes a small segment that
//! has to be merged later:
//!
//! - While the index can't follow the load, nothing that it commits is fresh: it commits each [`CATCH_UP_INTERVAL`].
//! - While nobody searches, nobody sees what it commits: it commits each [`UNSEARCHED_INTERVAL`], and holds what
//!   would be seen otherwise. The next search waits until that is committed, so it sees what it would have seen anyway
//!   (as Elasticsearch's shards that are `search.idle`).
//!
//! When somebody waits for a change that is taken in, it commits at once.

use std::time::Duration;

use tokio::time::Instant;

/// An index that hasn't been at the log's end for so long can't follow the load.
const BEHIND_AFTER: Duration = Duration::from_secs(1);
/// How often it commits then.
const CATCH_UP_INTERVAL: Duration = Duration::from_secs(2);
/// Operations after which searches are let see them, whatever the interval: what waits is bounded.
const OPERATIONS_PER_COMMIT: usize = 250_000;
/// With more segments than that commits wait for merges, as long as the interval lets them.
const SEGMENTS_MAX: usize = 64;
/// An index that wasn't searched for so long is one that nobody looks at (as long as Elasticsearch's
/// `index.search.idle.after`): whoever searches now and then doesn't wait.
const UNSEARCHED_AFTER: Duration = Duration::from_secs(30);
/// How often it commits then. Bounds also what the next search waits for.
const UNSEARCHED_INTERVAL: Duration = Duration::from_secs(1);
/// How long it lets changes come together then before it takes them in: waking up for each costs more than they do.
const UNSEARCHED_PAUSE: Duration = Duration::from_millis(10);

/// What there is to decide on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// Operations that are taken in, but not committed.
    pub(super) operations: usize,
    /// Whether they take most of their memory.
    pub(super) full: bool,
    /// How long ago the first of them was taken in.
    pub(super) age: Duration,
    /// Whether the end of the log is reached.
    pub(super) caught_up: bool,
    /// Whether somebody waits for a change that is taken in.
    pub(super) awaited: bool,
    /// Whether the index can't answer before this commit.
    pub(super) opens: bool,
    /// Whether somebody has searched since the last time.
    pub(super) searched: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing yet.
    Wait,
    /// Nothing yet, but whoever searches has to wait for a commit.
    Hold,
    /// A commit.
    Commit,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Rhythm {
    /// The longest that changes may stay unseen while the index keeps up and somebody searches.
    interval: Duration,
    /// When it last was at the log's end.
    caught_up_at: Instant,
    searched_at: Option<Instant>,
    committed_at: Option<Instant>,
    /// When the next commit may begin.
    next_commit: Instant,
    /// Until when changes are held.
    held_until: Option<Instant>,
}

impl Rhythm {
    pub(super) fn new(interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            caught_up_at: now,
            searched_at: None,
            committed_at: None,
            next_commit: now,
            held_until: None,
        }
    }

    /// What to do now.
    pub(super) fn step(&mut self, now: Instant, is: Situation) -> Step {
        if is.caught_up {
            self.caught_up_at = now;
        }
        if is.searched {
            self.searched_at = Some(now);
        }
        if is.operations == 0 {
            return Step::Wait;
        }
        if is.awaited || is.opens || is.full || is.operations >= OPERATIONS_PER_COMMIT {
            return Step::Commit;
        }
        let is_behind = now.duration_since(self.caught_up_at) > BEHIND_AFTER;
        let interval = if is_behind {
            CATCH_UP_INTERVAL
        } else {
            self.interval
        };
        if is.age < interval && !(is.caught_up && self.next_commit <= now) {
            return Step::Wait;
        }
        let until = self.committed_at.map(|at| at + UNSEARCHED_INTERVAL);
        match until {
            Some(until) if !self.is_searched(now) && now < until => {
                self.held_until = Some(until);
                Step::Hold
            }
            _ => Step::Commit,
        }
    }

    /// How long the changes that come next may wait to be taken in, as long as nobody waits for them.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        if self.is_searched(now) {
            Duration::ZERO
        } else {
            UNSEARCHED_PAUSE
        }
    }

    fn is_searched(&self, now: Instant) -> bool {
        self.searched_at
            .is_some_and(|at| now.duration_since(at) < UNSEARCHED_AFTER)
    }

    /// Takes note of a commit that ended `now`, and left so many segments.
    pub(super) fn committed(&mut self, now: Instant, took: Duration, segments: usize) {
        let pause = if segments > SEGMENTS_MAX {
            self.interval
        } else {
            took
        };
        self.next_commit = now + pause;
        self.committed_at = Some(now);
        self.held_until = None;
    }

    /// When to look again if nothing happens before, with changes of which the first was taken in at `since`.
    pub(super) fn next(&self, since: Instant) -> Instant {
        let due = self.next_commit.min(since + self.interval);
        self.held_until.map_or(due, |held| held.max(due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(200);

    /// A situation in which a commit is due.
    const DUE: Situation = Situation {
        operations: 1,
        full: false,
        age: Duration::from_millis(5),
        caught_up: true,
        awaited: false,
        opens: false,
        searched: false,
    };

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The commits of `seconds` during which something is written each millisecond, and searched each `searched_each`
    /// milliseconds; each takes 5 ms.
    fn commits(seconds: u64, searched_each: Option<u64>) -> usize {
        let begin = Instant::now();
        let mut rhythm = Rhythm::new(INTERVAL, begin);
        let (mut commits, mut held, mut since) = (0, false, begin);
        let mut at = 0;
        while at < seconds * 1_000 {
            let now = begin + millis(at);
            let searched = searched_each.is_some_and(|each| at.is_multiple_of(each));
            let situation = Situation {
                searched,
                awaited: searched && held,
                age: now.duration_since(since),
                ..DUE
            };
            match rhythm.step(now, situation) {
                Step::Wait => {}
                Step::Hold => held = true,
                Step::Commit => {
                    at += 5;
                    rhythm.committed(begin + millis(at), millis(5), 1);
                    (commits, held, since) = (commits + 1, false, begin + millis(at + 1));
                }
            }
            at += 1;
        }
        commits
    }

    #[test]
    fn who_searches_often_sees_commits_as_often_as_they_can_follow() {
        // 5 ms of work, 5 ms of rest.
        assert_eq!(commits(10, Some(10)), 1_000);
        assert_eq!(commits(10, Some(990)), 1_000);
    }

    #[test]
    fn what_nobody_searches_is_committed_each_second() {
        // The first at once, then one as each second has passed.
        assert_eq!(commits(10, None), 10);
    }

    #[test]
    fn a_first_change_after_a_pause_is_committed_at_once() {
        let begin = Instant::now();
        let mut rhythm = Rhythm::new(INTERVAL, begin);
        assert_eq!(rhythm.step(begin, DUE), Step::Commit);
        rhythm.committed(begin, millis(1), 1);
        let soon = begin + millis(300);
        assert_eq!(rhythm.step(soon, DUE), Step::Hold);
        assert_eq!(rhythm.next(soon), begin + UNSEARCHED_INTERVAL);
        let later = begin + UNSEARCHED_INTERVAL;
        assert_eq!(rhythm.step(later, DUE), Step::Commit);
    }

    #[test]
    fn what_is_awaited_or_too_much_or_opens_an_index_isnt_held() {
        let begin = Instant::now();
        let mut rhythm = Rhythm::new(INTERVAL, begin);
        rhythm.committed(begin, millis(1), 1);
        let now = begin + millis(2);
        assert_eq!(rhythm.step(now, DUE), Step::Hold);
        for situation in [
            Situation { awaited: true, ..DUE },
            Situation { full: true, ..DUE },
            Situation { opens: true, ..DUE },
            Situation {
                searched: true,
                ..DUE
            },
            Situation {
                operations: OPERATIONS_PER_COMMIT,
                ..DUE
            },
        ] {
            let mut rhythm = Rhythm::new(INTERVAL, begin);
            rhythm.committed(begin, millis(1), 1);
            assert_eq!(rhythm.step(now, situation), Step::Commit, "{situation:?}");
        }
    }

    #[test]
    fn while_the_end_of_the_log_is_far_commits_are_rare() {
        let begin = Instant::now();
        let mut rhythm = Rhythm::new(INTERVAL, begin);
        let searched = |age| Situation {
            caught_up: false,
            searched: true,
            age,
            ..DUE
        };
        // It keeps up so far: the interval counts.
        assert_eq!(rhythm.step(begin, searched(millis(199))), Step::Wait);
        assert_eq!(rhythm.step(begin, searched(INTERVAL)), Step::Commit);
        let behind = begin + BEHIND_AFTER + millis(1);
        assert_eq!(rhythm.step(behind, searched(millis(1_999))), Step::Wait);
        assert_eq!(rhythm.step(behind, searched(CATCH_UP_INTERVAL)), Step::Commit);
    }

    #[test]
    fn changes_may_come_together_while_nobody_searches() {
        let begin = Instant::now();
        let mut rhythm = Rhythm::new(INTERVAL, begin);
        assert_eq!(rhythm.pause(begin), UNSEARCHED_PAUSE);
        rhythm.step(
            begin,
            Situation {
                searched: true,
                operations: 0,
                ..DUE
            },
        );
        assert_eq!(rhythm.pause(begin), Duration::ZERO);
        assert_eq!(rhythm.pause(begin + UNSEARCHED_AFTER), UNSEARCHED_PAUSE);
    }

    #[test]
    fn with_many_segments_commits_wait_for_merges() {
        let begin = Instant::now();
        let mut rhythm = Rhythm::new(INTERVAL, begin);
        rhythm.committed(begin, millis(1), SEGMENTS_MAX + 1);
        let searched = Situation {
            searched: true,
            ..DUE
        };
        assert_eq!(rhythm.step(begin + millis(199), searched), Step::Wait);
        assert_eq!(rhythm.step(begin + INTERVAL, searched), Step::Commit);
    }
}
