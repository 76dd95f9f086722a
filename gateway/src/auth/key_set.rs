//! The public keys of an issuer of tokens (JWKS, RFC 7517).

use std::collections::HashMap;
use std::time::SystemTime;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use souk_access::Identity;

use super::signatures;

const KEYS_MAX: usize = 100;

/// Most tokens that are remembered as checked. A signature costs tens of microseconds, a look-up less than one.
const CHECKED_MAX: usize = 10_000;

/// A key and the one algorithm that it is for.
pub(super) struct IssuerKey {
    pub(super) key: DecodingKey,
    pub(super) algorithm: Algorithm,
}

/// Keys of an issuer, and the tokens that they were found to have signed: other keys forget them. By default there are none, because nobody
/// could say yet which there are.
#[derive(Default)]
pub(super) struct KeySet {
    by_id: HashMap<String, IssuerKey>,
    /// The only key, for tokens that don't name one.
    only: Option<String>,
    pub(super) unreadable: usize,
    /// Whose each is, and until when.
    checked: Mutex<HashMap<[u8; 32], (Identity, SystemTime)>>,
}

impl std::fmt::Debug for KeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeySet({})", self.by_id.len())
    }
}

impl KeySet {
    /// The keys in a JWKS with at least one usable key. Keys for other uses or of other kinds are skipped; so are malformed ones, which
    /// are [counted](Self::unreadable): a mistake of the issuer in one key doesn't keep its others out.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        signatures::install();
        // Where it is wrong, without what stands there.
        let no_set = |error: serde_json::Error| {
            format!("is no JWKS: line {}, column {}", error.line(), error.column())
        };
        let set: RawKeySet = serde_json::from_str(text).map_err(no_set)?;
        let (mut by_id, mut unreadable) = (HashMap::new(), Vec::new());
        for (at, jwk) in set.keys.into_iter().take(KEYS_MAX).enumerate() {
            match read_key(jwk) {
                Ok(None) => {}
                Ok(Some((id, _))) if by_id.contains_key(&id) => {
                    unreadable.push((at, "has the kid of one before, or none as well"));
                }
                Ok(Some((id, key))) => {
                    by_id.insert(id, key);
                }
                Err(problem) => unreadable.push((at, problem)),
            }
        }
        if by_id.is_empty() {
            let unread = unreadable.first();
            let unread = unread.map_or_else(String::new, |(at, problem)| {
                format!("; the key at {at} {problem}")
            });
            return Err(format!("has no key for EdDSA (Ed25519), RS256 or ES256{unread}"));
        }
        for (at, problem) in &unreadable {
            tracing::warn!(at, problem, "a key of the issuer of tokens is passed over");
        }
        let only = by_id.keys().next().filter(|_| by_id.len() == 1).cloned();
        Ok(Self {
            by_id,
            only,
            unreadable: unreadable.len(),
            checked: Mutex::default(),
        })
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The key of an id; without one, the only key there is.
    pub(super) fn key(&self, id: Option<&str>) -> Option<&IssuerKey> {
        self.by_id.get(id.or(self.only.as_deref())?)
    }

    /// Whose token this is, if it was checked before and is still good.
    pub(super) fn checked(&self, digest: &[u8; 32], now: SystemTime) -> Option<Identity> {
        let checked = self.checked.lock();
        let (identity, _) = checked.get(digest).filter(|(_, until)| now < *until)?;
        Some(identity.clone())
    }

    pub(super) fn remember(&self, digest: [u8; 32], identity: Identity, until: SystemTime) {
        let mut checked = self.checked.lock();
        if checked.len() >= CHECKED_MAX {
            // Rare, and only costs checking again.
            checked.clear();
        }
        checked.insert(digest, (identity, until));
    }
}

/// A JWKS whose keys are still to be read, each alone.
#[derive(Deserialize)]
struct RawKeySet {
    keys: Vec<Value>,
}

/// A key and its id; `None` when it isn't for the signatures that are taken.
fn read_key(jwk: Value) -> Result<Option<(String, IssuerKey)>, &'static str> {
    let jwk: Jwk = serde_json::from_value(jwk).map_err(|_| "is no JWK")?;
    let other_use = matches!(&jwk.common.public_key_use, Some(used) if *used != PublicKeyUse::Signature);
    let Some(algorithm) = algorithm(&jwk.algorithm).filter(|_| !other_use) else {
        return Ok(None);
    };
    let key = DecodingKey::from_jwk(&jwk).map_err(|_| "has numbers that can't be read")?;
    let id = jwk.common.key_id.unwrap_or_default();
    Ok(Some((id, IssuerKey { key, algorithm })))
}

/// What a key of this kind signs with.
fn algorithm(parameters: &AlgorithmParameters) -> Option<Algorithm> {
    match parameters {
        AlgorithmParameters::RSA(_) => Some(Algorithm::RS256),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Some(Algorithm::ES256),
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            Some(Algorithm::EdDSA)
        }
        _ => None,
    }
}
