//! The check before the gateway's routes.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use http::header::{AUTHORIZATION, HeaderName};
use http::{HeaderMap, HeaderValue, Request};
use opentelemetry::metrics::Meter;
use souk_access::config::AuthConfig;
use souk_access::credential::{HEADER, LIFE_MAX};
use souk_access::reload::FileError;
use souk_access::rules::RulesError;
use souk_access::{CredentialKeys, Identity, Reloaded, Rules, TracesOf, refusal};
use souk_chassis::fetch::FetchError;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::admission::{Admit, Next};
use souk_chassis::layers::caller::Caller;
use souk_chassis::layers::deadline::Deadline;
use souk_chassis::layers::error_info;
use souk_chassis::layers::trace::Believe;
use souk_chassis::methods::Methods;
use souk_chassis::private_files::warn_of_readers;
use tonic::Status;
use tonic::body::Body;

use super::api_keys::ApiKeys;
use super::issuer;
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
    traces: TracesOf,
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
            return Ok(Self {
                known: None,
                methods,
                traces: config.traces,
            });
        }
        let api_keys = if config.keys == Path::new("") {
            Reloaded::fixed(ApiKeys::none().map_err(AuthError::Keys)?)
        } else {
            warn_of_readers(&config.keys);
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
            traces: config.traces,
        })
    }
}

impl GatewayGuard {
    /// Shows on `meter` how the keys are that tokens are checked by.
    pub(crate) fn observe(&self, meter: &Meter) {
        let tokens = self.known.as_ref().and_then(|known| known.tokens.as_ref());
        let issuer = tokens.map_or_else(Weak::new, |tokens| Arc::downgrade(tokens.issuer()));
        issuer::observe(&issuer, meter);
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
        let identified = request.extensions_mut().remove::<Identified>();
        if known.rules.lets_in_anyone(request.uri().path()) {
            return next.run(request);
        }
        let identity = match identified {
            Some(Identified(identity)) => identity,
            None => given.and_then(|given| known.identify(&given)),
        };
        let identity = match identity {
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

/// Who calls, or why nobody is known, found out already for the trace of the call: it may have cost a signature.
#[derive(Clone, Debug)]
struct Identified(Result<Identity, Box<Status>>);

impl Believe for GatewayGuard {
    fn believes(&self, request: &mut Request<Body>) -> bool {
        match (self.traces, &self.known) {
            (TracesOf::Everybody, _) | (TracesOf::Callers, None) => true,
            (TracesOf::Nobody, _) => false,
            (TracesOf::Callers, Some(known)) => {
                let given = given(request.headers());
                let identity = given.and_then(|given| known.identify(&given));
                let is_known = identity.is_ok();
                request.extensions_mut().insert(Identified(identity));
                is_known
            }
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
    let given = given(headers);
    headers.remove(AUTHORIZATION);
    headers.remove(API_KEY);
    given
}

/// The credentials in the headers.
fn given(headers: &HeaderMap) -> Result<Given, Box<Status>> {
    let mut authorizations = headers.get_all(AUTHORIZATION).iter();
    let mut api_keys = headers.get_all(API_KEY).iter();
    let (authorization, api_key) = (authorizations.next(), api_keys.next());
    let several = authorizations.next().or(api_keys.next()).is_some();
    match (authorization, api_key) {
        (None, None) => Err(Box::new(refusal::missing())),
        // Two kinds of credentials may be those of two callers.
        (Some(_), Some(_)) => Err(Box::new(refusal::invalid())),
        _ if several => Err(Box::new(refusal::invalid())),
        (None, Some(value)) => Ok(Given::api_key(value.clone())),
        (Some(value), None) => {
            Given::authorization(value.clone()).ok_or_else(|| Box::new(refusal::invalid()))
        }
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
    use souk_access::Role;
    use tonic::Code;

    use super::super::api_keys::make_key;
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

    #[test]
    fn traces_are_those_of_callers_whose_credentials_are_good() {
        let key = make_key("web", Role::Operator, "").expect("a key");
        let known = Arc::new(Known {
            rules: Rules::of_the_contract().expect("rules"),
            api_keys: Reloaded::fixed(ApiKeys::read(&key.line).expect("a line")),
            tokens: None,
            credentials: Reloaded::fixed(CredentialKeys::random().expect("random bytes")),
        });
        let believed = |traces: TracesOf, known: Option<&Arc<Known>>, key: &str| {
            let guard = GatewayGuard {
                known: known.cloned(),
                methods: Methods::default(),
                traces,
            };
            let mut request = Request::new(Body::empty());
            let value = HeaderValue::try_from(key).expect("a value");
            request.headers_mut().insert(API_KEY, value);
            let believed = guard.believes(&mut request);
            assert!(request.headers().contains_key(API_KEY), "admission takes it away");
            if let Some(Identified(identity)) = request.extensions().get() {
                assert_eq!(identity.is_ok(), believed, "admission is told");
            } else {
                assert!(known.is_none_or(|_| traces != TracesOf::Callers));
            }
            believed
        };
        for (traces, of_known, of_strangers, without) in [
            (TracesOf::Nobody, false, false, false),
            (TracesOf::Callers, true, false, true),
            (TracesOf::Everybody, true, true, true),
        ] {
            assert_eq!(believed(traces, Some(&known), &key.key), of_known, "{traces:?}");
            assert_eq!(
                believed(traces, Some(&known), "souk_web_x"),
                of_strangers,
                "{traces:?}"
            );
            assert_eq!(believed(traces, None, "souk_web_x"), without, "{traces:?}");
        }
    }
}
