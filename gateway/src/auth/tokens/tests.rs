//! Tokens that are good, and all the ways in which they aren't. They are signed by ring here, as the library of the
//! gateway can only check.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
};
use serde_json::json;

use super::super::key_set::KeySet;
use super::*;

/// An RSA key of these tests, in DER: ring makes none. It is in no use anywhere.
const RSA_KEY: &str = "\
    MIIEogIBAAKCAQEA1FyXdqPACcrFBwfX6RHFak24ZM4m61jpFoaHbvrdpsAwkWnt64/Eeo8/opshpgDtIGfcClmJwkhCdzNsFkhq \
    ++ePf/x64thTck0/1BC9mFdP9mfzcUgBgZIaIHEtnJuycHUw0sARRVQaPUHcfKnn3dn47zwwmwhug4g6/M3Tb6Lp9ZwcwPeO+d2u \
    uW+kN8qOiMuLrxWsdeF3T9jj4SPI+SMFo+TW/DHC+WjMi0ms1iBGG6Pe5imbURf3pcdIouzyncYIf87a/HLBs869sFDDYZrxe0o4 \
    ZQpxPrEsTD4xORZmBuUM5DzK51FZPZsZhx4rWurfDP4IxOmSTQg1Hcd9fQIDAQABAoIBACUTAyhlvyWWfl5TWrjobtg3uFz09qt4 \
    yryxgNx5tI+jlvcUEMLixxEEiD4Jqk6yc7OIHky6RAgkmGH6GsErJG5VB2L3P7bxwGPAo8eQoqEBgUbJ8CDTStwFl0UZrTZdokHq \
    27q3aGx7mdce8/DZss6y+rg9gFjYmH6jHnU7M9IVxCjAcJGgCXaiJuCxGAV8DPpQ6Ep6rRjiucuF8L1QZU2uk+zt1ShwMfmJmfAR \
    Skga8eHAf9gDcnAplse2po/1BzbM9UKnl3iegZzCPKfCDwbjlcM4IijX8uaJWzwq+kJd/x/B9WxqdPPVn/SKQZXEsmMtnDaUnaBX \
    6+Ikj9ejPEECgYEA7Vt9Y3twW4AKZdGvQxiwtkMIgUFdtfyBux3TKfRDwO0uKe4MCKmZWcsL0ye0ggRNQ/mwJctXI21bp/h+NGAO \
    5nVGuytXHMWgBmCR9EmEbL297m3RFeMZwITgAr7sRmP6FjffzILIvwuME5lOjYsQahG6605QRDExQa6IvLOWzF0CgYEA5QqEXWCW \
    g7rmR9iSJgRZs/j5ediMG1AKapm8JwTBz9E/ebWERb3RciXtHMsMoQzBDYztlxsscv+O0yTQBqHyU4mLK6RwLXTVyrlkeFxMt9CF \
    TLyiwSIptO6/8znKX4I9fl1dznOaEzaWdSxSOijonuj0LjpesOv50quqqj/9Y6ECgYAclwaVcwrnmpamCQnJVTID4jMmDo+RGicu \
    OLt0tD1tAaSr3EaKzJLyI+j6uC+f8ZC0/WBgTQvj8oo1w1LAUEm7LKkmZmQJzSwnWH58JFbVGk3EaGnk7wPtEpRBAGpJWEWJY5WL \
    dr1jdaqbub2igvupKxWOvlIgxKQgOzuxLxic6QKBgBiG2cnOEBAnMYW8EVp02M5G+SAtKkO6fIMR124uOjrw42U7JOD7BLS+jveo \
    Xr/YR8wVrVOjG01tRHQj2wr6yKJddkPEJicX/dTpqXKiH60HbV7cTGl2KRUxA+kd5Sf5IHCpuuPiyTsJe28swdlsjAyIUa2pnn4/ \
    ps8ChxIYLCBBAoGACJSE1h92YThKvZDpZRRXbwKUW07t5IcTiSTVhPCBjEDyOogVSwRX/DvcN9RYnwzm8eGk7JIakNct77oNgTQk \
    njTgr+hbGSWLaL3v8Dk7i5oajjzzm/hp5VLTc1eCH4N03qaEHhrQdkQBSqtrucLp6ktfh5CZJ5xwWzBc6jhp8I8=";

