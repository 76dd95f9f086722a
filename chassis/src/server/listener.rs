//! Where a server listens, and whether with TLS.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::config::ServerConfig;
use crate::tls::{Acceptor, TlsError};

/// A bound port, and the TLS of its connections.
#[derive(Debug)]
pub struct Listener {
    pub(super) tcp: TcpListener,
    /// `None` without TLS.
    pub tls: Option<Acceptor>,
}

impl Listener {
    /// Binds `server.listen` and reads the certificates of `server.tls`; port 0 binds a free port.
    ///
    /// # Errors
    /// Names the address or the file, and what to do about it.
    pub async fn bind(config: &ServerConfig) -> Result<Self, BindError> {
        // The certificates first: who looks at the port finds it closed, not open and dead.
        let tls = Acceptor::new(&config.tls)?;
        Ok(Self {
            tcp: bind(config.listen).await?,
            tls,
        })
    }

    /// Its address, with the port that was bound.
    ///
    /// # Errors
    /// When the operating system can't tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Says in the log who can read what is sent here.
    pub(crate) fn tell(&self) {
        match &self.tls {
            Some(tls) if tls.asks_clients => tracing::info!("TLS is on; clients need a certificate"),
            Some(_) => tracing::info!("TLS is on"),
            None => tracing::info!(
                "TLS is off: what is sent can be read on the way; --tls-cert and --tls-key turn it on"
            ),
        }
    }
}

/// Why a [`Listener`] can't be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address can't be bound; with what to do.
    #[error("address {0} {1}")]
    Address(SocketAddr, &'static str, #[source] io::Error),
    /// The files of `server.tls` can't be used.
    #[error(
        "the files of server.tls (--tls-cert, --tls-key, --tls-client-ca, --tls-client-crl) can't be used"
    )]
    Tls(#[from] TlsError),
}

/// Binds `address`; port 0 binds a free port.
///
/// # Errors
/// Names the address and what to do about it.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|source| {
        use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
        let advice = match source.kind() {
            AddrInUse => {
                "is already in use: stop the process that has it, or set server.listen (--listen) to a free port (0 picks one)"
            }
            PermissionDenied => {
                "can't be listened on: ports below 1024 need privileges; set server.listen (--listen) higher"
            }
            AddrNotAvailable => {
                "can't be listened on: no interface has it; set server.listen (--listen) to one of this machine, or to 0.0.0.0"
            }
            _ => "can't be listened on, see the cause; server.listen (--listen) sets it",
        };
        BindError::Address(address, advice, source)
    })
}
