//! Settings of a gRPC server, their defaults and their bounds.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Problems, ServerTlsConfig, duration, exposure};

/// Largest message a server can be set to receive, in bytes: what the generated servers decode at most.
pub const MESSAGE_BYTES_CEILING: usize = 4 * 1024 * 1024;

/// Smallest sensible message limit, in bytes.
pub const MESSAGE_BYTES_FLOOR: usize = 1024;

/// Settings of one gRPC server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Largest message received, in bytes, after decompression. At most [`MESSAGE_BYTES_CEILING`].
    pub message_bytes_max: usize,
    /// Calls being worked on at a time, in the whole process.
    pub concurrency_max: usize,
    /// Calls that may wait for a free place; the next one is shed with RESOURCE_EXHAUSTED.
    pub queue_max: usize,
    /// Connections open at a time; further ones wait in the listener's backlog.
    pub connections_max: usize,
    /// Connections that haven't come through TLS and the HTTP/2 preface; a further one takes the place of the oldest.
    pub openings_max: usize,
    /// Time for a new connection to come through TLS and the HTTP/2 preface.
    #[serde(with = "duration")]
    pub opening_timeout: Duration,
    /// Time for a call that names no `grpc-timeout`, until its response headers.
    #[serde(with = "duration")]
    pub deadline_default: Duration,
    /// Longest time until the response headers, whatever `grpc-timeout` says.
    #[serde(with = "duration")]
    pub deadline_max: Duration,
    /// Silence on a connection after which it is pinged.
    #[serde(with = "duration")]
    pub keepalive_interval: Duration,
    /// Time for the answer to a ping before the connection is closed.
    #[serde(with = "duration")]
    pub keepalive_timeout: Duration,
    /// Time for the whole drain: calls in flight, then closing what the process owns.
    #[serde(with = "duration")]
    pub drain_deadline: Duration,
    /// Lets a listener that other machines can reach speak without TLS.
    pub allow_plaintext: bool,
    /// Certificates of the listener.
    pub tls: ServerTlsConfig,
    /// Limits of each HTTP/2 connection.
    pub http2: Http2Config,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 50051),
            message_bytes_max: MESSAGE_BYTES_CEILING,
            concurrency_max: 512,
            queue_max: 1024,
            connections_max: 4096,
            openings_max: 1024,
            opening_timeout: Duration::from_secs(10),
            deadline_default: Duration::from_secs(30),
            deadline_max: Duration::from_secs(120),
            keepalive_interval: Duration::from_secs(60),
            keepalive_timeout: Duration::from_secs(20),
            drain_deadline: Duration::from_secs(25),
            allow_plaintext: false,
            tls: ServerTlsConfig::default(),
            http2: Http2Config::default(),
        }
    }
}

impl ServerConfig {
    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub fn check(&self, path: &str, problems: &mut Problems) {
        if !(MESSAGE_BYTES_FLOOR..=MESSAGE_BYTES_CEILING).contains(&self.message_bytes_max) {
            let range = format!("must be {MESSAGE_BYTES_FLOOR} to {MESSAGE_BYTES_CEILING} bytes");
            problems.push(&format!("{path}.message_bytes_max"), range);
        }
        let positive = [
            ("concurrency_max", self.concurrency_max == 0),
            ("connections_max", self.connections_max == 0),
            ("openings_max", self.openings_max == 0),
            ("opening_timeout", self.opening_timeout.is_zero()),
            ("deadline_default", self.deadline_default.is_zero()),
            ("deadline_max", self.deadline_max.is_zero()),
            ("keepalive_interval", self.keepalive_interval.is_zero()),
            ("keepalive_timeout", self.keepalive_timeout.is_zero()),
            ("drain_deadline", self.drain_deadline.is_zero()),
            ("http2.streams_max", self.http2.streams_max == 0),
            (
                "http2.header_list_bytes_max",
                self.http2.header_list_bytes_max == 0,
            ),
        ];
        for (name, _) in positive.iter().filter(|(_, zero)| *zero) {
            problems.push(&format!("{path}.{name}"), "must be more than zero");
        }
        if self.deadline_default > self.deadline_max {
            problems.push(
                &format!("{path}.deadline_default"),
                "must not exceed deadline_max",
            );
        }
        self.tls.check(&format!("{path}.tls"), problems);
        exposure::check(self, path, problems);
    }
}

/// Limits of each HTTP/2 connection; they bound what one peer can make the server hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http2Config {
    /// Streams open at a time.
    pub streams_max: u32,
    /// Streams reset by the peer before they were accepted (rapid reset, CVE-2023-44487).
    pub pending_reset_streams_max: usize,
    /// Streams reset by us because of the peer's errors before the connection is closed.
    pub local_error_reset_streams_max: usize,
    /// Size of all headers of a request, in bytes.
    pub header_list_bytes_max: u32,
    /// Flow-control window of a stream, in bytes.
    pub stream_window_bytes: u32,
    /// Flow-control window of a connection, in bytes.
    pub connection_window_bytes: u32,
}

impl Default for Http2Config {
    fn default() -> Self {
        Self {
            streams_max: 256,
            pending_reset_streams_max: 20,
            local_error_reset_streams_max: 256,
            header_list_bytes_max: 16 * 1024,
            stream_window_bytes: 1024 * 1024,
            connection_window_bytes: 4 * 1024 * 1024,
        }
    }
}
