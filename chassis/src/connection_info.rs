//! The connection that a call came by, as an extension of its request: its addresses and its activity.

use std::net::SocketAddr;
use std::sync::Arc;

mod activity;

pub(crate) use activity::{ConnectionActivity, Standing};

/// Written out once for all calls of a connection, which share it.
#[derive(Debug)]
pub(crate) struct ConnectionInfo {
    /// Ours, if it is known.
    pub(crate) local: Option<PeerAddress>,
    /// The client's, or of what stands in between.
    pub(crate) remote: PeerAddress,
    pub(crate) activity: Arc<ConnectionActivity>,
}

#[derive(Debug)]
pub(crate) struct PeerAddress {
    pub(crate) socket: SocketAddr,
    pub(crate) address: Arc<str>,
}

impl From<SocketAddr> for PeerAddress {
    fn from(socket: SocketAddr) -> Self {
        let address = socket.ip().to_string().into();
        Self { socket, address }
    }
}

impl ConnectionInfo {
    /// A connection from `remote`, to `local` if that is known.
    pub(crate) fn new(local: Option<SocketAddr>, remote: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            local: local.map(PeerAddress::from),
            remote: remote.into(),
            activity: Arc::new(ConnectionActivity::new()),
        })
    }
}
