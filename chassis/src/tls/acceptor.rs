//! The server's side of TLS.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::files::{TlsError, authorities, certificates, key, provider, revocations};
use super::{ALPN_H2, ALPN_HTTP1, CERTIFICATES};
use crate::config::ServerTlsConfig;
use crate::private_files::warn_of_readers;
use crate::reload::Reloaded;

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
    config: Arc<Reloaded<ServerConfig>>,
    /// Must clients show a certificate?
    pub(crate) asks_clients: bool,
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
        warn_of_readers(&settings.key);
        let asks_clients = settings.asks_clients();
        let mut files = vec![settings.cert.clone(), settings.key.clone()];
        files.extend(asks_clients.then(|| settings.client_ca.clone()));
        files.extend(settings.has_crl().then(|| settings.client_crl.clone()));
        let settings = settings.clone();
        let config = Reloaded::new(CERTIFICATES, files, move || make(&settings))?;
        Ok(Some(Self { config, asks_clients }))
    }

    /// Has the files looked at now, not with the next connection. Waits for the disk.
    pub fn look(&self) {
        self.config.look();
    }

    /// The handshake; offers HTTP/1.1, too, if `http1`. The caller limits the time.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        http1: bool,
    ) -> io::Result<(TlsStream<TcpStream>, TlsPeer)> {
        let mut config = self.config.fresh().await;
        if http1 {
            // What is in the configuration is shared by its copies, sessions among them.
            let protocols = &mut Arc::make_mut(&mut config).alpn_protocols;
            protocols.push(ALPN_HTTP1.to_vec());
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

fn make(settings: &ServerTlsConfig) -> Result<ServerConfig, TlsError> {
    let (certificates, key) = (certificates(&settings.cert)?, key(&settings.key)?);
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let builder = if settings.asks_clients() {
        builder.with_client_cert_verifier(clients(settings)?)
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder
        .with_single_cert(certificates, key)
        .map_err(|error| TlsError::Pair(settings.cert.clone(), settings.key.clone(), error))?;
    config.alpn_protocols = vec![ALPN_H2.to_vec()];
    if settings.has_crl() {
        // A session that is resumed isn't asked for its certificate, which may be revoked by now.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// Verifies clients by the authorities of the settings, and by what those have revoked. Sessions are resumed without a look at
/// the certificate, but only those of the same configuration: with a list that has changed they begin anew.
fn clients(settings: &ServerTlsConfig) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let roots = Arc::new(authorities(&settings.client_ca)?);
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
    if settings.has_crl() {
        // A list past its next update says nothing of what was revoked since.
        builder = builder
            .with_crls(revocations(&settings.client_crl)?)
            .enforce_revocation_expiration();
    }
    builder.build().map_err(|error| match error {
        VerifierBuilderError::InvalidCrl(_) => {
            TlsError::Revocations(settings.client_crl.clone(), error.into())
        }
        error => TlsError::Authority(settings.client_ca.clone(), error.into()),
    })
}

/// The name in a certificate that was verified.
fn name(certificate: &rustls::pki_types::CertificateDer<'_>) -> Option<Arc<str>> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    let mut uris = certificate.valid_uri_names();
    let name = uris.next().or_else(|| certificate.valid_dns_names().next());
    name.filter(|name| name.len() <= NAME_BYTES_MAX).map(Arc::from)
}
