//! The spaces of keys.

/// A space of sorted keys. They are few, for each costs memory and journal space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Rows.
    Rows,
    /// The change log, keyed by sequence.
    Log,
    /// Entries of secondary indexes.
    Index,
    /// Tables, consumers, request ids, and the ends of the log.
    Catalog,
}

impl Space {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rows, Self::Log, Self::Index, Self::Catalog];
}
