//! The keys of an issuer of tokens behind an `https` address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use souk_chassis::client::channel;
use souk_chassis::config::ClientConfig;
use souk_chassis::status::reason;
use souk_proto::shop::v1::DeleteShopRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tonic::{Code, Request, Status};

use crate::certificates::Authority;
use crate::process::{Killed, fails, listening, spawn, terminate};

/// How long new keys may take: a pause of the gateway's between two questions, and a slow machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// A server with one document; `None` is an error of its own.
#[derive(Default)]
struct Site {
    document: Mutex<Option<String>>,
    asked: AtomicUsize,
    /// Connections that came to nothing.
    broken: AtomicUsize,
}

impl Site {
    async fn serve(self: Arc<Self>, authority: &Authority) -> SocketAddr {
        let (cert, key) = authority.issue("issuer", &["127.0.0.1"]);
        let certificate = CertificateDer::from_pem_file(cert).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(key).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a pair");
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    self.broken.fetch_add(1, Ordering::SeqCst);
                    continue;
                };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a request"));
                }
                assert!(head.starts_with(b"GET /keys?set=1 HTTP/1.1\r\n"));
                let document = self.document.lock().clone();
                let answer = document.map_or_else(
                    || "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n".to_owned(),
                    |text| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()),
                );
                // Whoever had enough closes.
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
                self.asked.fetch_add(1, Ordering::SeqCst);
            }
        });
        address
    }

    async fn until_asked_again(&self) {
        until_more(&self.asked).await;
    }
}

/// Takes what it logs: refusals by the hundred would fill the pipe, and a full pipe stops it.
fn drain(gateway: &mut Killed) {
    let mut log = gateway.0.stderr.take().expect("a pipe");
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
}

/// Waits until something happens once more.
async fn until_more(count: &AtomicUsize) {
    let before = count.load(Ordering::SeqCst);
    let more = async {
        while count.load(Ordering::SeqCst) == before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, more)
        .await
        .expect("the gateway asks again");
}

struct Signer(Ed25519KeyPair);

impl Signer {
    fn new() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self(Ed25519KeyPair::from_pkcs8(key.as_ref()).expect("a key"))
    }

    fn jwks(&self, kid: &str) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": x}]}).to_string()
    }

    fn token(&self, kid: &str) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let expires = now.expect("a time").as_secs() + 600;
        let claims = json!({"iss": "https://issuer.test", "aud": "souk", "sub": "u1", "souk_role": "user", "exp": expires});
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(json!({"alg": "EdDSA", "kid": kid})), part(claims));
        format!(
            "{message}.{}",
            URL_SAFE_NO_PAD.encode(self.0.sign(message.as_bytes()))
        )
    }
}

/// The refusal of a call that no user may make: who the token is of is known when that is the reason.
async fn refusal(address: SocketAddr, token: &str) -> (Code, String) {
    let uri = format!("http://{address}").parse().expect("an address");
    let channel = channel(&uri, &ClientConfig::default()).expect("a channel");
    let mut request = Request::new(DeleteShopRequest {
        shop_id: "h1".to_owned(),
        ..DeleteShopRequest::default()
    });
    let bearer = format!("Bearer {token}").parse().expect("ascii");
    request.metadata_mut().insert("authorization", bearer);
    let answer = ShopServiceClient::new(channel).delete_shop(request).await;
    let status: Status = answer.expect_err("no user deletes shops");
    (status.code(), reason(&status).unwrap_or_default())
}

async fn until_known(address: SocketAddr, token: &str) {
    let known = async {
        while refusal(address, token).await.0 != Code::PermissionDenied {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, known)
        .await
        .expect("the keys are taken");
}

fn arguments(jwks: &str, ca: &str) -> Vec<String> {
    let settings = [
        format!("auth.jwt.jwks={jwks}"),
        format!("auth.jwt.ca={ca}"),
        "auth.jwt.issuer=https://issuer.test".to_owned(),
        "auth.jwt.audience=souk".to_owned(),
    ];
    let listen = ["--listen", "127.0.0.1:0", "--backend", "shop=http://127.0.0.1:9"];
    let settings = settings
        .into_iter()
        .flat_map(|setting| ["--set".to_owned(), setting]);
    listen.map(str::to_owned).into_iter().chain(settings).collect()
}

#[tokio::test]
async fn keys_behind_an_address_come_when_they_can_and_stay_when_they_cant() {
    let (authority, site) = (Authority::new(), Arc::new(Site::default()));
    let server = Arc::clone(&site).serve(&authority).await;
    let (old, new) = (Signer::new(), Signer::new());
    let arguments = arguments(
        &format!("https://{server}/keys?set=1"),
        &authority.ca().display().to_string(),
    );
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let key = "0123456789abcdef0123456789abcdef";
    let mut gateway = spawn(&arguments, &[("SOUK_CREDENTIAL_KEY", key)]);
    let (address, _stdout) = listening(&mut gateway);
    drain(&mut gateway);

    // Nobody can be known yet, and that isn't the callers' fault.
    let unknown = (Code::Unavailable, "ISSUER_KEYS_UNKNOWN".to_owned());
    assert_eq!(refusal(address, &old.token("k1")).await, unknown);
    *site.document.lock() = Some(old.jwks("k1"));
    until_known(address, &old.token("k1")).await;
    let invalid = (Code::Unauthenticated, "CREDENTIALS_INVALID".to_owned());
    assert_eq!(refusal(address, &new.token("k1")).await, invalid);

    // A token of a key that isn't known has the issuer asked; what it says now is no reason to forget what it said.
    for broken in [None, Some("{}".to_owned()), Some("x".repeat(2 << 20))] {
        *site.document.lock() = broken;
        assert_eq!(refusal(address, &new.token("k2")).await, invalid);
        site.until_asked_again().await;
        until_known(address, &old.token("k1")).await;
    }
    *site.document.lock() = Some(new.jwks("k2"));
    until_known(address, &new.token("k2")).await;
    assert_eq!(refusal(address, &old.token("k1")).await, invalid);
    assert_eq!(terminate(gateway).await, Some(0));
}

#[tokio::test]
async fn keys_of_whoever_answers_are_not_taken() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let site = Arc::new(Site::default());
    let signer = Signer::new();
    *site.document.lock() = Some(signer.jwks("k1"));
    let server = Arc::clone(&site).serve(&stranger).await;
    let ca = authority.ca().display().to_string();
    let arguments = arguments(&format!("https://{server}/keys?set=1"), &ca);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let key = "0123456789abcdef0123456789abcdef";
    let mut gateway = spawn(&arguments, &[("SOUK_CREDENTIAL_KEY", key)]);
    let (address, _stdout) = listening(&mut gateway);
    drain(&mut gateway);
    for _ in 0..2 {
        until_more(&site.broken).await;
        let (code, reason) = refusal(address, &signer.token("k1")).await;
        assert_eq!(
            (code, reason.as_str()),
            (Code::Unavailable, "ISSUER_KEYS_UNKNOWN")
        );
    }
    assert_eq!(site.asked.load(Ordering::SeqCst), 0);
    assert_eq!(terminate(gateway).await, Some(0));
}

#[test]
fn keys_in_plain_text_are_refused() {
    let arguments = arguments("http://issuer.test/keys", "ca.pem");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (code, text) = fails(&arguments);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("auth.jwt.jwks") && text.contains("https"), "{text}");
}
