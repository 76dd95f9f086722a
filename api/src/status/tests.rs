//! What clients are told: codes, reasons, paths, and when to come back.

use std::io;

use souk_chassis::status::Violations;
use souk_engine::error::{EngineError, LimitOf, Waiting};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::error::Error;

fn told(error: impl Into<Error>) -> (Status, ErrorDetails) {
    let status = Status::from(error.into());
    let details = status.get_error_details();
    let info = details.error_info().expect("an ErrorInfo");
    assert_eq!(info.domain, "souk", "{status:?}");
    assert!(!status.message().is_empty(), "{status:?}");
    (status, details)
}

#[track_caller]
fn tells(error: impl Into<Error>, code: Code, reason: &str) -> ErrorDetails {
    let (status, details) = told(error);
    assert_eq!(status.code(), code, "{status:?}");
    assert_eq!(
        details.error_info().map(|info| info.reason.as_str()),
        Some(reason),
        "{status:?}"
    );
    details
}

fn fields(details: &ErrorDetails) -> Vec<&str> {
    let violations = details.bad_request().map(|bad| bad.field_violations.as_slice());
    violations
        .into_iter()
        .flatten()
        .map(|violation| violation.field.as_str())
        .collect()
}

fn retries(details: &ErrorDetails) -> bool {
    details
        .retry_info()
        .is_some_and(|info| info.retry_delay.is_some())
}

fn two_violations() -> Violations {
    let mut violations = Violations::default();
    violations.required("order.order_id");
    violations.push("order.quantity", "OUT_OF_RANGE", "is 0, must be at least 1");
    violations
}

#[test]
fn violations_share_one_reason_and_tell_their_own() {
    for (error, reason) in [
        (Error::Invalid(two_violations()), "INVALID_ARGUMENT"),
        (Error::InvalidQuery(two_violations()), "INVALID_QUERY"),
    ] {
        let details = tells(error, Code::InvalidArgument, reason);
        assert_eq!(fields(&details), ["order.order_id", "order.quantity"]);
        let violations = details
            .bad_request()
            .expect("a BadRequest")
            .field_violations
            .clone();
        let descriptions: Vec<_> = violations
            .into_iter()
            .map(|violation| violation.description)
            .collect();
        assert_eq!(
            descriptions,
            [
                "FIELD_REQUIRED: is required",
                "OUT_OF_RANGE: is 0, must be at least 1"
            ]
        );
    }
}

#[test]
fn what_isnt_the_callers_is_refused_by_field_and_role() {
    let (name, field, kind) = ("order", "consumer_id", souk_access::Role::Consumer.word());
    let refused = tells(
        EngineError::NotOwn {
            name: name.to_owned(),
            field: field.to_owned(),
            kind,
        },
        Code::PermissionDenied,
        "NOT_OWN",
    );
    let metadata = refused.error_info().map(|info| info.metadata.clone());
    let metadata = metadata.unwrap_or_default();
    assert_eq!(metadata.get("field").map(String::as_str), Some(field));
    assert_eq!(metadata.get("role").map(String::as_str), Some("consumer"));
    tells(
        EngineError::NoOwnRows {
            name: name.to_owned(),
            kind,
        },
        Code::PermissionDenied,
        "NO_OWN_ROWS",
    );
    tells(
        EngineError::OwnerNotIndexed {
            table: "orders".to_owned(),
            field: field.to_owned(),
        },
        Code::FailedPrecondition,
        "OWNER_NOT_INDEXED",
    );
}

#[test]
fn resources_are_named() {
    let (name, id) = ("order", || "o1".to_owned());
    let missing = tells(
        EngineError::NotFound { name, id: id() },
        Code::NotFound,
        "ORDER_NOT_FOUND",
    );
    assert_eq!(
        missing.resource_info().map(|info| info.resource_name.as_str()),
        Some("o1")
    );
    tells(
        EngineError::AlreadyExists { name, id: id() },
        Code::AlreadyExists,
        "ORDER_ALREADY_EXISTS",
    );
    let given = "stale".to_owned();
    tells(
        EngineError::EtagMismatch {
            name,
            id: id(),
            given,
        },
        Code::Aborted,
        "ETAG_MISMATCH",
    );
    let contended = tells(
        EngineError::Contended {
            name,
            id: id(),
            attempts: 3,
        },
        Code::Aborted,
        "WRITE_CONTENDED",
    );
    assert!(retries(&contended));
    let field = "order.consumer_id".to_owned();
    let unknown = Error::UnknownReference {
        field,
        name: "consumer",
        id: "c9".to_owned(),
    };
    let unknown = tells(unknown, Code::FailedPrecondition, "UNKNOWN_REFERENCE");
    assert!(unknown.precondition_failure().is_some());
}

