//! Parts that many requests have: ids, page sizes, request ids, the write to wait for.

use prost::Message;
use souk_chassis::status::Violations;
use souk_engine::{EngineError, RequestId};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;

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

/// The page size of a request that keeps its rules: 0 means `default`, above `max` means `max`.
#[must_use]
pub fn page_size(value: i32, default: usize, max: usize) -> usize {
    match usize::try_from(value) {
        Ok(0) | Err(_) => default,
        Ok(size) => size.min(max),
    }
}

/// The `request_id` of `request`; `None` when it is empty or no UUID. `request` is the message as it came, before anything is
/// filled in: it is what a retry repeats.
pub fn request_id(text: &str, request: &impl Message) -> Option<RequestId> {
    if text.is_empty() {
        return None;
    }
    let uuid = Uuid::try_parse(text).ok()?;
    Some(RequestId::new(
        uuid.into_bytes(),
        xxh3_64(&request.encode_to_vec()),
    ))
}
