use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateRevocationListParams, KeyIdMethod, RevokedCertParams, SerialNumber};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tonic::Status;

use super::testing::{Authority, replace, serial};
use super::*;
use crate::client::{Channel, channel};
use crate::config::ClientConfig;
use crate::config::{ClientTlsConfig, ServerConfig, ServerTlsConfig};
use crate::layers::testing::{attribute, record};
use crate::testing::{Running, Way, connect, echo, say_to, serve};

const CALLS: Duration = Duration::from_secs(5);

fn config((cert, key): (PathBuf, PathBuf)) -> ServerConfig {
    ServerConfig {
        // Spans are recorded on the thread of the test.
        workers: 0,
        tls: ServerTlsConfig {
            cert,
            key,
            ..ServerTlsConfig::default()
        },
        ..ServerConfig::default()
    }
}

async fn server(config: &ServerConfig) -> Running {
    serve(echo(config), config, CALLS).await
}

fn believing(ca: PathBuf) -> ClientTlsConfig {
    ClientTlsConfig {
        ca,
        ..ClientTlsConfig::default()
    }
}

/// A channel of its own to `address`.
fn secure(address: SocketAddr, tls: ClientTlsConfig) -> Channel {
    let uri = format!("https://{address}").parse().expect("an address");
    let config = ClientConfig {
        tls,
        ..ClientConfig::default()
    };
    channel(&uri, &config).expect("good files")
}

/// All causes of a failure, in words.
async fn failure(channel: impl Way) -> String {
    let status: Status = say_to(channel, "hello").await.expect_err("no connection");
    crate::causes::chain(&status)
}

#[tokio::test]
async fn both_ends_show_certificates_and_the_trace_says_who_called() {
    let recorded = record();
    let authority = Authority::new();
    let mut config = config(authority.issue("server", &["127.0.0.1"]));
    config.tls.client_ca = authority.ca();
    let running = server(&config).await;

    let (cert, key) = authority.issue("gateway", &["gateway.internal", "spiffe://souk/gateway"]);
    let with_certificate = ClientTlsConfig {
        cert,
        key,
        ..believing(authority.ca())
    };
    let said = say_to(secure(running.address, with_certificate), "hello").await;
    assert_eq!(said.expect("an echo"), "hello");
    let span = recorded.span();
    assert_eq!(attribute(&span, "tls.protocol.version"), "1.3");
    assert_eq!(attribute(&span, "souk.peer.name"), "spiffe://souk/gateway");

    // None, and one that somebody else signed.
    failure(secure(running.address, believing(authority.ca()))).await;
    let strangers = Authority::new();
    let (cert, key) = strangers.issue("stranger", &["gateway.internal"]);
    let stranger = ClientTlsConfig {
        cert,
        key,
        ..believing(authority.ca())
    };
    failure(secure(running.address, stranger)).await;
    assert_eq!(recorded.spans().len(), 1, "no call came through");
}

#[tokio::test]
async fn a_server_that_isnt_who_it_should_be_gets_no_call() {
    let authority = Authority::new();
    let running = server(&config(authority.issue("server", &["souk.internal"]))).await;
    let named = |name: &str| ClientTlsConfig {
        server_name: name.to_owned(),
        ..believing(authority.ca())
    };
    let said = say_to(secure(running.address, named("souk.internal")), "hello").await;
    assert_eq!(said.expect("an echo"), "hello");

    let text = failure(secure(running.address, named(""))).await;
    assert!(
        text.contains("NotValidForName") || text.contains("not valid for name"),
        "{text}"
    );
    let others = Authority::new();
    let text = failure(secure(running.address, believing(others.ca()))).await;
    assert!(text.contains("invalid peer certificate"), "{text}");
    // Neither is there an answer without TLS.
    failure(connect(running.address)).await;
}

