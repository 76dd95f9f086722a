//! What watches have read of the log and their clients haven't taken yet: bounded over all watches of an engine.
//!
//! It is a copy of what the log has. When there is too much of it, the watches that weren't read from for longest lose theirs,
//! and read it once more when their clients come back: a slow client costs its own stream time, and nobody memory.

use std::any::Any;
use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

/// What all watches hold, bytes of the log.
pub const READ_AHEAD_BYTES_MAX: usize = 64 << 20;
/// Watches that read the log at a time; others wait for their turn.
pub const READS_MAX: usize = 8;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    reads: Semaphore,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// By numbers that grow: the first was put there before all others.
    parts: BTreeMap<u64, Part>,
    next: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Part {
    bytes: usize,
    value: Box<dyn Any + Send>,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self {
            reads: Semaphore::new(READS_MAX),
            held: Mutex::default(),
        }
    }
}

impl ReadAhead {
    /// Waits for a turn to read. Whoever has it must go on by itself: not in a stream, which goes on when its client likes.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes it.
        self.reads.acquire().await.ok()
    }

    /// Holds what somebody has read, under a number, until there is too much.
    pub(crate) fn hold<T: Send + 'static>(&self, value: T, bytes: usize) -> u64 {
        let mut gone = Vec::new();
        let mut held = self.held.lock();
        let number = held.next;
        held.next += 1;
        held.bytes += bytes;
        let value = Box::new(value);
        held.parts.insert(number, Part { bytes, value });
        while held.bytes > READ_AHEAD_BYTES_MAX
            && let Some((_, oldest)) = held.parts.pop_first()
        {
            held.bytes -= oldest.bytes;
            gone.push(oldest);
        }
        // What is gone is freed without the lock.
        drop(held);
        number
    }

    /// Gives back what is held under a number; `None` when it had to go.
    pub(crate) fn take<T: Send + 'static>(&self, number: u64) -> Option<T> {
        let part = {
            let mut held = self.held.lock();
            let part = held.parts.remove(&number)?;
            held.bytes -= part.bytes;
            part
        };
        part.value.downcast().ok().map(|value| *value)
    }

    /// Lets go of what is held under a number.
    pub(crate) fn forget(&self, number: u64) {
        let _freed_without_the_lock = {
            let mut held = self.held.lock();
            let part = held.parts.remove(&number);
            held.bytes -= part.as_ref().map_or(0, |part| part.bytes);
            part
        };
    }

    /// What is held, bytes of the log.
    pub(crate) fn bytes(&self) -> usize {
        self.held.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_read_from_last_keep_theirs() {
        let ahead = ReadAhead::default();
        let third = READ_AHEAD_BYTES_MAX / 3;
        let first = ahead.hold("first", third);
        let second = ahead.hold("second", third);
        let third_one = ahead.hold("third", third);
        // Whoever is read from is the last to lose what he has.
        assert_eq!(ahead.take::<&str>(first), Some("first"));
        let first = ahead.hold("first", third);
        let fourth = ahead.hold("fourth", third);
        assert_eq!(ahead.bytes(), 3 * third);
        assert_eq!(ahead.take::<&str>(second), None);
        assert_eq!(ahead.take::<&str>(third_one), Some("third"));
        ahead.forget(fourth);
        ahead.forget(fourth);
        assert_eq!(ahead.take::<&str>(first), Some("first"));
        assert_eq!(ahead.bytes(), 0);
        // What is too much by itself isn't held.
        let all = ahead.hold("all", READ_AHEAD_BYTES_MAX + 1);
        assert_eq!((ahead.take::<&str>(all), ahead.bytes()), (None, 0));
    }
}
