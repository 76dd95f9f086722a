//! The one place where errors become answers: code, `ErrorInfo` reason, field violations, retry delay.
//!
//! A client is told what it can act on, and nothing of the inside: causes travel as the status's source, which the
//! outermost layer logs, once.

use std::time::Duration;

use souk_chassis::status::{StatusBuilder, Violations};
use souk_engine::definition::index_name::table_of;
use souk_engine::error::{EngineError, LimitOf, Waiting};
use souk_engine::slices::{LEASE, SNAPSHOT_AGE_MAX};
use souk_engine::views::VIEW_AGE_MAX;
use souk_storage::limits::MAX_BATCH_GET_BYTES;
use tonic::Status;

use crate::error::Error;

mod index;
mod storage;

/// When to come back after a failure of this process, which is replaced or restarted by then, and while watches, transactions or other
/// long calls are at their limit.
const RETRY_AFTER_FAILURE: Duration = Duration::from_secs(5);
/// When to come back while an index is being built.
const RETRY_WHILE_BUILDING: Duration = Duration::from_secs(2);
/// When to come back when too many searches are waiting.
const RETRY_WHEN_BUSY: Duration = Duration::from_millis(500);
/// When to come back for a view: some are kept for less than the longest time.
const RETRY_WHEN_VIEWS_EXPIRE: Duration = Duration::from_secs(30);
/// When to come back after losing against other writers.
const RETRY_CONTENDED: Duration = Duration::from_millis(100);

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(violations) => violations_listed(violations, "INVALID_ARGUMENT"),
            Error::InvalidQuery(violations) => violations_listed(violations, "INVALID_QUERY"),
            Error::PageTokenInvalid { path, detail } => page_token_invalid(&path, detail),
            Error::UnknownReference { field, name, id } => StatusBuilder::failed_precondition(
                "UNKNOWN_REFERENCE",
                format!(
                    "{field} names {name} {id:?}, which doesn't exist; create it first, or correct the id"
                ),
            )
            .metadata("field", &field)
            .metadata("id", &id)
            .precondition(&name.to_uppercase(), &id, "doesn't exist")
            .build(),
            Error::Refused { subject, problem } => {
                StatusBuilder::invalid_argument("INVALID_ARGUMENT", format!("{subject} {problem}")).build()
            }
            Error::Engine(error) => engine_status(error),
        }
    }
}