#[test]
fn tokens_and_ids_of_requests() {
    let details = tells(
        EngineError::RequestIdReused,
        Code::InvalidArgument,
        "REQUEST_ID_REUSED",
    );
    assert_eq!(fields(&details), ["request_id"]);
    let path = "search.page_token".to_owned();
    let token = Error::PageTokenInvalid {
        path,
        detail: "its checksum is wrong",
    };
    let details = tells(token, Code::InvalidArgument, "PAGE_TOKEN_INVALID");
    assert_eq!(fields(&details), ["search.page_token"]);
    let export = EngineError::ExportTokenInvalid {
        token: "resume_token",
        detail: "its checksum is wrong",
    };
    assert_eq!(
        fields(&tells(export, Code::InvalidArgument, "EXPORT_TOKEN_INVALID")),
        ["resume_token"]
    );
    tells(
        EngineError::ExportExpired,
        Code::FailedPrecondition,
        "EXPORT_EXPIRED",
    );
    tells(EngineError::ViewExpired, Code::FailedPrecondition, "VIEW_EXPIRED");
    tells(
        EngineError::ChangesTrimmed { after: 1, oldest: 5 },
        Code::OutOfRange,
        "CHANGES_TRIMMED",
    );
    tells(
        EngineError::SequenceAhead {
            field: "min_sequence",
            given: 9,
            last: 5,
        },
        Code::OutOfRange,
        "SEQUENCE_AHEAD",
    );
}

#[test]
fn shed_load_says_when_to_come_back() {
    let table = "orders";
    let reason = || "disk".to_owned();
    let source = || io::Error::other("secret");
    let cases = [
        (
            EngineError::TooManyExports {
                max: 4,
                of: LimitOf::All,
            },
            Code::ResourceExhausted,
            "TOO_MANY_EXPORTS",
        ),
        (
            EngineError::TooManyViews {
                max: 64,
                of: LimitOf::Caller,
            },
            Code::ResourceExhausted,
            "TOO_MANY_VIEWS",
        ),
        (
            EngineError::TooManySplits {
                max: 8,
                of: LimitOf::Caller,
            },
            Code::ResourceExhausted,
            "TOO_MANY_SPLITS",
        ),
        (
            EngineError::TooManyScans {
                max: 32,
                of: LimitOf::Caller,
            },
            Code::ResourceExhausted,
            "TOO_MANY_SCANS",
        ),
        (
            EngineError::TooBusy { waiting: 64 },
            Code::ResourceExhausted,
            "TOO_BUSY",
        ),
        (
            EngineError::IndexBuilding {
                index: table.to_owned(),
            },
            Code::Unavailable,
            "INDEX_BUILDING",
        ),
        (
            EngineError::IndexFailed {
                index: table.to_owned(),
                reason: reason(),
            },
            Code::Unavailable,
            "INDEX_FAILED",
        ),
        (
            EngineError::IndexUnreadable {
                index: table.to_owned(),
                reason: reason(),
            },
            Code::Unavailable,
            "INDEX_FAILED",
        ),
        (
            EngineError::IndexDamaged {
                index: table.to_owned(),
                reason: reason(),
            },
            Code::Unavailable,
            "INDEX_DAMAGED",
        ),
        (
            EngineError::IndexStalled {
                index: table.to_owned(),
                why: "the device has too little room",
                reason: reason(),
                wanted: 7,
                reached: 5,
            },
            Code::Unavailable,
            "INDEX_STALLED",
        ),
        (EngineError::Closing, Code::Unavailable, "SHUTTING_DOWN"),
        (
            EngineError::Io {
                doing: "reading",
                source: source(),
            },
            Code::Unavailable,
            "STORE_FAILED",
        ),
    ];
    for (error, code, reason) in cases {
        assert!(retries(&tells(error, code, reason)), "{reason}");
    }
}

