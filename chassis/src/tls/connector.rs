//! The client's side of TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::files::{TlsError, authorities, certificates, key, provider};
use super::{ALPN_HTTP1, CERTIFICATES};
use crate::config::ClientTlsConfig;
use crate::dial::Dial;
use crate::reload::Reloaded;

const HTTPS_PORT: u16 = 443;

/// Makes connections with TLS to one server. Clones share the certificates.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    config: Arc<Reloaded<ClientConfig>>,
    dial: Dial,
    /// As in the certificate.
    name: ServerName<'static>,
    protocol: &'static [u8],
}

impl Connector {
    /// Connections for `protocol` to the host and port of `uri`.
    pub(crate) fn new(
        protocol: &'static [u8],
        uri: &Uri,
        settings: &ClientTlsConfig,
        unacknowledged_max: Duration,
    ) -> Result<Self, TlsError> {
        let dial = Dial::new(uri, HTTPS_PORT, unacknowledged_max);
        let name = match settings.server_name.as_str() {
            "" => &*dial.host,
            name => name,
        };
        let name = ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))?;
        let mut files = vec![settings.ca.clone()];
        if settings.has_certificate() {
            files.extend([settings.cert.clone(), settings.key.clone()]);
        }
        let settings = settings.clone();
        let config = Reloaded::new(CERTIFICATES, files, move || make(protocol, &settings))?;
        Ok(Self {
            config,
            dial,
            name,
            protocol,
        })
    }

    /// Connects. The caller limits the time.
    pub(crate) async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = self.dial.connect().await?;
        let connector = TlsConnector::from(self.config.fresh().await);
        let stream = connector.connect(self.name.clone(), stream).await?;
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
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_root_certificates(authorities(&settings.ca)?);
    let mut config = if settings.has_certificate() {
        let (certificates, key) = (certificates(&settings.cert)?, key(&settings.key)?);
        let with_certificate = builder.with_client_auth_cert(certificates, key);
        with_certificate
            .map_err(|error| TlsError::Pair(settings.cert.clone(), settings.key.clone(), error))?
    } else {
        builder.with_no_client_auth()
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}
