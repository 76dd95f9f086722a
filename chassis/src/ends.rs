//! The two ends of the connection that a call came by, as an extension of its request.

use std::net::SocketAddr;
use std::sync::Arc;

mod pulse;

pub(crate) use pulse::{Pulse, Standing};

/// Written out once for all calls of a connection, which share it.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Ours, if it is known.
    pub(crate) local: Option<End>,
    /// The client's, or of what stands in between.
    pub(crate) remote: End,
    pub(crate) pulse: Arc<Pulse>,
}

#[derive(Debug)]
pub(crate) struct End {
    pub(crate) socket: SocketAddr,
    pub(crate) address: Arc<str>,
}

impl From<SocketAddr> for End {
    fn from(socket: SocketAddr) -> Self {
        let address = socket.ip().to_string().into();
        Self { socket, address }
    }
}

impl Ends {
    /// A connection from `remote`, to `local` if that is known.
    pub(crate) fn new(local: Option<SocketAddr>, remote: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            local: local.map(End::from),
            remote: remote.into(),
            pulse: Arc::new(Pulse::new()),
        })
    }
}
