//! Pages of sorted keys.

use bytes::Bytes;

use crate::space::Space;

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// From the lowest key up.
    #[default]
    Forward,
    /// From the highest key down.
    Backward,
}

/// A range of keys, and how much of it makes a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The space of the keys.
    pub space: Space,
    /// Lowest key, inclusive.
    pub low: Bytes,
    /// Highest key, exclusive.
    pub high: Bytes,
    /// The order of the entries.
    pub direction: Direction,
    /// Most entries of the page; 0 counts as 1.
    pub entries: usize,
    /// Bytes of keys and values after which the page ends; it holds at least one entry if there is one.
    pub bytes: usize,
}

/// A page of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScanPage {
    /// Keys and values in scan order.
    pub entries: Vec<(Bytes, Bytes)>,
    /// Key of the first entry that didn't fit; `None` when the range is exhausted.
    pub next: Option<Bytes>,
}
