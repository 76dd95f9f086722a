//! How one process is connected to, with TLS or without.

use std::io;
use std::time::Duration;

use http::Uri;

use super::connection::Connection;
use super::error::ClientError;
use crate::config::ClientConfig;
use crate::dial::Dial;
use crate::tls::{ALPN_H2, Connector};

const HTTP_PORT: u16 = 80;

#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("no connection")]
    Dial(#[source] io::Error),
    #[error("no connection in {0:?}")]
    Late(Duration),
    #[error("no HTTP/2")]
    Http2(#[source] hyper::Error),
    #[error("nobody makes the connection any more")]
    Abandoned,
}

#[derive(Clone, Debug)]
pub(super) enum Way {
    Plain(Dial),
    Secure(Connector),
}

impl Way {
    /// # Errors
    /// When `uri` isn't `http://host:port` or `https://host:port`, or the files of `config.tls` can't be used.
    pub(super) fn new(uri: &Uri, config: &ClientConfig) -> Result<Self, ClientError> {
        let unacknowledged_max = config.unacknowledged_max;
        match uri.scheme_str() {
            _ if uri.host().is_none_or(str::is_empty) => Err(ClientError::Address(uri.to_string())),
            Some("http") => Ok(Self::Plain(Dial::new(uri, HTTP_PORT, unacknowledged_max))),
            Some("https") if !config.tls.has_authority() => Err(ClientError::Authority(uri.to_string())),
            Some("https") => {
                tracing::debug!(%uri, "calls go out with TLS");
                let connector = Connector::new(ALPN_H2, uri, &config.tls, unacknowledged_max);
                connector
                    .map(Self::Secure)
                    .map_err(|error| ClientError::Tls(Box::new(error)))
            }
            _ => Err(ClientError::Address(uri.to_string())),
        }
    }

    /// A new connection that speaks HTTP/2. The caller has the clock.
    pub(super) async fn open(&self, config: &ClientConfig) -> Result<Connection, ConnectError> {
        let opened = match self {
            Self::Plain(dial) => {
                let stream = dial.connect().await.map_err(ConnectError::Dial)?;
                Connection::open(stream, config).await
            }
            Self::Secure(connector) => {
                let stream = connector.connect().await.map_err(ConnectError::Dial)?;
                Connection::open(stream, config).await
            }
        };
        opened.map_err(ConnectError::Http2)
    }
}
