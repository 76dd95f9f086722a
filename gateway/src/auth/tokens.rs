//! JSON Web Tokens: who is behind one.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Header, Validation, decode, decode_header};
use ring::digest;
use serde_json::{Map, Value};
use souk_access::config::JwtConfig;
use souk_access::{Identity, Role, TableNames};

use super::AuthError;
use super::issuer::Issuer;
use super::signatures::ALGORITHMS;

const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// Longest time that a checked token is remembered.
const REMEMBERED: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It was good once.
    Expired,
    /// The issuer's keys aren't known yet, or not any more.
    Unready,
    /// Anything else. The client isn't told what, so that it can't try.
    Invalid,
}

#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) issuer: Arc<Issuer>,
    config: JwtConfig,
}

impl Tokens {
    /// See [`Issuer::follow`].
    pub(super) fn follow(config: &JwtConfig) -> Result<Self, AuthError> {
        let (issuer, config) = (Arc::new(Issuer::follow(config)?), config.clone());
        Ok(Self { issuer, config })
    }

    pub(super) fn identify(&self, token: &[u8]) -> Result<Identity, Refused> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Refused::Invalid);
        }
        let (keys, now) = (self.issuer.keys().ok_or(Refused::Unready)?, SystemTime::now());
        let hash = digest::digest(&digest::SHA256, token);
        let hash: [u8; 32] = hash.as_ref().try_into().map_err(|_| Refused::Invalid)?;
        if let Some(identity) = keys.checked(&hash, now) {
            return Ok(identity);
        }
        let header = decode_header(token).map_err(|_| Refused::Invalid)?;
        if !is_access_token(&header) {
            return Err(Refused::Invalid);
        }
        if keys.is_unknown() {
            return Err(Refused::Unready);
        }
        let key = keys.key(header.kid.as_deref()).ok_or_else(|| {
            self.issuer.missed.notify_one();
            Refused::Invalid
        })?;
        // By the key, never by the token: a token doesn't choose how it is checked.
        if header.alg != key.algorithm || !ALGORITHMS.contains(&header.alg) {
            return Err(Refused::Invalid);
        }
        let claims = decode::<Map<String, Value>>(token, &key.key, &self.validation(key.algorithm))
            .map_err(|error| match error.kind() {
                ErrorKind::ExpiredSignature => Refused::Expired,
                _ => Refused::Invalid,
            })?
            .claims;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let role = text(&self.config.role_claim).and_then(Role::of_word);
        let role = role.ok_or(Refused::Invalid)?;
        let subject = text("sub").ok_or(Refused::Invalid)?;
        let tables = claims.get(&self.config.tables_claim);
        let tables = tables.map(|claim| tables_of(claim).ok_or(Refused::Invalid));
        let identity = Identity::new(role, subject).map_err(|_| Refused::Invalid)?;
        let identity = identity.with_tables(tables.transpose()?);
        // Any token that came this far has an expiry; one that can't be read isn't remembered.
        let expires = claims.get("exp").and_then(Value::as_f64).unwrap_or_default();
        let expires = Duration::try_from_secs_f64(expires).unwrap_or_default() + self.config.leeway;
        let expires = UNIX_EPOCH.checked_add(expires).unwrap_or(now);
        keys.remember(hash, identity.clone(), expires.min(now + REMEMBERED));
        Ok(identity)
    }

    fn validation(&self, algorithm: jsonwebtoken::Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = self.config.leeway.as_secs();
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.config.issuer]);
        validation.set_audience(&[&self.config.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation
    }
}

/// The tables that a claim limits a caller to: an array of names. Anything else isn't taken for no limit.
fn tables_of(claim: &Value) -> Option<TableNames> {
    let names = claim.as_array()?.iter().map(Value::as_str);
    let names: Option<Vec<&str>> = names.collect();
    TableNames::new(names?).ok()
}

/// Whether this is the header of an access token. Issuers sign others with the same keys, such as logout tokens, which differ by `typ`
/// (RFC 8725, 3.11): access tokens have `at+jwt` (RFC 9068) or, of older issuers, `JWT` or none. Critical extensions (`crit`, RFC 7515,
/// 4.1.11) aren't supported.
fn is_access_token(header: &Header) -> bool {
    let typ = header.typ.as_deref().map(str::to_ascii_lowercase);
    let typ = typ
        .as_deref()
        .map(|typ| typ.strip_prefix("application/").unwrap_or(typ));
    header.crit.is_none() && matches!(typ, None | Some("jwt" | "at+jwt"))
}

#[cfg(test)]
mod tests;
