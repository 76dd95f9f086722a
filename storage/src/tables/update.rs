//! What of a table may change.

use std::time::Duration;

use crate::schema::TableSchema;

/// What of a table changes; what isn't named stays. Key, transactions and numbering stay for ever.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableUpdate {
    /// Versions kept of each column.
    pub max_versions: Option<u32>,
    /// How long a cell is visible after its version; `Some(None)`: for ever.
    pub time_to_live: Option<Option<Duration>>,
    /// How far a version given by a writer may lie from the clock.
    pub max_version_offset: Option<Duration>,
    /// Whether rows may be updated.
    pub allow_update: Option<bool>,
}

impl TableUpdate {
    /// Nothing changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps that many versions of each column. Fewer: the surplus is invisible at once and removed in the
    /// background. More: surplus that isn't removed yet comes back.
    #[must_use]
    pub fn max_versions(mut self, versions: u32) -> Self {
        self.max_versions = Some(versions);
        self
    }

    /// Hides cells that long after their version, or never. Longer: cells that aren't removed yet come back.
    #[must_use]
    pub fn time_to_live(mut self, lifetime: Option<Duration>) -> Self {
        self.time_to_live = Some(lifetime);
        self
    }

    /// Allows versions that far from the clock.
    #[must_use]
    pub fn max_version_offset(mut self, offset: Duration) -> Self {
        self.max_version_offset = Some(offset);
        self
    }

    /// Whether rows may be updated.
    #[must_use]
    pub fn allow_update(mut self, allow: bool) -> Self {
        self.allow_update = Some(allow);
        self
    }

    /// The schema it makes of one.
    pub(super) fn apply(&self, schema: &TableSchema) -> TableSchema {
        TableSchema {
            max_versions: self.max_versions.unwrap_or(schema.max_versions),
            time_to_live: self.time_to_live.unwrap_or(schema.time_to_live),
            max_version_offset: self.max_version_offset.unwrap_or(schema.max_version_offset),
            allow_update: self.allow_update.unwrap_or(schema.allow_update),
            ..schema.clone()
        }
    }
}
