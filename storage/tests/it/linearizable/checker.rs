//! Whether a recorded history of one partition could have happened one operation at a time: the search of Wing and
//! Gong ("Testing and Verifying Concurrent Objects", 1993) with the memory of Lowe ("Testing for Linearizability",
//! 2017): a set of operations that led to a state once is not tried again.

use std::collections::{BTreeMap, HashSet};

/// A row as it is seen: its revision and its number; `None` when there is none.
pub(super) type Seen = Option<(u64, i64)>;
/// The rows of a partition by their numbers.
pub(super) type Rows = BTreeMap<i64, (u64, i64)>;

/// What must hold of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Must {
    Anything,
    Exist,
    NotExist,
    Revision(u64),
    /// Its number must be this one.
    Number(i64),
}

impl Must {
    fn holds(self, row: Option<&(u64, i64)>) -> bool {
        match self {
            Self::Anything => true,
            Self::Exist => row.is_some(),
            Self::NotExist => row.is_none(),
            Self::Revision(expected) => row.is_some_and(|(revision, _)| *revision == expected),
            Self::Number(expected) => row.is_some_and(|(_, number)| *number == expected),
        }
    }
}

/// What is done to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Put(i64),
    /// Adds; with the sum that was given back, if it was asked for.
    Add(i64, Option<i64>),
    Delete,
}

/// What an operation was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// These rows were seen in one moment.
    Saw(Vec<(i64, Seen)>),
    /// In one moment the rows were as `saw` says, all conditions held, and all was done, with this sequence.
    Wrote {
        saw: Vec<(i64, Seen)>,
        writes: Vec<(i64, Must, Effect)>,
        sequence: u64,
    },
    /// The condition didn't hold.
    Refused(i64, Must),
}

/// The request that a write carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) id: u64,
    /// Whether the answer says that it was that of an earlier attempt.
    pub(super) replayed: bool,
}

/// An operation between two moments of one clock.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) invoked: u64,
    pub(super) returned: u64,
    pub(super) event: Event,
    pub(super) request: Option<Request>,
}

/// The attempts at each request. Which of them are done says what is known of it: no more state is needed.
struct Attempts<'a> {
    history: &'a [Operation],
    of: BTreeMap<u64, Vec<usize>>,
}

impl<'a> Attempts<'a> {
    fn new(history: &'a [Operation]) -> Self {
        let mut of: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (at, operation) in history.iter().enumerate() {
            if let Some(request) = operation.request {
                of.entry(request.id).or_default().push(at);
            }
        }
        Self { history, of }
    }

    /// The answer of the attempt that was applied; one that was refused leaves nothing behind.
    fn applied(&self, id: u64, done: &Done) -> Option<&Event> {
        let attempts = self.of.get(&id)?.iter().filter(|at| done.has(**at));
        let mut answers = attempts.map(|at| &self.history[*at].event);
        answers.find(|event| matches!(event, Event::Wrote { .. }))
    }

    /// The rows after an operation; `None` when it can't happen then.
    fn after(&self, rows: &Rows, done: &Done, operation: &Operation) -> Option<Rows> {
        let Some(Request { id, replayed }) = operation.request else {
            return after(rows, &operation.event);
        };
        match self.applied(id, done) {
            // It gets the first answer again, and nothing is done.
            Some(first) => (replayed && *first == operation.event).then(|| rows.clone()),
            None if replayed => None,
            None => after(rows, &operation.event),
        }
    }
}

/// The rows after an event; `None` when it can't happen to these rows.
fn after(rows: &Rows, event: &Event) -> Option<Rows> {
    let as_seen = |saw: &[(i64, Seen)]| saw.iter().all(|(row, seen)| rows.get(row).copied() == *seen);
    match event {
        Event::Saw(saw) => as_seen(saw).then(|| rows.clone()),
        Event::Refused(row, must) => (!must.holds(rows.get(row))).then(|| rows.clone()),
        Event::Wrote {
            saw,
            writes,
            sequence,
        } => {
            let newest = rows.values().map(|(revision, _)| *revision).max().unwrap_or(0);
            if !as_seen(saw) || !writes.iter().all(|(row, must, _)| must.holds(rows.get(row))) {
                return None;
            }
            let mut changed = rows.clone();
            for (row, _, effect) in writes {
                match effect {
                    Effect::Put(number) => {
                        changed.insert(*row, (*sequence, *number));
                    }
                    Effect::Add(by, told) => {
                        let sum = rows.get(row).map_or(0, |(_, number)| *number) + by;
                        if told.is_some_and(|told| told != sum) {
                            return None;
                        }
                        changed.insert(*row, (*sequence, sum));
                    }
                    Effect::Delete => {
                        changed.remove(row);
                    }
                }
            }
            (changed == *rows || *sequence > newest).then_some(changed)
        }
    }
}

/// Operations by the order of their calls, as bits.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Done {
    bits: Vec<u64>,
    /// Every operation before this one is done.
    first: usize,
}

impl Done {
    fn has(&self, at: usize) -> bool {
        self.bits[at / 64] & (1 << (at % 64)) != 0
    }

    fn with(&self, at: usize, count: usize) -> Self {
        let mut more = self.clone();
        more.bits[at / 64] |= 1 << (at % 64);
        while more.first < count && more.has(more.first) {
            more.first += 1;
        }
        more
    }
}

