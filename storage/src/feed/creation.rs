//! Creating and finding feeds.

use std::collections::BTreeMap;
use std::sync::Arc;

use souk_kv::{Commit, Durability, KvSnapshot};

use crate::clock::nanos;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::feed::{Feed, FeedOptions, FeedShard, FeedSource, FeedStart, put, remove};
use crate::feeds::checkpoint::{BaseCursor, Checkpoint, FeedDefinition, Stage};
use crate::id::TableId;
use crate::limits::{self, FEED_START_MARGIN, MAX_FEED_HOLD, MAX_FEED_SHARDS, MAX_FEEDS, MAX_TABLES};
use crate::read::log;
use crate::schema::check_identifier;
use crate::undisturbed::undisturbed;

impl Database {
    /// Creates a feed, durably. From here on changes are kept for it.
    ///
    /// # Errors
    /// [`Error::FeedExists`]; [`Error::Invalid`] for the name, the hold, or a start beyond the end of the log or
    /// outside of the retention; [`Error::ChangesTrimmed`] and [`Error::TimeTrimmed`] for a start that is gone;
    /// [`Error::TableNotFound`]; [`Error::LimitExceeded`] for [`MAX_FEEDS`]; [`Error::Unavailable`].
    pub async fn create_feed(&self, name: &str, options: FeedOptions) -> Result<Feed> {
        self.create_feeds(vec![(name.to_owned(), options)]).await?;
        Ok(self.handle(name))
    }

    /// Creates feeds, all or none: those of changes from [`FeedStart::Newest`] on, and those of base rows, from one moment on. They
    /// are given back in the order in which they were asked for.
    ///
    /// # Errors
    /// As [`Database::create_feed`]; [`Error::FeedExists`] of a name that is there twice.
    pub async fn create_feeds(&self, feeds: Vec<(String, FeedOptions)>) -> Result<Vec<Feed>> {
        let mut checked = BTreeMap::new();
        let asked: Vec<String> = feeds.iter().map(|(name, _)| name.clone()).collect();
        for (name, options) in feeds {
            let tables = self.tables_of(&name, &options)?;
            if checked.contains_key(&name) {
                return Err(Error::FeedExists { feed: name });
            }
            checked.insert(name, (options, tables));
        }
        let database = self.clone();
        undisturbed(async move {
            let shared = &database.shared;
            let _admin = shared.admin.lock().await;
            if let Some(name) = checked.keys().find(|name| shared.feeds.has(name)) {
                return Err(Error::FeedExists { feed: name.clone() });
            }
            limits::check("MAX_FEEDS", MAX_FEEDS, shared.feeds.len() + checked.len())?;
            let snapshot = shared.kv.snapshot().await?;
            let now = shared.options.clock.now();
            let mut created = Vec::with_capacity(checked.len());
            // Each has a time of its own, which tells its tokens from those of the others.
            for ((name, (options, tables)), created_at) in checked.into_iter().zip(now..) {
                let checkpoint = match options.source {
                    FeedSource::Base | FeedSource::BaseAndChanges => Checkpoint {
                        stage: Stage::Base {
                            cursor: BaseCursor::start(),
                        },
                        position: snapshot.sequence(),
                        rows: 0,
                    },
                    FeedSource::Changes(start) => Checkpoint {
                        stage: Stage::Changes,
                        position: database.first_position(&*snapshot, start).await?,
                        rows: 0,
                    },
                };
                let definition = FeedDefinition {
                    created: created_at,
                    delivers: options.source.into(),
                    tables,
                    hold: options.hold,
                    shard: options.shard,
                };
                created.push((name, definition, checkpoint));
            }
            drop(snapshot);
            let stored = created.iter();
            let commit = Commit {
                mutations: stored
                    .map(|(name, definition, checkpoint)| put(name, definition, checkpoint))
                    .collect(),
                durability: Durability::Disk,
                ..Commit::default()
            };
            shared.kv.commit(commit).await?;
            for (name, definition, checkpoint) in created {
                shared.feeds.insert(name, definition, checkpoint);
            }
            Ok(asked.iter().map(|name| database.handle(name)).collect())
        })
        .await
    }

    /// Removes feeds, all or none; see [`Feed::remove`].
    ///
    /// # Errors
    /// As there.
    pub async fn remove_feeds(&self, names: Vec<String>) -> Result<()> {
        remove(&self.shared, names).await
    }

    /// The tables of a feed that is to be created, in their order.
    fn tables_of(&self, name: &str, options: &FeedOptions) -> Result<Vec<TableId>> {
        check_identifier("feed", name)?;
        if options.hold > MAX_FEED_HOLD {
            return Err(Error::invalid(
                format!("hold of feed {name:?}"),
                format!("is {:?}, above MAX_FEED_HOLD, {MAX_FEED_HOLD:?}", options.hold),
            ));
        }
        if let Some(FeedShard { index, count }) = options.shard {
            limits::check("MAX_FEED_SHARDS", MAX_FEED_SHARDS.into(), count.into())?;
            if index >= count {
                return Err(Error::invalid(
                    format!("shard {index} of feed {name:?}"),
                    format!("is none of {count}"),
                ));
            }
        }
        limits::check("MAX_TABLES", MAX_TABLES, options.tables.len())?;
        let mut tables = Vec::with_capacity(options.tables.len());
        let catalog = self.shared.catalog.read();
        for table in &options.tables {
            catalog.check_owned(table)?;
            tables.push(table.id());
        }
        tables.sort_unstable();
        tables.dedup();
        Ok(tables)
    }

    /// The feed of that name.
    pub fn feed(&self, name: &str) -> Option<Feed> {
        self.shared.feeds.has(name).then(|| self.handle(name))
    }

    /// All feeds, by name.
    pub fn feeds(&self) -> Vec<Feed> {
        let names = self.shared.feeds.names();
        names.iter().map(|name| self.handle(name)).collect()
    }

    fn handle(&self, name: &str) -> Feed {
        Feed {
            name: name.to_owned(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// The sequence behind which changes start.
    async fn first_position(&self, snapshot: &dyn KvSnapshot, start: FeedStart) -> Result<u64> {
        match start {
            FeedStart::Oldest => log::trimmed(snapshot).await,
            FeedStart::Newest => Ok(snapshot.sequence()),
            FeedStart::After(sequence) if sequence > snapshot.sequence() => Err(Error::invalid(
                format!("start after {sequence}"),
                "is beyond the end of the log",
            )),
            FeedStart::After(sequence) => {
                log::check_kept(snapshot, sequence).await?;
                Ok(sequence)
            }
            FeedStart::Time(time) => {
                let now = self.shared.options.clock.now();
                let oldest = now
                    .saturating_sub(nanos(self.shared.options.retention))
                    .saturating_add(nanos(FEED_START_MARGIN));
                if !(oldest..=now).contains(&time) {
                    return Err(Error::invalid(
                        format!("start at {time} ns"),
                        format!(
                            "is not from {oldest} ns (retention less FEED_START_MARGIN) to now, {now} ns"
                        ),
                    ));
                }
                log::time::sequence_at(snapshot, time, now).await
            }
        }
    }
}
