//! Settings of a gRPC server, their defaults and their bounds.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Problems, ServerTlsConfig, duration, push_zeros};
use crate::workers::{self, WORKERS_MAX};

/// Largest message a server can be set to receive, in bytes: what the generated servers decode at most.
pub const MESSAGE_BYTES_CEILING: usize = 4 * 1024 * 1024;

/// Smallest sensible message limit, in bytes.
pub const MESSAGE_BYTES_FLOOR: usize = 1024;

/// Streams of a gateway's connection: as many as the calls that a gateway takes by default, or long streams of one caller could block the
/// calls of others.
const FORWARDED_STREAMS_MAX: u32 = 16_384;

/// Resets and control frames on a gateway's connection: no limit, which closes the connection with the calls of all callers. The front door
/// limits each caller.
const FORWARDED_RESETS_MAX: u32 = u32::MAX;

/// Flow-control windows of a stream of a gateway's connection and of the connection, in bytes. The connection's is the largest of HTTP/2, so
/// that unread request bodies of one caller never block those of others.
const FORWARDED_STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const FORWARDED_CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// Frame sizes that HTTP/2 allows a server to accept, in bytes (RFC 9113, 4.2).
const FRAME_BYTES: RangeInclusive<u32> = 16_384..=16_777_215;

/// Settings of one gRPC server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address to listen on; port 0 takes a free one. 127.0.0.1:50051 by default.
    pub listen: SocketAddr,
    /// Largest message received, in bytes, after decompression. [`MESSAGE_BYTES_CEILING`] by default, and at most.
    pub message_bytes_max: usize,
    /// Worker threads, each of which serves connections of its own. With 0 all connections share the runtime's threads, so that the calls of
    /// one can use several cores. By default one for each core in a gateway, and in services on up to two cores; else 0.
    pub workers: usize,
    /// Calls that work at a time, in the whole process; 512 by default.
    pub concurrency_max: usize,
    /// Calls that may wait for that; the next one is shed with RESOURCE_EXHAUSTED. 2,048 by default.
    pub queue_max: usize,
    /// Connections open at a time; a further one evicts the oldest without an admitted call, or waits in the listener's backlog. 4,096 by
    /// default.
    pub connections_max: usize,
    /// Connections of an address (of IPv6, a /64 network) open at a time; a further one evicts the oldest of these without an admitted call,
    /// or is closed. Behind a proxy all have its address. 1,024 by default.
    pub connections_per_address_max: usize,
    /// Connections in their handshake (TLS and the HTTP/2 preface); a further one evicts the oldest. 1,024 by default.
    pub openings_max: usize,
    /// Time for the handshake of a connection; 10 s by default.
    #[serde(with = "duration")]
    pub opening_timeout: Duration,
    /// Time until the response headers of calls without a `grpc-timeout`; 30 s by default.
    #[serde(with = "duration")]
    pub deadline_default: Duration,
    /// Longest time until the response headers, whatever `grpc-timeout` says; 2 minutes by default.
    #[serde(with = "duration")]
    pub deadline_max: Duration,
    /// Time for the first bytes of a request's body, from when a handler waits for them. 10 s by default at a front door; in a service behind a
    /// gateway, which limits callers itself, as long as a call may take.
    #[serde(with = "duration")]
    pub body_timeout: Duration,
    /// Silence on a connection after which it is pinged; 60 s by default.
    #[serde(with = "duration")]
    pub keepalive_interval: Duration,
    /// Time for the answer to a ping before the connection is closed; 20 s by default.
    #[serde(with = "duration")]
    pub keepalive_timeout: Duration,
    /// Time for the whole drain: calls in flight, then indexes and storage; 25 s by default.
    #[serde(with = "duration")]
    pub drain_deadline: Duration,
    /// Allows plaintext on a listener that other machines can reach; off by default.
    pub allow_plaintext: bool,
    /// Certificates of the listener; off by default.
    pub tls: ServerTlsConfig,
    /// Rate limits.
    pub rate: RateConfig,
    /// Age, idle and stall limits of each connection.
    pub connection: ConnectionConfig,
    /// Limits of each HTTP/2 connection.
    pub http2: Http2Config,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 50051),
            message_bytes_max: MESSAGE_BYTES_CEILING,
            workers: workers::for_calls_that_work(),
            concurrency_max: 512,
            queue_max: 2048,
            connections_max: 4096,
            connections_per_address_max: 1024,
            openings_max: 1024,
            opening_timeout: Duration::from_secs(10),
            deadline_default: Duration::from_secs(30),
            deadline_max: Duration::from_secs(120),
            body_timeout: Duration::from_secs(10),
            keepalive_interval: Duration::from_secs(60),
            keepalive_timeout: Duration::from_secs(20),
            drain_deadline: Duration::from_secs(25),
            allow_plaintext: false,
            tls: ServerTlsConfig::default(),
            rate: RateConfig::default(),
            connection: ConnectionConfig::default(),
            http2: Http2Config::default(),
        }
    }
}

impl ServerConfig {
    /// The defaults of a proxy: calls wait for others, and work little.
    pub fn forwarding() -> Self {
        Self {
            workers: workers::for_calls_that_wait(),
            ..Self::default()
        }
    }