#[test]
fn what_isnt_available_of_one_index_isnt_told_of_the_process() {
    let (index, reason) = (|| "orders".to_owned(), || "disk".to_owned());
    let stalled = EngineError::IndexStalled {
        index: index(),
        why: "the device has too little room",
        reason: reason(),
        wanted: 7,
        reached: 5,
    };
    let failed = EngineError::IndexFailed {
        index: index(),
        reason: reason(),
    };
    let damaged = EngineError::IndexDamaged {
        index: index(),
        reason: reason(),
    };
    let unreadable = EngineError::IndexUnreadable {
        index: index(),
        reason: reason(),
    };
    let backfilled = souk_storage::Error::IndexNotReady {
        table: "visits".to_owned(),
        index: index(),
    };
    let read = EngineError::Io {
        doing: "reading",
        source: io::Error::other("secret"),
    };
    for (error, reason, about) in [
        (
            EngineError::IndexBuilding { index: index() },
            "INDEX_BUILDING",
            Some("orders"),
        ),
        (failed, "INDEX_FAILED", Some("orders")),
        (stalled, "INDEX_STALLED", Some("orders")),
        (damaged, "INDEX_DAMAGED", Some("orders")),
        (unreadable, "INDEX_FAILED", Some("orders")),
        (
            EngineError::Storage(backfilled),
            "SECONDARY_INDEX_BUILDING",
            Some("orders"),
        ),
        (EngineError::Closing, "SHUTTING_DOWN", None),
        (read, "STORE_FAILED", None),
    ] {
        let details = tells(error, Code::Unavailable, reason);
        let told = details.resource_info().map(|info| info.resource_name.as_str());
        assert_eq!(told, about, "{reason}");
    }
}

