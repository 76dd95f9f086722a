//! Rich gRPC errors: a code, a reason a program can act on, and the details a person needs.
//!
//! Every error that leaves a Souk process carries exactly one `google.rpc.ErrorInfo` whose domain is
//! [`DOMAIN`] (AIP-193). [`StatusBuilder`] can't be built without a reason, and [`Violations`] collects all
//! problems of a request before it answers, each with the path of its field.
//!
//! All details together stay below [`DETAIL_BYTES_MAX`]: they travel in the trailers, and some clients refuse
//! header lists above 8 KiB.

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::Frame;
use percent_encoding::percent_decode;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

mod violations;

pub use violations::{FieldPath, VIOLATIONS_LISTED_MAX, Violations};

/// The `domain` of every `ErrorInfo` that Souk sends.
pub const DOMAIN: &str = "souk";

/// Upper bound, in bytes, of the texts in the details of one error. What goes beyond is cut, and said so.
pub const DETAIL_BYTES_MAX: usize = 3 * 1024;

/// Longest error message, in bytes; a longer one is cut at a character boundary.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// Longest value, in bytes, of one metadata entry or description.
pub const TEXT_BYTES_MAX: usize = 256;

/// Most metadata entries of one `ErrorInfo`.
pub const METADATA_ENTRIES_MAX: usize = 8;

/// Reason used where no more precise one is known: a panic or an error nobody mapped.
pub const REASON_INTERNAL: &str = "INTERNAL";

