//! What can go wrong in the engine, as a type.

use crate::columns::CorruptRow;

/// What a call was waiting for when its time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// For the index to include the wanted `min_sequence`.
    Index {
        /// The sequence that was asked for.
        wanted: u64,
        /// The sequence that the index includes.
        reached: u64,
    },
    /// For a free place to search in.
    Searchers,
    /// For the search itself.
    Search {
        /// Values that its patterns had looked at.
        walked: u64,
    },
    /// For a scan to find rows of the caller's own among those of others.
    OwnRows,
}

/// Who shares the limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitOf {
    /// The caller's own share.
    Caller,
    /// That of all callers of the service.
    All,
}

impl std::fmt::Display for LimitOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Caller => "of this caller",
            Self::All => "of all callers",
        })
    }
}

/// Why the engine didn't do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No row has the id.
    #[error("no {name} {id:?}")]
    NotFound {
        /// The resource's name, for example `order`.
        name: &'static str,
        /// The id that was asked for.
        id: String,
    },
    /// The call may only meet own rows, and its kind of owner has none here.
    #[error("a {kind} has no {name} of its own")]
    NoOwnRows {
        /// What a row of the table is called.
        name: String,
        /// The kind of owner that the caller is.
        kind: &'static str,
    },
    /// The call would write a row that isn't its caller's own.
    #[error("the {field} of the {name} isn't the caller's")]
    NotOwn {
        /// What a row of the table is called.
        name: String,
        /// The field that names the owner; of a created table the column.
        field: String,
        /// The kind of owner that the caller is.
        kind: &'static str,
    },
    /// The index doesn't have the field that tells the rows of a limited caller from others.
    #[error("the index of {table:?} has no usable field {field}")]
    OwnerNotIndexed {
        /// The table.
        table: String,
        /// The field that names the owner, or the partition.
        field: String,
    },
    /// A row with the id is there already.
    #[error("{name} {id:?} exists already")]
    AlreadyExists {
        /// The resource's name.
        name: &'static str,
        /// The id that is taken.
        id: String,
    },
    /// The row has changed since the etag was given out.
    #[error("{name} {id:?} has changed: its etag isn't {given:?} any more")]
    EtagMismatch {
        /// The resource's name.
        name: &'static str,
        /// The id.
        id: String,
        /// The etag of the request.
        given: String,
    },
    /// An update without etag lost against other writers again and again.
    #[error("{name} {id:?} was changed by others during each of {attempts} attempts")]
    Contended {
        /// The resource's name.
        name: &'static str,
        /// The id.
        id: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// A request id came again with other content.
    #[error("the request id was used before with other content")]
    RequestIdReused,
    /// Resources of a batch have the id of an earlier one.
    #[error("ids of {table} are in the batch twice, at {at:?}")]
    DuplicateIds {
        /// The table.
        table: &'static str,
        /// The path of the id in a resource, for example `order_id`.
        id_field: &'static str,
        /// Where they are in the batch.
        at: Vec<usize>,
    },
    /// The view of a page token ends before the wanted sequence.
    #[error("the view of the page token ends at {reached}, before {wanted}")]
    ViewBehind {
        /// The sequence that was asked for.
        wanted: u64,
        /// The last sequence in the view.
        reached: u64,
    },
    /// The snapshot of an export ends before the wanted sequence.
    #[error("the snapshot of the export ends at {reached}, before {wanted}")]
    SnapshotBehind {
        /// The sequence that was asked for.
        wanted: u64,
        /// The last sequence in the snapshot.
        reached: u64,
    },
    /// A page token was changed, belongs to another request, or is none.
    #[error("the page token can't be used: {detail}")]
    PageTokenInvalid {
        /// What is wrong with it.
        detail: &'static str,
    },
    /// An export token was changed or is none.
    #[error("the {token} can't be used: {detail}")]
    ExportTokenInvalid {
        /// Which token: `snapshot_token` or `resume_token`.
        token: &'static str,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// The snapshot of an export isn't kept any more.
    #[error("the snapshot of the export is gone")]
    ExportExpired,
    /// As many snapshots as allowed are kept for exports.
    #[error("{max} exports {of} are under way")]
    TooManyExports {
        /// [`crate::slices::SNAPSHOTS_MAX`], [`crate::slices::SNAPSHOTS_OF_CALLER_MAX`].
        max: usize,
        /// Which of them.
        of: LimitOf,
    },
    /// The view of a page token isn't kept any more, or its index is damaged.
    #[error("the view of the page token is gone")]
    ViewExpired,
    /// As many views as allowed are kept for searches.
    #[error("{max} views {of} are kept for searches")]
    TooManyViews {
        /// [`crate::views::VIEWS_MAX`], [`crate::views::VIEWS_OF_CALLER_MAX`].
        max: usize,
        /// Which of them.
        of: LimitOf,
    },
    /// As many watches as allowed are open.
    #[error("{max} watches are there {of}")]
    TooManyWatches {
        /// [`crate::watch::WATCHES_MAX`].
        max: usize,
        /// Whose: [`LimitOf::Caller`] has its share of them.
        of: LimitOf,
    },
    /// As many calls as allowed read whole tables to split them.
    #[error("{max} tables are read to be split {of}")]
    TooManySplits {
        /// [`crate::table::SPLITS_MAX`].
        max: usize,
        /// Whose: [`LimitOf::Caller`] has its share of them.
        of: LimitOf,
    },
    /// As many calls as allowed look for own rows among those of others.
    #[error("{max} calls {of} look for rows of their own")]
    TooManyScans {
        /// [`crate::table::SCANS_MAX`].
        max: usize,
        /// Whose: [`LimitOf::Caller`] has its share of them.
        of: LimitOf,
    },
    /// As many transactions as allowed are open.
    #[error("{max} transactions {of} are open")]
    TooManyTransactions {
        /// [`crate::transactions::TRANSACTIONS_MAX`], [`crate::transactions::TRANSACTIONS_OF_CALLER_MAX`].
        max: usize,
        /// Which of them.
        of: LimitOf,
    },
    /// The table has a consumer group with the name.
    #[error("table {table:?} has a consumer group {group:?}")]
    ConsumerGroupExists {
        /// The table.
        table: String,
        /// The group.
        group: String,
    },
    /// The table has no such consumer group, or no more.
    #[error("table {table:?} has no consumer group {group:?}")]
    ConsumerGroupNotFound {
        /// The table.
        table: String,
        /// The group.
        group: String,
    },
    /// A consumer group has as many members as it may have.
    #[error("the consumer group has {max} members {of}")]
    TooManyMembers {
        /// [`crate::consumer_groups::MEMBERS_MAX`].
        max: usize,
        /// Whose: [`LimitOf::Caller`] has its share of them.
        of: LimitOf,
    },
    /// It isn't a member of the consumer group, or no more, or another caller's.
    #[error("{member} is no member of consumer group {group:?}")]
    MemberNotFound {
        /// The group.
        group: String,
        /// The member's id.
        member: String,
    },
    /// The member doesn't hold the shard by this lease, or no more.
    #[error("shard {shard} of consumer group {group:?} isn't held by generation {generation}")]
    ShardLost {
        /// The group.
        group: String,
        /// The shard.
        shard: u16,
        /// Number of the lease.
        generation: u64,
    },
    /// The same is being done with the shard already: one read of a lease, and one commit of a shard, at a time.
    #[error("shard {shard} of consumer group {group:?} is being read or committed already")]
    ShardBusy {
        /// The group.
        group: String,
        /// The shard.
        shard: u16,
    },
    /// Changes after the wanted sequence aren't kept any more.
    #[error("changes after {after} are trimmed; the oldest that is kept is {oldest}")]
    ChangesTrimmed {
        /// The sequence of the request.
        after: u64,
        /// The oldest change that can be read.
        oldest: u64,
    },
    /// The call names a sequence that no write has been given yet.
    #[error("{field} is {given}, which has not been given out yet; the last is {last}")]
    SequenceAhead {
        /// The field that names it, for example `min_sequence`.
        field: &'static str,
        /// The sequence of the request.
        given: u64,
        /// The last sequence.
        last: u64,
    },
    /// The time of the call ran out.
    #[error("the deadline passed while waiting: {0:?}")]
    DeadlineExceeded(Waiting),
    /// The index is being built.
    #[error("the index {index:?} is being built")]
    IndexBuilding {
        /// The index.
        index: String,
    },
    /// The index has failed, and building it anew hasn't helped; it is built again when the process starts again.
    #[error("the index {index:?} has failed: {reason}")]
    IndexFailed {
        /// The index.
        index: String,
        /// The first failure.
        reason: String,
    },
    /// The index's files are damaged: it is built anew by itself.
    #[error("the index {index:?} is damaged: {reason}")]
    IndexDamaged {
        /// The index.
        index: String,
        /// What was found.
        reason: String,
    },
    /// The system can't read the index's files at the moment. As where that stalls its follower, it is told of this index alone: what
    /// else the disk or the process suffers from, the calls on that tell by themselves.
    #[error("the index {index:?} can't be read: {reason}")]
    IndexUnreadable {
        /// The index.
        index: String,
        /// What failed.
        reason: String,
    },
    /// The index can't take in changes at the moment, and doesn't have those that were asked for.
    #[error("the index {index:?} stands still at {reached}, before {wanted}: {reason}")]
    IndexStalled {
        /// The index.
        index: String,
        /// Why, for clients.
        why: &'static str,
        /// The last failure.
        reason: String,
        /// The sequence that was asked for.
        wanted: u64,
        /// The sequence that the index includes.
        reached: u64,
    },
    /// More searches are waiting than may.
    #[error("{waiting} searches are waiting already")]
    TooBusy {
        /// How many are waiting.
        waiting: usize,
    },
    /// The engine is closed or closing.
    #[error("the engine is closing")]
    Closing,
    /// The table was not declared when the engine was opened.
    #[error("table {table:?} was not declared; add it to the tables that the engine is opened with")]
    UndeclaredTable {
        /// The table.
        table: &'static str,
    },
    /// Two resources declare the same table.
    #[error("table {table:?} is declared twice; give each resource a table of its own")]
    TableDeclaredTwice {
        /// The table.
        table: String,
    },
    /// There is no such table, or no more.
    #[error("there is no table {table:?}")]
    TableNotFound {
        /// The table.
        table: String,
    },
    /// The caller is limited to other tables, and there is, or would be, one of this name.
    #[error("the caller is limited to other tables than {table:?}")]
    TableNotAllowed {
        /// The table.
        table: String,
    },
    /// The caller is limited to some partitions of the table, and this is about others, or about all of it.
    #[error("the caller is limited to some partitions of table {table:?}")]
    PartitionNotAllowed {
        /// The table.
        table: String,
    },
    /// There is a table with the name.
    #[error("there is a table {table:?}, or one whose name differs by case alone")]
    TableExists {
        /// The table.
        table: String,
    },
    /// The table is declared in code: its rows are written as its resources, and its definition is changed there.
    #[error("table {table:?} is declared in code")]
    TableOfCode {
        /// The table.
        table: String,
    },
    /// The table was created at run time, and code declares one of its name.
    #[error(
        "table {table:?} was created at run time, and is declared in code now: drop it with the version that it was created \
         with, having exported what is in it, or declare another name"
    )]
    TableOfCatalog {
        /// The table.
        table: String,
    },
    /// The table was created at run time and couldn't be opened again. It can be dropped.
    #[error("table {table:?} is closed: {reason}")]
    TableClosed {
        /// The table.
        table: String,
        /// Why.
        reason: String,
    },
    /// A definition can't be a table, or not the table that is there.
    #[error("table {table:?} {problem}")]
    InvalidDefinition {
        /// The table.
        table: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A write isn't one of the table's.
    #[error("a row of table {table:?} {problem}")]
    InvalidRow {
        /// The table.
        table: String,
        /// What is wrong with it.
        problem: String,
    },
    /// More than a limit allows.
    #[error("{actual} are more than {limit} allows, which is {max}")]
    LimitExceeded {
        /// The limit's name.
        limit: &'static str,
        /// What it allows.
        max: usize,
        /// What was asked for.
        actual: usize,
    },
    /// The rows that one call asks for have more than [`souk_storage::limits::MAX_BATCH_GET_BYTES`].
    #[error("the rows asked for have too many bytes")]
    RowsTooLarge {
        /// The field of the request that says how many there are, where one does.
        field: Option<&'static str>,
    },
    /// The table has no search index.
    #[error("table {table:?} has no search index")]
    NotSearched {
        /// The table.
        table: String,
    },
    /// There is an index with the name.
    #[error("there is an index {index:?}")]
    IndexExists {
        /// The index.
        index: String,
    },
    /// The index can't be dropped.
    #[error("the index {index:?} can't be dropped: {why}")]
    IndexNeeded {
        /// The index.
        index: String,
        /// What needs it, and what to do.
        why: &'static str,
    },
    /// The operating system refused something outside of storage and index.
    #[error("input/output error while {doing}: {source}")]
    Io {
        /// What the engine was doing.
        doing: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A stored row doesn't hold what its resource is made of.
    #[error(transparent)]
    CorruptRow(#[from] CorruptRow),
    /// An invariant of the engine itself is broken.
    #[error("{0}; this is a defect, please report it")]
    Defect(&'static str),
    /// Storage failed or refused.
    #[error(transparent)]
    Storage(#[from] souk_storage::Error),
    /// The index failed or refused.
    #[error(transparent)]
    Index(#[from] souk_index::Error),
}

impl EngineError {
    /// There is no index with a name, or no more.
    #[must_use]
    pub fn no_index(name: &str) -> Self {
        Self::NotFound {
            name: "index",
            id: name.to_owned(),
        }
    }

    /// An error of an index, with its name where it is about its files.
    pub(crate) fn of_index(index: &str, error: souk_index::Error) -> Self {
        let index = index.to_owned();
        match error {
            souk_index::Error::Corrupt { detail, .. } => Self::IndexDamaged {
                index,
                reason: detail,
            },
            souk_index::Error::Io { .. } => Self::IndexUnreadable {
                index,
                reason: error.to_string(),
            },
            error => Self::Index(error),
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use souk_index::Error;

    use super::*;

    #[test]
    fn what_is_about_the_files_of_an_index_names_it() {
        let damaged = Error::Corrupt {
            detail: "columns".to_owned(),
            source: None,
        };
        let unreadable = Error::Io {
            doing: "searching",
            source: std::io::Error::other("no file handles"),
        };
        for (error, expected) in [
            (damaged, Some("notes")),
            (unreadable, Some("notes")),
            (Error::Cancelled, None),
        ] {
            let named = EngineError::of_index("notes", error);
            let name = match &named {
                EngineError::IndexDamaged { index, .. } | EngineError::IndexUnreadable { index, .. } => {
                    Some(index.as_str())
                }
                _ => None,
            };
            assert_eq!(name, expected, "{named:?}");
        }
    }
}
