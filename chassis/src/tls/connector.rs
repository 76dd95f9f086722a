//! The client's side of TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::files::{TlsError, VERSIONS, authorities, certificates, key, provider};
use super::{ALPN_H2, ALPN_HTTP1, CERTIFICATES};
use crate::client::dial;
use crate::config::ClientTlsConfig;
use crate::reload::Reloading;

/// Port of an `https` address that names none.
const HTTPS_PORT: u16 = 443;

/// Makes connections with TLS to one server. Clones share the certificates.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    config: Arc<Reloading<ClientConfig>>,
    /// As in the address, for connecting.
    host: Arc<str>,
    port: u16,
    /// As in the certificate.
    name: ServerName<'static>,
    /// What is spoken.
    protocol: &'static [u8],
    unacknowledged_max: Duration,
}

impl Connector {
    /// Connections for HTTP/2 to the host and port of `uri`.
    ///
    /// # Errors
    /// When a file can't be read or used, or no certificate can have the server's name.
    pub(crate) fn new(
        uri: &Uri,
        settings: &ClientTlsConfig,
        unacknowledged_max: Duration,
    ) -> Result<Self, TlsError> {
        Self::speaking(ALPN_H2, uri, settings, unacknowledged_max)
    }

    /// Connections for HTTP/1.1 to the host and port of `uri`, who is believed by the authorities of the file `ca`.
    ///
    /// # Errors
    /// As [`Connector::new`].
    pub(crate) fn http1(uri: &Uri, ca: &Path, unacknowledged_max: Duration) -> Result<Self, TlsError> {
        let settings = ClientTlsConfig {
            ca: ca.to_owned(),
            ..ClientTlsConfig::default()
        };
        Self::speaking(ALPN_HTTP1, uri, &settings, unacknowledged_max)
    }

    fn speaking(
        protocol: &'static [u8],
        uri: &Uri,
        settings: &ClientTlsConfig,
        unacknowledged_max: Duration,
    ) -> Result<Self, TlsError> {
        let host = dial::host(uri);
        let name = match settings.server_name.as_str() {
            "" => host,
            name => name,
        };
        let name = ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name {
            name: name.to_owned(),
        })?;
        let mut files = vec![settings.ca.clone()];
        if settings.has_certificate() {
            files.extend([settings.cert.clone(), settings.key.clone()]);
        }
        let settings = settings.clone();
        Ok(Self {
            config: Arc::new(Reloading::new(CERTIFICATES, files, move || {
                make(protocol, &settings)
            })?),
            host: host.into(),
            port: uri.port_u16().unwrap_or(HTTPS_PORT),
            name,
            protocol,
            unacknowledged_max,
        })
    }

    /// A new connection. The caller has the clock.
    ///
    /// # Errors
    /// When nobody answers, or not who should.
    pub(crate) async fn connect(self) -> io::Result<TlsStream<TcpStream>> {
        let stream = dial::dial(&self.host, self.port, self.unacknowledged_max).await?;
        let connector = TlsConnector::from(self.config.fresh().await);
        let stream = connector.connect(self.name, stream).await?;
        let agreed = stream.get_ref().1.alpn_protocol();
        // Servers of HTTP/1.1 alone needn't say so.
        let unsaid = agreed.is_none() && self.protocol == ALPN_HTTP1;
        if agreed != Some(self.protocol) && !unsaid {
            let protocol = String::from_utf8_lossy(self.protocol);
            let message = format!("the server doesn't speak {protocol} over TLS");
            return Err(io::Error::other(message));
        }
        Ok(stream)
    }
}

fn make(protocol: &[u8], settings: &ClientTlsConfig) -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&VERSIONS)
        .map_err(TlsError::Setup)?
        .with_root_certificates(authorities(&settings.ca)?);
    let mut config = if settings.has_certificate() {
        let (certificates, key) = (certificates(&settings.cert)?, key(&settings.key)?);
        let with_certificate = builder.with_client_auth_cert(certificates, key);
        with_certificate.map_err(|source| TlsError::Pair {
            cert: settings.cert.clone(),
            key: settings.key.clone(),
            source,
        })?
    } else {
        builder.with_no_client_auth()
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}
