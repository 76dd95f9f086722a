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

/// Streams of a connection that a gateway makes: were there fewer than the calls that it takes, one caller's streams could take all of them, and
/// the calls of others would wait for them to end.
const FORWARDED_STREAMS_MAX: u32 = 16_384;

/// Resets, and whatever else asks for nothing, on such a connection: its callers cancel their calls, send what isn't wanted any more, and lose
/// all their calls at once where those of one are too many. The front door counts them for each.
const FORWARDED_WITHOUT_LIMIT: u32 = u32::MAX;

/// Flow-control window of such a stream, in bytes, and of such a connection: what isn't read of the requests of one caller would hold back those
/// of all others, were there fewer than HTTP/2 has.
const FORWARDED_STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const FORWARDED_CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// Sizes of a frame that HTTP/2 allows a server to accept, in bytes (RFC 9113, 4.2).
const FRAME_BYTES: RangeInclusive<u32> = 16_384..=16_777_215;

/// Settings of one gRPC server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Largest message received, in bytes, after decompression. At most [`MESSAGE_BYTES_CEILING`].
    pub message_bytes_max: usize,
    /// Threads that serve connections, each those that it was given; 0 leaves all to threads that share them, so that one connection can keep
    /// several cores busy. By default one for each core in a gateway, and elsewhere on at most two cores.
    pub workers: usize,
    /// Calls being worked on at a time, in the whole process.
    pub concurrency_max: usize,
    /// Calls that may wait for a free place; the next one is shed with RESOURCE_EXHAUSTED.
    pub queue_max: usize,
    /// Connections open at a time; a further one takes the place of the oldest that no call of was let in, or waits in the listener's
    /// backlog.
    pub connections_max: usize,
    /// Connections of an address (of IPv6, of 64 bits of one) open at a time; a further one takes the place of the oldest of them that no
    /// call of was let in, or is closed. Behind a proxy all come from its address.
    pub connections_per_address_max: usize,
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
    /// Time for the first bytes of a request's body, from when somebody waits for them: 10 s at a front door; in a service behind a gateway,
    /// which judges its callers, as long as a call may take.
    #[serde(with = "duration")]
    pub body_timeout: Duration,
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
    /// Calls in a time.
    pub rate: RateConfig,
    /// Times of each connection.
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
    /// The defaults of a server that hands calls on.
    pub fn forwarding() -> Self {
        Self {
            workers: workers::for_calls_that_wait(),
            ..Self::default()
        }
    }

    /// The defaults of a server whose callers come through a gateway, which judges them.
    pub fn behind_a_gateway() -> Self {
        let defaults = Self::default();
        Self {
            body_timeout: defaults.deadline_max,
            http2: Http2Config {
                streams_max: FORWARDED_STREAMS_MAX,
                stream_window_bytes: FORWARDED_STREAM_WINDOW_BYTES,
                connection_window_bytes: FORWARDED_CONNECTION_WINDOW_BYTES,
                overhead_frames_max: FORWARDED_WITHOUT_LIMIT,
                pending_reset_streams_max: FORWARDED_WITHOUT_LIMIT as usize,
                local_error_reset_streams_max: FORWARDED_WITHOUT_LIMIT as usize,
                // What a gateway took, and what it says of the caller and of its time.
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
        self.connection.check(&format!("{path}.connection"), problems);
        self.tls.check(&format!("{path}.tls"), problems);
        // Within a machine, whoever can connect can usually read the memory too. Beyond it, what isn't protected must be asked for by name, so
        // that nobody opens a server to a network by an address alone.
        let is_exposed = !self.listen.ip().to_canonical().is_loopback();
        if is_exposed && !self.tls.is_on() && !self.allow_plaintext {
            let message = "other machines can reach it, and there is no TLS: name a certificate and its key (--tls-cert, --tls-key), \
                           listen on 127.0.0.1, or say --allow-plaintext where the network itself is trusted";
            problems.push_in(path, "listen", message);
        }
    }
}

/// Limits of each HTTP/2 connection; they bound what one peer can make the server hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http2Config {
    /// Streams open at a time: 256 at a front door; in a service behind a gateway, whose connections carry the calls of all its callers, as
    /// many as a gateway hands on by default.
    pub streams_max: u32,
    /// Streams reset by the peer before they were accepted (rapid reset, CVE-2023-44487); in a service behind a gateway, which counts for each
    /// of its callers, without limit, as the next two are.
    pub pending_reset_streams_max: usize,
    /// Streams reset by us because of the peer's errors before the connection is closed.
    pub local_error_reset_streams_max: usize,
    /// Frames that ask for nothing (PING, SETTINGS, RST_STREAM, WINDOW_UPDATE, PRIORITY) beyond three for each frame of
    /// an answer and 100 a second; with more the connection ends.
    pub overhead_frames_max: u32,
    /// Size of a frame from the peer, in bytes.
    pub frame_bytes_max: u32,
    /// Answer of a stream that is kept for a peer that reads slowly, in bytes; then the service waits.
    pub send_buffer_bytes: usize,
    /// Size of the table by which headers are compressed, in bytes, in either direction.
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
    fn check(&self, path: &str, problems: &mut Problems) {
        push_zeros!(problems, path, self:
            age_max age_grace idle_max first_call_timeout write_stall_max answer_stall_max);
    }
}

/// Token buckets; a rate of 0 is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateConfig {
    /// Calls a second, of all callers together.
    pub calls_per_second: u32,
    /// Calls that may come at once after a pause; 0 is those of a second.
    pub burst: u32,
    /// Calls a second of each caller: by its name where it proved one, else by its address (of IPv6 the first 64 bits).
    pub caller_calls_per_second: u32,
    /// Calls of a caller that may come at once after a pause; 0 is those of a second.
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