/// The longest run of operations that could have happened one at a time; all of them if the history is linearisable.
pub(super) fn longest_run(history: &[Operation]) -> usize {
    let mut history = history.to_vec();
    history.sort_by_key(|operation| operation.invoked);
    let none = Done {
        bits: vec![0; history.len().div_ceil(64)],
        first: 0,
    };
    let attempts = Attempts::new(&history);
    let mut tried = HashSet::new();
    let mut longest = 0;
    let mut open = vec![(none, Rows::new(), 0)];
    while let Some((done, rows, count)) = open.pop() {
        longest = longest.max(count);
        if count == history.len() {
            return count;
        }
        // Whatever was called before the first answer that is still out may be next.
        let mut answered = u64::MAX;
        for (at, operation) in history.iter().enumerate().skip(done.first) {
            if operation.invoked > answered {
                break;
            }
            if done.has(at) {
                continue;
            }
            answered = answered.min(operation.returned);
            if let Some(changed) = attempts.after(&rows, &done, operation) {
                let more = done.with(at, history.len());
                if tried.insert((more.clone(), changed.clone())) {
                    open.push((more, changed, count + 1));
                }
            }
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(invoked: u64, returned: u64, event: Event) -> Operation {
        Operation {
            invoked,
            returned,
            event,
            request: None,
        }
    }

    fn attempt(invoked: u64, returned: u64, event: Event, replayed: bool) -> Operation {
        Operation {
            request: Some(Request { id: 7, replayed }),
            ..operation(invoked, returned, event)
        }
    }

    fn wrote(must: Must, effect: Effect, sequence: u64) -> Event {
        Event::Wrote {
            saw: Vec::new(),
            writes: vec![(1, must, effect)],
            sequence,
        }
    }

    fn saw(seen: Seen) -> Event {
        Event::Saw(vec![(1, seen)])
    }

    #[test]
    fn takes_overlapping_operations_in_the_order_that_fits() {
        let history = [
            operation(1, 10, wrote(Must::NotExist, Effect::Put(5), 1)),
            operation(2, 3, saw(None)),
            operation(4, 5, saw(Some((1, 5)))),
            operation(6, 12, wrote(Must::Revision(1), Effect::Add(2, Some(7)), 2)),
            operation(7, 8, Event::Refused(1, Must::Revision(3))),
            operation(11, 13, saw(Some((2, 7)))),
        ];
        assert_eq!(longest_run(&history), history.len());
    }

    #[test]
    fn finds_a_stale_read() {
        let history = [
            operation(1, 2, wrote(Must::NotExist, Effect::Put(5), 1)),
            operation(3, 4, wrote(Must::Exist, Effect::Put(6), 2)),
            operation(5, 6, saw(Some((1, 5)))),
        ];
        assert_eq!(longest_run(&history), 2);
    }

    #[test]
    fn finds_a_lost_update() {
        let history = [
            operation(1, 2, wrote(Must::NotExist, Effect::Put(0), 1)),
            operation(3, 6, wrote(Must::Anything, Effect::Add(1, None), 2)),
            operation(4, 7, wrote(Must::Anything, Effect::Add(1, None), 3)),
            operation(8, 9, saw(Some((3, 1)))),
        ];
        assert_eq!(longest_run(&history), 3);
    }

    #[test]
    fn finds_two_writers_that_both_created_a_row() {
        let history = [
            operation(1, 3, wrote(Must::NotExist, Effect::Put(1), 1)),
            operation(2, 4, wrote(Must::NotExist, Effect::Put(2), 2)),
        ];
        assert_eq!(longest_run(&history), 1);
    }

    #[test]
    fn takes_a_repeated_request_for_nothing_done() {
        let add = || wrote(Must::Anything, Effect::Add(2, Some(2)), 1);
        let history = [
            attempt(1, 2, Event::Refused(1, Must::Exist), false),
            attempt(3, 6, add(), false),
            attempt(4, 5, add(), true),
            operation(7, 8, wrote(Must::Exist, Effect::Put(9), 2)),
            attempt(9, 10, add(), true),
            operation(11, 12, saw(Some((2, 9)))),
        ];
        assert_eq!(longest_run(&history), history.len());
    }

    #[test]
    fn finds_a_request_that_was_forgotten() {
        let add = |sum, sequence| wrote(Must::Anything, Effect::Add(2, Some(sum)), sequence);
        for (forgotten, longest) in [
            // Applied again.
            (attempt(3, 4, add(4, 2), false), 1),
            // Refused by what it did itself.
            (attempt(3, 4, Event::Refused(1, Must::NotExist), false), 1),
            // Not the first answer.
            (attempt(3, 4, add(4, 1), true), 1),
            (attempt(3, 4, add(2, 2), true), 1),
            // The first answer, but said to be new.
            (attempt(3, 4, add(2, 1), false), 1),
            (attempt(3, 4, add(2, 1), true), 2),
        ] {
            let history = [attempt(1, 2, add(2, 1), false), forgotten];
            assert_eq!(longest_run(&history), longest, "{history:?}");
        }
    }

    #[test]
    fn finds_an_answer_of_nobody() {
        let add = || wrote(Must::Anything, Effect::Add(2, Some(2)), 1);
        let history = [attempt(1, 2, add(), true), attempt(3, 4, add(), false)];
        assert_eq!(longest_run(&history), 0);
    }

    #[test]
    fn finds_a_batch_seen_in_half() {
        let both = Event::Wrote {
            saw: Vec::new(),
            writes: vec![
                (1, Must::Anything, Effect::Put(1)),
                (2, Must::Anything, Effect::Put(1)),
            ],
            sequence: 1,
        };
        let half = Event::Saw(vec![(1, Some((1, 1))), (2, None)]);
        let history = [operation(1, 4, both), operation(2, 3, half)];
        assert_eq!(longest_run(&history), 1);
    }
}
