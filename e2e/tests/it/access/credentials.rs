//! Credentials that are good, and those that only look like it, at the gateway and at a service behind it.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use souk_access::{CredentialKeys, Identity, Role, credential};
use souk_e2e::collector::Collector;
use souk_e2e::dynamic::Dynamic;
use souk_e2e::guard::Guard;
use souk_e2e::process::Process;
use souk_e2e::suite::{Layout, Suite};
use tonic::transport::Endpoint;
use tonic::{Code, Status};

use super::{client, reason, subject};
use crate::SOUK;

const GET: &str = "souk.order.v1.OrderService/GetOrder";

fn get() -> Value {
    json!({"order_id": "o1"})
}

async fn answer(client: &Dynamic) -> anyhow::Result<Status> {
    Ok(client.call(GET, &get()).await?.expect_err("there is no order"))
}

fn assert_reason(status: &Status, code: Code, why: &str) {
    assert_eq!((status.code(), reason(status).as_str()), (code, why), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_taken_in_both_headers_and_nothing_else_is() -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, Layout::OneProcess, Guard::new(subject)?, None).await?;
    let key = suite.guard().key(Role::Reader).to_owned();
    let anyone = Dynamic::new(suite.channel()?)?;
    for (name, value) in [
        ("x-api-key", key.clone()),
        ("authorization", format!("ApiKey {key}")),
    ] {
        let status = answer(&anyone.clone().with(name, &value)?).await?;
        assert_reason(&status, Code::NotFound, "ORDER_NOT_FOUND");
    }
    for (name, value) in [
        ("x-api-key", key.to_uppercase()),
        ("x-api-key", String::new()),
        ("authorization", key.clone()),
        ("authorization", format!("Bearer {key}")),
        ("authorization", format!("Basic {key}")),
    ] {
        assert_reason(
            &answer(&anyone.clone().with(name, &value)?).await?,
            Code::Unauthenticated,
            "CREDENTIALS_INVALID",
        );
    }
    let two = anyone
        .clone()
        .with("x-api-key", &key)?
        .with("x-api-key", suite.guard().key(Role::Admin))?;
    assert_reason(&answer(&two).await?, Code::Unauthenticated, "CREDENTIALS_INVALID");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_replaced_without_a_restart() -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, Layout::OneProcess, Guard::new(subject)?, None).await?;
    let old = client(&suite, Role::Admin)?;
    assert_eq!(answer(&old).await?.code(), Code::NotFound);
    let made = souk_gateway::auth::make_key("new", Role::Admin, "")?;
    std::fs::write(suite.guard().folder().join("keys"), &made.line)?;
    let new = Dynamic::new(suite.channel()?)?.with("x-api-key", &made.key)?;
    // The file is looked at once a second: the first answer to the new key ends the old one.
    let began = std::time::Instant::now();
    while answer(&new).await?.code() != Code::NotFound {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "the file isn't read again"
        );
        tokio::task::yield_now().await;
    }
    assert_reason(&answer(&old).await?, Code::Unauthenticated, "CREDENTIALS_INVALID");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_takes_calls_from_its_gateway_only() -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, Layout::SeveralProcesses, Guard::new(subject)?, None).await?;
    let order_service = suite.addresses().first().copied().expect("the order service");
    let direct = Dynamic::new(Endpoint::from_shared(format!("http://{order_service}"))?.connect_lazy())?;
    let admin = Identity::new(Role::Admin, "")?;
    let keys = CredentialKeys::parse(suite.guard().credential_key())?;
    let (path, minute, now) = (format!("/{GET}"), Duration::from_secs(60), SystemTime::now());
    let make = |keys: &CredentialKeys, path: &str, now| {
        let credential = keys.sign(&admin, path, minute, now).expect("made");
        credential.to_str().expect("ascii").to_owned()
    };
    let good = make(&keys, &path, now);
    let status = answer(&direct.clone().with(credential::HEADER.as_str(), &good)?).await?;
    assert_reason(&status, Code::NotFound, "ORDER_NOT_FOUND");
    let mut tampered = good.clone().into_bytes();
    tampered[4] ^= 1;
    for (what, value) in [
        ("of other keys", make(&CredentialKeys::random()?, &path, now)),
        (
            "for another RPC",
            make(&keys, "/souk.order.v1.OrderService/DeleteOrder", now),
        ),
        ("of long ago", make(&keys, &path, now - 2 * minute)),
        ("tampered with", String::from_utf8(tampered)?),
        ("empty", String::new()),
    ] {
        let status = answer(&direct.clone().with(credential::HEADER.as_str(), &value)?).await?;
        assert_eq!(
            (status.code(), reason(&status).as_str()),
            (Code::Unauthenticated, "CALLER_UNPROVEN"),
            "{what}"
        );
    }
    for stranger in [
        direct.clone(),
        direct.clone().with("x-api-key", suite.guard().key(Role::Admin))?,
    ] {
        assert_reason(
            &answer(&stranger).await?,
            Code::Unauthenticated,
            "CALLER_UNPROVEN",
        );
    }
    // Nor does the gateway take what only it may say.
    let through = Dynamic::new(suite.channel()?)?.with(credential::HEADER.as_str(), &good)?;
    assert_reason(
        &answer(&through).await?,
        Code::Unauthenticated,
        "CREDENTIALS_MISSING",
    );
    let consumer = client(&suite, Role::User)?.with(credential::HEADER.as_str(), &good)?;
    assert_reason(
        &answer(&consumer).await?,
        Code::PermissionDenied,
        "ROLE_NOT_ALLOWED",
    );
    Ok(())
}

