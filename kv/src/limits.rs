//! Every limit of the engines here, by name. What an engine takes is asked of it: [`crate::Kv::limits`].

/// Longest key, bytes.
pub const MAX_KEY_BYTES: usize = 32 << 10;
/// Most bytes one commit may carry: checks, keys, values and log entry.
pub const MAX_COMMIT_BYTES: usize = 192 << 20;
/// Commits that may wait for the committer thread; the next writer waits.
pub const COMMIT_QUEUE: usize = 4096;
/// Bytes of commits that may wait for the committer thread; the next writer waits.
pub const COMMIT_QUEUE_BYTES: usize = 256 << 20;
/// Commits that share one sync.
pub const MAX_GROUP_COMMITS: usize = 1024;
/// Bytes after which a group takes no further commit.
pub const MAX_GROUP_BYTES: usize = 4 << 20;
/// Reads of more keys or entries than this leave the async runtime's threads.
pub const INLINE_READS: usize = 50;
/// Most histories that a store knows apart. What the oldest gave then counts as of the one behind it, which gave nothing of it.
pub const MAX_HISTORIES: usize = 256;

const _: () = assert!(MAX_KEY_BYTES <= 65_535, "the longest key fits fjall");
const _: () = assert!(
    MAX_COMMIT_BYTES < COMMIT_QUEUE_BYTES,
    "the largest commit can be queued"
);
