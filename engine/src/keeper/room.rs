//! The room on the device that indexes may take: what is above the store's reserve. Below that, changes still go into the
//! index that answers, as the writes behind them are acknowledged; nothing is merged and no draft grows.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use souk_index::MergeRoom;
use souk_storage::FreeSpace;
use tracing::{info, warn};

/// See the module's documentation. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    source: Arc<dyn FreeSpace>,
    directory: PathBuf,
    reserve: u64,
    /// Whether a merge was refused when one was asked for last.
    merges_wait: AtomicBool,
}

impl Room {
    /// The room of the device that a directory is on, of which `reserve` bytes stay free; 0 asks for nothing.
    pub(crate) fn new(source: Arc<dyn FreeSpace>, directory: PathBuf, reserve: u64) -> Self {
        let merges_wait = AtomicBool::new(false);
        let shared = Shared {
            source,
            directory,
            reserve,
            merges_wait,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Why indexes may not grow now.
    pub(crate) fn shortage(&self) -> Option<String> {
        let (free, reserve) = (self.free()?, self.shared.reserve);
        (free < reserve)
            .then(|| format!("{free} bytes are free on the device, and {reserve} are kept in reserve"))
    }

    /// Free bytes, where that is asked for and can be told.
    fn free(&self) -> Option<u64> {
        let shared = &self.shared;
        (shared.reserve > 0).then_some(())?;
        shared.source.free_bytes(&shared.directory).ok()
    }

    /// What is to be asked before each merge.
    pub(super) fn of_merges(&self) -> MergeRoom {
        let room = self.clone();
        MergeRoom::new(move |bytes| room.grants(bytes))
    }

    fn grants(&self, bytes: u64) -> bool {
        let reserve = self.shared.reserve;
        let free = self.free();
        let refused = free.is_some_and(|free| free < reserve.saturating_add(bytes));
        let waited = self.shared.merges_wait.swap(refused, Ordering::AcqRel);
        match (waited, refused) {
            (false, true) => warn!(bytes, free, reserve, "merges wait for room on the device"),
            (true, false) => info!("there is room for merges again"),
            _ => {}
        }
        !refused
    }
}
