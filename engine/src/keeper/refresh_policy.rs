//! The refresh policy: when an index commits the changes that it has taken in, so that searches see them.
//!
//! After a commit the next one waits for as long as that commit took, so that commits use at most half of the index
//! thread's time. Each makes a small segment that has to be merged later, so they are rarer in two cases:
//!
//! - While the index is behind the log, nothing that it commits is fresh: it commits every [`CATCH_UP_INTERVAL`].
//! - While nobody searches, it commits every [`UNSEARCHED_INTERVAL`], and holds changes that would have been committed
//!   otherwise. The next search waits until they are, so it sees what it would have seen anyway (Elasticsearch's shards
//!   that are `search.idle` do the same).
//!
//! When a search waits for a change that is taken in, it is committed at once.

use std::time::Duration;

use tokio::time::Instant;

/// An index that hasn't reached the log's end for this long is behind.
const BEHIND_AFTER: Duration = Duration::from_secs(1);
/// How often an index commits that is behind.
const CATCH_UP_INTERVAL: Duration = Duration::from_secs(2);
/// Operations that are committed whatever the interval: what waits is bounded.
const OPERATIONS_PER_COMMIT: usize = 250_000;
/// With more segments than this, commits leave merges the whole interval.
const SEGMENTS_MAX: usize = 64;
/// An index that wasn't searched for this long counts as unsearched (the default of Elasticsearch's
/// `index.search.idle.after`); occasional searches don't have to wait.
const UNSEARCHED_AFTER: Duration = Duration::from_secs(30);
/// How often an unsearched index commits; also the longest that changes are held from the next search.
const UNSEARCHED_INTERVAL: Duration = Duration::from_secs(1);
/// How long an unsearched index lets changes gather before it takes them in: waking up for each costs more than they do.
const UNSEARCHED_PAUSE: Duration = Duration::from_millis(10);

/// The state of an index that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefreshInput {
    /// Operations that are taken in, but not committed.
    pub(super) operations: usize,
    /// Whether they hold so much memory that they have to be committed.
    pub(super) full: bool,
    /// How long ago the first of them was taken in.
    pub(super) age: Duration,
    /// Whether the end of the log is reached.
    pub(super) caught_up: bool,
    /// Whether a search waits for a change that is taken in.
    pub(super) awaited: bool,
    /// Whether the index can't serve before this commit.
    pub(super) opens: bool,
    /// Whether there was a search since the last decision.
    pub(super) searched: bool,
}

/// What to do with the changes that are taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefreshDecision {
    /// Wait.
    Wait,
    /// Wait, and let the next search wait for the commit.
    Hold,
    /// Commit them now.
    Commit,
}

/// The refresh policy of one index; see the [module](self).
#[derive(Debug)]
pub(super) struct RefreshPolicy {
    /// The longest that changes stay unseen while the index keeps up and is searched.
    interval: Duration,
    /// When it last was at the log's end.
    caught_up_at: Instant,
    searched_at: Option<Instant>,
    committed_at: Option<Instant>,
    /// When the next commit may begin.
    next_commit: Instant,
    /// Until when changes are held; `None` while none is.
    held_until: Option<Instant>,
}

impl RefreshPolicy {
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

    /// Decides what to do now.
    pub(super) fn decide(&mut self, now: Instant, input: RefreshInput) -> RefreshDecision {
        if input.caught_up {
            self.caught_up_at = now;
        }
        if input.searched {
            self.searched_at = Some(now);
        }
        if input.operations == 0 {
            return RefreshDecision::Wait;
        }
        if input.awaited || input.opens || input.full || input.operations >= OPERATIONS_PER_COMMIT {
            return RefreshDecision::Commit;
        }
        let is_behind = now.duration_since(self.caught_up_at) > BEHIND_AFTER;
        let interval = if is_behind {
            CATCH_UP_INTERVAL
        } else {
            self.interval
        };
        if input.age < interval && !(input.caught_up && self.next_commit <= now) {
            return RefreshDecision::Wait;
        }
        let until = self.committed_at.map(|at| at + UNSEARCHED_INTERVAL);
        match until {
            Some(until) if !self.is_searched(now) && now < until => {
                self.held_until = Some(until);
                RefreshDecision::Hold
            }
            _ => RefreshDecision::Commit,
        }
    }

    /// How long the next changes may gather before they are taken in, unless a search waits for them.
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

    /// Notes a commit that ended `now`, and after which the index has `segments`.
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

