//! A commit group: commits that share one write and one sync.

use std::collections::HashMap;

use ::fjall::PersistMode;
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::completion::{Completion, complete};
use super::conflict_window::ConflictWindow;
use super::failure::{self, StoreFailure};
use super::journal::GroupMark;
use super::requests::QueuedCommit;
use super::store::Store;
use crate::commit::{Check, Commit, Durability, KvCommitted, Mutation, write_stamp};
use crate::error::Error;
use crate::keys;
use crate::limits::{MAX_GROUP_BYTES, MAX_GROUP_COMMITS};
use crate::space::Space;

/// Commits decided in order, each on top of those before it, and not written yet.
pub(super) struct PendingGroup {
    number: u64,
    /// The last value of each key that the group writes.
    changes: HashMap<(Space, Bytes), Option<Bytes>>,
    /// Last sequence before the group.
    base: u64,
    /// Last sequence assigned.
    last: u64,
    bytes: usize,
    sync: bool,
    /// All are completed after the write, refused ones too: a check may have failed because of a commit of this group.
    decided: Vec<Decided>,
}

struct Decided {
    outcome: Result<KvCommitted, Error>,
    completion: Completion,
    _permit: OwnedSemaphorePermit,
}

impl PendingGroup {
    /// An empty group of this number, on top of a sequence.
    pub(super) fn new(number: u64, base: u64) -> Self {
        Self {
            number,
            changes: HashMap::new(),
            base,
            last: base,
            bytes: 0,
            sync: false,
            decided: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= MAX_GROUP_BYTES || self.decided.len() >= MAX_GROUP_COMMITS
    }

    /// Bytes of the keys and values of its commits.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Commits that it completes, those that it refuses among them.
    pub(super) fn commits(&self) -> usize {
        self.decided.len()
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether it leaves anything to publish.
    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Checks a commit, and applies it to the group if its checks hold.
    pub(super) fn add(&mut self, queued: QueuedCommit, store: &Store, conflicts: &ConflictWindow) {
        let outcome = self.check(&queued.commit, store, conflicts);
        let outcome = outcome.map(|()| {
            self.bytes += queued.bytes;
            KvCommitted {
                sequence: self.apply(queued.commit, conflicts),
            }
        });
        self.decided.push(Decided {
            outcome,
            completion: queued.completion,
            _permit: queued.permit,
        });
    }

    fn check(&self, commit: &Commit, store: &Store, conflicts: &ConflictWindow) -> Result<(), Error> {
        for (position, check) in commit.checks.iter().enumerate() {
            let (Check::Absent { space, key } | Check::Prefix { space, key, .. }) = check;
            if commit
                .validated_at
                .is_some_and(|group| conflicts.is_unwritten_since(group, *space, key))
            {
                continue;
            }
            let value = match self.changes.get(&(*space, key.clone())) {
                Some(change) => change.clone(),
                None => store
                    .keyspace(*space)
                    .get(key)
                    .map_err(|error| failure::unreadable(*space, error))?
                    .map(Into::into),
            };
            let holds = match (check, value) {
                (Check::Absent { .. }, value) => value.is_none(),
                (Check::Prefix { prefix, .. }, Some(value)) => value.starts_with(prefix),
                (Check::Prefix { .. }, None) => false,
            };
            if !holds {
                return Err(Error::Conflict { check: position });
            }
        }
        Ok(())
    }

    fn apply(&mut self, commit: Commit, conflicts: &ConflictWindow) -> u64 {
        let has_changes = !commit.mutations.is_empty() || commit.log.is_some();
        self.sync |= has_changes && commit.durability == Durability::Disk;
        if let Some(mut entry) = commit.log {
            self.last += 1;
            write_stamp(&mut entry, self.last);
            let key = keys::log(self.last);
            self.changes.insert((Space::Log, key), Some(entry.into()));
        }
        for mutation in commit.mutations {
            let (Mutation::Put { space, key, .. } | Mutation::Delete { space, key }) = &mutation;
            conflicts.record(self.number, *space, key);
            match mutation {
                Mutation::Put {
                    space,
                    key,
                    mut value,
                    stamp,
                } => {
                    if stamp {
                        write_stamp(&mut value, self.last);
                    }
                    self.changes.insert((space, key), Some(value.into()));
                }
                Mutation::Delete { space, key } => {
                    self.changes.insert((space, key), None);
                }
            }
        }
        self.last
    }

    /// Whether it is durable once it is written.
    pub(super) fn syncs(&self) -> bool {
        self.sync
    }

    /// Writes it all at once, synced if one of its commits asks for that. After an error nothing of it is visible.
    pub(super) fn write(&mut self, store: &Store, mark: GroupMark) -> Result<(), StoreFailure> {
        let mode = if self.sync {
            PersistMode::SyncData
        } else {
            PersistMode::Buffer
        };
        let mut batch = store.database().batch().durability(Some(mode));
        // In order: the places of neighbours in a memtable are found through the same nodes, which are then in the cache.
        let mut changes: Vec<_> = std::mem::take(&mut self.changes).into_iter().collect();
        changes.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for ((space, key), change) in changes {
            match change {
                Some(value) => batch.insert(store.keyspace(space), key, value),
                None => batch.remove(store.keyspace(space), key),
            }
        }
        if self.last != self.base {
            let head = self.last.to_be_bytes();
            batch.insert(store.keyspace(Space::Catalog), keys::HEAD, head);
        }
        batch.insert(
            store.keyspace(Space::Catalog),
            keys::GROUP,
            mark.encode(store.nonce()),
        );
        batch.commit().map_err(|error| StoreFailure::writing(&error))
    }

    /// Completes its commits, in order.
    pub(super) fn complete(self) {
        let decided = self.decided.into_iter();
        complete(decided.map(|decided| (decided.completion, decided.outcome)));
    }

    /// Completes its commits after the write failed. Refused ones get the failure, too, not their conflict: it may be with
    /// a commit of this group.
    pub(super) fn fail(self, failure: &StoreFailure) {
        complete(self.decided.into_iter().map(|decided| {
            let error = match decided.outcome {
                Ok(_) => failure.outcome_unknown(),
                Err(_) => failure.unavailable(),
            };
            (decided.completion, Err(error))
        }));
    }
}
