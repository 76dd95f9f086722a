//! Creating and finding feeds.

use std::sync::Arc;

use souk_kv::KvSnapshot;

use crate::clock::nanos;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::feed::{Feed, FeedOptions, FeedSource, FeedStart, store};
use crate::feeds::checkpoint::{Checkpoint, Cut, Definition, Stage};
use crate::limits::{self, FEED_START_MARGIN, MAX_FEED_HOLD, MAX_FEEDS, MAX_TABLES};
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
        check_identifier("feed", name)?;
        if options.hold > MAX_FEED_HOLD {
            return Err(Error::invalid(
                format!("hold of feed {name:?}"),
                format!("is {:?}, above MAX_FEED_HOLD, {MAX_FEED_HOLD:?}", options.hold),
            ));
        }
        limits::check("MAX_TABLES", MAX_TABLES, options.tables.len())?;
        let mut tables = Vec::with_capacity(options.tables.len());
        {
            let catalog = self.shared.catalog.read();
            for table in &options.tables {
                catalog.check_owned(table)?;
                tables.push(table.id());
            }
        }
        tables.sort_unstable();
        tables.dedup();
        let (database, name) = (self.clone(), name.to_owned());
        undisturbed(async move {
            let shared = &database.shared;
            let _admin = shared.admin.lock().await;
            if shared.feeds.has(&name) {
                return Err(Error::FeedExists { feed: name });
            }
            limits::check("MAX_FEEDS", MAX_FEEDS, shared.feeds.len() + 1)?;
            let snapshot = shared.kv.snapshot().await?;
            let checkpoint = match options.source {
                FeedSource::Base | FeedSource::BaseAndChanges => Checkpoint {
                    stage: Stage::Base { cut: Cut::start() },
                    position: snapshot.sequence(),
                },
                FeedSource::Changes(start) => Checkpoint {
                    stage: Stage::Changes,
                    position: database.first_position(&name, &*snapshot, start).await?,
                },
            };
            drop(snapshot);
            let definition = Definition {
                created: shared.options.clock.now(),
                delivers: options.source.into(),
                tables,
                hold: options.hold,
            };
            store(shared, &name, &definition, &checkpoint).await?;
            let feed = database.handle(&name);
            shared.feeds.insert(name, definition, checkpoint);
            Ok(feed)
        })
        .await
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
    async fn first_position(&self, name: &str, snapshot: &dyn KvSnapshot, start: FeedStart) -> Result<u64> {
        match start {
            FeedStart::Oldest => log::trimmed(snapshot).await,
            FeedStart::Newest => Ok(snapshot.sequence()),
            FeedStart::After(sequence) if sequence > snapshot.sequence() => Err(Error::invalid(
                format!("start of feed {name:?} after {sequence}"),
                format!("is beyond the end of the log, {}", snapshot.sequence()),
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
                        format!("start of feed {name:?} at {time} ns"),
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
