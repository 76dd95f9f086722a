//! The feeds of an open database: where each stands, and what it keeps from being trimmed.

pub(crate) mod checkpoint;
pub(crate) mod codec;
pub(crate) mod shard;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use souk_kv::KvSnapshot;

use self::checkpoint::{BaseCursor, Checkpoint, Delivers, FeedDefinition, Stage};
use crate::clock::nanos;
use crate::error::{Error, Result};
use crate::key;
use crate::limits::FEED_SNAPSHOT_LIFE;

/// The feeds by name.
#[derive(Debug, Default)]
pub(crate) struct Feeds(Mutex<BTreeMap<String, Entry>>);

#[derive(Debug)]
struct Entry {
    definition: Arc<FeedDefinition>,
    checkpoint: Checkpoint,
    /// The cursor up to which base rows were handed out; `None`: not known, for it was before the database was opened.
    handed: Option<BaseCursor>,
    snapshot: Option<Held>,
    /// Held by whoever moves its position, until that is known here as on the disk.
    turn: Turn,
}

/// The turn of those who move the position of a feed.
pub(crate) type Turn = Arc<tokio::sync::Mutex<()>>;

/// The snapshot that base rows are read from.
#[derive(Debug)]
struct Held {
    snapshot: Arc<dyn KvSnapshot>,
    taken: i64,
}

/// What a feed keeps from being trimmed.
#[derive(Debug)]
pub(crate) struct Hold {
    position: u64,
    /// For how long after they were made, nanoseconds.
    lasts: i64,
}

impl Hold {
    /// Whether it keeps the change of that sequence and time.
    pub(crate) fn keeps(&self, sequence: u64, time: i64, now: i64) -> bool {
        sequence > self.position && time > now.saturating_sub(self.lasts)
    }
}

impl Feeds {
    /// The feeds as they are stored, and those among them that are ahead of the log, whose loss must be stored.
    pub(crate) fn load(stored: &[(Bytes, Bytes)], last: u64) -> Result<(Self, Vec<String>)> {
        let mut feeds = BTreeMap::new();
        let mut lost = Vec::new();
        for (key, value) in stored {
            let name = key::feed_of(key)?;
            let (definition, mut checkpoint) = codec::decode(&name, value)?;
            if checkpoint.reached() > last && checkpoint.stage != Stage::Lost {
                checkpoint.stage = Stage::Lost;
                lost.push(name.clone());
            }
            let entry = Entry {
                definition: Arc::new(definition),
                checkpoint,
                handed: None,
                snapshot: None,
                turn: Turn::default(),
            };
            feeds.insert(name, entry);
        }
        Ok((Self(Mutex::new(feeds)), lost))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.lock().contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> Result<(Arc<FeedDefinition>, Checkpoint)> {
        let feeds = self.0.lock();
        let entry = feeds.get(name).ok_or_else(|| Error::FeedNotFound {
            feed: name.to_owned(),
        })?;
        Ok((entry.definition.clone(), entry.checkpoint.clone()))
    }

    /// The turn of those who move its position.
    pub(crate) fn turn(&self, name: &str) -> Result<Turn> {
        let feeds = self.0.lock();
        let entry = feeds.get(name).ok_or_else(|| Error::FeedNotFound {
            feed: name.to_owned(),
        })?;
        Ok(entry.turn.clone())
    }

    /// Adds a new feed, of which nothing has been handed out.
    pub(crate) fn insert(&self, name: String, definition: FeedDefinition, checkpoint: Checkpoint) {
        let entry = Entry {
            definition: Arc::new(definition),
            checkpoint,
            handed: Some(BaseCursor::start()),
            snapshot: None,
            turn: Turn::default(),
        };
        self.0.lock().insert(name, entry);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// Moves the position of a feed.
    pub(crate) fn advance(&self, name: &str, checkpoint: Checkpoint) {
        if let Some(entry) = self.0.lock().get_mut(name) {
            if !matches!(checkpoint.stage, Stage::Base { .. }) {
                entry.snapshot = None;
            }
            entry.checkpoint = checkpoint;
        }
    }

    /// What the feeds keep from being trimmed.
    pub(crate) fn holds(&self) -> Vec<Hold> {
        let feeds = self.0.lock();
        let held = feeds.values().filter(|entry| match entry.checkpoint.stage {
            Stage::Base { .. } => entry.definition.delivers != Delivers::Base,
            Stage::Changes => true,
            Stage::Finished | Stage::Lost => false,
        });
        held.map(|entry| Hold {
            position: entry.checkpoint.position,
            lasts: nanos(entry.definition.hold),
        })
        .collect()
    }

    /// The snapshot to read base rows from at a position, if there is one that still serves: of the position and
    /// young, or of a later sequence up to which the changes are being delivered.
    pub(crate) fn snapshot(&self, name: &str, position: u64, now: i64) -> Option<Arc<dyn KvSnapshot>> {
        let feeds = self.0.lock();
        let held = feeds.get(name)?.snapshot.as_ref()?;
        let sequence = held.snapshot.sequence();
        let serves = sequence > position || (sequence == position && held.is_young(now));
        serves.then(|| held.snapshot.clone())
    }

    pub(crate) fn hold_snapshot(&self, name: &str, snapshot: Arc<dyn KvSnapshot>, now: i64) {
        if let Some(entry) = self.0.lock().get_mut(name) {
            entry.snapshot = Some(Held { snapshot, taken: now });
        }
    }

    /// Drops the snapshots that have grown old, so that they don't keep data for readers that don't come.
    pub(crate) fn release_snapshots(&self, now: i64) {
        for entry in self.0.lock().values_mut() {
            if entry.snapshot.as_ref().is_some_and(|held| !held.is_young(now)) {
                entry.snapshot = None;
            }
        }
    }

    /// Whether base rows behind a cursor may have been handed out.
    pub(crate) fn may_have_handed(&self, name: &str, cursor: &BaseCursor) -> bool {
        let feeds = self.0.lock();
        let handed = feeds.get(name).and_then(|entry| entry.handed.as_ref());
        handed.is_none_or(|handed| handed > cursor)
    }

    /// Notes that base rows up to a cursor are about to be handed out.
    pub(crate) fn hand(&self, name: &str, cursor: &BaseCursor) {
        if let Some(entry) = self.0.lock().get_mut(name)
            && entry.handed.as_ref().is_some_and(|handed| handed < cursor)
        {
            entry.handed = Some(cursor.clone());
        }
    }
}

impl Held {
    /// A clock that was set back makes it old, too.
    fn is_young(&self, now: i64) -> bool {
        (0..nanos(FEED_SNAPSHOT_LIFE)).contains(&now.saturating_sub(self.taken))
    }
}
