//! The context of a call: its principal, by which it may access tables and rows, and its deadline.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use crate::error::{EngineError, Result};

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
        /// The tables that it may access: names, or prefixes that end with `*`; `None` is all.
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

    /// Whether it may access a table. Check first that it is [known](Self::known): an unknown one may access all.
    pub(crate) fn may_access(&self, table: &str) -> bool {
        let Self::Caller {
            tables: Some(tables), ..
        } = self
        else {
            return true;
        };
        tables.iter().any(|name| match name.strip_suffix('*') {
            Some(prefix) => table.starts_with(prefix),
            None => table == &**name,
        })
    }

    /// The key by which shares are counted; `None` where callers can't be told apart.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Caller { name, .. } => Some(name),
            Self::Service | Self::Unknown => None,
        }
    }
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

    #[test]
    fn tables_are_accessed_by_their_names_and_by_prefixes_of_them() {
        let caller = |names: Option<&[&str]>| Principal::Caller {
            name: "somebody".into(),
            owner: None,
            tables: names.map(|names| names.iter().copied().map(Box::from).collect()),
        };
        let limited = caller(Some(&["notes", "logs_*"]));
        for (table, expected) in [
            ("notes", true),
            ("Notes", false),
            ("note", false),
            ("notes_2", false),
            ("logs_", true),
            ("logs_2026", true),
            ("logs", false),
            ("old_logs_", false),
            ("logs_*", true),
            ("", false),
        ] {
            assert_eq!(limited.may_access(table), expected, "{table}");
        }
        assert!(caller(Some(&["*"])).may_access("notes"));
        assert!(!caller(Some(&[])).may_access("notes"));
        for all in [caller(None), Principal::Service, Principal::Unknown] {
            assert!(all.may_access("notes"), "{all:?}");
        }
    }
}
