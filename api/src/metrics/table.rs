//! Every instrument of an engine.

use souk_chassis::telemetry::instrument::{DATABASE_SECONDS, DISK_SECONDS, Instrument, Kind};

/// Bounds of sizes of groups.
const GROUP_SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// Accesses to tables.
pub const OPERATION_DURATION: Instrument = Instrument {
    name: "db.client.operation.duration",
    kind: Kind::Histogram(DATABASE_SECONDS),
    unit: "s",
    description: "Duration of accesses to tables, waiting for a write that was asked for among it",
    attributes: &[
        "db.system.name",
        "db.operation.name",
        "db.collection.name",
        "error.type",
    ],
};

/// Syncs to the disk.
pub const SYNC_DURATION: Instrument = Instrument {
    name: "souk.store.sync.duration",
    kind: Kind::Histogram(DISK_SECONDS),
    unit: "s",
    description: "Duration of writing a group of commits and syncing it to the disk",
    attributes: &[],
};

/// Commits written at once.
pub const GROUP_COMMITS: Instrument = Instrument {
    name: "souk.store.group.size",
    kind: Kind::Histogram(GROUP_SIZES),
    unit: "{commit}",
    description: "Commits that were written at once",
    attributes: &[],
};

/// The queue of the committer.
pub const COMMITS_WAITING: Instrument = Instrument {
    name: "souk.store.commits.waiting",
    kind: Kind::Gauge,
    unit: "{commit}",
    description: "Commits that wait for the thread that writes",
    attributes: &[],
};

/// How far the log is.
pub const SEQUENCE: Instrument = Instrument {
    name: "souk.store.sequence",
    kind: Kind::Gauge,
    unit: "{change}",
    description: "Sequence of the last change that is acknowledged",
    attributes: &[],
};

/// Whether writes are taken.
pub const WRITABLE: Instrument = Instrument {
    name: "souk.store.writable",
    kind: Kind::Gauge,
    unit: "{store}",
    description: "1 while writes are taken, 0 while the device is full or after a failure",
    attributes: &[],
};

/// Memory.
pub const MEMORY_USAGE: Instrument = Instrument {
    name: "souk.store.memory.usage",
    kind: Kind::Gauge,
    unit: "By",
    description: "Memory of the store by what it holds: cache, memtables or pinned",
    attributes: &["souk.store.part"],
};

/// What it may be.
pub const MEMORY_LIMIT: Instrument = Instrument {
    name: "souk.store.memory.limit",
    kind: Kind::Gauge,
    unit: "By",
    description: "What cache and memtables may take: cache or memtables",
    attributes: &["souk.store.part"],
};

/// Journals.
pub const JOURNAL_SIZE: Instrument = Instrument {
    name: "souk.store.journal.size",
    kind: Kind::Gauge,
    unit: "By",
    description: "Bytes of the journals, which are read when the store is opened",
    attributes: &[],
};

/// Stored bytes.
pub const TABLE_SIZE: Instrument = Instrument {
    name: "souk.store.table.size",
    kind: Kind::Gauge,
    unit: "By",
    description: "Bytes of stored tables in use, by space: rows, log, index or catalog",
    attributes: &["souk.store.space"],
};

/// Bytes to be freed.
pub const GARBAGE: Instrument = Instrument {
    name: "souk.store.garbage.size",
    kind: Kind::Gauge,
    unit: "By",
    description: "Bytes that a compaction of the whole space would free at most, by space",
    attributes: &["souk.store.space"],
};

/// Flushes.
pub const FLUSHES_WAITING: Instrument = Instrument {
    name: "souk.store.flushes.waiting",
    kind: Kind::Gauge,
    unit: "{flush}",
    description: "Flushes of memtables that wait or run",
    attributes: &[],
};

/// Compactions.
pub const COMPACTIONS_ACTIVE: Instrument = Instrument {
    name: "souk.store.compactions.active",
    kind: Kind::Gauge,
    unit: "{compaction}",
    description: "Compactions under way",
    attributes: &[],
};

/// Their time.
pub const COMPACTION_TIME: Instrument = Instrument {
    name: "souk.store.compaction.time",
    kind: Kind::Counter,
    unit: "s",
    description: "Time that compactions took",
    attributes: &[],
};

