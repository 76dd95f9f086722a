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
    /// The message; all of a line that isn't JSON.
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
    fn read(process: &str, line: &str) -> Self {
        let mut read: Self = serde_json::from_str(line).unwrap_or_else(|_| Self {
            process: String::new(),
            level: String::new(),
            message: line.to_owned(),
            trace_id: None,
            span_id: None,
            fields: Map::new(),
        });
        process.clone_into(&mut read.process);
        read
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
        let mine = lines
            .iter()
            .filter(|line| line.trace_id.as_deref() == Some(trace_id));
        mine.cloned().collect()
    }

    /// Waits for a line that meets `condition`; earlier lines count.
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

    /// Reads `stderr` to its end, on a thread: a busy test mustn't block a process that writes.
    pub(crate) fn follow(&self, process: &str, stderr: impl Read + Send + 'static) {
        let (log, process) = (self.clone(), process.to_owned());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let line = LogLine::read(&process, &line);
                log.0.send_modify(|lines| lines.push(line));
            }
        });
    }
}
