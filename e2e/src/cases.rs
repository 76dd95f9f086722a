//! Calls and what is expected of them, as files: `e2e/cases/*.json`, each a case, run through the gateway by one test. Who adds one needs no
//! Rust; `e2e/cases/README.md` says how they are written.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use tonic::transport::Channel;
use tonic::{Code, Status, TimeoutExpired};
use tonic_types::StatusExt as _;

use crate::caller::Caller;
use crate::collector::Collector;
use crate::dynamic::Dynamic;
use crate::rejection::Rejection;
use crate::spans::Trace;
use crate::{laws, schema};

mod likeness;

use likeness::{like, replaced};

/// A case: calls one after the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows, as a sentence.
    pub what: String,
    calls: Vec<Call>,
}

/// One call, and what is expected of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    /// `package.Service/Method`.
    call: String,
    /// The request as JSON, names as in the contract.
    #[serde(default)]
    request: Value,
    /// Headers beside those of the trace.
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    /// The code's name.
    #[serde(default = "ok")]
    code: String,
    /// What the answer has at least.
    answer: Option<Value>,
    /// Of a stream: what its first messages have at least; then the caller hangs up.
    answers: Option<Vec<Value>>,
    /// What the error says.
    error: Option<ExpectedError>,
    /// Values of the answer that later calls use as `${name}`, by their paths.
    #[serde(default)]
    keep: BTreeMap<String, String>,
    /// The whole tree of spans, a line each.
    spans: Option<Vec<String>>,
    /// Attributes that spans have at least, by the span's name.
    #[serde(default)]
    attributes: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedError {
    reason: String,
    /// The paths at fault, in order.
    #[serde(default)]
    fields: Vec<String>,
    /// What `ErrorInfo.metadata` has at least.
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    /// Whether it says when to try again.
    #[serde(default)]
    retry: bool,
}

fn ok() -> String {
    "OK".to_owned()
}

/// Whether the client's own clock ended the call before the answer came: gRPC calls that DEADLINE_EXCEEDED, the library
/// CANCELLED.
fn expired(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<TimeoutExpired>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// What a call ended with.
enum Outcome {
    Messages(Vec<Value>),
    Refused(Box<Status>),
}

impl Case {
    /// Reads all cases of a folder, by name.
    ///
    /// # Errors
    /// When there is none, or one can't be read.
    pub fn all(folder: &Path) -> anyhow::Result<Vec<(String, Self)>> {
        let mut cases = Vec::new();
        for file in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let text = std::fs::read_to_string(&path)?;
                let case = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
                cases.push((name.into_owned(), case));
            }
        }
        anyhow::ensure!(!cases.is_empty(), "{} has no cases", folder.display());
        cases.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(cases)
    }

    /// Makes the calls of the case `name`, and compares.
    ///
    /// # Errors
    /// When something isn't as the case expects, with the call's place.
    pub async fn run(&self, name: &str, channel: &Channel, collector: &Collector) -> anyhow::Result<()> {
        let mut known = BTreeMap::from([("case".to_owned(), name.to_owned())]);
        for (index, call) in self.calls.iter().enumerate() {
            let ran = call.run(&mut known, channel, collector).await;
            ran.with_context(|| format!("{name}: call {} ({})", index + 1, call.call))?;
        }
        Ok(())
    }
}

impl Call {
    async fn run(
        &self,
        known: &mut BTreeMap<String, String>,
        channel: &Channel,
        collector: &Collector,
    ) -> anyhow::Result<()> {
        let mut caller = Caller::new();
        for (name, value) in &self.metadata {
            caller = caller.with(name, &replaced(value, known)?);
        }
        let outcome = self.ask(known, channel, &caller).await?;
        let code = match &outcome {
            Outcome::Messages(_) => Code::Ok,
            Outcome::Refused(status) if expired(status) => Code::DeadlineExceeded,
            Outcome::Refused(status) => status.code(),
        };
        let code = schema::CODES.get(code as usize).copied().unwrap_or_default();
        let said = match &outcome {
            Outcome::Messages(messages) => serde_json::to_string_pretty(messages)?,
            Outcome::Refused(status) => format!("{status:?}"),
        };
        anyhow::ensure!(
            code == self.code,
            "{code} where {} was expected:\n{said}",
            self.code
        );
        match &outcome {
            Outcome::Messages(messages) => self.compare(messages, known)?,
            Outcome::Refused(status) => self.compare_error(status, known)?,
        }
        self.compare_spans(&caller, known, collector).await
    }

