//! Collecting every problem of a request, each with the path of its field.

use std::fmt;

use smol_str::{SmolStr, SmolStrBuilder, format_smolstr};
use tonic::Status;

use super::StatusBuilder;

/// Most violations that are listed; the rest is only counted.
pub const VIOLATIONS_LISTED_MAX: usize = 16;

/// The path of a field in a request, as in `search.query.bool.must[1].range.field`. Paths are made for every field that is
/// checked, wrong or not: those of up to 23 bytes need no allocation.
///
/// ```
/// use souk_chassis::status::FieldPath;
/// let must = FieldPath::root("search").field("query").field("bool").field("must").index(1);
/// assert_eq!(must.field("range").to_string(), "search.query.bool.must[1].range");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct FieldPath(SmolStr);

impl FieldPath {
    /// The message itself: its fields have no prefix.
    pub fn message() -> Self {
        Self::default()
    }

    /// A top-level field.
    pub fn root(field: &str) -> Self {
        Self(field.into())
    }

    /// A field of the message at this path.
    pub fn field(&self, name: &str) -> Self {
        if self.0.is_empty() {
            Self::root(name)
        } else {
            let mut path = SmolStrBuilder::new();
            for part in [self.as_str(), ".", name] {
                path.push_str(part);
            }
            Self(path.finish())
        }
    }

    /// An element of the repeated field at this path.
    pub fn index(&self, index: usize) -> Self {
        Self(format_smolstr!("{}[{index}]", self.0))
    }

    /// An entry of the map at this path. The key is quoted and escaped, since it is the client's text.
    pub fn key(&self, key: &str) -> Self {
        Self(format_smolstr!("{}[{key:?}]", self.0))
    }

    /// The path as text; empty for the message itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for FieldPath {
    fn from(path: &str) -> Self {
        Self(path.into())
    }
}

impl From<String> for FieldPath {
    fn from(path: String) -> Self {
        Self(path.into())
    }
}

impl From<&FieldPath> for FieldPath {
    fn from(path: &FieldPath) -> Self {
        path.clone()
    }
}

#[derive(Debug)]
struct Violation {
    path: FieldPath,
    reason: &'static str,
    description: String,
}

/// All that is wrong with one request. Collect, then [`into_result`](Self::into_result).
///
/// ```
/// use souk_chassis::status::Violations;
/// let mut violations = Violations::default();
/// violations.push("order_id", "FIELD_REQUIRED", "must not be empty");
/// violations.push("quantity", "OUT_OF_RANGE", "is -1, must be at least 1");
/// let status = violations.into_result("INVALID_ARGUMENT").unwrap_err();
/// assert_eq!(status.code(), tonic::Code::InvalidArgument);
/// ```
#[derive(Debug, Default)]
pub struct Violations {
    listed: Vec<Violation>,
    count: usize,
}

impl Violations {
    /// Notes a violation: `reason` is UPPER_SNAKE_CASE, `description` says what was wrong and what is expected. From
    /// the 17th on they are only counted.
    pub fn push(&mut self, path: impl Into<FieldPath>, reason: &'static str, description: impl Into<String>) {
        self.count += 1;
        if self.listed.len() < VIOLATIONS_LISTED_MAX {
            self.listed.push(Violation {
                path: path.into(),
                reason,
                description: description.into(),
            });
        }
    }

    /// `FIELD_REQUIRED` for an absent field.
    pub fn required(&mut self, path: impl Into<FieldPath>) {
        self.push(path, "FIELD_REQUIRED", "is required");
    }

    /// Keeps the value of `result`; notes its violation otherwise, so that checking goes on.
    pub fn take<T, E: fmt::Display>(
        &mut self,
        path: impl Into<FieldPath>,
        reason: &'static str,
        result: Result<T, E>,
    ) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.push(path, reason, error.to_string());
                None
            }
        }
    }

    /// Is nothing wrong?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many violations there were, listed or not.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The paths of the violations that are listed.
    pub fn paths(&self) -> impl Iterator<Item = &FieldPath> {
        self.listed.iter().map(|violation| &violation.path)
    }

    /// Is a violation listed with this path and description?
    pub fn has(&self, path: &str, description: &str) -> bool {
        let mut listed = self.listed.iter();
        listed.any(|violation| violation.path.as_str() == path && violation.description == description)
    }

    /// `Ok` when nothing is wrong.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with this reason, and a `BadRequest` that lists the violations: their descriptions begin with their own reasons. The
    /// metadata of the `ErrorInfo` names the first `field` and the `violations` count.
    pub fn into_result(self, reason: &'static str) -> Result<(), Status> {
        let Some(first) = self.listed.first() else {
            return Ok(());
        };
        let subject = match first.path.as_str() {
            "" => "request",
            path => path,
        };
        let mut message = format!("{subject} {}", first.description);
        if self.count > 1 {
            let more = self.count - 1;
            message.push_str(&format!(" (and {more} more, see the BadRequest detail)"));
        }
        let status = StatusBuilder::invalid_argument(reason, message)
            .metadata("field", &first.path)
            .metadata("violations", self.count);
        let status = self.listed.iter().fold(status, |status, violation| {
            let description = format!("{}: {}", violation.reason, violation.description);
            status.field_violation(&violation.path, description)
        });
        Err(status.build())
    }
}
