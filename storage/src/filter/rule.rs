//! The value transfer rule of a comparison: takes a part out of a text and reads it as a value.

use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};
use crate::limits;
use crate::value::ValueRef;

/// What the part of a text is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cast {
    /// Text, as it is.
    String,
    /// A signed 64-bit decimal number.
    Integer,
    /// A finite decimal number.
    Double,
}

impl Cast {
    /// Name of the type, as [`crate::Value::kind_name`] gives it.
    pub(crate) fn kind_name(self) -> &'static str {
        match self {
            Self::String => "STRING",
            Self::Integer => "INTEGER",
            Self::Double => "DOUBLE",
        }
    }
}

/// Compares a part of a STRING cell instead of the cell: the first place where the pattern matches, or there its
/// first group if the pattern has one, read as a type. A cell that isn't a STRING, doesn't match, or can't be read
/// as that type satisfies no comparison, not even `!=`.
///
/// The pattern is a regular expression in Perl's notation without look-around and backreferences, so that matching
/// takes time proportional to the text whatever the pattern.
#[derive(Debug, Clone)]
pub struct ValueRule {
    pattern: Regex,
    cast: Cast,
}

impl ValueRule {
    /// A rule of this pattern.
    ///
    /// # Errors
    /// [`Error::LimitExceeded`] for [`limits::MAX_PATTERN_BYTES`]; [`Error::Invalid`] when it is empty, is no
    /// regular expression, or needs more than [`limits::MAX_PATTERN_PROGRAM_BYTES`].
    pub fn new(pattern: &str, cast: Cast) -> Result<Self> {
        let subject = || format!("pattern {pattern:?}");
        limits::check("MAX_PATTERN_BYTES", limits::MAX_PATTERN_BYTES, pattern.len())?;
        if pattern.is_empty() {
            return Err(Error::invalid(subject(), "is empty"));
        }
        let compiled = RegexBuilder::new(pattern)
            .size_limit(limits::MAX_PATTERN_PROGRAM_BYTES)
            .dfa_size_limit(limits::MAX_PATTERN_PROGRAM_BYTES)
            .build();
        match compiled {
            Ok(pattern) => Ok(Self { pattern, cast }),
            Err(regex::Error::CompiledTooBig(max)) => Err(Error::invalid(
                subject(),
                format!("needs more than MAX_PATTERN_PROGRAM_BYTES, {max} bytes"),
            )),
            Err(error) => Err(Error::invalid(
                subject(),
                format!("is no regular expression: {error}"),
            )),
        }
    }

    /// The pattern.
    pub fn pattern(&self) -> &str {
        self.pattern.as_str()
    }

    /// What the part is read as.
    pub fn cast(&self) -> Cast {
        self.cast
    }

    /// The value in a cell.
    pub(super) fn apply<'a>(&self, cell: ValueRef<'a>) -> Option<ValueRef<'a>> {
        let ValueRef::String(text) = cell else {
            return None;
        };
        let part = if self.pattern.captures_len() > 1 {
            self.pattern.captures(text)?.get(1)?
        } else {
            self.pattern.find(text)?
        };
        let part = part.as_str();
        match self.cast {
            Cast::String => Some(ValueRef::String(part)),
            Cast::Integer => part.parse().ok().map(ValueRef::Integer),
            Cast::Double => {
                let number: f64 = part.parse().ok()?;
                number.is_finite().then_some(ValueRef::Double(number))
            }
        }
    }
}

/// Two rules are equal when they are written alike.
impl PartialEq for ValueRule {
    fn eq(&self, other: &Self) -> bool {
        (self.pattern(), self.cast) == (other.pattern(), other.cast)
    }
}
