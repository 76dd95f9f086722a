//! A client of the endpoint for Tablestore's own clients: it signs by V2, and keeps its connections of HTTP/1.1.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use md5::{Digest as _, Md5};
use prost::Message;
use prost_types::Timestamp;
use ring::hmac;
use souk_tablestore::{API_VERSION, messages};

/// The instance of the keys.
const INSTANCE: &str = "bench";
/// What the engine's names of its tables begin with.
pub(crate) const PREFIX: &str = "bench__";

/// The secret of the keys.
const SECRET: &str = "whoever-measures-knows-it";

/// Writes a file of so many keys, for `--tablestore-keys`: one has only so many calls at a time.
pub(crate) fn write_keys(file: &Path, count: usize) -> anyhow::Result<()> {
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(file)?;
    for nth in 0..count {
        writeln!(file, "{} {SECRET} {INSTANCE} admin", id(nth))?;
    }
    Ok(())
}

fn id(nth: usize) -> String {
    format!("bench{nth}")
}

/// Clones share its connections, of which each call under way has its own.
#[derive(Clone)]
pub(crate) struct Endpoint {
    http: Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    id: Arc<str>,
    key: Arc<hmac::Key>,
}

impl Endpoint {
    /// Who calls with one of the keys of [`write_keys`].
    pub(crate) fn new(address: SocketAddr, key: usize) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let secret = SECRET.as_bytes();
        Self {
            http: Client::builder(TokioExecutor::new()).build(connector),
            address,
            id: id(key).into(),
            key: Arc::new(hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret)),
        }
    }

    /// Calls an operation.
    pub(crate) async fn call<M: Message + Default>(
        &self,
        operation: &str,
        request: &impl Message,
    ) -> anyhow::Result<M> {
        let body = Bytes::from(request.encode_to_vec());
        let (md5, date) = (
            BASE64.encode(Md5::digest(&body)),
            Timestamp::from(SystemTime::now()).to_string(),
        );
        // In the order of their names, in which they are signed.
        let headers = [
            ("x-ots-accesskeyid", &*self.id),
            ("x-ots-apiversion", API_VERSION),
            ("x-ots-contentmd5", &md5),
            ("x-ots-date", &date),
            ("x-ots-instancename", INSTANCE),
        ];
        let mut text = format!("/{operation}\nPOST\n\n");
        let mut asked = Request::post(format!("http://{}/{operation}", self.address));
        for (name, value) in headers {
            for part in [name, ":", value, "\n"] {
                text.push_str(part);
            }
            asked = asked.header(name, value);
        }
        let signature = BASE64.encode(hmac::sign(&self.key, text.as_bytes()));
        let asked = asked.header("x-ots-signature", signature).body(Full::new(body))?;
        let answer = self.http.request(asked).await?;
        let status = answer.status();
        let answer = answer.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            let error = messages::Error::decode(answer).unwrap_or_default();
            anyhow::bail!("{operation}: {status}, {} {:?}", error.code, error.message);
        }
        M::decode(answer).context("an answer")
    }
}
