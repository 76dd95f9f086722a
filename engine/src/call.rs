//! The context of a call: its principal, by which it may access tables and rows, and its deadline.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use crate::error::{EngineError, Result};
use crate::partitions::Partitions;

/// Between a table and its partitions in a grant.
const SEPARATOR: char = '/';

/// The context of one call. The default is an unknown principal and no deadline.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// On whose behalf it accesses rows.
    pub principal: Principal,
    /// When it stops waiting; `None` is never.
    pub deadline: Option<Instant>,
}

/// On whose behalf a call accesses rows.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Principal {
    /// An authenticated caller.
    Caller {
        /// The key by which its share of snapshots, views and watches is counted.
        name: Arc<str>,
        /// Whose rows it may access; `None` is all.
        owner: Option<Owner>,
        /// The tables that it may access: names, or prefixes that end with `*`; `None` is all. Behind a name and `/` stands which
        /// partitions alone: a value of its first key column, or a prefix that ends with `*`.
        tables: Option<Arc<[Box<str>]>>,
    },
    /// The service itself: it may access all rows.
    Service,
    /// Not known: it may access all rows, or, where the engine is [guarded](crate::EngineConfig::guarded), none.
    #[default]
    Unknown,
}

impl Principal {
    /// Returns the principal, unless it is unknown where the engine is `guarded`.
    ///
    /// # Errors
    /// [`EngineError::Defect`] of an unknown one.
    pub(crate) fn known(&self, guarded: bool) -> Result<&Self> {
        match self {
            Self::Unknown if guarded => Err(EngineError::Defect(
                "a call lost its caller before it came to its table",
            )),
            known => Ok(known),
        }
    }

    /// What it may access of a table. Check first that it is [known](Self::known): an unknown one may access all.
    pub(crate) fn grant(&self, table: &str) -> Grant {
        let Self::Caller {
            tables: Some(tables), ..
        } = self
        else {
            return Grant::Whole;
        };
        let mut grant = Grant::Nothing;
        for granted in tables.iter() {
            match (granted.split_once(SEPARATOR), granted.strip_suffix('*')) {
                (Some((name, partitions)), _) if table == name => {
                    grant = Grant::Partitions(Partitions::of(partitions));
                }
                (None, Some(prefix)) if table.starts_with(prefix) => return Grant::Whole,
                (None, None) if table == &**granted => return Grant::Whole,
                _ => {}
            }
        }
        grant
    }

    /// The key by which shares are counted; `None` where callers can't be told apart.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Caller { name, .. } => Some(name),
            Self::Service | Self::Unknown => None,
        }
    }
}

/// What a principal may access of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Nothing: it isn't there.
    Nothing,
    /// Some partitions.
    Partitions(Partitions),
    /// All of it.
    Whole,
}

/// Tells the kind of owner alone: names and ids are personal data.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller { owner, .. } => f
                .debug_struct("Caller")
                .field("owner", owner)
                .finish_non_exhaustive(),
            Self::Service => f.write_str("Service"),
            Self::Unknown => f.write_str("Unknown"),
        }
    }
}

/// An owner of rows.
#[derive(Clone, PartialEq, Eq)]
pub struct Owner {
    /// The kind of owner, of which a table says which of its fields names one ([`crate::TableDefinition::owners`]).
    pub kind: &'static str,
    /// The value of that field in the owner's rows.
    pub id: Arc<str>,
}

/// Tells the kind alone: an id is personal data.
impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(names: Option<&[&str]>) -> Principal {
        Principal::Caller {
            name: "somebody".into(),
            owner: None,
            tables: names.map(|names| names.iter().copied().map(Box::from).collect()),
        }
    }

    #[test]
    fn tables_are_accessed_by_their_names_and_by_prefixes_of_them() {
        let limited = caller(Some(&["notes", "logs_*"]));
        for (table, expected) in [
            ("notes", Grant::Whole),
            ("Notes", Grant::Nothing),
            ("note", Grant::Nothing),
            ("notes_2", Grant::Nothing),
            ("logs_", Grant::Whole),
            ("logs_2026", Grant::Whole),
            ("logs", Grant::Nothing),
            ("old_logs_", Grant::Nothing),
            ("logs_*", Grant::Whole),
            ("", Grant::Nothing),
        ] {
            assert_eq!(limited.grant(table), expected, "{table}");
        }
        assert_eq!(caller(Some(&["*"])).grant("notes"), Grant::Whole);
        assert_eq!(caller(Some(&[])).grant("notes"), Grant::Nothing);
        for all in [caller(None), Principal::Service, Principal::Unknown] {
            assert_eq!(all.grant("notes"), Grant::Whole, "{all:?}");
        }
    }

    #[test]
    fn partitions_are_granted_of_one_table_unless_all_of_it_is() {
        let some = Grant::Partitions(Partitions::of("eu-*"));
        for (names, table, expected) in [
            (&["notes/eu-*"][..], "notes", &some),
            (&["notes/eu-*"], "notes/eu-1", &Grant::Nothing),
            (&["notes/eu-*"], "note", &Grant::Nothing),
            (&["notes/eu-*"], "notes_2", &Grant::Nothing),
            (&["logs_*", "notes/eu-*"], "notes", &some),
            (&["notes", "notes/eu-*"], "notes", &Grant::Whole),
            (&["notes/eu-*", "no*"], "notes", &Grant::Whole),
        ] {
            assert_eq!(&caller(Some(names)).grant(table), expected, "{names:?} {table}");
        }
    }
}