/// A key of an issuer.
enum Signer {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl Signer {
    fn ed25519() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(key.as_ref()).expect("a key"))
    }

    fn p256() -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        Self::P256(EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).expect("a key"))
    }

    fn rsa() -> Self {
        let key = STANDARD.decode(RSA_KEY.replace(' ', "")).expect("base64");
        Self::Rsa(RsaKeyPair::from_der(&key).expect("a key"))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => "EdDSA",
            Self::P256(_) => "ES256",
            Self::Rsa(_) => "RS256",
        }
    }

    fn jwk(&self, kid: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Ed25519(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": text(key.public_key().as_ref())})
            }
            Self::P256(key) => {
                let point = key.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "kid": kid, "x": text(&point[1..33]), "y": text(&point[33..])})
            }
            Self::Rsa(key) => {
                let public: ring::rsa::PublicKeyComponents<Vec<u8>> = key.public().into();
                json!({"kty": "RSA", "use": "sig", "kid": kid, "n": text(&public.n), "e": text(&public.e)})
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
            Self::P256(key) => key.sign(&random, message).expect("signed").as_ref().to_vec(),
            Self::Rsa(key) => {
                let mut signed = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signed)
                    .expect("signed");
                signed
            }
        }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

fn seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

fn claims() -> Value {
    json!({"iss": "https://issuer.test", "aud": "souk", "sub": "c1", "souk_role": "consumer", "exp": seconds() + 600})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().expect("claims").remove(name);
    claims
}

fn header(signer: &Signer, kid: &str) -> Value {
    json!({"typ": "JWT", "alg": signer.algorithm(), "kid": kid})
}

