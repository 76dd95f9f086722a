//! TLS of servers and clients by rustls, with certificates from files, which are reloaded when they change.
//!
//! TLS 1.3 and 1.2 with rustls's default suites; ALPN `h2`, and `http/1.1` where a server takes it. A change of the files applies to new
//! connections; the maximum age of connections bounds how long old ones last.

mod acceptor;
mod connector;
mod files;

pub use acceptor::{Acceptor, TlsPeer};
pub(crate) use connector::Connector;
pub use files::TlsError;

/// ALPN name of HTTP/2 over TLS (RFC 9113, 3.2).
pub(crate) const ALPN_H2: &[u8] = b"h2";

/// ALPN name of HTTP/1.1.
pub(crate) const ALPN_HTTP1: &[u8] = b"http/1.1";

/// What the log calls the reloaded files.
const CERTIFICATES: &str = "certificates";

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
