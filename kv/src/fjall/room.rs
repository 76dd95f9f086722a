//! Room on the device: who is refused before it is full, and that they are taken again when it isn't any more.
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

/// Bytes committed between two looks at the device, at most.
const LOOK_BYTES: usize = 1 << 20;
/// Groups committed between two looks at the device, at most.
const LOOK_GROUPS: u32 = 64;

/// What the committer knows of the room on the device.
pub(super) struct Room {
    source: Arc<dyn FreeSpace>,
    directory: PathBuf,
    reserve: u64,
    /// Bytes and groups since the last look.
    unseen: (usize, u32),
    /// Free bytes when there were less than the reserve.
    short: Option<u64>,
}

impl Room {
    pub(super) fn new(directory: PathBuf, options: &FjallOptions) -> Self {
        let mut room = Self {
            source: options.free_space.clone(),
            directory,
            reserve: options.reserve_bytes,
            unseen: (0, 0),
            short: None,
        };
        room.look();
        room
    }

    pub(super) fn is_short(&self) -> bool {
        self.short.is_some()
    }

    /// Free bytes and reserve, while there is less than the reserve.
    pub(super) fn shortage(&self) -> Option<(u64, u64)> {
        self.short.map(|free| (free, self.reserve))
    }

    /// Whether to look at the device before the next group: now and then, and always while it is short.
    pub(super) fn is_due(&self) -> bool {
        let (bytes, groups) = self.unseen;
        self.short.is_some() || bytes >= LOOK_BYTES || groups >= LOOK_GROUPS
    }

    /// After a group of so many bytes.
    pub(super) fn committed(&mut self, bytes: usize) {
        let (seen, groups) = self.unseen;
        self.unseen = (seen.saturating_add(bytes), groups.saturating_add(1));
    }

    /// Free bytes, if they can be told.
    pub(super) fn free(&self) -> Option<u64> {
        self.source.free_bytes(&self.directory).ok()
    }

    pub(super) fn look(&mut self) {
        self.unseen = (0, 0);
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

    /// Why a commit isn't taken now.
    pub(super) fn refuses(&self, commit: &Commit) -> Option<Error> {
        let free = self.short?;
        let needed = kept_free(commit, self.reserve);
        (free < needed).then(|| Error::DiskFull {
            reason: reason(free, self.reserve),
        })
    }
}

/// The words for a device with too little room.
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
