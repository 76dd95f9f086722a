//! A lazily connected, reconnecting HTTP/2 connection to one process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use http::Uri;
use parking_lot::Mutex;

use super::connection::Connection;
use super::error::ClientError;
use crate::config::ClientConfig;
use crate::dial::Dial;
use crate::tls::{ALPN_H2, Connector};
use crate::workers::{self, WORKERS_MAX};

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
enum Transport {
    Plain(Dial),
    Secure(Connector),
}

impl Transport {
    /// # Errors
    /// When `uri` isn't `http://host:port` or `https://host:port`, or the files of `config.tls` can't be used.
    fn new(uri: &Uri, config: &ClientConfig) -> Result<Self, ClientError> {
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
    async fn open(&self, config: &ClientConfig) -> Result<Connection, ConnectError> {
        let failed = ConnectError::Dial;
        let opened = match self {
            Self::Plain(dial) => Connection::open(dial.connect().await.map_err(failed)?, config).await,
            Self::Secure(tls) => Connection::open(tls.connect().await.map_err(failed)?, config).await,
        };
        opened.map_err(ConnectError::Http2)
    }
}

/// How an attempt ended, for all who wait for it.
type Attempted = Result<Arc<Connection>, Arc<ConnectError>>;

/// The connections to one process: one of each [worker](workers), so that its calls go and come on its own thread, and one that all other
/// threads share.
#[derive(Debug)]
pub(super) struct LazyConnections {
    shared: Arc<LazyConnection>,
    own: Box<[Arc<LazyConnection>]>,
}

#[derive(Debug)]
pub(super) struct LazyConnection {
    transport: Transport,
    config: ClientConfig,
    /// The last, under way or done; `None` when a call should make another.
    attempt: Mutex<Option<Shared<BoxFuture<'static, Attempted>>>>,
}

impl LazyConnections {
    /// # Errors
    /// Those of [`Transport::new`].
    pub(super) fn new(uri: &Uri, config: &ClientConfig) -> Result<Self, ClientError> {
        let transport = Transport::new(uri, config)?;
        let unconnected = || {
            Arc::new(LazyConnection {
                transport: transport.clone(),
                config: config.clone(),
                attempt: Mutex::default(),
            })
        };
        Ok(Self {
            shared: unconnected(),
            own: (0..WORKERS_MAX).map(|_| unconnected()).collect(),
        })
    }

    pub(super) fn own(&self) -> &Arc<LazyConnection> {
        let own = workers::current().and_then(|worker| self.own.get(worker));
        own.unwrap_or(&self.shared)
    }
}

impl LazyConnection {
    /// The connection, made if there is none. Callers that ask while it is made share one attempt, which goes on without them.
    ///
    /// # Errors
    /// When it can't be made, in `connect_timeout` at the latest. Whoever asks next tries again.
    pub(super) async fn connection(self: &Arc<Self>) -> Attempted {
        let attempt = self.attempt.lock().get_or_insert_with(|| self.begin()).clone();
        let attempted = attempt.clone().await;
        if attempted.is_err() {
            self.forget(|current| current.ptr_eq(&attempt));
        }
        attempted
    }

    pub(super) fn lost(&self, connection: &Arc<Connection>) {
        let is_its = |attempted: &Attempted| matches!(attempted, Ok(up) if Arc::ptr_eq(up, connection));
        self.forget(|current| current.peek().is_some_and(is_its));
    }

    fn forget(&self, is_over: impl FnOnce(&Shared<BoxFuture<'static, Attempted>>) -> bool) {
        let mut current = self.attempt.lock();
        if current.as_ref().is_some_and(is_over) {
            *current = None;
        }
    }

    fn begin(self: &Arc<Self>) -> Shared<BoxFuture<'static, Attempted>> {
        let lazy = Arc::clone(self);
        let attempt = tokio::spawn(async move {
            let time = lazy.config.connect_timeout;
            let opened = tokio::time::timeout(time, lazy.transport.open(&lazy.config)).await;
            let opened = opened.unwrap_or(Err(ConnectError::Late(time)));
            if opened.is_err() {
                // Those who wait may have left: nobody who comes later shall have that for an answer.
                lazy.forget(|_| true);
            }
            opened
        });
        let attempt = attempt.map(|done| done.unwrap_or(Err(ConnectError::Abandoned)));
        attempt
            .map(|opened| opened.map(Arc::new).map_err(Arc::new))
            .boxed()
            .shared()
    }
}
