//! Who calls: API keys and tokens of others, checked at the front door, and what is sent on of them.
//!
//! - `api_keys`: keys of our own making.
//! - `tokens`: JSON Web Tokens.
//! - `issuer`: where the public keys come from that check them; `key_set`: those keys.
//! - `signatures`: the cryptography of that.
//! - `guard`: the check before the gateway's routes.

mod api_keys;
mod error;
mod guard;
mod issuer;
mod key_set;
mod signatures;
mod tokens;

pub use api_keys::{ApiKeys, MakeKeyError, NewKey, make_key};
pub use error::AuthError;
pub use guard::GatewayGuard;