fn engine_status(error: EngineError) -> Status {
    match error {
            // The conversion makes another variant of each of these, which names a path in the request.
            error @ (EngineError::PageTokenInvalid { .. }
            | EngineError::DuplicateIds { .. }
            | EngineError::SnapshotBehind { .. }
            | EngineError::ViewBehind { .. }) => Error::from(error).into(),
            EngineError::NotFound { name, id } => {
                StatusBuilder::not_found(reason(name, "NOT_FOUND"), format!("no {name} {id:?}; check the id"))
                    .metadata("id", &id)
                    .resource(name, &id, "doesn't exist")
                    .build()
            }
            EngineError::NoOwnRows { name, kind } => StatusBuilder::new(
                tonic::Code::PermissionDenied,
                "NO_OWN_ROWS",
                format!("the role {kind} has no {name} of its own; use credentials of another role"),
            )
            .metadata("role", kind)
            .build(),
            EngineError::NotOwn { field, kind, .. } => StatusBuilder::new(
                tonic::Code::PermissionDenied,
                "NOT_OWN",
                format!("{field} must be the id that the credentials are for: the role {kind} writes rows of its own only"),
            )
            .metadata("field", field)
            .metadata("role", kind)
            .build(),
            EngineError::OwnerNotIndexed { table, field } => StatusBuilder::failed_precondition(
                "OWNER_NOT_INDEXED",
                format!("searches for some rows alone need {field}, unchanged, as a KEYWORD field in the index of {table}: add it"),
            )
            .metadata("field", field)
            .build(),
            EngineError::AlreadyExists { name, id } => StatusBuilder::already_exists(
                reason(name, "ALREADY_EXISTS"),
                format!("{name} {id:?} exists already; choose another id, or update it"),
            )
            .metadata("id", &id)
            .resource(name, &id, "exists already")
            .build(),
            EngineError::EtagMismatch { name, id, given } => StatusBuilder::aborted(
                "ETAG_MISMATCH",
                format!("{name} {id:?} has changed since etag {given:?}; read it again and repeat the change"),
            )
            .metadata("id", &id)
            .metadata("etag", &given)
            .build(),
            EngineError::Contended { name, id, attempts } => StatusBuilder::aborted(
                "WRITE_CONTENDED",
                format!("{name} {id:?} was changed by others during each of {attempts} attempts; repeat later"),
            )
            .metadata("id", &id)
            .retry_after(RETRY_CONTENDED)
            .build(),
            EngineError::RequestIdReused => request_id_reused(),
            EngineError::ExportTokenInvalid { token, detail } => StatusBuilder::invalid_argument(
                "EXPORT_TOKEN_INVALID",
                format!("{token} can't be used: {detail}; pass it back as it was given, or start again without it"),
            )
            .field_violation(token, detail)
            .build(),
            EngineError::ExportExpired => StatusBuilder::failed_precondition(
                "EXPORT_EXPIRED",
                format!(
                    "the snapshot of this export is gone: it is kept until nobody has read on for {} s, and for {} h at most; \
                     start again without tokens",
                    LEASE.as_secs(),
                    SNAPSHOT_AGE_MAX.as_secs() / 3_600
                ),
            )
            .build(),
            EngineError::TooManyExports { max, of } => StatusBuilder::resource_exhausted(
                "TOO_MANY_EXPORTS",
                format!(
                    "{max} snapshots are kept for exports {of} already; finish one, or wait until one expires"
                ),
            )
            .metadata("limit", max)
            .retry_after(LEASE)
            .build(),
            EngineError::ViewExpired => StatusBuilder::failed_precondition(
                "VIEW_EXPIRED",
                format!(
                    "the view of this page token isn't kept any more, at most for {} min in all, or its index is \
                     damaged; start again without page_token, or ask with a longer keep_view",
                    VIEW_AGE_MAX.as_secs() / 60
                ),
            )
            .build(),
            EngineError::TooManyViews { max, of } => StatusBuilder::resource_exhausted(
                "TOO_MANY_VIEWS",
                format!(
                    "{max} views are kept for searches {of} already; read one to its last page, wait until one expires, or do \
                     without keep_view"
                ),
            )
            .metadata("limit", max)
            .retry_after(RETRY_WHEN_VIEWS_EXPIRE)
            .build(),
            EngineError::TooManyWatches { max, of } => StatusBuilder::resource_exhausted(
                "TOO_MANY_WATCHES",
                match of {
                    LimitOf::All => format!("{max} watches are open already; close one, or watch again later"),
                    LimitOf::Caller => {
                        format!("its caller has its share of the {max} watches; close one, or watch again later")
                    }
                },
            )
            .metadata("limit", max)
            .retry_after(RETRY_AFTER_FAILURE)
            .build(),
            EngineError::TooManySplits { max, of } => StatusBuilder::resource_exhausted(
                "TOO_MANY_SPLITS",
                match of {
                    LimitOf::All => format!("{max} calls read whole tables to split them already; try again later"),
                    LimitOf::Caller => {
                        format!("its caller has its share of the {max} calls that split tables; try again when one has ended")
                    }
                },
            )
            .metadata("limit", max)
            .retry_after(RETRY_AFTER_FAILURE)
            .build(),
            EngineError::TooManyScans { max, of } => StatusBuilder::resource_exhausted(
                "TOO_MANY_SCANS",
                match of {
                    LimitOf::All => format!(
                        "{max} calls look for rows of their own among those of others already; narrow the range, or try again later"
                    ),
                    LimitOf::Caller => format!(
                        "its caller has its share of the {max} calls that look for rows of their own among those of others; try again \
                         when one has ended"
                    ),
                },
            )
            .metadata("limit", max)
            .retry_after(RETRY_AFTER_FAILURE)
            .build(),
            EngineError::TooManyTransactions { max, of } => StatusBuilder::resource_exhausted(
                "TOO_MANY_TRANSACTIONS",
                format!("{max} transactions {of} are open already; end one, or wait until its time is up"),
            )
            .metadata("limit", max)
            .retry_after(RETRY_AFTER_FAILURE)
            .build(),
            EngineError::ConsumerGroupExists { table, group } => StatusBuilder::already_exists(
                "CONSUMER_GROUP_EXISTS",
                format!("{table:?} has a consumer group {group:?}; choose another name, or delete that one"),
            )
            .metadata("table", table)
            .metadata("group", group)
            .build(),
            EngineError::ConsumerGroupNotFound { table, group } => StatusBuilder::not_found(
                "CONSUMER_GROUP_NOT_FOUND",
                format!("{table:?} has no consumer group {group:?}; check the name, or create it"),
            )
            .metadata("table", table)
            .metadata("group", group)
            .build(),
            EngineError::TooManyMembers { max, of } => StatusBuilder::resource_exhausted(
                "TOO_MANY_MEMBERS",
                match of {
                    LimitOf::All => {
                        format!("the consumer group has {max} members already; let one leave, or join when one is gone")
                    }
                    LimitOf::Caller => format!(
                        "its caller has its share of the {max} members of the consumer group; let one leave, or join when one is gone"
                    ),
                },
            )
            .metadata("limit", max)
            .retry_after(RETRY_AFTER_FAILURE)
            .build(),
            EngineError::MemberNotFound { group, member } => StatusBuilder::not_found(
                "MEMBER_NOT_FOUND",
                format!(
                    "{member:?} is no member of consumer group {group:?}: it has left, wasn't heard of for its session timeout, is of \
                     other credentials, or the server has started again since; join again, and drop what was read and isn't committed"
                ),
            )
            .metadata("group", group)
            .build(),
            EngineError::ShardLost { group, shard, generation } => StatusBuilder::aborted(
                "SHARD_LOST",
                format!(
                    "shard {shard} of consumer group {group:?} isn't the member's by generation {generation}; send a heartbeat to learn \
                     which shards it has, and drop what was read of this one and isn't committed"
                ),
            )
            .metadata("group", group)
            .metadata("shard", shard)
            .metadata("generation", generation)
            .build(),
            EngineError::ShardBusy { group, shard } => StatusBuilder::aborted(
                "SHARD_BUSY",
                format!(
                    "another read of shard {shard} of consumer group {group:?} has begun, or another checkpoint of it is being \
                     committed; read a shard once at a time, or commit again later"
                ),
            )
            .metadata("group", group)
            .metadata("shard", shard)
            .retry_after(RETRY_CONTENDED)
            .build(),
            EngineError::ChangesTrimmed { after, oldest } => StatusBuilder::new(
                tonic::Code::OutOfRange,
                "CHANGES_TRIMMED",
                format!(
                    "changes after {after} are no longer kept (the oldest is {oldest}); export, then watch from the \
                     export's sequence on"
                ),
            )
            .metadata("after_sequence", after)
            .metadata("oldest_sequence", oldest)
            .build(),
            EngineError::SequenceAhead { field, given, last } => StatusBuilder::new(
                tonic::Code::OutOfRange,
                "SEQUENCE_AHEAD",
                format!(
                    "{field} is {given}, which no write has been given here (the last sequence is {last}); pass one that \
                     this service has answered with: each counts its own, and a restored one counts from its backup on"
                ),
            )
            .metadata(field, given)
            .metadata("last_sequence", last)
            .build(),
            EngineError::DeadlineExceeded(waiting) => deadline_exceeded(waiting),
            EngineError::IndexBuilding { index } => index_unavailable(
                "INDEX_BUILDING",
                format!("the index {index} is being built; reads by id and writes work, search again later"),
                &index,
                "is being built",
            )
            .retry_after(RETRY_WHILE_BUILDING)
            .build(),
            EngineError::IndexDamaged { index, reason } => index_unavailable(
                "INDEX_DAMAGED",
                format!(
                    "the index {index} is damaged, and is built anew from the table; reads by id and writes work, search again later"
                ),
                &index,
                "is damaged",
            )
            .retry_after(RETRY_WHILE_BUILDING)
            .source(reason)
            .build(),
            EngineError::IndexUnreadable { index, reason } => index_unavailable(
                "INDEX_FAILED",
                format!("the index {index} couldn't be read; reads by id and writes may work, search again later"),
                &index,
                "can't be read",
            )
            .retry_after(RETRY_AFTER_FAILURE)
            .source(reason)
            .build(),
            EngineError::IndexFailed { index, reason } => index_unavailable(
                "INDEX_FAILED",
                format!("the index {index} has failed; it recovers when the server is restarted"),
                &index,
                "has failed",
            )
            .retry_after(RETRY_AFTER_FAILURE)
            .source(reason)
            .build(),
            EngineError::IndexStalled {
                index,
                why,
                reason,
                wanted,
                reached,
            } => index_unavailable(
                "INDEX_STALLED",
                format!(
                    "the index {index} stands still at sequence {reached}, before {wanted}: {why}; it goes on by itself \
                     when that has passed: retry later, or search what it has without min_sequence"
                ),
                &index,
                "stands still",
            )
            .metadata("min_sequence", wanted)
            .metadata("reached_sequence", reached)
            .retry_after(RETRY_AFTER_FAILURE)
            .source(reason)
            .build(),
            EngineError::IndexExists { index } => StatusBuilder::already_exists(
                "INDEX_ALREADY_EXISTS",
                format!("there is an index {index}; choose another name, or change that one"),
            )
            .metadata("index", index)
            .build(),
            EngineError::IndexNeeded { index, why } => StatusBuilder::failed_precondition(
                "INDEX_NEEDED",
                format!("the index {index} can't be deleted: {why}"),
            )
            .metadata("index", index)
            .build(),
            EngineError::TooBusy { waiting } => StatusBuilder::resource_exhausted(
                "TOO_BUSY",
                format!("{waiting} searches are waiting already; retry with backoff"),
            )
            .retry_after(RETRY_WHEN_BUSY)
            .build(),
            EngineError::Closing => {
                StatusBuilder::unavailable("SHUTTING_DOWN", "the server is shutting down; retry elsewhere")
                    .retry_after(RETRY_AFTER_FAILURE)
                    .build()
            }
            EngineError::Io { ref doing, .. } => {
                let message = format!("the server couldn't go on while {doing}");
                StatusBuilder::unavailable("STORE_FAILED", message)
                    .retry_after(RETRY_AFTER_FAILURE)
                    .source(error)
                    .build()
            }
            EngineError::CorruptRow(error) => StatusBuilder::data_loss(
                "ROW_CORRUPT",
                "a stored row can't be read; report it, and restore it from an export",
            )
            .source(error)
            .build(),
            EngineError::TableNotFound { table } => StatusBuilder::not_found(
                "TABLE_NOT_FOUND",
                format!("there is no table {table}; check the name, or create it"),
            )
            .metadata("table", table)
            .build(),
            EngineError::TableClosed { table, reason } => StatusBuilder::failed_precondition(
                "TABLE_CLOSED",
                format!("{table} couldn't be opened when the server started; drop it, or restore it from a backup"),
            )
            .metadata("table", table)
            .source(reason)
            .build(),
            EngineError::TableNotAllowed { table } => StatusBuilder::new(
                tonic::Code::PermissionDenied,
                "TABLE_NOT_ALLOWED",
                format!("the credentials are limited to tables, and {table} is none of them; use others, or have its name added"),
            )
            .metadata("table", table)
            .build(),
            EngineError::PartitionNotAllowed { table } => StatusBuilder::new(
                tonic::Code::PermissionDenied,
                "PARTITION_NOT_ALLOWED",
                format!("the credentials are limited to partition keys of {table}, and this is about others, or about all of it; use others"),
            )
            .metadata("table", table)
            .build(),
            EngineError::TableExists { table } => StatusBuilder::already_exists(
                "TABLE_EXISTS",
                format!("there is a table {table}, or one whose name differs by case alone; choose another name, or drop that one"),
            )
            .metadata("table", table)
            .build(),
            EngineError::TableOfCode { table } => StatusBuilder::failed_precondition(
                "TABLE_OF_SERVICE",
                format!("{table} is a table of this service's resources; use the calls on those"),
            )
            .metadata("table", table)
            .build(),
            EngineError::NotSearched { table } => StatusBuilder::failed_precondition(
                "NOT_SEARCHED",
                format!("{table} has no search index; read it by keys, ranges or secondary indexes"),
            )
            .metadata("table", table)
            .build(),
            EngineError::InvalidDefinition { table, problem } => StatusBuilder::invalid_argument(
                "INVALID_TABLE",
                format!("the definition of {table} {problem}"),
            )
            .metadata("table", table)
            .build(),
            EngineError::InvalidRow { table, problem } => StatusBuilder::invalid_argument(
                "INVALID_ROW",
                format!("a row of {table} {problem}"),
            )
            .metadata("table", table)
            .build(),
            EngineError::LimitExceeded { limit, max, actual } => StatusBuilder::invalid_argument(
                "LIMIT_EXCEEDED",
                format!("{actual} are more than {limit} allows, which is {max}"),
            )
            .metadata("limit", limit)
            .metadata("max", max)
            .build(),
            EngineError::RowsTooLarge { field } => {
                let message = format!(
                    "what is asked for has more than {MAX_BATCH_GET_BYTES} bytes (MAX_BATCH_GET_BYTES); ask for fewer at a time"
                );
                let status = StatusBuilder::invalid_argument("LIMIT_EXCEEDED", message)
                    .metadata("limit", "MAX_BATCH_GET_BYTES")
                    .metadata("max", MAX_BATCH_GET_BYTES);
                match field {
                    Some(field) => status.field_violation(field, "lets the answer be too large").build(),
                    None => status.build(),
                }
            }
            EngineError::UndeclaredTable { .. }
            | EngineError::TableDeclaredTwice { .. }
            | EngineError::TableOfCatalog { .. }
            | EngineError::Defect(_) => {
                StatusBuilder::internal("the server contradicts itself; report it with the trace id")
                    .source(error)
                    .build()
            }
            EngineError::Storage(error) => storage::status(error),
            EngineError::Index(error) => index::status(error),
        }
}

