//! What spans there may be: `e2e/telemetry/spans.json` names them, with their kinds, services and attributes.
//!
//! A span that no entry allows is a mistake, and so is an attribute that its entry doesn't name: what isn't in the file is
//! added there, in sight of whoever reads dashboards.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Deserialize;

use crate::spans::Span;

/// The file.
const FILE: &str = include_str!("../telemetry/spans.json");
/// Longest text of an attribute, in bytes.
const TEXT_BYTES_MAX: usize = 255;
/// The codes of gRPC.
pub const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The spans that there may be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    spans: Vec<Entry>,
}

/// One kind of span.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    what: String,
    /// With attributes in braces.
    name: String,
    kinds: Vec<String>,
    services: Vec<String>,
    required: BTreeMap<String, Allowed>,
    optional: BTreeMap<String, Allowed>,
}

/// The values of an attribute.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Allowed {
    OneOf(Vec<String>),
    Like(Like),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Like {
    /// One of gRPC's codes.
    Code,
    /// `package.Service/Method`, or `_OTHER`.
    Method,
    /// A number from 1 to 65,535.
    Port,
    /// A whole number that isn't negative.
    Integer,
    /// A name in lower case.
    Table,
    /// A reason of an error, or its code.
    Reason,
    /// A short line.
    Text,
}

impl Like {
    fn allows(self, value: &str) -> bool {
        let upper = |text: &str| {
            let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            !text.is_empty() && text.chars().all(fits)
        };
        match self {
            Self::Code => CODES.contains(&value),
            Self::Method => {
                let name = |text: &str| {
                    let fits = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
                    !text.is_empty() && text.chars().all(fits)
                };
                let parts = value.split_once('/');
                value == "_OTHER" || parts.is_some_and(|(service, method)| name(service) && name(method))
            }
            Self::Port => value.parse::<u16>().is_ok_and(|port| port > 0),
            Self::Integer => value.parse::<u64>().is_ok(),
            Self::Table => {
                let fits = |c: char| c.is_ascii_lowercase() || c == '_';
                !value.is_empty() && value.chars().all(fits)
            }
            Self::Reason => upper(value),
            Self::Text => value.len() <= TEXT_BYTES_MAX && !value.chars().any(char::is_control),
        }
    }
}

impl Allowed {
    fn allows(&self, value: &str) -> bool {
        match self {
            Self::OneOf(values) => values.iter().any(|allowed| allowed == value),
            Self::Like(like) => like.allows(value),
        }
    }
}

impl Schema {
    /// The schema of Souk's spans.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn souk() -> anyhow::Result<Self> {
        Self::read(FILE)
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        serde_json::from_str(text).context("telemetry/spans.json")
    }

    /// Is the span one that there may be?
    ///
    /// # Errors
    /// When it isn't, with what is wrong with it.
    pub fn check(&self, span: &Span) -> anyhow::Result<()> {
        let kind = format!("{:?}", span.kind).to_uppercase();
        let named = |entry: &&Entry| entry.kinds.contains(&kind) && entry.name_of(span) == span.name;
        let entry = self.spans.iter().find(named);
        let entry = entry.with_context(|| format!("the schema has no {kind} span like {span:?}"))?;
        entry
            .check(span)
            .with_context(|| format!("{kind} `{}`, {}", span.name, entry.what))
    }
}

impl Entry {
    /// What a span of this kind with its attributes is called.
    fn name_of(&self, span: &Span) -> String {
        let mut name = self.name.clone();
        for (key, value) in &span.attributes {
            name = name.replace(&format!("{{{key}}}"), value);
        }
        name
    }

    fn check(&self, span: &Span) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.services.contains(&span.service),
            "is no span of {}",
            span.service
        );
        for key in self.required.keys() {
            anyhow::ensure!(span.attributes.contains_key(key), "lacks {key}");
        }
        for (key, value) in &span.attributes {
            let allowed = self.required.get(key).or_else(|| self.optional.get(key));
            let allowed = allowed.with_context(|| format!("has {key}, which the schema doesn't name"))?;
            anyhow::ensure!(
                allowed.allows(value),
                "{key} is `{value}`, which isn't one of {allowed:?}"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
