//! Keys of callers, by which limits count calls; `pool` shares what there is among them.

use std::net::IpAddr;
use std::sync::Arc;

use http::Extensions;

pub(crate) mod pool;

use crate::connection_info::ConnectionInfo;
use crate::tls::TlsPeer;

/// The authenticated name of a caller, as an extension of the request. Limits count calls by it; without it by the name in the client's
/// certificate, and without that by the client's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerName(pub Arc<str>);

/// What limits count a call by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallerKey {
    Name(Arc<str>),
    /// An address, or a [`network`].
    Address(IpAddr),
    /// Health calls from an address: counted apart, so that its other calls can't make the server look dead.
    Probes(IpAddr),
    /// Requests from an address that a front door answers by itself, before authentication: counted apart, too.
    Visitors(IpAddr),
}

impl CallerKey {
    /// The key of the call with these extensions: [`Self::proven`], else [`Self::origin`]. `None` for a call from this process.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Option<Self> {
        Self::proven(extensions).or_else(|| Self::origin(extensions))
    }

    /// By the authenticated name.
    pub(crate) fn proven(extensions: &Extensions) -> Option<Self> {
        let caller = extensions.get::<CallerName>()?;
        Some(Self::Name(Arc::clone(&caller.0)))
    }

    /// By the name in the client's certificate, else by its address.
    pub(crate) fn origin(extensions: &Extensions) -> Option<Self> {
        if let Some(name) = extensions.get::<TlsPeer>().and_then(|peer| peer.name.clone()) {
            return Some(Self::Name(name));
        }
        Some(Self::Address(network(address(extensions)?)))
    }

    /// The health calls from the call's address.
    pub(crate) fn probes(extensions: &Extensions) -> Option<Self> {
        Some(Self::Probes(network(address(extensions)?)))
    }

    /// The visitors from the call's address.
    pub(crate) fn visitors(extensions: &Extensions) -> Option<Self> {
        Some(Self::Visitors(network(address(extensions)?)))
    }
}

fn address(extensions: &Extensions) -> Option<IpAddr> {
    Some(extensions.get::<Arc<ConnectionInfo>>()?.remote.socket.ip())
}

/// What one peer usually has to itself: an IPv4 address, or a /64 network of IPv6, of which it can use every address.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        // The loopback address has no network around it.
        IpAddr::V6(address) if address.is_loopback() => IpAddr::V6(address),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
    }
}
