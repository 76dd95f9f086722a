//! Range scans over sorted keys, page by page.

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
    /// The end that the scan starts at.
    pub direction: Direction,
    /// Most entries of the page; 0 counts as 1.
    pub entries: usize,
    /// Most bytes of keys and values of the page; a larger first entry is a page alone.
    pub bytes: usize,
}

/// A page of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScanPage {
    /// Keys and values in scan order.
    pub entries: Vec<(Bytes, Bytes)>,
    /// Key of the next entry in scan order, which didn't fit; `None` when the range is exhausted.
    pub next: Option<Bytes>,
}
