//! Backends: what the gateway routes to, and which services each serves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::Uri;
use souk_chassis::client::{Client, ClientError};
use souk_chassis::config::ClientConfig;
use souk_chassis::methods::Methods;
use souk_chassis::server::Stack;
use souk_proto::FILE_DESCRIPTOR_SET;

use crate::contract::ServedBy;

/// Most processes of one backend.
pub const PROCESSES_MAX: usize = 64;

/// Where the calls of a backend go.
#[derive(Clone, Debug)]
pub enum Target {
    /// To a stack in this process, with all its layers.
    Local(Stack),
    /// To other processes that serve the same, by HTTP/2; with TLS where the address is `https`.
    Remote(Vec<Uri>),
}

impl Target {
    /// The process at an address as in `http://127.0.0.1:50051` or, with TLS, `https://order.internal:50051`; several
    /// that serve the same, at most [`PROCESSES_MAX`], with commas between them.
    ///
    /// # Errors
    /// One of them isn't such a URI, or there are more than [`PROCESSES_MAX`].
    pub fn remote(uris: &str) -> Result<Self, BackendUriError> {
        let usable = |parsed: &Uri| {
            matches!(parsed.scheme_str(), Some("http" | "https"))
                && parsed.host().is_some_and(|host| !host.is_empty())
                && matches!(parsed.path(), "" | "/")
        };
        let parse = |uri: &str| uri.trim().parse().ok().filter(usable);
        let parsed: Option<Vec<Uri>> = uris.split(',').map(parse).collect();
        let parsed = parsed.filter(|parsed| parsed.len() <= PROCESSES_MAX);
        let unusable = || BackendUriError(uris.to_owned());
        parsed.map(Self::Remote).ok_or_else(unusable)
    }

    pub(crate) fn is_secure(&self) -> bool {
        match self {
            Self::Local(_) => false,
            Self::Remote(uris) => uris.iter().any(|uri| uri.scheme_str() == Some("https")),
        }
    }

    /// A client for each connection, with the index of its process: `config.connections` to each remote process, one to a local stack. `name`
    /// is for errors and, where there is no address, for spans.
    pub(crate) fn clients(
        &self,
        name: &str,
        config: &ClientConfig,
        methods: &Methods,
    ) -> Result<Vec<(usize, Client)>, ClientError> {
        match self {
            Self::Local(stack) => Ok(vec![(0, Client::local(stack.clone(), name, methods.clone()))]),
            Self::Remote(uris) => uris
                .iter()
                .enumerate()
                .flat_map(|process| std::iter::repeat_n(process, config.connections.max(1)))
                .map(|(process, uri)| Ok((process, Client::remote(name, uri, config, methods.clone())?)))
                .collect(),
        }
    }
}

/// A backend's address that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no address of a backend; it must be http://host:port or https://host:port, or at most {PROCESSES_MAX} of them with \
     commas between"
)]
pub struct BackendUriError(String);

/// Backends by their names; services of no backend are unknown to the gateway.
#[derive(Clone)]
pub struct Backends {
    targets: BTreeMap<String, Target>,
    /// Descriptors of all that they serve.
    pub(crate) contract: &'static [u8],
}

impl Default for Backends {
    fn default() -> Self {
        Self::of(FILE_DESCRIPTOR_SET)
    }
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets = self.targets.iter().map(|(name, target)| match target {
            Target::Local(_) => (name, "in this process".to_owned()),
            Target::Remote(uris) => (name, format!("{uris:?}")),
        });
        f.debug_map().entries(targets).finish()
    }
}

impl Backends {
    /// No backend yet of a contract, given by its descriptors; the default is Souk's.
    #[must_use]
    pub fn of(contract: &'static [u8]) -> Self {
        let targets = BTreeMap::new();
        Self { targets, contract }
    }

    /// Adds a backend for the services of its name, as in `order`; another one of that name is replaced.
    #[must_use]
    pub fn with(mut self, name: &str, target: Target) -> Self {
        self.targets.insert(name.to_owned(), target);
        self
    }

    /// Resolves which services of the contract each backend serves.
    pub(crate) fn resolve(self, contract: &BTreeMap<String, ServedBy>) -> Vec<Backend> {
        let backend = |(name, target): (String, Target)| {
            let serves = |served_by: &ServedBy| match served_by {
                ServedBy::One(only) => *only == name,
                ServedBy::All(_) => true,
                ServedBy::Gateway => false,
            };
            let services = contract.iter().filter(|(_, served_by)| serves(served_by));
            Backend {
                services: services.map(|(service, _)| service.clone()).collect(),
                name: name.into(),
                target,
            }
        };
        self.targets.into_iter().map(backend).collect()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Backend {
    /// For errors and telemetry.
    pub(crate) name: Arc<str>,
    /// The full names of what it serves, as in `souk.order.v1.OrderService`.
    pub(crate) services: Vec<String>,
    pub(crate) target: Target,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;

    #[test]
    fn an_address_is_a_scheme_a_host_and_a_port() {
        for good in [
            "http://127.0.0.1:50051",
            "http://order.internal:1/",
            "http://[::1]:2",
            "https://order:1",
            "http://order:1,http://order:2, https://order:3",
        ] {
            assert!(Target::remote(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "127.0.0.1:50051",
            "ftp://order:1",
            "http://order:1,",
            "http://order:1/path",
            "http://",
            "not a uri",
        ] {
            let error = Target::remote(bad).expect_err(bad);
            assert!(error.to_string().contains("http://host:port"), "{error}");
        }
    }

    #[test]
    fn services_go_by_their_package() {
        let target = |uri| Target::remote(uri).expect("an address");
        let backends = Backends::default()
            .with("order", target("http://o:1"))
            .with("media", target("http://m:1"));
        let backends =
            backends.resolve(&contract::services(FILE_DESCRIPTOR_SET).expect("our own descriptors"));
        let routed: Vec<_> = backends
            .iter()
            .map(|backend| (&*backend.name, backend.services.clone()))
            .collect();
        let order = [
            "souk.index.v1.IndexService",
            "souk.order.v1.ConsumerService",
            "souk.order.v1.OrderService",
            "souk.order.v1.ProductService",
            "souk.order.v1.SalespersonService",
        ];
        let media = ["souk.index.v1.IndexService", "souk.media.v1.MediaService"];
        assert_eq!(
            routed,
            [
                ("media", media.map(str::to_owned).to_vec()),
                ("order", order.map(str::to_owned).to_vec()),
            ]
        );
    }
}
