//! What watches have read of the log and their clients haven't taken yet: bounded over all watches of an engine.
//!
//! It is a copy of what the log has. When there is too much of it, the watches that weren't read from for longest lose theirs,
//! and read it once more when their clients come back: a slow client costs its own stream time, and nobody memory.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use souk_storage::RowChange;
use tokio::sync::{Semaphore, SemaphorePermit};

/// What all watches hold, bytes of the log.
pub const READ_AHEAD_BYTES_MAX: usize = 64 << 20;
/// Watches that read the log at a time; others wait for their turn.
pub const READS_MAX: usize = 8;

/// The changes of one write, or none and only a sequence that has been reached.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchEvent<C> {
    /// The position in the change log.
    pub sequence: i64,
    /// When it was committed: nanoseconds since the Unix epoch.
    pub commit_time: i64,
    /// What happened to rows of the table, in the order in which it did.
    pub changes: Vec<C>,
}

impl<C> WatchEvent<C> {
    /// The same event with other changes.
    pub(crate) fn try_map<D, E>(self, map: impl FnMut(C) -> Result<D, E>) -> Result<WatchEvent<D>, E> {
        Ok(WatchEvent {
            sequence: self.sequence,
            commit_time: self.commit_time,
            changes: self.changes.into_iter().map(map).collect::<Result<_, E>>()?,
        })
    }
}

/// Events that were read, each with its bytes in the log.
pub(crate) type Events = VecDeque<(WatchEvent<RowChange>, usize)>;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct ReadAhead<T> {
    reads: Semaphore,
    held: Mutex<Held<T>>,
}

#[derive(Debug)]
struct Held<T> {
    /// By numbers that grow: the first was put there before all others.
    buffers: BTreeMap<u64, ReadAheadBuffer<T>>,
    next: u64,
    bytes: usize,
}

/// What one watch has read ahead, and its bytes in the log.
#[derive(Debug)]
struct ReadAheadBuffer<T> {
    bytes: usize,
    value: T,
}

impl<T> Default for ReadAhead<T> {
    fn default() -> Self {
        Self {
            reads: Semaphore::new(READS_MAX),
            held: Mutex::new(Held {
                buffers: BTreeMap::new(),
                next: 0,
                bytes: 0,
            }),
        }
    }
}

impl<T> ReadAhead<T> {
    /// Waits for a turn to read. Whoever has it must go on by itself: not in a stream, which goes on when its client likes.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes it.
        self.reads.acquire().await.ok()
    }

    /// Holds what somebody has read, under a number, until there is too much.
    pub(crate) fn hold(&self, value: T, bytes: usize) -> u64 {
        let mut gone = Vec::new();
        let mut held = self.held.lock();
        let number = held.next;
        held.next += 1;
        held.bytes += bytes;
        held.buffers.insert(number, ReadAheadBuffer { bytes, value });
        while held.bytes > READ_AHEAD_BYTES_MAX
            && let Some((_, oldest)) = held.buffers.pop_first()
        {
            held.bytes -= oldest.bytes;
            gone.push(oldest);
        }
        // What is gone is freed without the lock.
        drop(held);
        number
    }

    /// Gives back what is held under a number; `None` when it had to go.
    pub(crate) fn take(&self, number: u64) -> Option<T> {
        let mut held = self.held.lock();
        let buffer = held.buffers.remove(&number)?;
        held.bytes -= buffer.bytes;
        Some(buffer.value)
    }

    /// Lets go of what is held under a number.
    pub(crate) fn forget(&self, number: u64) {
        let _freed_without_the_lock = {
            let mut held = self.held.lock();
            let buffer = held.buffers.remove(&number);
            held.bytes -= buffer.as_ref().map_or(0, |buffer| buffer.bytes);
            buffer
        };
    }

    /// What is held, bytes of the log.
    pub(crate) fn bytes(&self) -> usize {
        self.held.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn those_that_were_read_from_last_keep_theirs() {
        let ahead = ReadAhead::default();
        let third = READ_AHEAD_BYTES_MAX / 3;
        let [first, second, third_one, fourth] = [1, 2, 3, 4].map(Arc::new);
        let held = [&first, &second, &third_one].map(|value| ahead.hold(Arc::clone(value), third));
        // Whoever is read from is the last to lose what he has.
        assert_eq!(ahead.take(held[0]).as_deref(), Some(&1));
        let again = ahead.hold(Arc::clone(&first), third);
        let last = ahead.hold(Arc::clone(&fourth), third);
        assert_eq!(ahead.bytes(), 3 * third);
        assert_eq!(ahead.take(held[1]), None);
        let counts = || [&first, &second, &third_one, &fourth].map(Arc::strong_count);
        assert_eq!(counts(), [2, 1, 2, 2], "what had to go is in memory no more");
        assert_eq!(ahead.take(held[2]).as_deref(), Some(&3));
        ahead.forget(last);
        ahead.forget(last);
        assert_eq!(ahead.take(again).as_deref(), Some(&1));
        assert_eq!((ahead.bytes(), counts()), (0, [1; 4]));
        // What is too much by itself isn't held.
        let all = ahead.hold(Arc::clone(&first), READ_AHEAD_BYTES_MAX + 1);
        assert_eq!((ahead.take(all), ahead.bytes()), (None, 0));
        assert_eq!(counts(), [1; 4]);
    }
}
