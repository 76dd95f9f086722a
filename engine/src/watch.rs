//! Watches: every change of one table, in order, without gap or repetition.
//!
//! What a watch has read and its client hasn't taken is in `read_ahead`, which bounds it over all watches. Tasks of their own
//! read: a stream is polled only while its client takes something, and must not have a turn, which others wait for, meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{Stream, stream};
use souk_storage::{Change, Row, RowChange};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use crate::collection::Collection;
use crate::error::{EngineError, Result};
use crate::inner::Inner;
use crate::read_ahead::READ_AHEAD_BYTES_MAX;
use crate::resource::{Resource, Stored};
use crate::scope::Scope;
use crate::stored::{Record, signed};
use crate::watch_places::{WATCHES_MAX, WatchPlace};

/// Changes that are read from the log at a time.
const CHANGES_PER_READ: usize = 256;

/// The changes of one write, or none and only a sequence that has been reached.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchEvent<R> {
    /// The position in the change log.
    pub sequence: i64,
    /// When it was committed: nanoseconds since the Unix epoch.
    pub commit_time: i64,
    /// What happened to resources of the table, in the order in which it did.
    pub changes: Vec<ResourceChange<R>>,
}

/// What can happen to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// It was changed.
    Updated,
    /// It was deleted.
    Deleted,
}

/// What happened to one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceChange<R> {
    /// What happened.
    pub kind: ChangeKind,
    /// Its id.
    pub id: String,
    /// How it is after the change; `None` when it was deleted.
    pub stored: Option<Stored<R>>,
}

/// Where a watch is.
struct Follower<R> {
    reader: Arc<Reader<R>>,
    /// What was given last.
    after: u64,
    sequences: watch::Receiver<u64>,
    /// Given before all others.
    first: Option<WatchEvent<R>>,
    /// Events that were read behind what was given.
    ahead: Option<Ahead>,
    /// Counts this watch while it is open.
    _place: WatchPlace,
}

/// Reads for a watch.
struct Reader<R> {
    /// What is told.
    scope: Scope,
    collection: Collection<R>,
}

/// Events that were read, each with its bytes in the log.
type Events<R> = VecDeque<(WatchEvent<R>, usize)>;

/// Events that are held until this is dropped, or until all watches together hold too much.
struct Ahead {
    inner: Arc<Inner>,
    number: u64,
}

impl Ahead {
    fn hold<R: Resource>(inner: &Arc<Inner>, events: Events<R>) -> Self {
        let bytes: usize = events.iter().map(|(_, bytes)| bytes).sum();
        // One that is larger alone is held all the same: else it would be read again for ever.
        let bytes = bytes.min(READ_AHEAD_BYTES_MAX);
        Self {
            number: inner.read_ahead.hold(events, bytes),
            inner: Arc::clone(inner),
        }
    }

    /// The events; `None` when they had to go.
    fn take<R: Resource>(&self) -> Option<Events<R>> {
        self.inner.read_ahead.take(self.number)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.inner.read_ahead.forget(self.number);
    }
}

impl<R: Resource> Collection<R> {
    /// Streams every change of the table after a sequence; `None` is from now on, and then begins with an event
    /// without changes that says where that is. Changes of other tables are told as progress: an event without changes
    /// with the last of their sequences. The stream ends with [`EngineError::Closing`] when the engine closes.
    ///
    /// # Errors
    /// [`EngineError::ChangesTrimmed`], [`EngineError::SequenceAhead`], [`EngineError::TooManyWatches`].
    pub async fn watch(
        &self,
        after_sequence: Option<u64>,
    ) -> Result<impl Stream<Item = Result<WatchEvent<R>>> + Send + use<R>> {
        let scope = self.scope()?;
        let place = self.inner.watches.take(self.caller());
        let place = place.map_err(|of| EngineError::TooManyWatches { max: WATCHES_MAX, of })?;
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
            collection: self.clone(),
        };
        let follower = Follower {
            reader: Arc::new(reader),
            after,
            sequences,
            first,
            ahead: None,
            _place: place,
        };
        Ok(stream::try_unfold(follower, |mut follower| async move {
            let event = follower.next().await?;
            Ok(Some((event, follower)))
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

impl<R: Resource> Follower<R> {
    async fn next(&mut self) -> Result<WatchEvent<R>> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        let inner = Arc::clone(&self.reader.collection.inner);
        loop {
            // What had to go is read once more.
            let held = self.ahead.take().and_then(|ahead| ahead.take::<R>());
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
            self.sequences.borrow_and_update();
            let reading = Arc::clone(&self.reader).read_ahead(self.after);
            let reading = AbortOnDropHandle::new(tokio::spawn(reading.in_current_span()));
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

impl<R: Resource> Reader<R> {
    /// Waits for a turn, reads and holds the next events; none at the end of the log. Must be a task of its own: whoever waits
    /// for it may not go on for as long as he likes.
    async fn read_ahead(self: Arc<Self>, after: u64) -> Result<Option<Ahead>> {
        let inner = &self.collection.inner;
        let _turn = inner.read_ahead.turn().await;
        let events = self.read(after).await?;
        Ok((!events.is_empty()).then(|| Ahead::hold(inner, events)))
    }

    /// The next events behind a sequence; none at the end of the log.
    async fn read(&self, after: u64) -> Result<Events<R>> {
        let table = self.collection.open.table.id();
        let database = &self.collection.inner.database;
        let entries = database.log_entries(after, CHANGES_PER_READ).await?;
        let mut events = Events::new();
        for (at, entry) in entries.iter().enumerate() {
            let event = self.event(entry.change_of(table)?)?;
            let is_last = at + 1 == entries.len();
            if is_last || !event.changes.is_empty() {
                events.push_back((event, entry.size()));
            }
        }
        Ok(events)
    }

    /// May the watcher know of this? Of a deleted row the log says whose it was last; of one that an older version deleted
    /// it doesn't, and then only those are told who may meet all rows.
    fn tells(&self, change: &ResourceChange<R>, parting: Option<&Row>) -> bool {
        match &change.stored {
            Some(stored) => self.scope.sees(&stored.resource),
            None => self.scope.saw(parting),
        }
    }

    /// What a change tells the watcher.
    fn event(&self, change: Change) -> Result<WatchEvent<R>> {
        let mut told = Vec::new();
        for row in &change.rows {
            let change = self.resource_change(row)?;
            if self.tells(&change, row.parting.as_ref()) {
                told.push(change);
            }
        }
        Ok(WatchEvent {
            sequence: signed(change.sequence),
            commit_time: change.time,
            changes: told,
        })
    }

    fn resource_change(&self, change: &RowChange) -> Result<ResourceChange<R>> {
        let id = R::id_of(&change.key)?;
        let Some(row) = &change.row else {
            return Ok(ResourceChange {
                kind: ChangeKind::Deleted,
                id,
                stored: None,
            });
        };
        let kind = if Record::of(row)?.is_new() {
            ChangeKind::Created
        } else {
            ChangeKind::Updated
        };
        Ok(ResourceChange {
            kind,
            id,
            stored: Some(self.collection.resource(row)?),
        })
    }
}
