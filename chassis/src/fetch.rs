//! A small document behind an `https` address, fetched within bounds: what a process has to know of others, like the
//! public keys of an issuer of tokens.
//!
//! HTTP/1.1 on a connection of its own for each fetch. No redirect is followed, no proxy asked, nothing decompressed.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use crate::config::ClientTlsConfig;
use crate::tls::{ALPN_HTTP1, Connector, TlsError};

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address can't be used.
    #[error("`{0}` is no https address")]
    Address(String),
    /// The authorities can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is no connection to the server.
    #[error("{0} can't be reached, or isn't who should be there")]
    Connect(String, #[source] io::Error),
    /// What it said is no answer.
    #[error("{0} doesn't answer as HTTP/1.1 does")]
    Http(String, #[source] hyper::Error),
    /// It answered, but not with the document.
    #[error("{0} answers {1}, not 200; redirects aren't followed")]
    Code(String, StatusCode),
    /// The document broke off, or has more bytes than are read.
    #[error("the document of {0} is larger than {1} bytes, or broke off")]
    Body(String, usize),
    /// It took too long.
    #[error("{0} took longer than {1:?}")]
    Late(String, Duration),
}

/// Where a document is, and how much of it and for how long is read.
#[derive(Clone, Debug)]
pub struct RemoteDocument {
    uri: Uri,
    host: String,
    connector: Connector,
    bytes_max: usize,
    time_max: Duration,
}

impl RemoteDocument {
    /// The document at `address`, on a server that the authorities in the PEM file `ca` vouch for.
    ///
    /// # Errors
    /// [`FetchError::Address`], [`FetchError::Tls`].
    pub fn new(address: &str, ca: &Path, bytes_max: usize, time_max: Duration) -> Result<Self, FetchError> {
        let uri: Option<Uri> = address.parse().ok();
        let uri = uri.filter(|uri| uri.scheme_str() == Some("https") && uri.host().is_some());
        let uri = uri.ok_or_else(|| FetchError::Address(address.to_owned()))?;
        let tls = ClientTlsConfig {
            ca: ca.to_owned(),
            ..ClientTlsConfig::default()
        };
        Ok(Self {
            connector: Connector::new(ALPN_HTTP1, &uri, &tls, time_max)?,
            host: uri.host().unwrap_or_default().to_owned(),
            uri,
            bytes_max,
            time_max,
        })
    }

    /// Fetches it.
    ///
    /// # Errors
    /// All others of [`FetchError`].
    pub async fn fetch(&self) -> Result<Bytes, FetchError> {
        let fetched = tokio::time::timeout(self.time_max, self.get()).await;
        fetched.unwrap_or_else(|_| Err(FetchError::Late(self.host.clone(), self.time_max)))
    }

    async fn get(&self) -> Result<Bytes, FetchError> {
        let host = || self.host.clone();
        let stream = self.connector.connect().await;
        let stream = stream.map_err(|error| FetchError::Connect(host(), error))?;
        let no_http = |error| FetchError::Http(host(), error);
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(no_http)?;
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::get(path)
            .header(HOST, authority)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("souk/", env!("CARGO_PKG_VERSION")))
            .body(Empty::<Bytes>::new());
        let request = request.map_err(|_| FetchError::Address(self.uri.to_string()))?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(no_http)?;
            if response.status() != StatusCode::OK {
                return Err(FetchError::Code(host(), response.status()));
            }
            let body = Limited::new(response.into_body(), self.bytes_max).collect().await;
            let body = body.map_err(|_| FetchError::Body(host(), self.bytes_max))?;
            Ok(body.to_bytes())
        };
        tokio::pin!(exchange);
        tokio::select! {
            done = &mut exchange => done,
            // What the connection brought before it ended is still to be read.
            _ = connection => exchange.await,
        }
    }
}
