//! Where the values of a search field come from.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::DateFormat;

/// A column or key column, a place in what it holds, and how the value there is read for the field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The column or key column.
    pub column: String,
    /// The names on the way into JSON, a message or attributes. Lists on the way are gone through: all their elements count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// How the value is read.
    #[serde(default, skip_serializing_if = "Reading::is_as_is")]
    pub reading: Reading,
    /// Whether a text in the column is JSON, though the column isn't declared so: the elements of its lists count, and its objects
    /// have members. Other fields have the text as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
    /// How times are written, if not as [`Reading`] says: of the field under no name, of fields inside it under their paths from
    /// there. The first format counts that a value is written by; a value that is written by none doesn't fit the field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dates: BTreeMap<String, Vec<DateFormat>>,
}

/// How a value is read for a field. Where that can't be done, the field has the value as it is: what doesn't fit is counted and
/// listed as a misfit, and the row is found by its other fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reading {
    /// As it is. A DATE takes an INTEGER as nanoseconds since the Unix epoch and text by RFC 3339; a GEO_POINT takes the text
    /// `latitude,longitude`, and an object with `latitude` and `longitude`.
    #[default]
    AsIs,
    /// Text in lower case, as names are compared when they are suggested. Accents stay.
    Folded,
    /// A second view of a value under another type: text that spells a number or a truth, a number as text.
    Converted,
    /// An INTEGER as time since the Unix epoch.
    Epoch(TimeUnit),
}

impl Reading {
    fn is_as_is(&self) -> bool {
        *self == Self::AsIs
    }
}

/// What a number of time since the Unix epoch counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Thousandths of a second.
    Millis,
    /// Millionths of a second.
    Micros,
    /// Billionths of a second.
    Nanos,
}

impl TimeUnit {
    /// Nanoseconds of one.
    #[must_use]
    pub fn nanos(self) -> i64 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Millis => 1_000_000,
            Self::Micros => 1_000,
            Self::Nanos => 1,
        }
    }
}

impl Source {
    /// A column or key column as it is.
    #[must_use]
    pub fn column(column: impl Into<String>) -> Self {
        Self {
            column: column.into(),
            path: Vec::new(),
            reading: Reading::AsIs,
            json: false,
            dates: BTreeMap::new(),
        }
    }

    /// `<column>` or `<column>.<name>.<name>`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut names = text.split('.').map(str::to_owned);
        let column = names.next().unwrap_or_default();
        Self::column(column).at(names)
    }

    /// Goes on to a place in what the column holds.
    #[must_use]
    pub fn at<N: Into<String>>(mut self, path: impl IntoIterator<Item = N>) -> Self {
        self.path.extend(path.into_iter().map(Into::into));
        self
    }

    /// Says how the value is read.
    #[must_use]
    pub fn read(mut self, reading: Reading) -> Self {
        self.reading = reading;
        self
    }

    /// Takes a text in the column for JSON.
    #[must_use]
    pub fn json(mut self) -> Self {
        self.json = true;
        self
    }

    /// Says how times are written: of the field itself, or of one inside it by its path from there.
    #[must_use]
    pub fn dates(mut self, path: impl Into<String>, formats: Vec<DateFormat>) -> Self {
        self.dates.insert(path.into(), formats);
        self
    }
}

/// As [`Source::parse`] takes it; how the value is read isn't told.
impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.column)?;
        self.path.iter().try_for_each(|name| write!(out, ".{name}"))
    }
}
