//! Watches: every change of one table, in order, without gap or repetition.

use std::collections::VecDeque;

use futures_util::{Stream, stream};
use souk_chassis::status::Violations;
use souk_proto::r#type::v1::ChangeKind;
use souk_storage::{Change, Row, RowChange};
use tokio::sync::watch;

use crate::collection::Collection;
use crate::error::{EngineError, Result};
use crate::metrics::Watching;
use crate::resource::{Resource, Stored};
use crate::scope::Scope;
use crate::stored::{Record, signed};

/// Changes that are read from the log at a time; what a stream holds in memory is bounded.
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

/// What happened to one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceChange<R> {
    /// Created, updated or deleted.
    pub kind: ChangeKind,
    /// Its id.
    pub id: String,
    /// How it is after the change; `None` when it was deleted.
    pub stored: Option<Stored<R>>,
}

/// Where a watch is.
struct Follower<R> {
    /// What is told.
    scope: Scope,
    collection: Collection<R>,
    after: u64,
    sequences: watch::Receiver<u64>,
    /// Read, but not given yet.
    events: VecDeque<WatchEvent<R>>,
    /// Counts this watch while it is open.
    _watching: Watching,
}

impl<R: Resource> Collection<R> {
    /// Streams every change of the table after a sequence; `None` is from now on, and then begins with an event
    /// without changes that says where that is. Changes of other tables are told as progress: an event without changes
    /// with the last of their sequences. The stream ends with [`EngineError::Closing`] when the engine closes.
    ///
    /// # Errors
    /// [`EngineError::ChangesTrimmed`], [`EngineError::SequenceAhead`], [`EngineError::Invalid`].
    pub async fn watch(
        &self,
        after_sequence: Option<i64>,
    ) -> Result<impl Stream<Item = Result<WatchEvent<R>>> + Send + use<R>> {
        let scope = self.scope()?;
        let sequences = self.inner.database.subscribe();
        let last = *sequences.borrow();
        let mut events = VecDeque::new();
        let after = match after_sequence {
            Some(after) => self.check_start(after, last).await?,
            None => {
                events.push_back(WatchEvent {
                    sequence: signed(last),
                    commit_time: self.inner.clock.now(),
                    changes: Vec::new(),
                });
                last
            }
        };
        let follower = Follower {
            scope,
            collection: self.clone(),
            after,
            sequences,
            events,
            _watching: self.inner.metrics.watching(),
        };
        Ok(stream::try_unfold(follower, |mut follower| async move {
            let event = follower.next().await?;
            Ok(Some((event, follower)))
        }))
    }

    /// Says at once what the first read would say later; 0 begins with the oldest change that is kept.
    async fn check_start(&self, after_sequence: i64, last: u64) -> Result<u64> {
        let Ok(after) = u64::try_from(after_sequence) else {
            let mut violations = Violations::new();
            let description =
                format!("is {after_sequence}, must not be negative; 0 is everything that is kept");
            violations.push("after_sequence", "OUT_OF_RANGE", description);
            return Err(violations.into());
        };
        if after > last {
            return Err(EngineError::SequenceAhead { after, last });
        }
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
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let closing = &self.collection.inner.closing;
            if closing.is_cancelled() {
                return Err(EngineError::Closing);
            }
            self.sequences.borrow_and_update();
            let changes = self
                .collection
                .inner
                .database
                .changes(self.after, CHANGES_PER_READ)
                .await?;
            if changes.is_empty() {
                let changed = closing.run_until_cancelled(self.sequences.changed());
                if !matches!(changed.await, Some(Ok(()))) {
                    return Err(EngineError::Closing);
                }
            } else {
                self.take_in(&changes)?;
            }
        }
    }

    /// May the watcher know of this? Of a deleted row the log says whose it was last; of one that an older version deleted
    /// it doesn't, and then only those are told who may meet all rows.
    fn tells(&self, change: &ResourceChange<R>, parting: Option<&Row>) -> bool {
        match &change.stored {
            Some(stored) => self.scope.sees(&stored.resource),
            None => self.scope.saw(parting),
        }
    }

    fn take_in(&mut self, changes: &[Change]) -> Result<()> {
        let table = self.collection.open.table.id();
        for (at, change) in changes.iter().enumerate() {
            let rows = change.rows.iter().filter(|row| row.table == table);
            let mut told = Vec::new();
            for row in rows {
                let change = self.resource_change(row)?;
                if self.tells(&change, row.parting.as_ref()) {
                    told.push(change);
                }
            }
            let event = WatchEvent {
                sequence: signed(change.sequence),
                commit_time: change.time,
                changes: told,
            };
            let is_last = at + 1 == changes.len();
            if is_last || !event.changes.is_empty() {
                self.events.push_back(event);
            }
            self.after = change.sequence;
        }
        Ok(())
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
