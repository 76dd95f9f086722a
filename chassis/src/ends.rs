//! The two ends of the connection that a call came by, as an extension of its request.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::server::Pulse;

/// Written out once for all calls of a connection. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Ends(Arc<Both>);

#[derive(Debug)]
struct Both {
    local: Option<End>,
    remote: End,
    pulse: Arc<Pulse>,
}

/// One end.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) socket: SocketAddr,
    /// Its IP address as text.
    pub(crate) address: Arc<str>,
}

impl Ends {
    /// A connection from `remote`, to `local` if that is known.
    pub(crate) fn new(local: Option<SocketAddr>, remote: SocketAddr) -> Self {
        let end = |socket: SocketAddr| End {
            socket,
            address: socket.ip().to_string().into(),
        };
        Self(Arc::new(Both {
            local: local.map(end),
            remote: end(remote),
            pulse: Arc::new(Pulse::new()),
        }))
    }

    /// Ours.
    pub(crate) fn local(&self) -> Option<&End> {
        self.0.local.as_ref()
    }

    /// What happened between them.
    pub(crate) fn pulse(&self) -> &Arc<Pulse> {
        &self.0.pulse
    }

    /// The client's, or of what stands in between.
    pub(crate) fn remote(&self) -> &End {
        &self.0.remote
    }
}
