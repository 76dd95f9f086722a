//! Parts that many requests have: ids, page sizes, request ids, the write to wait for.

use std::collections::HashSet;

use prost::Message;
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{EngineError, RequestId};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;

/// Longest id of a resource, in characters.
pub const ID_CHARS_MAX: usize = 128;
/// Most resources of one batch write.
pub const WRITE_BATCH_MAX: usize = 200;
/// Most ids of one batch read.
pub const GET_BATCH_MAX: usize = 100;
/// Hits of a page when the request doesn't say.
pub const SEARCH_SIZE_DEFAULT: usize = 10;
/// Most hits of a page.
pub const SEARCH_SIZE_MAX: usize = 1_000;
/// Resources of a listed page when the request doesn't say.
pub const LIST_SIZE_DEFAULT: usize = 50;
/// Most resources of a listed page.
pub const LIST_SIZE_MAX: usize = 1_000;

// A page that clients may ask for must be one that the index gives.
const _: () = assert!(SEARCH_SIZE_MAX <= souk_index::limits::MAX_PAGE_SIZE);

/// Notes a violation unless `id` is 1 to [`ID_CHARS_MAX`] characters without control characters.
pub fn check_id(id: &str, path: impl Into<FieldPath>, violations: &mut Violations) {
    let path = path.into();
    let chars = id.chars().count();
    if id.is_empty() {
        violations.required(path);
    } else if chars > ID_CHARS_MAX {
        violations.push(
            path,
            "TOO_LONG",
            format!("has {chars} characters, at most {ID_CHARS_MAX} are allowed"),
        );
    } else if id.chars().any(char::is_control) {
        violations.push(
            path,
            "INVALID_ID",
            "contains a control character; use printable characters",
        );
    }
}

/// Notes a violation unless a batch has 1 to `max` elements.
pub fn check_batch(len: usize, max: usize, path: impl Into<FieldPath>, violations: &mut Violations) {
    if len == 0 {
        violations.push(path, "FIELD_REQUIRED", format!("is empty, 1 to {max} are needed"));
    } else if len > max {
        violations.push(
            path,
            "TOO_MANY",
            format!("has {len} elements, at most {max} are allowed; split the batch"),
        );
    }
}

/// Notes a violation when a list has more than `max` elements.
pub fn check_len(len: usize, max: usize, path: impl Into<FieldPath>, violations: &mut Violations) {
    if len > max {
        let message = format!("has {len} elements, at most {max} are allowed");
        violations.push(path, "TOO_MANY", message);
    }
}

/// Checks the ids of a batch read: 1 to [`GET_BATCH_MAX`], each one [`check_id`] takes, none twice.
pub fn check_ids(ids: &[String], path: impl Into<FieldPath>, violations: &mut Violations) {
    let path = path.into();
    check_batch(ids.len(), GET_BATCH_MAX, &path, violations);
    let mut seen = HashSet::with_capacity(ids.len().min(GET_BATCH_MAX));
    for (at, id) in ids.iter().enumerate().take(GET_BATCH_MAX) {
        check_id(id, path.index(at), violations);
        if !seen.insert(id) {
            violations.push(
                path.index(at),
                "DUPLICATE_ID",
                format!("{id:?} is there twice; name each id once"),
            );
        }
    }
}

/// Reads a field that must be set, by `read`, which gives `None` only with a violation.
pub fn required<T, R>(
    value: Option<T>,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
    read: impl FnOnce(T, &FieldPath, &mut Violations) -> Option<R>,
) -> Option<R> {
    let path = path.into();
    let Some(value) = value else {
        violations.required(path);
        return None;
    };
    read(value, &path, violations)
}

/// Reads the 1 to [`WRITE_BATCH_MAX`] elements of a batch write, each by `read`, which gives `None` only with a
/// violation. All elements are read, so that their violations come together.
pub fn batch<T, R>(
    values: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
    mut read: impl FnMut(T, &FieldPath, &mut Violations) -> Option<R>,
) -> Option<Vec<R>> {
    let path = path.into();
    let values = values.into_iter();
    check_batch(values.len(), WRITE_BATCH_MAX, &path, violations);
    let in_bounds = (1..=WRITE_BATCH_MAX).contains(&values.len());
    let batch: Vec<_> = values
        .enumerate()
        .take(WRITE_BATCH_MAX)
        .map(|(at, value)| read(value, &path.index(at), violations))
        .collect();
    batch.into_iter().collect::<Option<_>>().filter(|_| in_bounds)
}

/// Ends the reading of a request: nothing is wrong with it, or all that is.
///
/// # Errors
/// [`crate::Error::Invalid`] with the violations.
pub fn settled(violations: Violations) -> Result<()> {
    if violations.is_empty() {
        Ok(())
    } else {
        Err(violations.into())
    }
}

/// What was read from a request, unless something is wrong with it.
///
/// # Errors
/// [`crate::Error::Invalid`] with all violations.
pub fn checked<T>(value: Option<T>, violations: Violations) -> Result<T> {
    settled(violations)?;
    value.ok_or_else(|| EngineError::Defect("a request was refused without a violation").into())
}

/// The etag that an update or delete depends on: the request's own, else the resource's; `None` doesn't check.
#[must_use]
pub fn etag<'a>(of_request: &'a str, of_resource: &'a str) -> Option<&'a str> {
    [of_request, of_resource]
        .into_iter()
        .find(|etag| !etag.is_empty())
}

/// The page size of a request: 0 means `default`, above `max` means `max`, negative is a violation.
pub fn page_size(
    value: i32,
    default: usize,
    max: usize,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
) -> usize {
    match usize::try_from(value) {
        Ok(0) => default,
        Ok(size) => size.min(max),
        Err(_) => {
            violations.push(
                path,
                "OUT_OF_RANGE",
                format!("is {value}, must not be negative; 0 means {default}"),
            );
            default
        }
    }
}

/// The write that a read waits for; negative is a violation.
pub fn min_sequence(value: i64, path: impl Into<FieldPath>, violations: &mut Violations) -> u64 {
    u64::try_from(value).unwrap_or_else(|_| {
        violations.push(
            path,
            "OUT_OF_RANGE",
            format!("is {value}, must not be negative; use the sequence that a write answered with"),
        );
        0
    })
}

/// The `request_id` of `request`; `None` when it is empty, and, with a violation, when it isn't a UUID. `request` is
/// the message as it came, before anything is filled in: it is what a retry repeats.
pub fn request_id(
    text: &str,
    request: &impl Message,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
) -> Option<RequestId> {
    if text.is_empty() {
        return None;
    }
    let uuid = violations.take(
        path,
        "INVALID_REQUEST_ID",
        Uuid::try_parse(text)
            .ok()
            .filter(|uuid| !uuid.is_nil())
            .ok_or("must be a UUID other than zero, for example 6f1c9a7e-0f0e-4c57-9d5c-3b8f6a2b1c4d"),
    )?;
    Some(RequestId::new(
        uuid.into_bytes(),
        xxh3_64(&request.encode_to_vec()),
    ))
}
