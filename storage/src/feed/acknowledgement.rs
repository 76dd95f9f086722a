//! What has been read of a feed and is done with: by itself, or as a part of a write.

use std::sync::Arc;

use souk_kv::{Commit, Durability, Mutation};
use tokio::sync::OwnedMutexGuard;

use crate::database::DatabaseState;
use crate::error::{Error, Result};
use crate::feed::{Feed, FeedToken, put};
use crate::feeds::checkpoint::{Checkpoint, FeedDefinition, Stage};
use crate::undisturbed::undisturbed;

/// That all records of a feed up to a token are done with. As a part of a write ([`crate::Database::write_acknowledging`],
/// [`crate::CommitOptions::acknowledges`]) both happen or neither: who writes what he makes of the records like that makes it exactly
/// once. Then it has to move the feed: a token that was acknowledged before is [`Error::FeedTokenStale`], and nothing is written.
#[derive(Debug, Clone)]
pub struct Acknowledgement {
    feed: Feed,
    token: FeedToken,
}

/// The turn to move a feed, from where it is known to stand until it has been moved.
pub(crate) struct Taken {
    feed: Feed,
    definition: Arc<FeedDefinition>,
    next: Checkpoint,
    _turn: OwnedMutexGuard<()>,
}

impl Acknowledgement {
    /// Of a feed, up to a token.
    pub fn new(feed: &Feed, token: &FeedToken) -> Self {
        Self {
            feed: feed.clone(),
            token: token.clone(),
        }
    }

    /// Acknowledges by itself; see [`Feed::acknowledge`].
    ///
    /// # Errors
    /// As there.
    pub async fn commit(self) -> Result<()> {
        undisturbed(async move {
            let Some(taken) = self.take().await? else {
                return Ok(());
            };
            let commit = Commit {
                mutations: vec![taken.mutation()],
                durability: Durability::Disk,
                ..Commit::default()
            };
            taken.feed.shared.kv.commit(commit).await?;
            taken.done();
            Ok(())
        })
        .await
    }

    /// Waits for the turn; `None` when the token is the one that was acknowledged last.
    pub(crate) async fn take(&self) -> Result<Option<Taken>> {
        let Self { feed, token } = self;
        let turn = feed.shared.feeds.turn(&feed.name)?.lock_owned().await;
        let (definition, present) = feed.shared.feeds.get(&feed.name)?;
        if present.stage == Stage::Lost {
            return Err(feed.ahead_of_log(&present));
        }
        let next = feed.checkpoint_of(&definition, token)?;
        if next == present {
            return Ok(None);
        }
        if !next.reaches(&present) {
            return Err(self.stale(&next, &present));
        }
        Ok(Some(Taken {
            feed: feed.clone(),
            definition,
            next,
            _turn: turn,
        }))
    }

    /// The same as a part of a write, which must not happen again.
    pub(crate) async fn take_once(&self) -> Result<Taken> {
        let taken = self.take().await?;
        taken.ok_or_else(|| match self.feed.shared.feeds.get(&self.feed.name) {
            Ok((_, present)) => self.stale(&present, &present),
            Err(error) => error,
        })
    }

    /// Whether the feed is of a database.
    pub(crate) fn is_of(&self, shared: &Arc<DatabaseState>) -> bool {
        Arc::ptr_eq(&self.feed.shared, shared)
    }

    fn stale(&self, token: &Checkpoint, present: &Checkpoint) -> Error {
        Error::FeedTokenStale {
            feed: self.feed.name.clone(),
            token: token.position,
            acknowledged: present.position,
        }
    }
}

impl Taken {
    /// What moves the feed on the disk.
    pub(crate) fn mutation(&self) -> Mutation {
        put(&self.feed.name, &self.definition, &self.next)
    }

    /// Moves it in memory: the commit has happened.
    pub(crate) fn done(self) {
        self.feed.shared.feeds.advance(&self.feed.name, self.next);
    }
}
