//! Who calls are counted for, and the shares that each of them has.

use std::net::IpAddr;
use std::sync::Arc;

use http::Extensions;

pub(crate) mod pool;

use crate::connection_info::ConnectionInfo;
use crate::tls::TlsPeer;

/// Who a call is counted for. Whoever finds out who calls puts it into the extensions of the request; without it the name
/// in the client's certificate counts, and without that its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller(pub Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallerKey {
    Name(Arc<str>),
    /// By an address, or a network that one caller usually has to itself.
    Address(IpAddr),
    /// Those who ask for health at an address. Apart from its other calls: those must not make a server look dead.
    Probes(IpAddr),
    /// Those whom a front door answers by itself at an address, without a look at who they are. Apart from its calls, too.
    Visitors(IpAddr),
}

impl CallerKey {
    /// Who makes the call that these are the extensions of: its name, else where it comes from. Nobody, when it comes from this process.
    pub(crate) fn of(extensions: &Extensions) -> Option<Self> {
        Self::proven(extensions).or_else(|| Self::origin(extensions))
    }

    /// By the name that was found out.
    pub(crate) fn proven(extensions: &Extensions) -> Option<Self> {
        let caller = extensions.get::<Caller>()?;
        Some(Self::Name(Arc::clone(&caller.0)))
    }

    /// Where the call comes from, by a certificate or an address.
    pub(crate) fn origin(extensions: &Extensions) -> Option<Self> {
        if let Some(name) = extensions.get::<TlsPeer>().and_then(|peer| peer.name.clone()) {
            return Some(Self::Name(name));
        }
        Some(Self::Address(network(address(extensions)?)))
    }

    pub(crate) fn is_of_this_machine(&self) -> bool {
        matches!(self, Self::Address(address) if address.is_loopback())
    }

    /// Those who ask for health where the call comes from.
    pub(crate) fn probes(extensions: &Extensions) -> Option<Self> {
        Some(Self::Probes(network(address(extensions)?)))
    }

    /// Those whom a front door answers by itself where the call comes from.
    pub(crate) fn visitors(extensions: &Extensions) -> Option<Self> {
        Some(Self::Visitors(network(address(extensions)?)))
    }
}

fn address(extensions: &Extensions) -> Option<IpAddr> {
    Some(extensions.get::<Arc<ConnectionInfo>>()?.remote.socket.ip())
}

/// What one peer usually has to itself: of IPv6, whoever has the 64 bits of its network has all the addresses in it.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        // Whoever is on this machine; the others of its network are nobody.
        IpAddr::V6(address) if address.is_loopback() => IpAddr::V6(address),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
    }
}
