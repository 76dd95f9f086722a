//! Who calls: API keys and tokens of others, checked at the front door, and what is sent on of them.
//!
//! - `api_keys`: keys of our own making.
//! - `tokens`: JSON Web Tokens.
//! - `issuer`: where the public keys come from that check them; `key_set`: those keys.
//! - `signatures`: the cryptography of that.
//! - `guard`: the check before the gateway's routes.

use souk_access::reload::FileError;
use souk_access::rules::RulesError;
use souk_chassis::fetch::FetchError;

mod api_keys;
mod guard;
mod issuer;
mod key_set;
mod signatures;
mod tokens;

pub use api_keys::{ApiKeys, MakeKeyError, NewKey, make_key};
pub use guard::GatewayGuard;

/// Why callers can't be known.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// A file of keys.
    #[error(transparent)]
    File(#[from] FileError),
    /// The address of an issuer's keys.
    #[error("auth.jwt.jwks or auth.jwt.ca can't be used")]
    Issuer(#[from] FetchError),
    /// The contract's rules.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The operating system.
    #[error("API keys can't be read: {0}")]
    Keys(String),
    /// Services couldn't tell the gateway's calls from others.
    #[error(
        "auth.credential_key must be set, or SOUK_CREDENTIAL_KEY: without it services can't know who calls"
    )]
    NoCredentialKey,
}
