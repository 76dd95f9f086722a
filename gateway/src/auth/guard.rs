//! The check before the gateway's routes.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::{AUTHORIZATION, HeaderName};
use http::{HeaderMap, HeaderValue, Request};
use souk_access::config::AuthConfig;
use souk_access::credential::{HEADER, LIFE_MAX};
use souk_access::reload::FileError;
use souk_access::rules::RulesError;
use souk_access::{CredentialKeys, Identity, Reloaded, Rules, refusal};
use souk_chassis::fetch::FetchError;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::admission::{Admit, Next};
use souk_chassis::layers::caller::Caller;
use souk_chassis::layers::deadline::Deadline;
use souk_chassis::layers::error_info;
use souk_chassis::methods::Methods;
use tonic::Status;
use tonic::body::Body;

use super::api_keys::ApiKeys;
use super::tokens::{Refused, Tokens};

/// The header with an API key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Schemes of `authorization`.
const BEARER: &str = "bearer";
const API_KEY_SCHEME: &str = "apikey";

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

/// Lets in those whose credentials are good and whose role the rule of the RPC names; tells the services who they are.
#[derive(Clone, Debug)]
pub struct GatewayGuard {
    /// `None` where everybody may do everything.
    known: Option<Arc<Known>>,
    methods: Methods,
}

/// What it takes to know callers.
#[derive(Debug)]
struct Known {
    rules: Rules,
    api_keys: Reloaded<ApiKeys>,
    tokens: Option<Tokens>,
    credentials: Reloaded<CredentialKeys>,
}

impl GatewayGuard {
    /// A guard as the settings say, that tells services by `credentials` who calls. Where the settings name neither keys
    /// nor tokens, everybody is let in, and the log says so. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When keys can't be read, or `credentials` are missing.
    pub fn new(
        config: &AuthConfig,
        credentials: Option<Reloaded<CredentialKeys>>,
        methods: Methods,
    ) -> Result<Self, AuthError> {
        if !config.knows_callers() {
            tracing::warn!(
                "authentication is off: whoever reaches this port may do everything; see docs/SECURITY.md"
            );
            return Ok(Self { known: None, methods });
        }
        let api_keys = if config.keys == Path::new("") {
            Reloaded::fixed(ApiKeys::none().map_err(AuthError::Keys)?)
        } else {
            Reloaded::follow(&config.keys, ApiKeys::read)?
        };
        let wants_tokens = !config.jwt.jwks.is_empty();
        let known = Known {
            rules: Rules::of_the_contract()?,
            api_keys,
            tokens: wants_tokens.then(|| Tokens::follow(&config.jwt)).transpose()?,
            credentials: credentials.ok_or(AuthError::NoCredentialKey)?,
        };
        Ok(Self {
            known: Some(Arc::new(known)),
            methods,
        })
    }
}

impl Admit for GatewayGuard {
    fn call(&self, mut request: Request<Body>, next: Next<'_>) -> ResponseFuture {
        // Whoever sends this pretends to be a gateway.
        request.headers_mut().remove(HEADER);
        let Some(known) = &self.known else {
            return next.run(request);
        };
        let given = take(request.headers_mut());
        if known.rules.lets_in_anyone(request.uri().path()) {
            return next.run(request);
        }
        let identity = match given.and_then(|given| known.identify(&given)) {
            Ok(identity) => identity,
            Err(status) => return Next::refuse(*status),
        };
        let path = request.uri().path();
        match refusal::admit(&known.rules, path, identity.clone()) {
            Ok(Some(_)) => {}
            Ok(None) => return Next::refuse(error_info::unknown_method(&self.methods, path).build()),
            Err(status) => return Next::refuse(*status),
        }
        let left = request
            .extensions()
            .get::<Deadline>()
            .map(|deadline| deadline.remaining());
        let life = left.unwrap_or(LIFE_MAX);
        let credential = known
            .credentials
            .get()
            .make(&identity, path, life, SystemTime::now());
        match credential {
            Some(credential) => {
                request.headers_mut().insert(HEADER, credential);
                request.extensions_mut().insert(Caller(identity.name()));
                next.run(request)
            }
            None => Next::refuse(refusal::invalid()),
        }
    }
}

/// What a caller sent to be known by.
struct Given {
    kind: Kind,
    value: HeaderValue,
    /// Where the secret begins in the value.
    from: usize,
}

