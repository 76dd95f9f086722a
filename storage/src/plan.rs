//! From rows that change to the commit: the checks that they are still what was read, their values, the change for
//! the log.

pub(crate) mod decide;
pub(crate) mod numbers;
mod row_change;
pub(crate) mod target;
pub(crate) mod validate;

use bytes::Bytes;
use souk_kv::{Check, Commit, Durability, Mutation, STAMP, Space};

use self::decide::ChangedRow;
use self::target::WriteTarget;
use crate::change::codec::ChangeEncoder;
use crate::error::Result;
use crate::key;
use crate::limits;

/// Most bytes a row takes in a log entry besides its key and value: table, kind, two lengths.
pub(crate) const LOGGED_ROW_BYTES: usize = 32;

/// A commit in the making.
#[derive(Debug)]
pub(crate) struct CommitPlan {
    commit: Commit,
    changed: Vec<ChangedRow>,
    bytes: usize,
}

impl CommitPlan {
    /// Nothing yet.
    pub(crate) fn new(durability: Durability) -> Self {
        Self {
            commit: Commit {
                durability,
                ..Commit::default()
            },
            changed: Vec::new(),
            bytes: 0,
        }
    }

    /// Says in which snapshot all that is demanded held; see [`Commit::validated_at`].
    pub(crate) fn validated_at(mut self, group: u64) -> Self {
        self.commit.validated_at = Some(group);
        self
    }

    /// Demands that the row of a write is still what was found, if it was looked at.
    pub(crate) fn expect_target(&mut self, target: &WriteTarget<'_>) {
        if !target.blind {
            self.expect(&target.row, target.found.as_ref());
        }
    }

    /// Demands that a row is still what was found: its format and revision, or its absence.
    pub(crate) fn expect(&mut self, key: &Bytes, found: Option<&Bytes>) {
        self.commit.checks.push(unchanged(key, found));
    }

    /// Adds a row that changes.
    pub(crate) fn change(&mut self, mut row: ChangedRow) {
        self.commit.mutations.append(&mut row.entries);
        self.bytes += LOGGED_ROW_BYTES + row.key.len() + row.told().map_or(0, <[u8]>::len);
        self.changed.push(row);
    }

    /// Bytes of the rows that change, as the log takes them.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The commit; with a log entry when rows change.
    pub(crate) fn finish(mut self, trace: Option<&str>, now: i64) -> Result<Commit> {
        if self.changed.is_empty() {
            return Ok(self.commit);
        }
        let mut entry = ChangeEncoder::new(now, trace, self.changed.len(), self.bytes);
        for row in &self.changed {
            let key = key::encoded_primary_key(&row.key);
            entry.row(row.table, row.kind, key, row.told());
            limits::check("MAX_CHANGE_BYTES", limits::MAX_CHANGE_BYTES, entry.len())?;
        }
        self.commit.log = Some(entry.finish());
        let space = Space::Rows;
        for ChangedRow { key, value, .. } in self.changed {
            self.commit.mutations.push(match value {
                Some(value) => Mutation::Put {
                    space,
                    key,
                    value,
                    stamp: true,
                },
                None => Mutation::Delete { space, key },
            });
        }
        Ok(self.commit)
    }
}

/// That a row is still what was found: its format and revision, or its absence.
pub(crate) fn unchanged(key: &Bytes, found: Option<&Bytes>) -> Check {
    let (space, key) = (Space::Rows, key.clone());
    match found {
        None => Check::Absent { space, key },
        Some(value) => Check::Prefix {
            space,
            key,
            prefix: revision(value),
        },
    }
}

/// The format and revision that a stored row begins with.
pub(crate) fn revision(value: &Bytes) -> Bytes {
    value.slice(..value.len().min(STAMP.end))
}
