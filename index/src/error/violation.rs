//! What is wrong with a request or a schema, all of it at a time.

use std::fmt;

use super::Error;
use crate::limits::{Limit, MAX_VIOLATIONS};

/// Why one part of a request or a schema was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The schema has no such field.
    UnknownField,
    /// The value or the query doesn't suit the field's type.
    TypeMismatch,
    /// A field inside a NESTED field was used outside a `nested` query on its path, or the other way round.
    OutsideNestedPath,
    /// Something that must be there is missing or empty.
    Missing,
    /// A number out of its range, a bound the wrong way round, or a shape that is none.
    OutOfRange,
    /// A name that isn't allowed, or is taken.
    InvalidName,
    /// More than a limit allows.
    LimitExceeded {
        /// The limit's name.
        limit: &'static str,
        /// What is allowed.
        max: u64,
        /// What was asked for.
        actual: u64,
    },
}

impl Reason {
    /// The reason in UPPER_SNAKE_CASE.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownField => "UNKNOWN_FIELD",
            Self::TypeMismatch => "TYPE_MISMATCH",
            Self::OutsideNestedPath => "OUTSIDE_NESTED_PATH",
            Self::Missing => "MISSING",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::InvalidName => "INVALID_NAME",
            Self::LimitExceeded { .. } => "LIMIT_EXCEEDED",
        }
    }
}

/// One thing that is wrong with a request or a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message} ({}); {advice}", .reason.code())]
pub struct Violation {
    /// Where: `query.bool.must[1].range.field`, `sort[0].field.mode`, `page_size`.
    pub path: String,
    /// What kind of mistake.
    pub reason: Reason,
    /// What was wrong and what was expected.
    pub message: String,
    /// What to do about it.
    pub advice: String,
}

/// All that is wrong with a request or a schema: never empty, listed up to [`MAX_VIOLATIONS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    listed: Vec<Violation>,
    unlisted: usize,
}

impl Violations {
    /// The violations, in the order of the request.
    pub fn listed(&self) -> &[Violation] {
        &self.listed
    }

    /// How many more there were than are listed.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// Gives violations other advice, where `better` has some: for those who know more than the index.
    pub fn advise(&mut self, better: impl Fn(&Violation) -> Option<String>) {
        for violation in &mut self.listed {
            if let Some(advice) = better(violation) {
                violation.advice = advice;
            }
        }
    }

    /// Moves violations below the path `from` below `to`: for those who put a query around the one they were given.
    pub fn lift(&mut self, from: &str, to: &str) {
        for violation in &mut self.listed {
            if let Some(rest) = violation.path.strip_prefix(from) {
                violation.path = format!("{to}{rest}");
            }
        }
    }

    /// The checked part of the request, if nothing was wrong.
    pub(crate) fn or<T>(self, checked: T) -> Result<T, Error> {
        if self.is_empty() {
            Ok(checked)
        } else {
            Err(Error::InvalidQuery(self))
        }
    }

    fn push(&mut self, violation: Violation) {
        if self.listed.len() < MAX_VIOLATIONS {
            self.listed.push(violation);
        } else {
            self.unlisted += 1;
        }
    }

    /// Adds the violations of another part of the request.
    pub(crate) fn append(&mut self, other: Self) {
        let listed = other.listed.into_iter();
        listed.for_each(|violation| self.push(violation));
        self.unlisted += other.unlisted;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }
}

/// What checks a part of a request, or a schema, and notes all that is wrong.
pub(crate) trait Checker {
    fn violations(&mut self) -> &mut Violations;

    fn note(
        &mut self,
        path: impl Into<String>,
        reason: Reason,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.violations().push(Violation {
            path: path.into(),
            reason,
            message: message.into(),
            advice: advice.into(),
        });
    }

    /// [`Checker::note`] for a part of the request that then is nothing.
    fn refuse<T>(
        &mut self,
        path: impl Into<String>,
        reason: Reason,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Option<T> {
        self.note(path, reason, message, advice);
        None
    }

    /// Notes it when `actual` is above a limit.
    fn at_most(
        &mut self,
        path: impl Into<String>,
        Limit { name: limit, max }: Limit,
        actual: usize,
        advice: impl Into<String>,
    ) -> Option<()> {
        let actual = actual as u64;
        if actual <= max {
            return Some(());
        }
        let message = format!("{actual} is above the limit {limit} of {max}");
        let reason = Reason::LimitExceeded { limit, max, actual };
        self.refuse(path, reason, message, advice)
    }
}

/// Violations, and the first error that is none.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    pub(crate) wrong: Violations,
    refused: Option<Error>,
}

impl Refusals {
    /// What another check has answered; `None` when that is noted as what is wrong.
    pub(crate) fn answered<T>(&mut self, answer: Result<T, Error>) -> Option<T> {
        match answer {
            Ok(answer) => return Some(answer),
            Err(Error::InvalidQuery(violations)) => self.wrong.append(violations),
            Err(other) => drop(self.refused.get_or_insert(other)),
        }
        None
    }

    /// The checked part of the request, if nothing was refused.
    pub(crate) fn or<T>(self, checked: T) -> Result<T, Error> {
        match self.refused {
            Some(refused) => Err(refused),
            None => self.wrong.or(checked),
        }
    }
}

impl Checker for Refusals {
    fn violations(&mut self) -> &mut Violations {
        &mut self.wrong
    }
}

/// All parts of a list that were checked, if none is wrong; each is checked, so that all violations are noted.
pub(crate) fn every<T>(checked: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let checked: Vec<Option<T>> = checked.collect();
    checked.into_iter().collect()
}

impl Checker for Violations {
    fn violations(&mut self) -> &mut Violations {
        self
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, violation) in self.listed.iter().enumerate() {
            if at > 0 {
                out.write_str("; ")?;
            }
            write!(out, "{violation}")?;
        }
        if self.unlisted > 0 {
            write!(out, "; and {} more", self.unlisted)?;
        }
        Ok(())
    }
}
