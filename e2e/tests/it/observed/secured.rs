//! A collector behind TLS, which believes nobody without a certificate: `OTEL_EXPORTER_OTLP_CERTIFICATE`,
//! `_CLIENT_CERTIFICATE` and `_CLIENT_KEY`, on a real process.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::collector::{Collector, Sent};
use super::souk::Souk;
use super::variables::{SOON, call};
use crate::certificates::Authority;

/// Handshakes that a [`front`] has seen the end of.
#[derive(Clone, Copy, Debug, Default)]
struct Handshakes {
    good: usize,
    bad: usize,
}

/// Ends TLS before `to`, on a free port of 127.0.0.1, for clients with a certificate of `authority`.
async fn front(
    to: SocketAddr,
    authority: &Authority,
) -> anyhow::Result<(SocketAddr, watch::Receiver<Handshakes>)> {
    let (cert, key) = authority.issue("collector", &["127.0.0.1"]);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.ca())?)?;
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(
            vec![CertificateDer::from_pem_file(cert)?],
            PrivateKeyDer::from_pem_file(key)?,
        )?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (seen, handshakes) = watch::channel(Handshakes::default());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), seen.clone());
            tokio::spawn(async move {
                // By TLS 1.3 a client knows before the server that it was let in, but says nothing before it does.
                let Ok(mut secure) = acceptor.accept(stream).await else {
                    seen.send_modify(|seen| seen.bad += 1);
                    return;
                };
                seen.send_modify(|seen| seen.good += 1);
                if let Ok(mut plain) = TcpStream::connect(to).await {
                    let _ = copy_bidirectional(&mut secure, &mut plain).await;
                }
            });
        }
    });
    Ok((address, handshakes))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_is_spoken_to_by_tls_and_only_the_right_one() -> anyhow::Result<()> {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (cert, key) = ours.issue("souk", &["souk"]);
    let (cert, key) = (text(&cert), text(&key));
    for (authority, believed) in [(&ours, true), (&theirs, false)] {
        let collector = Collector::start().await?;
        let (address, mut handshakes) = front(collector.address(), &ours).await?;
        let (endpoint, ca) = (format!("https://{address}"), text(&authority.ca()));
        let mut variables = vec![
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", ca.as_str()),
            ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", cert.as_str()),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", key.as_str()),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
        ];
        variables.extend(SOON);
        let souk = Souk::start(&[], &variables).await?;
        call(&souk).await?;
        if believed {
            collector
                .wait_for("spans by TLS", |_, sent| matches!(sent, Sent::Spans(_)))
                .await?;
            collector
                .wait_for("metrics by TLS", |_, sent| matches!(sent, Sent::Metrics(_)))
                .await?;
        } else {
            handshakes.wait_for(|seen| seen.bad > 0).await?;
        }
        // It serves and ends in order either way.
        call(&souk).await?;
        souk.stop().await?;
        let seen = *handshakes.borrow();
        assert_eq!(seen.good > 0, believed, "{seen:?}");
        assert_eq!(collector.kept().is_empty(), !believed);
    }
    Ok(())
}
