//! The server's side of TLS.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::files::{TlsError, VERSIONS, authorities, certificates, key, provider};
use super::{ALPN_H2, ALPN_HTTP1, CERTIFICATES};
use crate::config::ServerTlsConfig;
use crate::reload::Reloading;

/// Longest name of a client, in bytes; a longer one isn't told.
const NAME_BYTES_MAX: usize = 256;

/// Who is at the other end of a connection with TLS. An extension of each request on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPeer {
    /// `1.2` or `1.3`.
    pub version: &'static str,
    /// The client's name, when it had to show a certificate: the first URI of its alternative names (a SPIFFE id), else
    /// the first host's name. `None` without a certificate, or with one that has neither.
    pub name: Option<Arc<str>>,
}

/// Makes TLS of connections. Clones share the certificates.
#[derive(Clone, Debug)]
pub struct Acceptor {
    config: Arc<Reloading<ServerConfig>>,
    asks_clients: bool,
}

impl Acceptor {
    /// Reads the files of `settings`; `None` when TLS is off.
    ///
    /// # Errors
    /// When a file can't be read or used.
    pub fn new(settings: &ServerTlsConfig) -> Result<Option<Self>, TlsError> {
        if !settings.is_on() {
            return Ok(None);
        }
        let asks_clients = !settings.client_ca.as_os_str().is_empty();
        let mut files = vec![settings.cert.clone(), settings.key.clone()];
        files.extend(asks_clients.then(|| settings.client_ca.clone()));
        let settings = settings.clone();
        let config = Reloading::new(CERTIFICATES, files, move || make(&settings, asks_clients))?;
        Ok(Some(Self {
            config: Arc::new(config),
            asks_clients,
        }))
    }

    /// Must clients show a certificate?
    pub fn asks_clients(&self) -> bool {
        self.asks_clients
    }

    /// Has the files looked at now, not with the next connection. Waits for the disk.
    pub fn look(&self) {
        self.config.look();
    }

    /// The handshake, with HTTP/1.1 as a choice if `http1`. Nothing here ends it when the client falls silent: the caller
    /// has the clock.
    ///
    /// # Errors
    /// When it fails.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        http1: bool,
    ) -> io::Result<(TlsStream<TcpStream>, TlsPeer)> {
        let mut config = self.config.fresh().await;
        if http1 {
            // What is in the configuration is shared by its copies, sessions among them.
            Arc::make_mut(&mut config)
                .alpn_protocols
                .push(ALPN_HTTP1.to_vec());
        }
        let acceptor = TlsAcceptor::from(config);
        let stream = acceptor.accept(stream).await?;
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        let peer = TlsPeer {
            version: match session.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_3) => "1.3",
                _ => "1.2",
            },
            name: certificate.and_then(|certificate| name(certificate)),
        };
        Ok((stream, peer))
    }
}

fn make(settings: &ServerTlsConfig, asks_clients: bool) -> Result<ServerConfig, TlsError> {
    let (certificates, key) = (certificates(&settings.cert)?, key(&settings.key)?);
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&VERSIONS)
        .map_err(TlsError::Setup)?;
    let builder = if asks_clients {
        let roots = Arc::new(authorities(&settings.client_ca)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
            .build()
            .map_err(|source| TlsError::Authority {
                path: settings.client_ca.clone(),
                source: source.into(),
            })?;
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder
        .with_single_cert(certificates, key)
        .map_err(|source| TlsError::Pair {
            cert: settings.cert.clone(),
            key: settings.key.clone(),
            source,
        })?;
    config.alpn_protocols = vec![ALPN_H2.to_vec()];
    Ok(config)
}

/// The name in a certificate that was verified.
fn name(certificate: &rustls::pki_types::CertificateDer<'_>) -> Option<Arc<str>> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    let mut uris = certificate.valid_uri_names();
    let name = uris.next().or_else(|| certificate.valid_dns_names().next());
    name.filter(|name| name.len() <= NAME_BYTES_MAX).map(Arc::from)
}