/// A handshake of a client that speaks HTTP/1.1 alone.
async fn handshake_of_http1(
    authority: &Authority,
    address: SocketAddr,
) -> std::io::Result<TlsStream<TcpStream>> {
    let roots = files::authorities(&authority.ca()).expect("good files");
    let builder = rustls::ClientConfig::builder_with_provider(files::provider());
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let mut client = builder.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = vec![ALPN_HTTP1.to_vec()];
    let stream = TcpStream::connect(address).await.expect("a connection");
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    tokio_rustls::TlsConnector::from(Arc::new(client))
        .connect(name, stream)
        .await
}

#[tokio::test]
async fn what_speaks_no_http2_over_tls_is_refused_in_the_handshake() {
    let authority = Authority::new();
    let running = server(&config(authority.issue("server", &["127.0.0.1"]))).await;
    let error = handshake_of_http1(&authority, running.address)
        .await
        .expect_err("no common protocol");
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
}

#[tokio::test]
async fn behind_a_front_http1_is_spoken_over_tls_too() {
    let authority = Authority::new();
    let config = config(authority.issue("server", &["127.0.0.1"]));
    let stack = echo(&config);
    let running = serve(stack.clone().behind(stack), &config, CALLS).await;
    let mut stream = handshake_of_http1(&authority, running.address)
        .await
        .expect("a common protocol");
    let request = "POST /test.Echo/Shout HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let said = say_to(secure(running.address, believing(authority.ca())), "hello").await;
    assert_eq!(said.expect("an echo"), "hello");
}

#[tokio::test]
async fn changed_certificates_are_for_connections_to_come() {
    let authority = Authority::new();
    let files = authority.issue("server", &["one.internal"]);
    let config = config(files.clone());
    let acceptor = Acceptor::new(&config.tls).expect("good files").expect("it is on");
    let tcp = crate::server::bind(([127, 0, 0, 1], 0).into())
        .await
        .expect("a free port");
    let address = tcp.local_addr().expect("an address");
    let acceptor_of_server = acceptor.clone();
    let accepting = tokio::spawn(async move {
        // Whether each comes through is what its client sees.
        while let Ok((stream, _)) = tcp.accept().await {
            let _ = acceptor_of_server.accept(stream, false).await;
        }
    });
    let handshake = async |name: &str| {
        let tls = ClientTlsConfig {
            server_name: name.to_owned(),
            ..believing(authority.ca())
        };
        let uri = format!("https://{address}").parse().expect("an address");
        let connector = Connector::new(ALPN_H2, &uri, &tls, Duration::from_secs(3)).expect("good files");
        connector.connect().await.is_ok()
    };
    assert!(handshake("one.internal").await);

    authority.issue("server", &["two.internal"]);
    acceptor.look();
    assert!(handshake("two.internal").await && !handshake("one.internal").await);

    // A certificate without its key is none: the old pair stays, until the new one is whole.
    let (certificate, key) = authority.issue("next", &["three.internal"]);
    std::fs::copy(&certificate, &files.0).expect("copied");
    acceptor.look();
    assert!(handshake("two.internal").await);
    std::fs::copy(&key, &files.1).expect("copied");
    acceptor.look();
    assert!(handshake("three.internal").await);
    accepting.abort();
}

impl Authority {
    /// The file of a list with the certificates that were issued into these files, good until `next_update`.
    fn revoke(&self, files: &[&str], next_update: SystemTime) -> PathBuf {
        let this_update = SystemTime::UNIX_EPOCH.into();
        let revoked = |file: &&str| RevokedCertParams {
            serial_number: serial(file),
            revocation_time: this_update,
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update,
            next_update: next_update.into(),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: files.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer).expect("signed");
        let file = self.folder.path().join("crl.pem");
        replace(&file, &list.pem().expect("PEM"));
        file
    }
}

