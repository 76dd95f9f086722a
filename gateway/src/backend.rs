//! What the gateway routes to, and which services are whose.

use std::fmt;

use http::Uri;
use souk_chassis::client::{Client, ClientError};
use souk_chassis::config::ClientConfig;
use souk_chassis::methods::{DescriptorError, Methods};
use souk_chassis::server::Stack;

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
    /// When it isn't such a URI.
    pub fn remote(uris: &str) -> Result<Self, BackendUriError> {
        let usable = |parsed: &Uri| {
            matches!(parsed.scheme_str(), Some("http" | "https"))
                && parsed.host().is_some_and(|host| !host.is_empty())
                && matches!(parsed.path(), "" | "/")
        };
        let parse = |uri: &str| {
            let parsed: Option<Uri> = uri.trim().parse().ok();
            parsed
                .filter(usable)
                .ok_or_else(|| BackendUriError { uri: uri.to_owned() })
        };
        if uris.split(',').count() > PROCESSES_MAX {
            return Err(BackendUriError { uri: uris.to_owned() });
        }
        let uris: Result<_, _> = uris.split(',').map(parse).collect();
        Ok(Self::Remote(uris?))
    }

    /// Does it have TLS?
    pub(crate) fn is_secure(&self) -> bool {
        match self {
            Self::Local(_) => false,
            Self::Remote(uris) => uris.iter().any(|uri| uri.scheme_str() == Some("https")),
        }
    }

    /// The ways to it, each with the number of its process: as many as each is to have connections. `name` is for errors and, where it has no
    /// address, for spans.
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
    "`{uri}` is no address of a backend; it must be http://host:port or https://host:port, or at most {most} of them with \
     commas between",
    most = PROCESSES_MAX
)]
pub struct BackendUriError {
    uri: String,
}

/// The backends of a suite; services of those that are `None` are unknown to the gateway.
#[derive(Clone, Default)]
pub struct Backends {
    /// `souk.order.v1`.
    pub order: Option<Target>,
    /// `souk.shop.v1`.
    pub shop: Option<Target>,
    /// `souk.media.v1`.
    pub media: Option<Target>,
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, _, target) in self.clone().parts() {
            match target {
                Target::Local(_) => map.entry(&name, &"in this process"),
                Target::Remote(uris) => map.entry(&name, &uris),
            };
        }
        map.finish()
    }
}

impl Backends {
    /// Name, package and target of those that are there.
    fn parts(self) -> impl Iterator<Item = (&'static str, &'static str, Target)> {
        let all = [
            ("order", "souk.order.v1", self.order),
            ("shop", "souk.shop.v1", self.shop),
            ("media", "souk.media.v1", self.media),
        ];
        all.into_iter()
            .filter_map(|(name, package, target)| Some((name, package, target?)))
    }

    /// Each with the services that `descriptors`, an encoded `FileDescriptorSet`, has in its package.
    pub(crate) fn with_services(self, descriptors: &[u8]) -> Result<Vec<Backend>, DescriptorError> {
        let known = Methods::read(&[descriptors], |_| true)?;
        let services = known.services();
        let backend = |(name, package, target)| Backend {
            name,
            services: services
                .iter()
                .filter(|service| {
                    service
                        .rsplit_once('.')
                        .is_some_and(|(prefix, _)| prefix == package)
                })
                .map(|service| (*service).to_owned())
                .collect(),
            target,
        };
        Ok(self.parts().map(backend).collect())
    }
}

/// A backend and what it serves.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    /// Short, for errors and telemetry.
    pub(crate) name: &'static str,
    /// Full names.
    pub(crate) services: Vec<String>,
    pub(crate) target: Target,
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let backends = Backends {
            order: Target::remote("http://o:1").ok(),
            media: Target::remote("http://m:1").ok(),
            ..Backends::default()
        };
        let backends = backends
            .with_services(souk_proto::FILE_DESCRIPTOR_SET)
            .expect("our own descriptors");
        let routed: Vec<_> = backends
            .iter()
            .map(|backend| (backend.name, backend.services.clone()))
            .collect();
        let order = [
            "souk.order.v1.ConsumerService",
            "souk.order.v1.OrderIndexService",
            "souk.order.v1.OrderService",
            "souk.order.v1.ProductService",
            "souk.order.v1.SalespersonService",
        ];
        let media = ["souk.media.v1.MediaIndexService", "souk.media.v1.MediaService"];
        assert_eq!(
            routed,
            [
                ("order", order.map(str::to_owned).to_vec()),
                ("media", media.map(str::to_owned).to_vec()),
            ]
        );
    }
}
