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

/// Most bytes committed between two polls of the device.
const POLL_BYTES: usize = 1 << 20;
/// Most groups committed between two polls of the device.
const POLL_GROUPS: u32 = 64;

/// Admits commits by the free space of the device, which it polls.
pub(super) struct DiskSpaceGuard {
    source: Arc<dyn FreeSpace>,
    directory: PathBuf,
    /// Bytes that have to stay free; 0 turns the guard off.
    reserve: u64,
    /// Bytes and groups committed since the last poll.
    unpolled: (usize, u32),
    /// Free bytes at the last poll, if they were less than the reserve.
    short: Option<u64>,
}

impl DiskSpaceGuard {
    pub(super) fn new(directory: PathBuf, options: &FjallOptions) -> Self {
        let mut guard = Self {
            source: options.free_space.clone(),
            directory,
            reserve: options.reserve_bytes,
            unpolled: (0, 0),
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

    /// Whether to poll the device before the next group: now and then, and always while it is short of space.
    pub(super) fn is_poll_due(&self) -> bool {
        let (bytes, groups) = self.unpolled;
        self.short.is_some() || bytes >= POLL_BYTES || groups >= POLL_GROUPS
    }

    /// Records that a group was written.
    pub(super) fn record(&mut self, bytes: usize) {
        let (seen, groups) = self.unpolled;
        self.unpolled = (seen.saturating_add(bytes), groups.saturating_add(1));
    }

    /// Free bytes of the device now; `None` when it can't tell them.
    pub(super) fn free(&self) -> Option<u64> {
        self.source.free_bytes(&self.directory).ok()
    }

    /// Asks the device for its free bytes. A device that can't tell them changes nothing.
    pub(super) fn poll(&mut self) {
        self.unpolled = (0, 0);
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