/// One index isn't available, whatever else the process does: `what` says what is with it.
fn index_unavailable(reason: &'static str, message: String, index: &str, what: &str) -> StatusBuilder {
    StatusBuilder::unavailable(reason, message)
        .metadata("table", table_of(index))
        .metadata("index", index)
        .resource("index", index, what)
}

/// `order`, `NOT_FOUND` → `ORDER_NOT_FOUND`.
fn reason(name: &str, what: &str) -> String {
    format!("{}_{what}", name.to_uppercase())
}

/// All violations under the one reason that programs compare; each description starts with its own.
fn violations_listed(violations: Violations, reason: &'static str) -> Status {
    match violations.into_result(reason) {
        Err(status) => status,
        Ok(()) => StatusBuilder::internal("a request was refused without a reason").build(),
    }
}

fn request_id_reused() -> Status {
    let message = "request_id was used before with other content; use a new UUID for each new request";
    StatusBuilder::invalid_argument("REQUEST_ID_REUSED", message)
        .field_violation("request_id", "was used before with other content")
        .build()
}

fn page_token_invalid(path: &str, detail: &str) -> Status {
    let message = format!(
        "{path} can't be used: {detail}; pass next_page_token back unchanged with the same arguments, or start again \
         without it"
    );
    StatusBuilder::invalid_argument("PAGE_TOKEN_INVALID", message)
        .metadata("field", path)
        .field_violation(path, detail)
        .build()
}

