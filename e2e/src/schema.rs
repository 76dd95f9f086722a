//! The schema of spans: `e2e/telemetry/spans.json` lists all kinds of spans, with their services and attributes.
//!
//! A span that no rule allows is a mistake, and so is an attribute that its rule doesn't name. A new one is added to the file,
//! which dashboards and alerts are written by.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Deserialize;

use crate::spans::Span;

const FILE: &str = include_str!("../telemetry/spans.json");
/// Longest value of [`Format::Text`], in bytes.
const TEXT_BYTES_MAX: usize = 255;
/// The names of gRPC's status codes, by their numbers.
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

/// The spans that are allowed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpanSchema {
    spans: Vec<SpanRule>,
}

/// The rule of one kind of span.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpanRule {
    /// What the span is, for failures.
    what: String,
    /// The span's name; `{key}` stands for the value of an attribute.
    name: String,
    /// OpenTelemetry's span kinds, as `SERVER`.
    kinds: Vec<String>,
    /// Values of `service.name`.
    services: Vec<String>,
    /// Attributes by their keys.
    required: BTreeMap<String, AllowedValues>,
    optional: BTreeMap<String, AllowedValues>,
}

/// The values that an attribute may have.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AllowedValues {
    OneOf(Vec<String>),
    Format(Format),
}

/// A format of values, by its name in the file.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// One of [`CODES`].
    Code,
    /// `package.Service/Method`, or `_OTHER`.
    Method,
    /// A number from 1 to 65,535.
    Port,
    /// A whole number that isn't negative.
    Integer,
    /// A table's name: lower-case letters and underscores.
    Table,
    /// Reason or code of an error: upper-case letters, digits and underscores.
    Reason,
    /// A line of at most [`TEXT_BYTES_MAX`] bytes.
    Text,
}

impl Format {
    fn allows(self, value: &str) -> bool {
        let consists = |text: &str, of: fn(char) -> bool| !text.is_empty() && text.chars().all(of);
        match self {
            Self::Code => CODES.contains(&value),
            Self::Method => {
                let is_name =
                    |text: &str| consists(text, |c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
                let parts = value.split_once('/');
                value == "_OTHER"
                    || parts.is_some_and(|(service, method)| is_name(service) && is_name(method))
            }
            Self::Port => value.parse::<u16>().is_ok_and(|port| port > 0),
            Self::Integer => value.parse::<u64>().is_ok(),
            Self::Table => consists(value, |c| c.is_ascii_lowercase() || c == '_'),
            Self::Reason => consists(value, |c| {
                c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'
            }),
            Self::Text => value.len() <= TEXT_BYTES_MAX && !value.chars().any(char::is_control),
        }
    }
}

impl AllowedValues {
    fn allows(&self, value: &str) -> bool {
        match self {
            Self::OneOf(values) => values.iter().any(|allowed| allowed == value),
            Self::Format(format) => format.allows(value),
        }
    }
}

impl SpanSchema {
    /// The schema of Souk's spans.
    ///
    /// # Errors
    /// When the file is malformed.
    pub fn souk() -> anyhow::Result<Self> {
        Self::read(FILE)
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        serde_json::from_str(text).context("telemetry/spans.json")
    }

    /// Checks a span by the first rule of its kind and name.
    ///
    /// # Errors
    /// When there is no such rule, or the span breaks it; says how.
    pub fn check(&self, span: &Span) -> anyhow::Result<()> {
        let kind = format!("{:?}", span.kind).to_uppercase();
        let is_of = |rule: &&SpanRule| rule.kinds.contains(&kind) && rule.name_of(span) == span.name;
        let rule = self.spans.iter().find(is_of);
        let rule = rule.with_context(|| format!("the schema has no {kind} span like {span:?}"))?;
        rule.check(span)
            .with_context(|| format!("{kind} `{}`, {}", span.name, rule.what))
    }
}

impl SpanRule {
    /// The name that a span with these attributes must have.
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
