//! Authentication of callers.
//!
//! - `api_keys`: API keys. `tokens`: JSON Web Tokens.
//! - `issuer`: fetches the public keys of tokens; `key_set`: these; `signatures`: verifies by them.
//! - `guard`: authenticates and authorizes calls.

use souk_access::key_files::KeyFileError;
use souk_access::rules::RulesError;
use souk_chassis::fetch::FetchError;

mod api_keys;
mod guard;
mod issuer;
mod key_set;
mod signatures;
mod tokens;

pub use api_keys::{ApiKeys, MakeKeyError, NewKey, make_key, make_key_for};
pub use guard::GatewayGuard;
pub(crate) use guard::LimitedCaller;

/// Why authentication can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// A file of keys.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The address of an issuer's keys.
    #[error("auth.jwt.jwks or auth.jwt.ca can't be used")]
    Issuer(#[from] FetchError),
    /// The contract's rules.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The keys of the file, or the random bytes of the operating system.
    #[error("API keys can't be read: {0}")]
    Keys(String),
    /// Services couldn't tell the gateway's calls from others.
    #[error(
        "auth.credential_key must be set, or SOUK_CREDENTIAL_KEY: without it services can't know who calls"
    )]
    NoCredentialKey,
}
