//! Named consumers of the change log: changes that one hasn't taken aren't trimmed. A consumer is a durable cursor that its
//! reader advances, once it has made durable what it derived from the changes. A [`crate::feed`] also delivers the rows
//! that were there before, and waits for the next change.

use std::sync::Arc;

use souk_kv::{Commit, Durability, Mutation, Space};

use crate::database::{Database, DatabaseState};
use crate::error::{Error, Result};
use crate::key;
use crate::limits;
use crate::read::log;
use crate::schema::check_identifier;
use crate::undisturbed::undisturbed;

/// A named cursor in the change log. Handles of one name share it.
#[derive(Debug, Clone)]
pub struct Consumer {
    pub(crate) name: String,
    pub(crate) shared: Arc<DatabaseState>,
}

impl Database {
    /// The consumer of the change log with this name, registered durably if there is none. While it is registered,
    /// changes it hasn't taken are not trimmed; a new one starts before the oldest change that is kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the name, [`Error::LimitExceeded`] for [`crate::limits::MAX_CONSUMERS`];
    /// [`Error::DiskFull`], [`Error::OutcomeUnknown`] or [`Error::Unavailable`] when it can't be registered.
    pub async fn consumer(&self, name: &str) -> Result<Consumer> {
        check_identifier("consumer", name)?;
        let consumer = Consumer {
            name: name.to_owned(),
            shared: Arc::clone(&self.shared),
        };
        undisturbed(async move {
            let Consumer { name, shared } = &consumer;
            let _admin = shared.admin.lock().await;
            let registered = {
                let consumers = shared.consumers.lock();
                if consumers.contains_key(name) {
                    return Ok(consumer.clone());
                }
                consumers.len()
            };
            limits::check("MAX_CONSUMERS", limits::MAX_CONSUMERS, registered + 1)?;
            let snapshot = shared.kv.snapshot().await?;
            let trimmed = log::trimmed(&*snapshot).await?;
            let commit = position_commit(name, trimmed, Durability::Disk);
            shared.kv.commit(commit).await?;
            shared.consumers.lock().insert(name.clone(), trimmed);
            Ok(consumer.clone())
        })
        .await
    }

    /// All consumers of the change log, by name.
    pub fn consumers(&self) -> Vec<Consumer> {
        let names: Vec<String> = self.shared.consumers.lock().keys().cloned().collect();
        let consumer = |name| Consumer {
            name,
            shared: Arc::clone(&self.shared),
        };
        names.into_iter().map(consumer).collect()
    }
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last sequence that it has taken; 0 before the first, and after it was removed through another handle.
    pub fn position(&self) -> u64 {
        self.shared
            .consumers
            .lock()
            .get(&self.name)
            .copied()
            .unwrap_or_default()
    }

    /// Acknowledges all changes up to `sequence`: they may be trimmed. A cursor never moves back: a lower sequence changes
    /// nothing. It isn't synced: after a loss of power the position may be an older one.
    ///
    /// # Errors
    /// [`Error::Invalid`] beyond the end of the log, or when it was removed through another handle;
    /// [`Error::Unavailable`], [`Error::OutcomeUnknown`]; [`Error::DiskFull`] below a quarter of [`souk_kv::FjallOptions::reserve_bytes`], as the
    /// trimming of the log that it lets happen: nothing is changed, and it can be retried.
    pub async fn advance(&self, sequence: u64) -> Result<()> {
        let last = *self.shared.kv.sequence().borrow();
        if sequence > last {
            return Err(Error::invalid(
                format!("position {sequence} of consumer {:?}", self.name),
                format!("is beyond the end of the log, {last}"),
            ));
        }
        let Self { name, shared } = self.clone();
        undisturbed(async move {
            let _admin = shared.admin.lock().await;
            let position = shared.consumers.lock().get(&name).copied();
            match position {
                None => Err(Error::invalid(
                    format!("consumer {name:?}"),
                    "is not registered any more",
                )),
                Some(position) if sequence <= position => Ok(()),
                Some(_) => {
                    let commit = position_commit(&name, sequence, Durability::Buffered);
                    shared.kv.commit(commit).await?;
                    shared.consumers.lock().insert(name, sequence);
                    Ok(())
                }
            }
        })
        .await
    }

    /// Removes the consumer durably, so that it holds back no trimming any more. It can be retried after an error; removing it
    /// again does nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::OutcomeUnknown`], [`Error::DiskFull`] as [`Consumer::advance`].
    pub async fn remove(&self) -> Result<()> {
        let Self { name, shared } = self.clone();
        undisturbed(async move {
            let _admin = shared.admin.lock().await;
            let commit = Commit {
                mutations: vec![Mutation::Delete {
                    space: Space::Catalog,
                    key: key::consumer(&name),
                }],
                ..Commit::default()
            };
            shared.kv.commit(commit).await?;
            shared.consumers.lock().remove(&name);
            Ok(())
        })
        .await
    }
}

/// The commit that stores the position of a consumer.
pub(crate) fn position_commit(name: &str, position: u64, durability: Durability) -> Commit {
    Commit {
        mutations: vec![Mutation::Put {
            space: Space::Catalog,
            key: key::consumer(name),
            value: position.to_be_bytes().to_vec(),
            stamp: false,
        }],
        durability,
        ..Commit::default()
    }
}