#[tokio::test]
async fn a_revoked_certificate_lets_nobody_in() {
    let authority = Authority::new();
    let mut config = config(authority.issue("server", &["127.0.0.1"]));
    config.tls.client_ca = authority.ca();
    let (now, day) = (SystemTime::now(), Duration::from_secs(24 * 60 * 60));
    config.tls.client_crl = authority.revoke(&["other"], now + day);
    let acceptor = Acceptor::new(&config.tls).expect("good files").expect("it is on");
    let tcp = crate::server::bind(([127, 0, 0, 1], 0).into())
        .await
        .expect("a free port");
    let uri = format!("https://{}", tcp.local_addr().expect("an address"));
    let uri = uri.parse().expect("an address");
    let (cert, key) = authority.issue("client", &["client.internal"]);
    let tls = ClientTlsConfig {
        cert,
        key,
        ..believing(authority.ca())
    };
    // One client, which would resume its session: it has to be looked at again all the same.
    let connector = Connector::new(ALPN_H2, &uri, &tls, Duration::from_secs(3)).expect("good files");
    let comes_in = async || {
        let (served, connected) = tokio::join!(
            async {
                let (stream, _) = tcp.accept().await.expect("a connection");
                let mut stream = acceptor.accept(stream, false).await.map(|(stream, _)| stream)?;
                stream.write_all(b"in").await?;
                stream.shutdown().await
            },
            async {
                // In TLS 1.3 the client hears of its certificate after the handshake.
                let mut stream = connector.clone().connect().await?;
                let mut said = Vec::new();
                stream.read_to_end(&mut said).await
            }
        );
        served.is_ok() && connected.is_ok()
    };
    assert!(comes_in().await);
    authority.revoke(&["other", "client"], now + day);
    acceptor.look();
    assert!(!comes_in().await, "it is revoked");
    authority.revoke(&[], now + day);
    acceptor.look();
    assert!(comes_in().await);
    // What can't be read leaves the last list in force; one that is over says nothing of what was revoked since.
    std::fs::write(&config.tls.client_crl, "no list").expect("written");
    acceptor.look();
    assert!(comes_in().await);
    authority.revoke(&[], now - day);
    acceptor.look();
    assert!(!comes_in().await, "the list is over");
    // Nor does a list of another authority say anything.
    let stranger = Authority::new();
    std::fs::copy(stranger.revoke(&[], now + day), &config.tls.client_crl).expect("copied");
    acceptor.look();
    assert!(!comes_in().await, "the list is somebody else's");
}

#[tokio::test]
async fn files_that_cant_be_used_are_named_and_no_key_is_told() {
    let authority = Authority::new();
    let (cert, key) = authority.issue("server", &["127.0.0.1"]);
    let (_, other) = authority.issue("other", &["127.0.0.1"]);
    let missing = PathBuf::from("/nowhere/server.key");
    for (cert, key, part) in [
        (&cert, &missing, "/nowhere/server.key can't be read"),
        (&key, &key, "holds no certificate in PEM"),
        (&cert, &cert, "holds no private key in PEM"),
        (&cert, &other, "can't be used with the key in"),
    ] {
        let config = config((cert.clone(), key.clone()));
        let error = crate::server::Listener::bind(&config).await.expect_err(part);
        let text = crate::causes::chain(&error);
        assert!(text.contains(part) && text.contains("--tls-key"), "{text}");
        let secret = std::fs::read_to_string(&other).expect("a key");
        let secret = secret.lines().nth(1).expect("a line of it");
        assert!(!format!("{text}{error:?}").contains(secret));
    }
}

#[tokio::test]
async fn who_doesnt_finish_the_handshake_is_hung_up_on() {
    let authority = Authority::new();
    let mut config = config(authority.issue("server", &["127.0.0.1"]));
    config.opening_timeout = Duration::from_millis(200);
    config.openings_max = 2;
    let running = server(&config).await;
    let mut half_open = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(running.address).await.expect("a connection");
        // The beginning of a record that is said to be longer.
        stream.write_all(&[0x16, 3, 1, 2, 0]).await.expect("sent");
        half_open.push(stream);
    }
    // None is waited for by who comes in earnest.
    let said = say_to(secure(running.address, believing(authority.ca())), "hello").await;
    assert_eq!(said.expect("an echo"), "hello");
    for mut stream in half_open {
        let mut rest = Vec::new();
        // Closed with or without a reset: words it doesn't have.
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{rest:?}");
    }
}
