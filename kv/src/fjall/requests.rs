//! What the committer and the compactor are asked for.

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::completion::Completion;
use super::failure::StoreFailure;
use crate::commit::Commit;
use crate::error::Error;

/// A request to the committer.
pub(super) enum CommitterRequest {
    Commit(QueuedCommit),
    Barrier(Barrier),
    /// For a snapshot behind everything the engine did; the sender is dropped when there will be none.
    Refresh(oneshot::Sender<()>),
}

/// A commit in the queue.
pub(super) struct QueuedCommit {
    pub(super) commit: Commit,
    /// Bytes of its keys and values.
    pub(super) bytes: usize,
    /// Its share of the queue's bytes, given back when it is done.
    pub(super) permit: OwnedSemaphorePermit,
    pub(super) completion: Completion,
}

/// Asks for everything before it to be durable.
pub(super) struct Barrier {
    /// Whether the committer ends after it.
    pub(super) close: bool,
    pub(super) completion: Option<oneshot::Sender<Result<(), Error>>>,
}

impl Barrier {
    pub(super) fn complete(self, result: &Result<(), StoreFailure>) {
        if let Some(completion) = self.completion {
            // A caller that stopped waiting doesn't need to know.
            let _ = completion.send(result.as_ref().map(drop).map_err(StoreFailure::outcome_unknown));
        }
    }
}

/// A request to the compactor.
pub(super) enum CompactorRequest {
    /// To flush the memtables that are above their share of the memory.
    Flush,
    /// To quiesce the store now, and to say when that is done.
    Quiesce(oneshot::Sender<Result<(), Error>>),
}
