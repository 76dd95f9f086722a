//! Connection age, idle and stall limits of a server.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Problems, duration, push_zeros};

/// Times of each connection that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionConfig {
    /// Age at which a client is told to make another connection, with a jitter of ± 10 %; it finds new servers and sees new certificates
    /// that way.
    #[serde(with = "duration")]
    pub age_max: Duration,
    /// Time that calls have after that, streams among them, before the connection is cut.
    #[serde(with = "duration")]
    pub age_grace: Duration,
    /// Time without any part of a call that was let in, after which a client is told to make another connection when it needs one.
    #[serde(with = "duration")]
    pub idle_max: Duration,
    /// The same before the first such call, and after questions for health alone.
    #[serde(with = "duration")]
    pub first_call_timeout: Duration,
    /// Time for which a client may take none of the bytes that wait for it, before the connection is cut.
    #[serde(with = "duration")]
    pub write_stall_max: Duration,
    /// Time for which a client may take nothing of an answer that waits for it (the window of an HTTP/2 stream is shut), before the stream
    /// is reset.
    #[serde(with = "duration")]
    pub answer_stall_max: Duration,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            age_max: Duration::from_secs(60 * 60),
            age_grace: Duration::from_secs(10 * 60),
            idle_max: Duration::from_secs(15 * 60),
            first_call_timeout: Duration::from_secs(60),
            write_stall_max: Duration::from_secs(30),
            answer_stall_max: Duration::from_secs(30),
        }
    }
}

impl ConnectionConfig {
    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub(super) fn check(&self, path: &str, problems: &mut Problems) {
        push_zeros!(problems, path, self:
            age_max age_grace idle_max first_call_timeout write_stall_max answer_stall_max);
    }
}