#[test]
fn deadlines_say_what_was_waited_for() {
    for waiting in [
        Waiting::Index {
            wanted: 7,
            reached: 5,
        },
        Waiting::Searchers,
        Waiting::Search { walked: 0 },
        Waiting::Search { walked: 7 },
        Waiting::OwnRows,
    ] {
        let error = EngineError::DeadlineExceeded(waiting);
        let details = tells(error, Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
        let metadata = &details.error_info().expect("an ErrorInfo").metadata;
        let for_a_write = matches!(waiting, Waiting::Index { .. });
        assert_eq!(metadata.contains_key("min_sequence"), for_a_write, "{waiting:?}");
    }
}

#[test]
fn faults_of_the_server_tell_nothing_of_the_inside() {
    for error in [
        EngineError::Defect("the secret invariant is broken"),
        EngineError::Index(souk_index::Error::WriterBusy),
        EngineError::Index(souk_index::Error::EmptyKey),
        EngineError::UndeclaredTable { table: "secret" },
    ] {
        let (status, _) = told(error);
        assert_eq!(status.code(), Code::Internal);
        assert!(!status.message().contains("secret"), "{status:?}");
    }
}

#[test]
fn errors_about_tables_name_the_table_or_the_limit() {
    let (table, problem) = ("visits".to_owned(), "has no key".to_owned());
    let cases = [
        (
            EngineError::TableNotFound { table: table.clone() },
            Code::NotFound,
            "TABLE_NOT_FOUND",
        ),
        (
            EngineError::TableClosed {
                table: table.clone(),
                reason: "of the inside".to_owned(),
            },
            Code::FailedPrecondition,
            "TABLE_CLOSED",
        ),
        (
            EngineError::TableNotAllowed { table: table.clone() },
            Code::PermissionDenied,
            "TABLE_NOT_ALLOWED",
        ),
        (
            EngineError::PartitionNotAllowed { table: table.clone() },
            Code::PermissionDenied,
            "PARTITION_NOT_ALLOWED",
        ),
        (
            EngineError::TableExists { table: table.clone() },
            Code::AlreadyExists,
            "TABLE_EXISTS",
        ),
        (
            EngineError::TableOfCode { table: table.clone() },
            Code::FailedPrecondition,
            "TABLE_OF_SERVICE",
        ),
        (
            EngineError::NotSearched { table: table.clone() },
            Code::FailedPrecondition,
            "NOT_SEARCHED",
        ),
        (
            EngineError::InvalidDefinition {
                table: table.clone(),
                problem: problem.clone(),
            },
            Code::InvalidArgument,
            "INVALID_TABLE",
        ),
        (
            EngineError::InvalidRow { table, problem },
            Code::InvalidArgument,
            "INVALID_ROW",
        ),
    ];
    for (error, code, reason) in cases {
        let details = tells(error, code, reason);
        let metadata = &details.error_info().expect("an ErrorInfo").metadata;
        assert_eq!(
            metadata.get("table").map(String::as_str),
            Some("visits"),
            "{reason}"
        );
    }
    let exists = EngineError::IndexExists {
        index: "orders.trial".to_owned(),
    };
    tells(exists, Code::AlreadyExists, "INDEX_ALREADY_EXISTS");
    let needed = EngineError::IndexNeeded {
        index: "orders".to_owned(),
        why: "it is declared by its service",
    };
    tells(needed, Code::FailedPrecondition, "INDEX_NEEDED");
    let limit = EngineError::LimitExceeded {
        limit: "MAX_COLUMNS",
        max: 1,
        actual: 2,
    };
    let details = tells(limit, Code::InvalidArgument, "LIMIT_EXCEEDED");
    let metadata = &details.error_info().expect("an ErrorInfo").metadata;
    assert_eq!(metadata.get("limit").map(String::as_str), Some("MAX_COLUMNS"));
    for (limit, code, says) in [
        ("MAX_STAGED_BYTES", Code::ResourceExhausted, "repeat later"),
        ("MAX_STAGED_OF_CALLER_BYTES", Code::ResourceExhausted, "end one"),
        ("MAX_TRANSACTIONS", Code::ResourceExhausted, "repeat later"),
        ("MAX_SPLITS_BYTES", Code::InvalidArgument, "ask for larger parts"),
        ("MAX_BATCH_BYTES", Code::InvalidArgument, "send less"),
    ] {
        let error = souk_storage::Error::LimitExceeded {
            limit,
            max: 1,
            actual: 2,
        };
        let (status, details) = told(EngineError::from(error));
        assert_eq!((status.code(), says), (code, says), "{status}");
        assert!(status.message().contains(says), "{status}");
        assert_eq!(
            details.retry_info().is_some(),
            code == Code::ResourceExhausted,
            "{limit}"
        );
    }
    let rows = EngineError::RowsTooLarge {
        field: Some("max_clusters"),
    };
    let details = tells(rows, Code::InvalidArgument, "LIMIT_EXCEEDED");
    assert_eq!(fields(&details), ["max_clusters"]);
}

#[test]
fn errors_of_the_index() {
    let limit = souk_index::Error::LimitExceeded {
        path: "query.suffix.value".to_owned(),
        limit: "MAX_EXPANSIONS",
        max: 10,
        actual: 11,
        advice: "give a longer prefix",
    };
    let details = tells(EngineError::from(limit), Code::InvalidArgument, "LIMIT_EXCEEDED");
    assert_eq!(fields(&details), ["query.suffix.value"]);
    let token = souk_index::Error::PageTokenInvalid {
        detail: "its checksum is wrong",
    };
    assert_eq!(
        fields(&tells(
            EngineError::from(token),
            Code::InvalidArgument,
            "PAGE_TOKEN_INVALID"
        )),
        ["page_token"]
    );
    tells(
        EngineError::from(souk_index::Error::DeadlineExceeded { walked: 0 }),
        Code::DeadlineExceeded,
        "DEADLINE_EXCEEDED",
    );
    let (status, _) = told(EngineError::from(souk_index::Error::DeadlineExceeded {
        walked: 3_200_000,
    }));
    assert!(
        status.message().contains("looked at 3200000 values"),
        "{status:?}"
    );
    tells(
        EngineError::from(souk_index::Error::Cancelled),
        Code::Cancelled,
        "CANCELLED",
    );
}