fn jwks(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

fn tokens(keys: &[Value]) -> Tokens {
    Tokens {
        issuer: Arc::new(Issuer::fixed(KeySet::read(&jwks(keys)).expect("a JWKS"))),
        config: JwtConfig {
            issuer: "https://issuer.test".to_owned(),
            audience: "souk".to_owned(),
            ..JwtConfig::default()
        },
    }
}

#[test]
fn each_algorithm_is_taken_by_its_key() {
    let signers = [Signer::ed25519(), Signer::p256(), Signer::rsa()];
    let keys: Vec<_> = signers
        .iter()
        .map(|signer| signer.jwk(signer.algorithm()))
        .collect();
    let tokens = tokens(&keys);
    for signer in &signers {
        let token = signer.token(&header(signer, signer.algorithm()), &claims());
        // The second time from memory.
        for _ in 0..2 {
            let identity = tokens.identify(token.as_bytes()).expect("a good token");
            assert_eq!((identity.role(), identity.subject()), (Role::Consumer, "c1"));
        }
        for other in signers
            .iter()
            .filter(|other| other.algorithm() != signer.algorithm())
        {
            // One's key with another's algorithm, either way.
            for header in [
                header(signer, other.algorithm()),
                json!({"alg": other.algorithm(), "kid": signer.algorithm()}),
            ] {
                let token = signer.token(&header, &claims());
                assert_eq!(
                    tokens.identify(token.as_bytes()),
                    Err(Refused::Invalid),
                    "{header}"
                );
            }
        }
    }
}

#[test]
fn a_token_with_any_character_changed_is_refused() {
    let signer = Signer::ed25519();
    let tokens = tokens(&[signer.jwk("k")]);
    let token = signer.token(&header(&signer, "k"), &claims());
    assert!(tokens.identify(token.as_bytes()).is_ok());
    for at in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        // The last character of a part holds bits that mean nothing, but those must be zero.
        assert!(tokens.identify(&changed).is_err(), "changed at {at}");
    }
    for at in 0..token.len() {
        assert!(tokens.identify(&token.as_bytes()[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn claims_that_arent_for_us_or_not_now_are_refused() {
    let signer = Signer::ed25519();
    let tokens = tokens(&[signer.jwk("k")]);
    let identify = |claims: &Value| tokens.identify(signer.token(&header(&signer, "k"), claims).as_bytes());
    for good in [
        claims(),
        with("aud", json!(["other", "souk"])),
        // Within the leeway.
        with("exp", json!(seconds() - 10)),
        with("nbf", json!(seconds() + 10)),
    ] {
        assert!(identify(&good).is_ok(), "{good}");
    }
    assert_eq!(
        identify(&with("exp", json!(seconds() - 60))),
        Err(Refused::Expired)
    );
    for bad in [
        with("aud", json!("other")),
        with("aud", json!([])),
        with("iss", json!("https://other.test")),
        with("nbf", json!(seconds() + 60)),
        with("exp", json!("never")),
        with("souk_role", json!("root")),
        with("souk_role", json!(["admin"])),
        with("sub", json!("")),
        with("sub", json!("a\u{0}b")),
        with("sub", json!(7)),
        without("aud"),
        without("iss"),
        without("exp"),
        without("sub"),
        without("souk_role"),
        json!([]),
    ] {
        assert_eq!(identify(&bad), Err(Refused::Invalid), "{bad}");
    }
}

#[test]
fn a_claim_limits_a_caller_to_tables_and_a_wrong_one_doesnt_free_it() {
    let signer = Signer::ed25519();
    let mut tokens = tokens(&[signer.jwk("k")]);
    let identify = |tokens: &Tokens, claims: &Value| {
        tokens.identify(signer.token(&header(&signer, "k"), claims).as_bytes())
    };
    let limits = |tokens: &Tokens, claims: &Value| {
        let identity = identify(tokens, claims).expect("a good token");
        identity.tables().map(ToString::to_string)
    };
    assert_eq!(limits(&tokens, &claims()), None);
    let limited = with("souk_tables", json!(["notes", "logs_*", "metrics/é:1*"]));
    // The second time from memory.
    for _ in 0..2 {
        let expected = "notes,logs_*,metrics/é:1*";
        assert_eq!(limits(&tokens, &limited).as_deref(), Some(expected));
    }
    for bad in [
        json!(null),
        json!([]),
        json!("notes"),
        json!(["notes", 7]),
        json!(["notes,logs"]),
        json!(["a b"]),
        json!([""]),
        json!(["a/"]),
        json!(["a*/x"]),
        json!(["a/x", "a/y"]),
        json!(vec!["n"; 65]),
        json!({"notes": true}),
    ] {
        let claims = with("souk_tables", bad);
        assert_eq!(identify(&tokens, &claims), Err(Refused::Invalid), "{claims}");
    }
    tokens.config.tables_claim = "tables".to_owned();
    assert_eq!(
        limits(&tokens, &with("tables", json!(["a"]))).as_deref(),
        Some("a")
    );
}

#[test]
fn a_token_doesnt_choose_how_it_is_checked() {
    let (signer, stranger) = (Signer::ed25519(), Signer::ed25519());
    let tokens = tokens(&[signer.jwk("k")]);
    let public = signer.jwk("k")["x"].as_str().expect("a key").to_owned();
    let mine = |header: &Value| signer.token(header, &claims());
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let none = json!({"alg": "none", "kid": "k"});
    // The public key as the secret of an HMAC, the classic confusion.
    let confused = {
        let message = format!(
            "{}.{}",
            part(&json!({"alg": "HS256", "kid": "k"})),
            part(&claims())
        );
        let secret = URL_SAFE_NO_PAD.decode(public).expect("base64");
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
        let tag = ring::hmac::sign(&key, message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag))
    };
    let nobodys = format!("{}.{}.", part(&none), part(&claims()));
    for (what, token) in [
        ("alg none, unsigned", nobodys),
        ("alg none, signed", mine(&none)),
        ("HMAC with the public key", confused),
        (
            "another's key",
            stranger.token(&header(&stranger, "k"), &claims()),
        ),
        ("an unknown kid", mine(&header(&signer, "other"))),
        (
            "a key of its own",
            mine(&json!({"alg": "EdDSA", "kid": "x", "jwk": signer.jwk("x")})),
        ),
        (
            "too long",
            mine(&json!({"alg": "EdDSA", "kid": "k", "x5c": ["A".repeat(TOKEN_BYTES_MAX)]})),
        ),
        ("no token", "a.b.c".to_owned()),
        ("nothing", String::new()),
    ] {
        assert_eq!(tokens.identify(token.as_bytes()), Err(Refused::Invalid), "{what}");
    }
    // Without a kid the only key is meant.
    assert!(tokens.identify(mine(&json!({"alg": "EdDSA"})).as_bytes()).is_ok());
}

#[test]
fn tokens_of_another_kind_are_refused() {
    let signer = Signer::ed25519();
    let tokens = tokens(&[signer.jwk("k")]);
    let identify = |name: &str, value: Value| {
        let mut header = json!({"alg": "EdDSA", "kid": "k"});
        header[name] = value;
        tokens.identify(signer.token(&header, &claims()).as_bytes())
    };
    for good in [
        "JWT",
        "jwt",
        "at+jwt",
        "AT+JWT",
        "application/at+jwt",
        "application/jwt",
    ] {
        assert!(identify("typ", json!(good)).is_ok(), "{good}");
    }
    for bad in [
        json!("logout+jwt"),
        json!("secevent+jwt"),
        json!("dpop+jwt"),
        json!("JOSE"),
        json!("text/at+jwt"),
        json!(""),
        json!(7),
    ] {
        assert_eq!(identify("typ", bad.clone()), Err(Refused::Invalid), "typ {bad}");
    }
    // Whoever doesn't understand an extension that is critical must not take the token.
    for bad in [
        json!(["exp"]),
        json!(["b64"]),
        json!(["x-only-at-night"]),
        json!([]),
        json!("x"),
    ] {
        assert_eq!(identify("crit", bad.clone()), Err(Refused::Invalid), "crit {bad}");
    }
}

#[test]
fn keys_that_cant_be_read_dont_keep_the_others_out() {
    let (old, new) = (Signer::ed25519(), Signer::p256());
    let changed = |name: &str, value: Value| {
        let mut jwk = new.jwk("broken");
        jwk[name] = value;
        jwk
    };
    for broken in [
        json!({}),
        json!("no key"),
        json!({"kty": "AKP", "kid": "next", "alg": "ML-DSA-44", "pub": "AAAA"}),
        json!({"kty": "OKP", "crv": "Ed25519", "kid": "short"}),
        json!({"kty": "OKP", "crv": "Ed25519", "kid": "text", "x": "not base64!"}),
        json!({"kty": "RSA", "kid": "numbers", "n": 7, "e": "AQAB"}),
        changed("x", json!("not base64!")),
        changed("kid", json!(7)),
        old.jwk("new"),
    ] {
        let set = KeySet::read(&jwks(&[new.jwk("new"), broken.clone()])).expect("a JWKS");
        assert!(
            set.key(Some("new"))
                .is_some_and(|key| key.algorithm == Algorithm::ES256)
        );
        let tokens = tokens(&[old.jwk("old")]);
        tokens.issuer.set(set);
        let token = new.token(&header(&new, "new"), &claims());
        assert!(tokens.identify(token.as_bytes()).is_ok(), "{broken}");
        let withdrawn = old.token(&header(&old, "old"), &claims());
        assert_eq!(
            tokens.identify(withdrawn.as_bytes()),
            Err(Refused::Invalid),
            "{broken}"
        );
    }
}

#[test]
fn other_keys_forget_what_was_checked() {
    let (old, new) = (Signer::ed25519(), Signer::p256());
    let tokens = tokens(&[old.jwk("old")]);
    let token = old.token(&header(&old, "old"), &claims());
    assert!(tokens.identify(token.as_bytes()).is_ok());
    tokens
        .issuer
        .set(KeySet::read(&jwks(&[old.jwk("old"), new.jwk("new")])).expect("a JWKS"));
    assert!(tokens.identify(token.as_bytes()).is_ok());
    // With two keys, a token has to name one.
    assert!(
        tokens
            .identify(new.token(&json!({"alg": "ES256"}), &claims()).as_bytes())
            .is_err()
    );
    tokens
        .issuer
        .set(KeySet::read(&jwks(&[new.jwk("new")])).expect("a JWKS"));
    assert_eq!(tokens.identify(token.as_bytes()), Err(Refused::Invalid));
    assert!(
        tokens
            .identify(new.token(&header(&new, "new"), &claims()).as_bytes())
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn keys_that_nobody_confirms_grow_too_old() {
    let signer = Signer::ed25519();
    let tokens = tokens(&[signer.jwk("k")]);
    let token = signer.token(&header(&signer, "k"), &claims());
    let identify = || tokens.identify(token.as_bytes()).map(drop);
    let age_max = tokens.config.keys_age_max;
    tokio::time::advance(2 * age_max).await;
    assert_eq!(identify(), Ok(()), "they are what they should be, however old");
    tokens.issuer.lose();
    tokio::time::advance(age_max - Duration::from_secs(1)).await;
    tokens.issuer.lose();
    assert_eq!(identify(), Ok(()), "soon it may be known again");
    tokio::time::advance(Duration::from_secs(1)).await;
    // Neither is it good from memory.
    assert_eq!(identify(), Err(Refused::Unready));
    tokens
        .issuer
        .set(KeySet::read(&jwks(&[signer.jwk("k")])).expect("a JWKS"));
    assert_eq!(identify(), Ok(()));
}

#[test]
fn a_key_set_without_usable_keys_is_refused() {
    let signer = Signer::p256();
    let other_use = {
        let mut jwk = signer.jwk("k");
        jwk["use"] = json!("enc");
        jwk
    };
    for (text, problem) in [
        ("{".to_owned(), "is no JWKS"),
        (jwks(&[]), "has no key"),
        (
            jwks(&[json!({"kty": "oct", "kid": "k", "k": "c2VjcmV0"})]),
            "has no key",
        ),
        (jwks(&[other_use]), "has no key"),
        (jwks(&[json!("k")]), "the key at 0 is no JWK"),
    ] {
        let error = KeySet::read(&text).expect_err(&text);
        assert!(error.contains(problem), "{error}");
    }
}
