//! TLS by rustls, for what listens and for what connects: certificates from files, read anew when the files change.
//!
//! TLS 1.3 and 1.2 with rustls's own choice of suites; ALPN `h2`, and `http/1.1` where a server takes it. What is in force for a connection is
//! what the files held when it was made: a change is for connections to come, the maximum age of a connection bounds how
//! long the old one lasts.

mod acceptor;
mod connector;
mod files;

pub use acceptor::{Acceptor, TlsPeer};
pub(crate) use connector::Connector;
pub use files::TlsError;

/// The application protocol of all connections (RFC 9113, 3.2).
pub(crate) const ALPN_H2: &[u8] = b"h2";

/// What the log calls what is read from the files.
const CERTIFICATES: &str = "certificates";

/// HTTP/1.1 in the handshake.
pub(crate) const ALPN_HTTP1: &[u8] = b"http/1.1";

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