/// Builds a [`Status`] with exactly one `ErrorInfo` and any further details.
///
/// ```
/// use souk_chassis::status::StatusBuilder;
/// let status = StatusBuilder::not_found("ORDER_NOT_FOUND", "no order o1; check the id")
///     .metadata("order_id", "o1")
///     .resource("souk.order.v1.Order", "o1", "no such row")
///     .build();
/// assert_eq!(status.code(), tonic::Code::NotFound);
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until build()"]
pub struct StatusBuilder {
    code: Code,
    reason: Cow<'static, str>,
    message: String,
    metadata: HashMap<String, String>,
    details: ErrorDetails,
    bytes: usize,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

macro_rules! constructors {
    ($($(#[$doc:meta])+ $name:ident: $code:ident,)+) => {$(
        $(#[$doc])+
        pub fn $name(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
            Self::new(Code::$code, reason, message)
        }
    )+};
}

impl StatusBuilder {
    /// Starts an error: `reason` is UPPER_SNAKE_CASE, at most 63 characters, and stable, since programs compare
    /// it; `message` says what was wrong, what was expected, and what to do.
    pub fn new(code: Code, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        let reason = reason.into();
        debug_assert!(
            is_reason(&reason),
            "reason {reason:?} is not UPPER_SNAKE_CASE of 2..=63 characters"
        );
        Self {
            code,
            reason,
            message: cut(message.into(), MESSAGE_BYTES_MAX),
            metadata: HashMap::new(),
            details: ErrorDetails::new(),
            bytes: 0,
            source: None,
        }
    }

    constructors! {
        /// INVALID_ARGUMENT: the request is wrong whatever the state of the system.
        invalid_argument: InvalidArgument,
        /// NOT_FOUND: the named resource doesn't exist.
        not_found: NotFound,
        /// ALREADY_EXISTS: the resource to create is there already.
        already_exists: AlreadyExists,
        /// FAILED_PRECONDITION: right request, but not in this state of the system.
        failed_precondition: FailedPrecondition,
        /// ABORTED: lost against another writer; read again and repeat.
        aborted: Aborted,
        /// RESOURCE_EXHAUSTED: a limit or a quota was hit.
        resource_exhausted: ResourceExhausted,
        /// DEADLINE_EXCEEDED: the time of the call ran out.
        deadline_exceeded: DeadlineExceeded,
        /// UNIMPLEMENTED: this server doesn't have it.
        unimplemented: Unimplemented,
        /// UNAVAILABLE: not now; the only code a client may retry by itself (AIP-194).
        unavailable: Unavailable,
        /// DATA_LOSS: stored data is damaged.
        data_loss: DataLoss,
    }

    /// INTERNAL: an invariant of the server is broken. The message must not tell internals.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, REASON_INTERNAL, message)
    }

    /// [`internal`](Self::internal) because of `source`, which the log shows and the client doesn't.
    pub fn internal_from(message: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Status {
        Self::internal(message).source(source).build()
    }

    /// Adds one dynamic part of the message to the `ErrorInfo`, so that no program has to parse the text. Entries
    /// beyond [`METADATA_ENTRIES_MAX`] are left out.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Display) -> Self {
        if self.metadata.len() < METADATA_ENTRIES_MAX
            && let Some([value]) = self.spend([value.to_string()])
        {
            self.metadata.insert(key.into(), value);
        }
        self
    }

    /// Adds a `BadRequest` violation. `path` is the path of the field (`search.query.bool.must[1].range.field`).
    pub fn field_violation(mut self, path: impl Display, description: impl Into<String>) -> Self {
        if let Some([path, description]) = self.spend([path.to_string(), description.into()]) {
            self.details.add_bad_request_violation(path, description);
        }
        self
    }

    /// Adds `RetryInfo` and the header [`RETRY_PUSHBACK`]: the client should come back after `delay`, not before.
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.details.set_retry_info(Some(delay));
        self
    }

    /// Adds a `PreconditionFailure` violation, for example kind `PRODUCT`, subject `p1`.
    pub fn precondition(mut self, kind: &str, subject: &str, description: &str) -> Self {
        let texts = [kind, subject, description].map(str::to_owned);
        if let Some([kind, subject, description]) = self.spend(texts) {
            self.details
                .add_precondition_failure_violation(kind, subject, description);
        }
        self
    }

    /// Adds `ResourceInfo`: the type (`souk.order.v1.Order`) and the name of the resource the error is about, as [`is_refusal`] looks at.
    pub fn resource(mut self, kind: &str, name: &str, description: &str) -> Self {
        let texts = [kind, name, description].map(str::to_owned);
        if let Some([kind, name, description]) = self.spend(texts) {
            self.details.set_resource_info(kind, name, "", description);
        }
        self
    }

    /// Keeps the cause for the process's own log. It is never sent to the client.
    pub fn source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// The finished error.
    pub fn build(mut self) -> Status {
        self.details
            .set_error_info(self.reason.into_owned(), DOMAIN, self.metadata);
        let retry_after = self.details.retry_info().and_then(|info| info.retry_delay);
        let mut status = Status::with_error_details(self.code, self.message, self.details);
        if let Some(delay) = retry_after {
            // Rounded up: coming back early is coming in vain.
            let millis = u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
            status.metadata_mut().insert(RETRY_PUSHBACK, millis.into());
        }
        if let Some(source) = self.source {
            status.set_source(source);
        }
        status
    }

    /// The texts, each cut, where there is room left for all of them.
    fn spend<const N: usize>(&mut self, texts: [String; N]) -> Option<[String; N]> {
        let texts = texts.map(|text| cut(text, TEXT_BYTES_MAX));
        let bytes = self.bytes + texts.iter().map(String::len).sum::<usize>();
        (bytes <= DETAIL_BYTES_MAX).then(|| {
            self.bytes = bytes;
            texts
        })
    }
}

impl From<StatusBuilder> for Status {
    fn from(builder: StatusBuilder) -> Self {
        builder.build()
    }
}

/// When a client that was turned away should come back: another process should have taken over by then, or there is room.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What tells the retry policies of gRPC clients how many milliseconds to wait (gRFC A6).
pub const RETRY_PUSHBACK: &str = "grpc-retry-pushback-ms";

/// The header with the code of a call, ready to be looked up: tonic has it as text, which would be made a name of each time.
pub const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The code in headers or trailers; `None` where a call goes on.
pub fn code_in(headers: &HeaderMap) -> Option<Code> {
    let code = headers.get(GRPC_STATUS)?;
    Some(Code::from_bytes(code.as_bytes()))
}

/// Does a process refuse work by these headers? UNAVAILABLE with a `ResourceInfo` is about that resource alone, such as an index that is
/// being built; the process works.
pub fn is_refusal(headers: &HeaderMap) -> bool {
    code_in(headers) == Some(Code::Unavailable)
        && status_in(headers).is_some_and(|status| status.get_details_resource_info().is_none())
}

/// The message of an error in headers or trailers.
pub(crate) fn message_in(headers: &HeaderMap) -> String {
    headers
        .get(Status::GRPC_MESSAGE)
        .map(|text| percent_decode(text.as_bytes()).decode_utf8_lossy().into_owned())
        .unwrap_or_default()
}

/// The error in headers or trailers; `None` where a call went well or goes on. (`Status::from_header_map` panics on details that aren't
/// base64, which are none here, and takes the code away from an error whose message isn't UTF-8.)
pub fn status_in(headers: &HeaderMap) -> Option<Status> {
    let code = code_in(headers).filter(|code| *code != Code::Ok)?;
    let metadata = MetadataMap::from_headers(headers.clone());
    let details = metadata.get_bin("grpc-status-details-bin");
    let details = details
        .and_then(|details| details.to_bytes().ok())
        .unwrap_or_default();
    let message = message_in(headers);
    Some(Status::with_details_and_metadata(
        code, message, details, metadata,
    ))
}

/// The last frame of a stream that ends in `status`.
///
/// # Errors
/// With `status` where it can't be written into headers.
pub fn trailers(status: impl Into<Status>) -> Result<Frame<Bytes>, Status> {
    let mut trailers = HeaderMap::new();
    status.into().add_header(&mut trailers)?;
    Ok(Frame::trailers(trailers))
}

/// Is this one of the six codes that are the server's fault?
pub fn is_server_fault(code: Code) -> bool {
    use Code::{DataLoss, DeadlineExceeded, Internal, Unavailable, Unimplemented, Unknown};
    matches!(
        code,
        Unknown | DeadlineExceeded | Unimplemented | Internal | Unavailable | DataLoss
    )
}

/// The code as the conventions write it.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// The reason in the `ErrorInfo` of `status`, if it has one; another process may have made it, and put there what is none.
pub fn reason(status: &Status) -> Option<String> {
    let info = status.get_details_error_info()?;
    Some(info.reason).filter(|reason| is_reason(reason))
}

/// Is `reason` what AIP-193 allows: `[A-Z][A-Z0-9_]+[A-Z0-9]`, at most 63 characters?
pub fn is_reason(reason: &str) -> bool {
    let bytes = reason.as_bytes();
    (2..=63).contains(&bytes.len())
        && bytes.first().is_some_and(u8::is_ascii_uppercase)
        && bytes.last().is_some_and(|last| *last != b'_')
        && bytes
            .iter()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
}

/// Shortens `text` to at most `bytes_max` bytes, at a character boundary, ending in `…` when it was cut.
fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let end = text.floor_char_boundary(bytes_max.saturating_sub('…'.len_utf8()));
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
