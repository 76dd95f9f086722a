//! Exports: every row of one snapshot, in slices, resumable.
use crate::resource::Stored;
use std::time::Duration;

/// How long a snapshot is kept after its last use.
pub const LEASE: Duration = Duration::from_secs(120);
/// Most snapshots that are kept for exports at a time.
pub const SNAPSHOTS_MAX: usize = 16;
/// Most slices of one snapshot.
pub const SLICES_MAX: usize = 64;

/// What to export; the fields are those of `ExportXxxRequest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportRequest {
    /// How many slices the snapshot is read in; 0 is 1, at most [`SLICES_MAX`].
    pub slice_count: i32,
    /// Which slice this is, from 0.
    pub slice: i32,
    /// The snapshot to read; empty takes a new one.
    pub snapshot_token: String,
    /// Goes on after the block that carried this token; the other fields are then taken from it.
    pub resume_token: String,
    /// Wait until the snapshot includes this write.
    pub min_sequence: i64,
}

/// One block of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportBlock<R> {
    /// The resources, in the order of their keys.
    pub items: Vec<Stored<R>>,
    /// Goes on after this block.
    pub resume_token: String,
    /// Lets other slices read the same snapshot.
    pub snapshot_token: String,
    /// The last write in the snapshot.
    pub sequence: i64,
}
