//! Sort keys.

/// A value that a hit was sorted by.
#[derive(Clone, Debug, PartialEq)]
pub enum SortValue {
    /// The document has no value.
    Missing,
    /// Of a LONG.
    Long(i64),
    /// Of a DOUBLE, a score, or a distance in metres.
    Double(f64),
    /// Of a BOOLEAN.
    Boolean(bool),
    /// Of a DATE: nanoseconds since the Unix epoch.
    Date(i64),
    /// Of a KEYWORD.
    String(String),
    /// The document's key.
    Key(Vec<u8>),
}
