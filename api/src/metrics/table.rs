//! Every instrument of an engine.

use souk_chassis::instruments;
use souk_chassis::telemetry::instrument::{DATABASE_SECONDS, DISK_SECONDS, Kind};

/// Bucket bounds of commit groups, in commits.
const GROUP_SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

instruments! {
    OPERATION_DURATION: Kind::Histogram(DATABASE_SECONDS), "db.client.operation.duration" in "s"
        by ["db.system.name", "db.operation.name", "db.collection.name", "error.type"],
        "Duration of accesses to tables, waiting for a write that was asked for among it";
    SYNC_DURATION: Kind::Histogram(DISK_SECONDS), "souk.store.sync.duration" in "s" by [],
        "Duration of writing a group of commits and syncing it to the disk";
    GROUP_COMMITS: Kind::Histogram(GROUP_SIZES), "souk.store.group.size" in "{commit}" by [],
        "Commits that were written at once";
    COMMITS_WAITING: Kind::Gauge, "souk.store.commits.waiting" in "{commit}" by [],
        "Commits that wait for the thread that writes";
    SEQUENCE: Kind::Gauge, "souk.store.sequence" in "{change}" by [],
        "Sequence of the last change that is acknowledged";
    WRITABLE: Kind::Gauge, "souk.store.writable" in "{store}" by [],
        "1 while writes are taken, 0 while the device is full or after a failure";
    MEMORY_USAGE: Kind::Gauge, "souk.store.memory.usage" in "By" by ["souk.store.part"],
        "Memory of the store by what it holds: cache, memtables or pinned";
    MEMORY_LIMIT: Kind::Gauge, "souk.store.memory.limit" in "By" by ["souk.store.part"],
        "What cache and memtables may take: cache or memtables";
    JOURNAL_SIZE: Kind::Gauge, "souk.store.journal.size" in "By" by [],
        "Bytes of the journals, which are read when the store is opened";
    TABLE_SIZE: Kind::Gauge, "souk.store.table.size" in "By" by ["souk.store.space"],
        "Bytes of stored tables in use, by space: rows, log, index or catalog";
    GARBAGE: Kind::Gauge, "souk.store.garbage.size" in "By" by ["souk.store.space"],
        "Bytes that a compaction of the whole space would free at most, by space";
    FLUSHES_WAITING: Kind::Gauge, "souk.store.flushes.waiting" in "{flush}" by [],
        "Flushes of memtables that wait or run";
    COMPACTIONS_ACTIVE: Kind::Gauge, "souk.store.compactions.active" in "{compaction}" by [],
        "Compactions under way";
    COMPACTION_TIME: Kind::Counter, "souk.store.compaction.time" in "s" by [],
        "Time that compactions took";
    DISK_USED: Kind::Gauge, "souk.store.disk.used" in "By" by [],
        "What the files of the store take on the disk";
    DISK_FREE: Kind::Gauge, "souk.store.disk.free" in "By" by [],
        "What is free on the device";
    DISK_RESERVE: Kind::Gauge, "souk.store.disk.reserve" in "By" by [],
        "What stays free: with less, writes are refused";
    LAG_CHANGES: Kind::Gauge, "souk.index.lag.changes" in "{change}"
        by ["db.collection.name", "souk.index.name"],
        "Changes that are stored and that searches do not see yet";
    LAG_TIME: Kind::Gauge, "souk.index.lag.time" in "s" by ["db.collection.name", "souk.index.name"],
        "Age of the oldest change that searches do not see yet; 0 when they see all";
    APPLY_DURATION: Kind::Histogram(DATABASE_SECONDS), "souk.index.apply.duration" in "s"
        by ["db.collection.name"],
        "Duration of letting searches see changes";
    SERVING: Kind::Gauge, "souk.index.serving" in "{index}" by ["db.collection.name", "souk.index.name"],
        "1 while the index answers searches, else 0";
    WEIGHT: Kind::Gauge, "souk.index.weight" in "{weight}" by ["db.collection.name", "souk.index.name"],
        "Share of the searches that name no index, in proportion to the table's other indexes; 0 takes none";
    STALLED: Kind::Gauge, "souk.index.stalled.time" in "s" by ["db.collection.name", "souk.index.name"],
        "How long the index has not been able to take in changes; 0 while it can";
    LOG_HELD: Kind::Gauge, "souk.index.log.held" in "{change}" by ["db.collection.name", "souk.index.name"],
        "Changes that the log keeps because the index is not durable beyond them";
    DOCUMENTS: Kind::Gauge, "souk.index.documents" in "{document}"
        by ["db.collection.name", "souk.index.name"],
        "Documents that searches find";
    DELETED: Kind::Gauge, "souk.index.deleted" in "{document}" by ["db.collection.name", "souk.index.name"],
        "Documents and nested objects that are deleted, but not reclaimed by a merge yet";
    SEGMENTS: Kind::Gauge, "souk.index.segments" in "{segment}" by ["db.collection.name", "souk.index.name"],
        "Segments that searches go through";
    INDEX_SIZE: Kind::Gauge, "souk.index.size" in "By" by ["db.collection.name", "souk.index.name"],
        "Bytes of those segments";
    INDEX_MEMORY_USAGE: Kind::Gauge, "souk.index.memory.usage" in "By"
        by ["db.collection.name", "souk.index.name", "souk.index.part"],
        "Memory of the index by what it is for: documents, removals or kept";
    INDEX_MEMORY_LIMIT: Kind::Gauge, "souk.index.memory.limit" in "By"
        by ["db.collection.name", "souk.index.name", "souk.index.part"],
        "What these may take: documents or removals";
    LOG_WINDOW: Kind::Gauge, "souk.log.window.size" in "By" by [],
        "Bytes of the end of the log that the indexes share in memory";
    MERGES_ACTIVE: Kind::Gauge, "souk.index.merges.active" in "{merge}"
        by ["db.collection.name", "souk.index.name"],
        "Merges of segments under way";
    MERGES: Kind::Counter, "souk.index.merges" in "{merge}" by ["db.collection.name", "souk.index.name"],
        "Merges of segments that are done";
    MERGE_TIME: Kind::Counter, "souk.index.merge.time" in "s" by ["db.collection.name", "souk.index.name"],
        "Time that those took together";
    MISFITS: Kind::Counter, "souk.index.misfits" in "{value}" by ["db.collection.name", "souk.index.name"],
        "Values that were not indexed because they do not fit their field, since the index was built";
    DAMAGES: Kind::Counter, "souk.index.damages" in "{index}" by ["db.collection.name", "souk.index.name"],
        "Indexes whose files were found damaged, each of which is built anew";
    SEARCHES_ACTIVE: Kind::Gauge, "souk.search.active" in "{search}" by [],
        "Searches that run on a place of their own";
    SEARCHES_WAITING: Kind::Gauge, "souk.search.waiting" in "{search}" by [],
        "Searches that wait for a place";
    VIEWS: Kind::Gauge, "souk.search.views" in "{view}" by [],
        "Views of searches that are kept for their next pages";
    SNAPSHOTS: Kind::Gauge, "souk.export.snapshots" in "{snapshot}" by [],
        "Snapshots of exports that are kept";
    WATCHES: Kind::Gauge, "souk.watch.streams" in "{stream}" by [],
        "Watches that are open";
    WATCHED_AHEAD: Kind::Gauge, "souk.watch.ahead" in "By" by [],
        "What watches have read of the log and their clients haven't taken yet";
}
