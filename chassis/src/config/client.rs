//! Settings of the connections to other processes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ClientTlsConfig, Problems, duration, push_zeros};

const CONNECTIONS_MAX: usize = 64;

/// Settings of the connections to other processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientConfig {
    /// Connections to each process, of each worker of the server that calls; more than one where a server allows fewer streams on each than calls are made at once.
    pub connections: usize,
    /// Time for a connection to be made.
    #[serde(with = "duration")]
    pub connect_timeout: Duration,
    /// Silence on a connection after which it is pinged, also while idle.
    #[serde(with = "duration")]
    pub keepalive_interval: Duration,
    /// Time for the answer to a ping before the connection is given up.
    #[serde(with = "duration")]
    pub keepalive_timeout: Duration,
    /// How long what was sent may stay unacknowledged by the other machine before the connection is given up for a new one
    /// (TCP_USER_TIMEOUT, on Linux). The pauses of TCP itself grow to minutes while nothing passes.
    #[serde(with = "duration")]
    pub unacknowledged_max: Duration,
    /// Certificates for `https://` addresses.
    pub tls: ClientTlsConfig,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            connections: 1,
            connect_timeout: Duration::from_secs(2),
            keepalive_interval: Duration::from_secs(60),
            keepalive_timeout: Duration::from_secs(20),
            unacknowledged_max: Duration::from_secs(3),
            tls: ClientTlsConfig::default(),
        }
    }
}

impl ClientConfig {
    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub fn check(&self, path: &str, problems: &mut Problems) {
        push_zeros!(problems, path, self:
            connect_timeout keepalive_interval keepalive_timeout unacknowledged_max);
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            problems.push_in(path, "connections", format!("must be 1 to {CONNECTIONS_MAX}"));
        }
        self.tls.check(&format!("{path}.tls"), problems);
    }
}