    async fn ask(
        &self,
        known: &BTreeMap<String, String>,
        channel: &Channel,
        caller: &Caller,
    ) -> anyhow::Result<Outcome> {
        let json = match &self.request {
            Value::Null => Value::Object(serde_json::Map::new()),
            request => likeness::filled(request, known)?,
        };
        let mut client = Dynamic::new(channel.clone())?.with("traceparent", &caller.traceparent())?;
        for (name, value) in &caller.metadata {
            client = client.with(name, value)?;
        }
        // One answer is read to its end; of a stream as much as is compared.
        let (wanted, taken) = (self.answers.as_ref().map(Vec::len), Cell::new(0));
        let last = |_: &Value| {
            taken.set(taken.get() + 1);
            wanted == Some(taken.get())
        };
        let (answers, _) = client.responses(&self.call, &json, last).await?;
        Ok(match answers {
            Ok(messages) => Outcome::Messages(messages),
            Err(status) => Outcome::Refused(Box::new(status)),
        })
    }

    fn compare(&self, messages: &[Value], known: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
        let expected: Vec<&Value> = match (&self.answers, &self.answer) {
            (Some(answers), _) => answers.iter().collect(),
            (None, Some(answer)) => vec![answer],
            (None, None) => Vec::new(),
        };
        anyhow::ensure!(
            expected.is_empty() || expected.len() == messages.len(),
            "{} messages where {} were expected",
            messages.len(),
            expected.len()
        );
        for (expected, message) in expected.iter().zip(messages) {
            like(&likeness::filled(expected, known)?, message, "answer")
                .with_context(|| serde_json::to_string_pretty(message).unwrap_or_default())?;
        }
        for (name, path) in &self.keep {
            let message = messages.first().context("there is no answer to keep of")?;
            let value = likeness::at(message, path).with_context(|| format!("the answer has no {path}"))?;
            known.insert(name.clone(), value);
        }
        Ok(())
    }

    fn compare_error(&self, status: &Status, known: &BTreeMap<String, String>) -> anyhow::Result<()> {
        if self.error.is_none() && expired(status) {
            // Nobody answered: there are no details.
            return Ok(());
        }
        let rejection = Rejection::of(status)?;
        let Some(expected) = &self.error else {
            return Ok(());
        };
        anyhow::ensure!(
            rejection.reason == expected.reason,
            "the reason is {}: {status:?}",
            rejection.reason
        );
        anyhow::ensure!(
            rejection.fields == expected.fields,
            "the fields at fault are {:?}: {status:?}",
            rejection.fields
        );
        anyhow::ensure!(
            rejection.has_retry_info == expected.retry,
            "it says when to come back: {}",
            rejection.has_retry_info
        );
        let info = status.get_details_error_info();
        let metadata = info.map(|info| info.metadata).unwrap_or_default();
        for (name, value) in &expected.metadata {
            let wanted = replaced(value, known)?;
            let found = metadata.get(name);
            anyhow::ensure!(
                found == Some(&wanted),
                "{name} of the ErrorInfo is {found:?}, not {wanted}"
            );
        }
        Ok(())
    }

    async fn compare_spans(
        &self,
        caller: &Caller,
        known: &BTreeMap<String, String>,
        collector: &Collector,
    ) -> anyhow::Result<()> {
        let Some(spans) = &self.spans else {
            return Ok(());
        };
        let trace = caller.trace(collector, spans.len()).await?;
        laws::all(&trace, &caller.span_id)?;
        let expected: Vec<_> = spans
            .iter()
            .map(|line| line.replace("{call}", &self.call))
            .collect();
        let mut found = Vec::new();
        lines(&trace, &caller.span_id, 0, &mut found);
        anyhow::ensure!(
            found == expected,
            "the spans are\n{}\nwhere these were expected:\n{}\n{trace}",
            found.join("\n"),
            expected.join("\n")
        );
        for (name, attributes) in &self.attributes {
            let name = name.replace("{call}", &self.call);
            let named: Vec<_> = trace.spans().iter().filter(|span| span.name == name).collect();
            anyhow::ensure!(!named.is_empty(), "there is no span {name}:\n{trace}");
            for (key, value) in attributes {
                let wanted = replaced(value, known)?;
                for span in &named {
                    let found = span.attribute(key);
                    anyhow::ensure!(
                        found == wanted || (wanted == "*" && !found.is_empty()),
                        "{key} of {name} is `{found}`, not `{wanted}`:\n{trace}"
                    );
                }
            }
        }
        Ok(())
    }
}

/// The tree as a case has it: `KIND name service`, two spaces deeper below each.
fn lines(trace: &Trace, parent: &str, depth: usize, out: &mut Vec<String>) {
    for span in trace.below(parent) {
        let kind = format!("{:?}", span.kind).to_uppercase();
        out.push(format!(
            "{}{kind} {} {}",
            "  ".repeat(depth),
            span.name,
            span.service
        ));
        lines(trace, &span.span_id, depth + 1, out);
    }
}