fn deadline_exceeded(waiting: Waiting) -> Status {
    let (message, wanted, reached) = match waiting {
        Waiting::Index { wanted, reached } => (
            format!(
                "the deadline passed before the index included sequence {wanted} (it includes {reached})"
            ),
            Some(wanted),
            Some(reached),
        ),
        Waiting::Searchers => (
            "the deadline passed before the search could start".to_owned(),
            None,
            None,
        ),
        Waiting::Search { walked: 0 } => (
            "the deadline passed before the search ended; narrow the query".to_owned(),
            None,
            None,
        ),
        Waiting::Search { walked } => (
            format!(
                "the deadline passed before the search ended (its patterns had looked at {walked} values); begin them with \
                 more literal characters"
            ),
            None,
            None,
        ),
        Waiting::OwnRows => (
            "the deadline passed between rows that the caller may meet; narrow the range".to_owned(),
            None,
            None,
        ),
    };
    let mut status =
        StatusBuilder::deadline_exceeded("DEADLINE_EXCEEDED", format!("{message}; allow more time"));
    if let (Some(wanted), Some(reached)) = (wanted, reached) {
        status = status
            .metadata("min_sequence", wanted)
            .metadata("reached_sequence", reached);
    }
    status.build()
}

#[cfg(test)]
mod tests;