/// Disk.
pub const DISK_USED: Instrument = Instrument {
    name: "souk.store.disk.used",
    kind: Kind::Gauge,
    unit: "By",
    description: "What the files of the store take on the disk",
    attributes: &[],
};

/// Free disk.
pub const DISK_FREE: Instrument = Instrument {
    name: "souk.store.disk.free",
    kind: Kind::Gauge,
    unit: "By",
    description: "What is free on the device",
    attributes: &[],
};

/// Reserve.
pub const DISK_RESERVE: Instrument = Instrument {
    name: "souk.store.disk.reserve",
    kind: Kind::Gauge,
    unit: "By",
    description: "What stays free: with less, writes are refused",
    attributes: &[],
};

/// Lag in changes.
pub const LAG_CHANGES: Instrument = Instrument {
    name: "souk.index.lag.changes",
    kind: Kind::Gauge,
    unit: "{change}",
    description: "Changes that are stored and that searches do not see yet",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Lag in seconds.
pub const LAG_TIME: Instrument = Instrument {
    name: "souk.index.lag.time",
    kind: Kind::Gauge,
    unit: "s",
    description: "Age of the oldest change that searches do not see yet; 0 when they see all",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Commits of an index.
pub const APPLY_DURATION: Instrument = Instrument {
    name: "souk.index.apply.duration",
    kind: Kind::Histogram(DATABASE_SECONDS),
    unit: "s",
    description: "Duration of letting searches see changes",
    attributes: &["db.collection.name"],
};

/// Whether an index answers.
pub const SERVING: Instrument = Instrument {
    name: "souk.index.serving",
    kind: Kind::Gauge,
    unit: "{index}",
    description: "1 while the index answers searches, else 0",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// The weights of indexes.
pub const WEIGHT: Instrument = Instrument {
    name: "souk.index.weight",
    kind: Kind::Gauge,
    unit: "{weight}",
    description: "Share of the searches that name no index, in proportion to the table's other indexes; 0 takes none",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Indexes that stand still.
pub const STALLED: Instrument = Instrument {
    name: "souk.index.stalled.time",
    kind: Kind::Gauge,
    unit: "s",
    description: "How long the index has not been able to take in changes; 0 while it can",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// What indexes hold of the log.
pub const LOG_HELD: Instrument = Instrument {
    name: "souk.index.log.held",
    kind: Kind::Gauge,
    unit: "{change}",
    description: "Changes that the log keeps because the index is not durable beyond them",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Documents.
pub const DOCUMENTS: Instrument = Instrument {
    name: "souk.index.documents",
    kind: Kind::Gauge,
    unit: "{document}",
    description: "Documents that searches find",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Deleted documents.
pub const DELETED: Instrument = Instrument {
    name: "souk.index.deleted",
    kind: Kind::Gauge,
    unit: "{document}",
    description: "Documents and nested objects that are deleted, but not reclaimed by a merge yet",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Segments.
pub const SEGMENTS: Instrument = Instrument {
    name: "souk.index.segments",
    kind: Kind::Gauge,
    unit: "{segment}",
    description: "Segments that searches go through",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Bytes of an index.
pub const INDEX_SIZE: Instrument = Instrument {
    name: "souk.index.size",
    kind: Kind::Gauge,
    unit: "By",
    description: "Bytes of those segments",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Memory of an index.
pub const INDEX_MEMORY_USAGE: Instrument = Instrument {
    name: "souk.index.memory.usage",
    kind: Kind::Gauge,
    unit: "By",
    description: "Memory of the index by what it is for: documents, removals or kept",
    attributes: &["db.collection.name", "souk.index.name", "souk.index.part"],
};

/// What it may be.
pub const INDEX_MEMORY_LIMIT: Instrument = Instrument {
    name: "souk.index.memory.limit",
    kind: Kind::Gauge,
    unit: "By",
    description: "What these may take: documents or removals",
    attributes: &["db.collection.name", "souk.index.name", "souk.index.part"],
};

/// The end of the log in memory.
pub const LOG_WINDOW: Instrument = Instrument {
    name: "souk.log.window.size",
    kind: Kind::Gauge,
    unit: "By",
    description: "Bytes of the end of the log that the indexes share in memory",
    attributes: &[],
};

/// Merges.
pub const MERGES_ACTIVE: Instrument = Instrument {
    name: "souk.index.merges.active",
    kind: Kind::Gauge,
    unit: "{merge}",
    description: "Merges of segments under way",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Merges done.
pub const MERGES: Instrument = Instrument {
    name: "souk.index.merges",
    kind: Kind::Counter,
    unit: "{merge}",
    description: "Merges of segments that are done",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Their time.
pub const MERGE_TIME: Instrument = Instrument {
    name: "souk.index.merge.time",
    kind: Kind::Counter,
    unit: "s",
    description: "Time that those took together",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Misfits.
pub const MISFITS: Instrument = Instrument {
    name: "souk.index.misfits",
    kind: Kind::Counter,
    unit: "{value}",
    description: "Values that were not indexed because they do not fit their field, since the index was built",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Damage.
pub const DAMAGES: Instrument = Instrument {
    name: "souk.index.damages",
    kind: Kind::Counter,
    unit: "{index}",
    description: "Indexes whose files were found damaged, each of which is built anew",
    attributes: &["db.collection.name", "souk.index.name"],
};

/// Searches.
pub const SEARCHES_ACTIVE: Instrument = Instrument {
    name: "souk.search.active",
    kind: Kind::Gauge,
    unit: "{search}",
    description: "Searches that run on a place of their own",
    attributes: &[],
};

/// Searches that wait.
pub const SEARCHES_WAITING: Instrument = Instrument {
    name: "souk.search.waiting",
    kind: Kind::Gauge,
    unit: "{search}",
    description: "Searches that wait for a place",
    attributes: &[],
};

/// Kept views.
pub const VIEWS: Instrument = Instrument {
    name: "souk.search.views",
    kind: Kind::Gauge,
    unit: "{view}",
    description: "Views of searches that are kept for their next pages",
    attributes: &[],
};

/// Kept snapshots.
pub const SNAPSHOTS: Instrument = Instrument {
    name: "souk.export.snapshots",
    kind: Kind::Gauge,
    unit: "{snapshot}",
    description: "Snapshots of exports that are kept",
    attributes: &[],
};

/// Watches.
pub const WATCHES: Instrument = Instrument {
    name: "souk.watch.streams",
    kind: Kind::Gauge,
    unit: "{stream}",
    description: "Watches that are open",
    attributes: &[],
};

/// Read for watches.
pub const WATCHED_AHEAD: Instrument = Instrument {
    name: "souk.watch.ahead",
    kind: Kind::Gauge,
    unit: "By",
    description: "What watches have read of the log and their clients haven't taken yet",
    attributes: &[],
};

/// All of them.
pub const ALL: &[Instrument] = &[
    OPERATION_DURATION,
    SYNC_DURATION,
    GROUP_COMMITS,
    COMMITS_WAITING,
    SEQUENCE,
    WRITABLE,
    MEMORY_USAGE,
    MEMORY_LIMIT,
    JOURNAL_SIZE,
    TABLE_SIZE,
    GARBAGE,
    FLUSHES_WAITING,
    COMPACTIONS_ACTIVE,
    COMPACTION_TIME,
    DISK_USED,
    DISK_FREE,
    DISK_RESERVE,
    LAG_CHANGES,
    LAG_TIME,
    APPLY_DURATION,
    SERVING,
    WEIGHT,
    STALLED,
    LOG_HELD,
    DOCUMENTS,
    DELETED,
    SEGMENTS,
    INDEX_SIZE,
    INDEX_MEMORY_USAGE,
    INDEX_MEMORY_LIMIT,
    LOG_WINDOW,
    MERGES_ACTIVE,
    MERGES,
    MERGE_TIME,
    MISFITS,
    DAMAGES,
    SEARCHES_ACTIVE,
    SEARCHES_WAITING,
    VIEWS,
    SNAPSHOTS,
    WATCHES,
    WATCHED_AHEAD,
];
