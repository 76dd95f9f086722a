//! A connection to another process, before anything is said on it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tokio::net::TcpStream;

use super::connection::{Connection, KeepAlive};
use super::line::ConnectError;
use super::{ClientConfig, ClientError};
use crate::tls::Connector;

/// Port of an `http` address that names none.
const HTTP_PORT: u16 = 80;

/// How connections to one process are made.
#[derive(Clone, Debug)]
pub(super) enum Dial {
    /// By its host and port, without TLS.
    Plain {
        host: Arc<str>,
        port: u16,
        unacknowledged_max: Duration,
    },
    /// With TLS.
    Secure(Connector),
}

impl Dial {
    /// Connections to `uri`.
    ///
    /// # Errors
    /// When it isn't `http://host:port` or `https://host:port`, or the files of `config.tls` can't be used.
    pub(super) fn new(uri: &Uri, config: &ClientConfig) -> Result<Self, ClientError> {
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(ClientError::Address { uri: uri.to_string() }),
        };
        let host = host(uri);
        if host.is_empty() {
            return Err(ClientError::Address { uri: uri.to_string() });
        }
        let unacknowledged_max = config.unacknowledged_max;
        if !secure {
            return Ok(Self::Plain {
                host: host.into(),
                port: uri.port_u16().unwrap_or(HTTP_PORT),
                unacknowledged_max,
            });
        }
        if !config.tls.has_authority() {
            return Err(ClientError::Authority { uri: uri.to_string() });
        }
        tracing::debug!(%uri, "calls go out with TLS");
        let connector = Connector::new(uri, &config.tls, unacknowledged_max);
        connector
            .map(Self::Secure)
            .map_err(|error| ClientError::Tls(Box::new(error)))
    }

    /// A new connection that speaks HTTP/2. The caller has the clock.
    pub(super) async fn open(&self, keepalive: KeepAlive) -> Result<Connection, ConnectError> {
        let opened = match self {
            Self::Plain {
                host,
                port,
                unacknowledged_max,
            } => {
                let stream = dial(host, *port, *unacknowledged_max).await;
                Connection::open(stream.map_err(ConnectError::Dial)?, keepalive).await
            }
            Self::Secure(connector) => {
                let stream = connector.clone().connect().await;
                Connection::open(stream.map_err(ConnectError::Dial)?, keepalive).await
            }
        };
        opened.map_err(ConnectError::Http2)
    }
}

/// The host of an address, an IPv6 one without its brackets.
pub(crate) fn host(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']')
}

/// A connection that sends at once, and is given up when what it sent stays unacknowledged for so long.
///
/// # Errors
/// When nobody answers. The caller has the clock.
pub(crate) async fn dial(host: &str, port: u16, unacknowledged_max: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(unacknowledged_max))?;
    #[cfg(not(target_os = "linux"))]
    let _ = unacknowledged_max;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_has_no_brackets() {
        for (uri, expected) in [
            ("http://order.internal:1", "order.internal"),
            ("http://[::1]:2", "::1"),
        ] {
            assert_eq!(host(&Uri::from_static(uri)), expected);
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_connection_knows_when_to_give_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let time = Duration::from_millis(1_500);
        let stream = dial("127.0.0.1", address.port(), time)
            .await
            .expect("a connection");
        let set = socket2::SockRef::from(&stream)
            .tcp_user_timeout()
            .expect("an option");
        assert_eq!(set, Some(time));
        assert!(stream.nodelay().expect("an option"));
    }
}
