//! Watches: every change of one table, in order, without gap or repetition.
//!
//! What a watch has read and its client hasn't taken is in `read_ahead`, which bounds it over all watches. Tasks of their own
//! read: a stream is polled only while its client takes something, and must not have a turn, which others wait for, meanwhile.

use std::sync::Arc;

use futures_util::{Stream, stream};
use souk_storage::{Change, RowChange};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::call_slots::CallSlot;
use crate::error::{EngineError, Result};
use crate::inner::Inner;
use crate::read_ahead::{Events, READ_AHEAD_BYTES_MAX, WatchEvent};
use crate::scope::Scope;
use crate::stored::signed;
use crate::table::TableHandle;
use crate::trace;

/// Most watches that are open at a time: far fewer than the calls that a process answers, so that there is room for others.
pub const WATCHES_MAX: usize = 1_024;

/// Changes that are read from the log at a time.
const CHANGES_PER_READ: usize = 256;

/// How far a watch is, and what it reads on with.
struct WatchCursor {
    reader: Arc<Reader>,
    /// What was given last.
    after: u64,
    sequences: watch::Receiver<u64>,
    /// Given before all others.
    first: Option<WatchEvent<RowChange>>,
    /// Events that were read behind what was given.
    ahead: Option<Ahead>,
    /// Counts this watch while it is open.
    _slot: CallSlot,
}

/// Reads for a watch.
struct Reader {
    /// What is told.
    scope: Scope,
    table: TableHandle,
}

/// Events that are held until this is dropped, or until all watches together hold too much.
struct Ahead {
    inner: Arc<Inner>,
    number: u64,
}

impl Ahead {
    fn hold(inner: &Arc<Inner>, events: Events) -> Self {
        let bytes: usize = events.iter().map(|(_, bytes)| bytes).sum();
        // One that is larger alone is held all the same: else it would be read again for ever.
        let bytes = bytes.min(READ_AHEAD_BYTES_MAX);
        Self {
            number: inner.read_ahead.hold(events, bytes),
            inner: Arc::clone(inner),
        }
    }

    /// The events; `None` when they had to go.
    fn take(&self) -> Option<Events> {
        self.inner.read_ahead.take(self.number)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.inner.read_ahead.forget(self.number);
    }
}

impl TableHandle {
    /// Streams every change of the table after a sequence; `None` is from now on, and then begins with an event
    /// without changes that says where that is. Changes of other tables are told as progress: an event without changes
    /// with the last of their sequences. The stream ends with [`EngineError::Closing`] when the engine closes.
    ///
    /// # Errors
    /// [`EngineError::ChangesTrimmed`], [`EngineError::SequenceAhead`], [`EngineError::TooManyWatches`].
    pub async fn watch(
        &self,
        after_sequence: Option<u64>,
    ) -> Result<impl Stream<Item = Result<WatchEvent<RowChange>>> + Send + use<>> {
        let scope = self.scope()?;
        let slot = self.inner.watch_slot(self.caller())?;
        let sequences = self.inner.database.subscribe();
        let (after, first) = match after_sequence {
            Some(after) => (self.check_start(after).await?, None),
            None => {
                let last = *sequences.borrow();
                let first = WatchEvent {
                    sequence: signed(last),
                    commit_time: self.inner.clock.now(),
                    changes: Vec::new(),
                };
                (last, Some(first))
            }
        };
        let reader = Reader {
            scope,
            table: self.clone(),
        };
        let cursor = WatchCursor {
            reader: Arc::new(reader),
            after,
            sequences,
            first,
            ahead: None,
            _slot: slot,
        };
        Ok(stream::try_unfold(cursor, |mut cursor| async move {
            let event = cursor.next().await?;
            Ok(Some((event, cursor)))
        }))
    }

    /// Says at once what the first read would say later; 0 begins with the oldest change that is kept.
    async fn check_start(&self, after: u64) -> Result<u64> {
        self.check_sequence("after_sequence", after).await?;
        let oldest = self.inner.database.snapshot().await?.oldest_change().await?;
        if after == 0 {
            return Ok(oldest.saturating_sub(1));
        }
        if after + 1 < oldest {
            return Err(EngineError::ChangesTrimmed { after, oldest });
        }
        Ok(after)
    }
}

impl WatchCursor {
    async fn next(&mut self) -> Result<WatchEvent<RowChange>> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        let inner = Arc::clone(&self.reader.table.inner);
        loop {
            // What had to go is read once more.
            let held = self.ahead.take().and_then(|ahead| ahead.take());
            let mut events = held.unwrap_or_default();
            if let Some((event, _)) = events.pop_front() {
                // A sequence is never negative.
                self.after = event.sequence.unsigned_abs();
                if !events.is_empty() {
                    self.ahead = Some(Ahead::hold(&inner, events));
                }
                return Ok(event);
            }
            if inner.closing.is_cancelled() {
                return Err(EngineError::Closing);
            }
            // Dropping a table is a write: it wakes those who wait.
            self.reader.table.open.check_there()?;
            self.sequences.borrow_and_update();
            let reading = Arc::clone(&self.reader).read_ahead(self.after);
            let reading = AbortOnDropHandle::new(tokio::spawn(trace::brought(reading)));
            let read = reading.await;
            self.ahead = read.map_err(|_| EngineError::Defect("reading for a watch panicked"))??;
            if self.ahead.is_none() {
                let changed = inner.closing.run_until_cancelled(self.sequences.changed());
                if !matches!(changed.await, Some(Ok(()))) {
                    return Err(EngineError::Closing);
                }
            }
        }
    }
}

impl Reader {
    /// Waits for a turn, reads and holds the next events; none at the end of the log. Must be a task of its own: whoever waits
    /// for it may not go on for as long as he likes.
    async fn read_ahead(self: Arc<Self>, after: u64) -> Result<Option<Ahead>> {
        let inner = &self.table.inner;
        let _turn = inner.read_ahead.turn().await;
        let events = self.read(after).await?;
        Ok((!events.is_empty()).then(|| Ahead::hold(inner, events)))
    }

    /// The next events behind a sequence; none at the end of the log.
    async fn read(&self, after: u64) -> Result<Events> {
        let table = self.table.open.table.id();
        let database = &self.table.inner.database;
        let entries = database.log_entries(after, CHANGES_PER_READ).await?;
        let mut events = Events::new();
        for (at, entry) in entries.iter().enumerate() {
            let event = self.event(entry.change_of(table)?);
            let is_last = at + 1 == entries.len();
            if is_last || !event.changes.is_empty() {
                events.push_back((event, entry.size()));
            }
        }
        Ok(events)
    }

    /// May the watcher know of this? Of a deleted row the log says whose it was last; of one that an older version deleted
    /// it doesn't, and then only those are told who may meet all rows.
    fn tells(&self, change: &RowChange) -> bool {
        match &change.row {
            Some(row) => self.scope.sees(row),
            None => self.scope.saw(&change.key, change.parting.as_ref()),
        }
    }

    /// What a change tells the watcher.
    fn event(&self, change: Change) -> WatchEvent<RowChange> {
        let mut changes = change.rows;
        changes.retain(|change| self.tells(change));
        WatchEvent {
            sequence: signed(change.sequence),
            commit_time: change.time,
            changes,
        }
    }
}