/// An issuer of tokens.
struct Issuer(Ed25519KeyPair);

impl Issuer {
    fn new() -> anyhow::Result<Self> {
        let failed = |_| anyhow::anyhow!("no key");
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(failed)?;
        Ok(Self(
            Ed25519KeyPair::from_pkcs8(key.as_ref()).map_err(|_| anyhow::anyhow!("no key"))?,
        ))
    }

    fn jwks(&self, kid: &str) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": x}]}).to_string()
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        format!(
            "{message}.{}",
            URL_SAFE_NO_PAD.encode(self.0.sign(message.as_bytes()))
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_an_issuer_are_taken_and_forged_ones_are_not() -> anyhow::Result<()> {
    let (issuer, stranger) = (Issuer::new()?, Issuer::new()?);
    let guard = Guard::new(subject)?;
    let jwks = guard.folder().join("jwks");
    std::fs::write(&jwks, issuer.jwks("k1"))?;
    let guard = guard.set([
        format!("auth.jwt.jwks={}", jwks.display()),
        "auth.jwt.issuer=https://issuer.test".to_owned(),
        "auth.jwt.audience=souk".to_owned(),
    ]);
    let suite = Suite::start_guarded(SOUK, Layout::OneProcess, guard, None).await?;
    let header = json!({"alg": "EdDSA", "kid": "k1"});
    let seconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)?
        .as_secs();
    let claims = json!({"iss": "https://issuer.test", "aud": "souk", "sub": "c1", "souk_role": "consumer", "exp": seconds + 600});
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        claims
    };
    let call = async |token: &str| {
        let bearer = format!("Bearer {token}");
        answer(&Dynamic::new(suite.channel()?)?.with("authorization", &bearer)?).await
    };
    let good = issuer.token(&header, &claims);
    assert_reason(&call(&good).await?, Code::NotFound, "ORDER_NOT_FOUND");
    let user = issuer.token(&header, &with("souk_role", json!("user")));
    assert_reason(&call(&user).await?, Code::PermissionDenied, "ROLE_NOT_ALLOWED");
    for (tables, code, why) in [
        (json!(["notes", "or*"]), Code::NotFound, "ORDER_NOT_FOUND"),
        (json!(["notes"]), Code::PermissionDenied, "TABLE_NOT_ALLOWED"),
        (json!(["orders/o*"]), Code::PermissionDenied, "TABLE_NOT_ALLOWED"),
        (json!("orders"), Code::Unauthenticated, "CREDENTIALS_INVALID"),
    ] {
        let limited = issuer.token(&header, &with("souk_tables", tables));
        assert_reason(&call(&limited).await?, code, why);
    }
    assert_reason(
        &call(&issuer.token(&header, &with("exp", json!(seconds - 600)))).await?,
        Code::Unauthenticated,
        "TOKEN_EXPIRED",
    );
    let middle = good.len() / 2;
    let tampered = format!("{}x{}", &good[..middle], &good[middle + 1..]);
    for (what, token) in [
        ("tampered with", tampered),
        ("for others", issuer.token(&header, &with("aud", json!("other")))),
        (
            "unsigned",
            issuer.token(&json!({"alg": "none", "kid": "k1"}), &claims),
        ),
        ("of a stranger", stranger.token(&header, &claims)),
        (
            "by an unknown key",
            issuer.token(&json!({"alg": "EdDSA", "kid": "k2"}), &claims),
        ),
    ] {
        let status = call(&token).await?;
        assert_eq!(
            (status.code(), reason(&status).as_str()),
            (Code::Unauthenticated, "CREDENTIALS_INVALID"),
            "{what}"
        );
    }
    // The issuer takes another key: its new tokens are good within seconds, the old ones aren't any more.
    std::fs::write(&jwks, stranger.jwks("k-new"))?;
    let new = stranger.token(&json!({"alg": "EdDSA", "kid": "k-new"}), &claims);
    let began = std::time::Instant::now();
    while call(&new).await?.code() != Code::NotFound {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "the keys aren't read again"
        );
        tokio::task::yield_now().await;
    }
    assert_reason(&call(&good).await?, Code::Unauthenticated, "CREDENTIALS_INVALID");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_a_log_or_a_span() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let guard = Guard::new(subject)?;
    let mut suite = Suite::start_guarded(SOUK, Layout::SeveralProcesses, guard, Some(&collector)).await?;
    for role in Role::ALL {
        let known = client(&suite, role)?;
        answer(&known).await?;
        // Refusals are logged, too.
        let wrong =
            Dynamic::new(suite.channel()?)?.with("x-api-key", &format!("{}x", suite.guard().key(role)))?;
        answer(&wrong).await?;
    }
    suite.stop().await?;
    let log = std::fs::read_to_string(suite.guard().log())?;
    assert!(log.contains("CREDENTIALS_INVALID"), "refusals are logged: {log}");
    let spans = format!("{:?}", collector.spans());
    assert!(spans.contains("GetOrder"));
    for secret in suite.guard().secrets() {
        for (what, text) in [("log", &log), ("spans", &spans)] {
            assert!(!text.contains(secret), "a {what} holds a secret");
        }
    }
    for personal in ["c-mine", "s-mine", "u-mine"] {
        assert!(!spans.contains(personal), "spans hold {personal}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_listens_to_everybody_by_accident() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().display().to_string();
    for line in [
        format!("serve --data {data} --listen 0.0.0.0:0 --allow-plaintext"),
        format!("demo --data {data} --listen 0.0.0.0:0 --allow-plaintext"),
        format!("order-svc --data {data} --listen [::]:0 --allow-plaintext"),
        "gateway --backend order=http://127.0.0.1:1 --listen 0.0.0.0:0 --allow-plaintext".to_owned(),
    ] {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let ended = Process::run_to_end(SOUK, &arguments, &[]).await?;
        assert!(!ended.status.success(), "{line}");
        assert!(
            ended.stderr.contains("--insecure-allow-anonymous"),
            "{line}: {}",
            ended.stderr
        );
    }
    let line = format!("serve --data {data} --listen 0.0.0.0:0 --allow-plaintext --insecure-allow-anonymous");
    let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    Process::start(SOUK, &arguments, &[], None).await?.stop().await
}