    /// The defaults of a server behind a gateway, which limits callers itself.
    pub fn behind_a_gateway() -> Self {
        let defaults = Self::default();
        Self {
            body_timeout: defaults.deadline_max,
            http2: Http2Config {
                streams_max: FORWARDED_STREAMS_MAX,
                stream_window_bytes: FORWARDED_STREAM_WINDOW_BYTES,
                connection_window_bytes: FORWARDED_CONNECTION_WINDOW_BYTES,
                overhead_frames_max: FORWARDED_RESETS_MAX,
                pending_reset_streams_max: FORWARDED_RESETS_MAX as usize,
                local_error_reset_streams_max: FORWARDED_RESETS_MAX as usize,
                // The headers that the gateway accepted, and those that it adds.
                header_list_bytes_max: 2 * defaults.http2.header_list_bytes_max,
                ..defaults.http2
            },
            ..defaults
        }
    }

    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub fn check(&self, path: &str, problems: &mut Problems) {
        if !(MESSAGE_BYTES_FLOOR..=MESSAGE_BYTES_CEILING).contains(&self.message_bytes_max) {
            let range = format!("must be {MESSAGE_BYTES_FLOOR} to {MESSAGE_BYTES_CEILING} bytes");
            problems.push_in(path, "message_bytes_max", range);
        }
        push_zeros!(problems, path, self:
            concurrency_max connections_max connections_per_address_max openings_max opening_timeout
            deadline_default deadline_max body_timeout keepalive_interval keepalive_timeout drain_deadline
            http2.streams_max http2.header_list_bytes_max http2.overhead_frames_max http2.send_buffer_bytes);
        if self.workers > WORKERS_MAX {
            problems.push_in(path, "workers", format!("must be at most {WORKERS_MAX}"));
        }
        if self.deadline_default > self.deadline_max {
            problems.push_in(path, "deadline_default", "must not exceed deadline_max");
        }
        if !FRAME_BYTES.contains(&self.http2.frame_bytes_max) {
            let range = format!("must be {} to {} bytes", FRAME_BYTES.start(), FRAME_BYTES.end());
            problems.push_in(path, "http2.frame_bytes_max", range);
        }
        self.rate.check(&format!("{path}.rate"), problems);
        push_zeros!(problems, path, self:
            connection.age_max connection.age_grace connection.idle_max connection.first_call_timeout
            connection.write_stall_max connection.answer_stall_max);
        self.tls.check(&format!("{path}.tls"), problems);
        // Plaintext beyond this machine has to be asked for by name: an address alone mustn't expose a server.
        let is_exposed = !self.listen.ip().to_canonical().is_loopback();
        if is_exposed && !self.tls.is_on() && !self.allow_plaintext {
            let message = "other machines can reach it, and there is no TLS: name a certificate and its key (--tls-cert, --tls-key), \
                           listen on 127.0.0.1, or say --allow-plaintext where the network itself is trusted";
            problems.push_in(path, "listen", message);
        }
    }
}

/// Limits of each HTTP/2 connection, which bound what one peer makes the server hold in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http2Config {
    /// Streams open at a time: 256 at a front door; behind a gateway, whose connections carry the calls of all callers, 16,384.
    pub streams_max: u32,
    /// Streams reset by the peer before they were accepted (rapid reset, CVE-2023-44487). Like the next two, without limit behind a gateway,
    /// which limits each caller.
    pub pending_reset_streams_max: usize,
    /// Streams reset by us because of the peer's errors before the connection is closed.
    pub local_error_reset_streams_max: usize,
    /// Burst of control frames (PING, SETTINGS, RST_STREAM, WINDOW_UPDATE, PRIORITY); three for each frame of a response and 100 a second
    /// refill it. A peer that exceeds it is disconnected.
    pub overhead_frames_max: u32,
    /// Largest frame from the peer, in bytes.
    pub frame_bytes_max: u32,
    /// Bytes of a response that are buffered for a slow reader; then the service waits.
    pub send_buffer_bytes: usize,
    /// Size of the HPACK table, in bytes, in either direction.
    pub header_table_bytes: u32,
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
            overhead_frames_max: 2_000,
            frame_bytes_max: 16 * 1024,
            send_buffer_bytes: 256 * 1024,
            header_table_bytes: 4 * 1024,
            header_list_bytes_max: 16 * 1024,
            stream_window_bytes: 1024 * 1024,
            connection_window_bytes: 4 * 1024 * 1024,
        }
    }
}

/// Connection age, idle and stall limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionConfig {
    /// Age of a GOAWAY, with a jitter of ± 10 %: by reconnecting, clients find new servers and certificates. An hour by default.
    #[serde(with = "duration")]
    pub age_max: Duration,
    /// Time after that for calls and streams, before the connection is closed; 10 minutes by default.
    #[serde(with = "duration")]
    pub age_grace: Duration,
    /// Time without any part of an admitted call before a GOAWAY; 15 minutes by default.
    #[serde(with = "duration")]
    pub idle_max: Duration,
    /// The same before the first admitted call, and after health calls alone; a minute by default.
    #[serde(with = "duration")]
    pub first_call_timeout: Duration,
    /// Time without progress of a write before the connection is closed; 30 s by default.
    #[serde(with = "duration")]
    pub write_stall_max: Duration,
    /// Time for which the flow-control window of a stream may stay closed on a waiting response before the stream is reset; 30 s by default.
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

/// Token buckets; a rate of 0 is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateConfig {
    /// Calls a second of all callers together.
    pub calls_per_second: u32,
    /// Burst; 0 is the calls of a second.
    pub burst: u32,
    /// Calls a second of each caller, by its authenticated name, else by its address (of IPv6, a /64 network).
    pub caller_calls_per_second: u32,
    /// Burst of a caller; 0 is its calls of a second.
    pub caller_burst: u32,
}

impl RateConfig {
    fn check(&self, path: &str, problems: &mut Problems) {
        let pairs = [
            ("burst", self.burst, self.calls_per_second),
            ("caller_burst", self.caller_burst, self.caller_calls_per_second),
        ];
        for (name, _, _) in pairs.iter().filter(|(_, burst, rate)| *burst > 0 && *rate == 0) {
            let rate = name.replace("burst", "calls_per_second");
            problems.push_in(path, name, format!("does nothing without {rate}"));
        }
    }
}