/// Kinds of credentials.
#[derive(Clone, Copy, Debug)]
enum Kind {
    ApiKey,
    Token,
}

impl Given {
    /// What is in an `authorization`; `None` when its scheme is another.
    fn authorization(value: HeaderValue) -> Option<Self> {
        let bytes = value.as_bytes();
        let from = bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len());
        let scheme = &bytes[..from];
        let kind = if scheme.eq_ignore_ascii_case(BEARER.as_bytes()) {
            Kind::Token
        } else if scheme.eq_ignore_ascii_case(API_KEY_SCHEME.as_bytes()) {
            Kind::ApiKey
        } else {
            return None;
        };
        Some(Self { kind, value, from })
    }

    fn api_key(value: HeaderValue) -> Self {
        Self {
            kind: Kind::ApiKey,
            value,
            from: 0,
        }
    }

    fn secret(&self) -> &[u8] {
        self.value
            .as_bytes()
            .get(self.from..)
            .unwrap_or_default()
            .trim_ascii()
    }
}

/// Takes the credentials out of the headers: no service gets them.
fn take(headers: &mut HeaderMap) -> Result<Given, Box<Status>> {
    let before = headers.len();
    let authorization = headers.remove(AUTHORIZATION);
    let api_key = headers.remove(API_KEY);
    // Each value of each of both counts; of several with one name only the first was given out.
    let several = before - headers.len() > 1;
    match (authorization, api_key) {
        (None, None) => Err(Box::new(refusal::missing())),
        // Two kinds of credentials may be those of two callers.
        _ if several => Err(Box::new(refusal::invalid())),
        (_, Some(value)) => Ok(Given::api_key(value)),
        (Some(value), None) => Given::authorization(value).ok_or_else(|| Box::new(refusal::invalid())),
    }
}

impl Known {
    fn identify(&self, given: &Given) -> Result<Identity, Box<Status>> {
        match (given.kind, &self.tokens) {
            (Kind::ApiKey, _) => self
                .api_keys
                .get()
                .identify(given.secret())
                .ok_or_else(|| Box::new(refusal::invalid())),
            (Kind::Token, Some(tokens)) => tokens.identify(given.secret()).map_err(|refused| {
                Box::new(match refused {
                    Refused::Expired => refusal::expired(),
                    Refused::Unready => refusal::issuer_unknown(),
                    Refused::Invalid => refusal::invalid(),
                })
            }),
            (Kind::Token, None) => Err(Box::new(refusal::invalid())),
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    /// What is taken of these headers: the secret, or the reason of the refusal.
    fn taken(given: &[(HeaderName, &'static str)]) -> Result<Vec<u8>, Option<String>> {
        let mut headers = HeaderMap::new();
        headers.insert("other", HeaderValue::from_static("stays"));
        for (name, value) in given {
            headers.append(name, HeaderValue::from_static(value));
        }
        let taken = take(&mut headers);
        assert_eq!(
            headers.keys().collect::<Vec<_>>(),
            ["other"],
            "no service gets them"
        );
        taken.map(|given| given.secret().to_vec()).map_err(|status| {
            assert_eq!(status.code(), Code::Unauthenticated);
            souk_chassis::status::reason(&status)
        })
    }

    #[test]
    fn one_credential_is_taken_and_several_are_nobodys() {
        let refused = |reason: &str| Err(Some(reason.to_owned()));
        for one in [
            (API_KEY, "secret"),
            (AUTHORIZATION, "Bearer secret"),
            (AUTHORIZATION, "bearer  secret "),
            (AUTHORIZATION, "ApiKey secret"),
        ] {
            assert_eq!(
                taken(std::slice::from_ref(&one)),
                Ok(b"secret".to_vec()),
                "{one:?}"
            );
            for other in [(API_KEY, "secret"), (AUTHORIZATION, "Basic secret")] {
                let both = [one.clone(), other];
                assert_eq!(taken(&both), refused("CREDENTIALS_INVALID"), "{both:?}");
            }
        }
        assert_eq!(taken(&[]), refused("CREDENTIALS_MISSING"));
        assert_eq!(
            taken(&[(AUTHORIZATION, "Basic secret")]),
            refused("CREDENTIALS_INVALID")
        );
        assert_eq!(taken(&[(AUTHORIZATION, "Bearer")]), Ok(Vec::new()));
    }
}
