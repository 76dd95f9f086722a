//! Captures the JSON log lines that the processes of a suite write to standard error, for tests to query.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::watch;

/// Longest wait for a line.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// One line of a log.
#[derive(Clone, Debug, Deserialize)]
pub struct LogLine {
    /// Name of the process in the suite, for example `order` or [`GATEWAY`](crate::suite::GATEWAY).
    #[serde(skip)]
    pub process: String,
    /// `ERROR`, `WARN` or `INFO`; empty for a line that isn't JSON, such as a panic's.
    #[serde(default)]
    pub level: String,
    /// The message; of a line that isn't JSON, the whole line.
    #[serde(default)]
    pub message: String,
    /// Trace id, in hexadecimal.
    pub trace_id: Option<String>,
    /// Span id, in hexadecimal.
    pub span_id: Option<String>,
    /// The structured fields.
    #[serde(default)]
    pub fields: Map<String, Value>,
}

impl LogLine {
    fn parse(process: &str, line: &str) -> Self {
        let mut parsed: Self = serde_json::from_str(line).unwrap_or_else(|_| Self {
            process: String::new(),
            level: String::new(),
            message: line.to_owned(),
            trace_id: None,
            span_id: None,
            fields: Map::new(),
        });
        process.clone_into(&mut parsed.process);
        parsed
    }

    /// A field as text; empty when there is none.
    #[must_use]
    pub fn field(&self, name: &str) -> String {
        match self.fields.get(name) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

/// The lines of all processes of a suite. Clones share them.
#[derive(Clone, Debug)]
pub struct Log(Arc<watch::Sender<Vec<LogLine>>>);

impl Default for Log {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }
}

impl Log {
    /// All lines so far.
    #[must_use]
    pub fn lines(&self) -> Vec<LogLine> {
        self.0.borrow().clone()
    }

    /// The lines of a trace so far.
    #[must_use]
    pub fn of_trace(&self, trace_id: &str) -> Vec<LogLine> {
        let lines = self.0.borrow();
        let of_trace = lines
            .iter()
            .filter(|line| line.trace_id.as_deref() == Some(trace_id));
        of_trace.cloned().collect()
    }

    /// The first line that meets `condition`, waiting for one if there is none yet.
    ///
    /// # Errors
    /// After 20 seconds without one.
    pub async fn wait_for(&self, condition: impl Fn(&LogLine) -> bool) -> anyhow::Result<LogLine> {
        let mut lines = self.0.subscribe();
        let mut found = None;
        let wait = lines.wait_for(|lines| {
            found = lines.iter().find(|line| condition(line)).cloned();
            found.is_some()
        });
        let waited = tokio::time::timeout(WAIT_MAX, wait).await.map(drop);
        waited
            .ok()
            .and(found)
            .with_context(|| format!("the log lacks the line: {:#?}", self.lines()))
    }

    /// Reads `stderr` to its end on a thread of its own, so that a process which writes isn't blocked by a busy test.
    pub(crate) fn follow(&self, process: &str, stderr: impl Read + Send + 'static) {
        let (log, process) = (self.clone(), process.to_owned());
        std::thread::spawn(move || {
            // Not `lines`: a line that is no UTF-8 would end the reading.
            for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
                let line = LogLine::parse(&process, &String::from_utf8_lossy(&line));
                log.0.send_modify(|lines| lines.push(line));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_no_utf_8_is_a_line_like_others() -> anyhow::Result<()> {
        let log = Log::default();
        log.follow("order", &b"\xff broken\n{\"message\":\"whole\"}\n"[..]);
        log.wait_for(|line| line.message == "whole").await?;
        let messages: Vec<_> = log.lines().into_iter().map(|line| line.message).collect();
        assert_eq!(messages, ["\u{fffd} broken", "whole"]);
        Ok(())
    }
}
