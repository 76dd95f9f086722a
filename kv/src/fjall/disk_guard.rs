//! The disk space guard: refuses writes while the device is short of space, and takes them again when it isn't any more.
//!
//! A write that fails for want of space stops the engine until a restart, and what it left half-way must be found
//! out then. So writes are refused while there is still room for the engine to finish what it took.

use std::path::PathBuf;
use std::sync::Arc;

use super::options::FjallOptions;
use crate::commit::{Commit, Mutation};
use crate::error::Error;
use crate::free_space::FreeSpace;
use crate::space::Space;

/// Bytes of commits after which the device is polled before the next group.
const POLL_BYTES: usize = 1 << 20;
/// Commit groups after which the device is polled before the next one.
const POLL_GROUPS: u32 = 64;

/// Admits commits by the free space of the device, which it polls.
pub(super) struct DiskSpaceGuard {
    source: Arc<dyn FreeSpace>,
    directory: PathBuf,
    /// Bytes that have to stay free; 0 turns the guard off.
    reserve: u64,
    /// Bytes committed since the last poll.
    unpolled_bytes: usize,
    /// Groups committed since the last poll.
    unpolled_groups: u32,
    /// Free bytes at the last poll, if they were less than the reserve.
    short: Option<u64>,
}

impl DiskSpaceGuard {
    pub(super) fn new(directory: PathBuf, options: &FjallOptions) -> Self {
        let mut guard = Self {
            source: options.free_space.clone(),
            directory,
            reserve: options.reserve_bytes,
            unpolled_bytes: 0,
            unpolled_groups: 0,
            short: None,
        };
        guard.poll();
        guard
    }

    /// Whether the last poll found less than the reserve.
    pub(super) fn is_short(&self) -> bool {
        self.short.is_some()
    }

    /// Free bytes and reserve, while there is less than the reserve.
    pub(super) fn shortage(&self) -> Option<(u64, u64)> {
        self.short.map(|free| (free, self.reserve))
    }

    /// Whether to poll the device before the next group: after [`POLL_BYTES`] or [`POLL_GROUPS`], and always while it is
    /// short of space.
    pub(super) fn is_poll_due(&self) -> bool {
        self.is_short() || self.unpolled_bytes >= POLL_BYTES || self.unpolled_groups >= POLL_GROUPS
    }

    /// Records that a group of so many bytes was written.
    pub(super) fn record(&mut self, bytes: usize) {
        self.unpolled_bytes += bytes;
        self.unpolled_groups += 1;
    }

    /// Free bytes of the device now; `None` when it can't tell them.
    pub(super) fn free(&self) -> Option<u64> {
        self.source.free_bytes(&self.directory).ok()
    }

    /// Asks the device for its free bytes. One that can't tell them counts as having enough.
    pub(super) fn poll(&mut self) {
        self.unpolled_bytes = 0;
        self.unpolled_groups = 0;
        if self.reserve == 0 {
            return;
        }
        match self.source.free_bytes(&self.directory) {
            Ok(free) => self.short = (free < self.reserve).then_some(free),
            Err(error) => {
                tracing::warn!(directory = ?self.directory, "cannot tell the room on the device: {error}");
                self.short = None;
            }
        }
    }

    /// Refuses a commit that there is too little space for now.
    pub(super) fn admit(&self, commit: &Commit) -> Result<(), Error> {
        match self.short {
            Some(free) if free < kept_free(commit, self.reserve) => Err(Error::DiskFull {
                reason: reason(free, self.reserve),
            }),
            _ => Ok(()),
        }
    }
}

/// The message for a device with too little space.
pub(super) fn reason(free: u64, reserve: u64) -> String {
    format!("{free} bytes are free on the device, and {reserve} are kept in reserve; nothing was written")
}

/// What must stay free for a commit: all of the reserve for one that grows the data, less for one that shrinks it,
/// or else nothing could be deleted to make room.
fn kept_free(commit: &Commit, reserve: u64) -> u64 {
    let grows = commit.mutations.iter().any(|mutation| {
        matches!(
            mutation,
            Mutation::Put {
                space: Space::Rows | Space::Index,
                ..
            }
        )
    });
    match (grows, &commit.log) {
        (true, _) => reserve,
        (false, Some(_)) => reserve / 2,
        (false, None) => reserve / 4,
    }
}