    /// When to decide again if nothing happens before; the first of the changes was taken in at `since`.
    pub(super) fn next_decision(&self, since: Instant) -> Instant {
        let due = self.next_commit.min(since + self.interval);
        self.held_until.map_or(due, |held| held.max(due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(200);

    /// An input on which a commit is due.
    const DUE: RefreshInput = RefreshInput {
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
        let mut refresh = RefreshPolicy::new(INTERVAL, begin);
        let (mut commits, mut held, mut since) = (0, false, begin);
        let mut at = 0;
        while at < seconds * 1_000 {
            let now = begin + millis(at);
            let searched = searched_each.is_some_and(|each| at.is_multiple_of(each));
            let input = RefreshInput {
                searched,
                awaited: searched && held,
                age: now.duration_since(since),
                ..DUE
            };
            match refresh.decide(now, input) {
                RefreshDecision::Wait => {}
                RefreshDecision::Hold => held = true,
                RefreshDecision::Commit => {
                    at += 5;
                    refresh.committed(begin + millis(at), millis(5), 1);
                    (commits, held, since) = (commits + 1, false, begin + millis(at + 1));
                }
            }
            at += 1;
        }
        commits
    }

    #[test]
    fn a_searched_index_commits_half_of_the_time() {
        // 5 ms of work, 5 ms of rest.
        assert_eq!(commits(10, Some(10)), 1_000);
        assert_eq!(commits(10, Some(990)), 1_000);
    }

    #[test]
    fn an_unsearched_index_commits_every_second() {
        // The first at once, then one as each second has passed.
        assert_eq!(commits(10, None), 10);
    }

    #[test]
    fn a_first_change_after_a_pause_is_committed_at_once() {
        let begin = Instant::now();
        let mut refresh = RefreshPolicy::new(INTERVAL, begin);
        assert_eq!(refresh.decide(begin, DUE), RefreshDecision::Commit);
        refresh.committed(begin, millis(1), 1);
        let soon = begin + millis(300);
        assert_eq!(refresh.decide(soon, DUE), RefreshDecision::Hold);
        assert_eq!(refresh.next_decision(soon), begin + UNSEARCHED_INTERVAL);
        let later = begin + UNSEARCHED_INTERVAL;
        assert_eq!(refresh.decide(later, DUE), RefreshDecision::Commit);
    }

    #[test]
    fn what_is_awaited_or_too_much_or_opens_an_index_isnt_held() {
        let begin = Instant::now();
        let mut refresh = RefreshPolicy::new(INTERVAL, begin);
        refresh.committed(begin, millis(1), 1);
        let now = begin + millis(2);
        assert_eq!(refresh.decide(now, DUE), RefreshDecision::Hold);
        for input in [
            RefreshInput { awaited: true, ..DUE },
            RefreshInput { full: true, ..DUE },
            RefreshInput { opens: true, ..DUE },
            RefreshInput {
                searched: true,
                ..DUE
            },
            RefreshInput {
                operations: OPERATIONS_PER_COMMIT,
                ..DUE
            },
        ] {
            let mut refresh = RefreshPolicy::new(INTERVAL, begin);
            refresh.committed(begin, millis(1), 1);
            assert_eq!(refresh.decide(now, input), RefreshDecision::Commit, "{input:?}");
        }
    }

    #[test]
    fn an_index_behind_the_log_commits_rarely() {
        let begin = Instant::now();
        let mut refresh = RefreshPolicy::new(INTERVAL, begin);
        let searched = |age| RefreshInput {
            caught_up: false,
            searched: true,
            age,
            ..DUE
        };
        // It keeps up so far: the interval counts.
        assert_eq!(
            refresh.decide(begin, searched(millis(199))),
            RefreshDecision::Wait
        );
        assert_eq!(refresh.decide(begin, searched(INTERVAL)), RefreshDecision::Commit);
        let behind = begin + BEHIND_AFTER + millis(1);
        assert_eq!(
            refresh.decide(behind, searched(millis(1_999))),
            RefreshDecision::Wait
        );
        assert_eq!(
            refresh.decide(behind, searched(CATCH_UP_INTERVAL)),
            RefreshDecision::Commit
        );
    }

    #[test]
    fn changes_may_gather_while_nobody_searches() {
        let begin = Instant::now();
        let mut refresh = RefreshPolicy::new(INTERVAL, begin);
        assert_eq!(refresh.pause(begin), UNSEARCHED_PAUSE);
        refresh.decide(
            begin,
            RefreshInput {
                searched: true,
                operations: 0,
                ..DUE
            },
        );
        assert_eq!(refresh.pause(begin), Duration::ZERO);
        assert_eq!(refresh.pause(begin + UNSEARCHED_AFTER), UNSEARCHED_PAUSE);
    }

    #[test]
    fn with_many_segments_commits_wait_for_merges() {
        let begin = Instant::now();
        let mut refresh = RefreshPolicy::new(INTERVAL, begin);
        refresh.committed(begin, millis(1), SEGMENTS_MAX + 1);
        let searched = RefreshInput {
            searched: true,
            ..DUE
        };
        assert_eq!(
            refresh.decide(begin + millis(199), searched),
            RefreshDecision::Wait
        );
        assert_eq!(
            refresh.decide(begin + INTERVAL, searched),
            RefreshDecision::Commit
        );
    }
}
