//! The public keys of an issuer of tokens (JWKS, RFC 7517).

use std::collections::HashMap;
use std::time::SystemTime;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use parking_lot::Mutex;
use souk_access::Identity;

use super::signatures;

/// Most keys of a set.
const KEYS_MAX: usize = 100;

/// Most tokens that are remembered as checked. A signature costs tens of microseconds, a look-up less than one.
const CHECKED_MAX: usize = 10_000;

/// A key and the one algorithm that it is for.
pub(super) struct IssuerKey {
    pub(super) key: DecodingKey,
    pub(super) algorithm: Algorithm,
}

/// Keys of an issuer, and the tokens that they were found to have signed: other keys forget them.
pub(super) struct KeySet {
    by_id: HashMap<String, IssuerKey>,
    /// The only key, for tokens that don't name one.
    only: Option<String>,
    checked: Mutex<HashMap<[u8; 32], Checked>>,
}

/// A token that was checked.
#[derive(Clone)]
struct Checked {
    identity: Identity,
    until: SystemTime,
}

impl std::fmt::Debug for KeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeySet({})", self.by_id.len())
    }
}

impl KeySet {
    /// The keys in a JWKS. Those that aren't for signatures, or of a kind that isn't taken, are passed over.
    ///
    /// # Errors
    /// When it is none, or has no usable key.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        signatures::install();
        let set: JwkSet =
            serde_json::from_str(text).map_err(|error| format!("is no JWKS: {}", place(&error)))?;
        let mut by_id = HashMap::new();
        for jwk in set.keys.iter().take(KEYS_MAX) {
            let other_use =
                matches!(&jwk.common.public_key_use, Some(used) if *used != PublicKeyUse::Signature);
            let Some(algorithm) = algorithm(&jwk.algorithm).filter(|_| !other_use) else {
                continue;
            };
            let key = DecodingKey::from_jwk(jwk).map_err(|_| "has a key whose numbers can't be read")?;
            let id = jwk.common.key_id.clone().unwrap_or_default();
            if by_id.insert(id, IssuerKey { key, algorithm }).is_some() {
                return Err("has two keys with the same kid, or two without".to_owned());
            }
        }
        if by_id.is_empty() {
            return Err("has no key for EdDSA (Ed25519), RS256 or ES256".to_owned());
        }
        let only = by_id.keys().next().filter(|_| by_id.len() == 1).cloned();
        Ok(Self {
            by_id,
            only,
            checked: Mutex::default(),
        })
    }

    /// No keys, because nobody could say yet which there are.
    pub(super) fn unknown() -> Self {
        Self {
            by_id: HashMap::new(),
            only: None,
            checked: Mutex::default(),
        }
    }

    /// Is it not known yet which keys there are?
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
        let found = checked.get(digest).filter(|found| now < found.until)?;
        Some(found.identity.clone())
    }

    /// Remembers a token until it expires.
    pub(super) fn remember(&self, digest: [u8; 32], identity: Identity, until: SystemTime) {
        let mut checked = self.checked.lock();
        if checked.len() >= CHECKED_MAX {
            // Rare, and only costs checking again.
            checked.clear();
        }
        checked.insert(digest, Checked { identity, until });
    }
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

/// Where JSON is wrong, without what stands there.
fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}
