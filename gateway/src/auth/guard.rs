//! Authenticates and authorizes the calls of a gateway.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use http::header::{AUTHORIZATION, HeaderName};
use http::{HeaderMap, Request};
use opentelemetry::metrics::Meter;
use souk_access::config::AuthConfig;
use souk_access::credential::{HEADER, LIFE_MAX};
use souk_access::{CredentialKeys, Identity, Reloaded, Rules, TraceTrust, key_files, refusal};
use souk_chassis::callers::CallerName;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::admission::{Admit, Next};
use souk_chassis::layers::deadline::Deadline;
use souk_chassis::layers::error_info;
use souk_chassis::layers::trace::Believe;
use souk_chassis::methods::Methods;
use souk_chassis::private_files::warn_of_readers;
use tonic::Status;
use tonic::body::Body;

use super::AuthError;
use super::api_keys::ApiKeys;
use super::issuer;
use super::tokens::{Refused, Tokens};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Admits calls whose credentials are valid and whose role the rule of the RPC names, with a credential for the service.
#[derive(Clone, Debug)]
pub struct GatewayGuard {
    /// `None` where callers aren't authenticated.
    known: Option<Arc<Known>>,
    methods: Methods,
    traces: TraceTrust,
}

#[derive(Debug)]
struct Known {
    rules: Rules,
    api_keys: Arc<Reloaded<ApiKeys>>,
    tokens: Option<Tokens>,
    credentials: Arc<Reloaded<CredentialKeys>>,
}

impl GatewayGuard {
    /// A guard of these settings, which signs credentials by `credentials`. Without keys and tokens all calls are admitted, with a warning
    /// in the log. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When keys can't be read, or `credentials` are missing.
    pub fn new(
        config: &AuthConfig,
        credentials: Option<Arc<Reloaded<CredentialKeys>>>,
        methods: Methods,
        contract: &[u8],
    ) -> Result<Self, AuthError> {
        let mut guard = Self {
            known: None,
            methods,
            traces: config.traces,
        };
        if !config.authenticates_callers() {
            tracing::warn!(
                "authentication is off: whoever reaches this port may do everything; see docs/SECURITY.md"
            );
            return Ok(guard);
        }
        let api_keys = if config.keys == Path::new("") {
            Reloaded::fixed(ApiKeys::read("").map_err(AuthError::Keys)?)
        } else {
            warn_of_readers(&config.keys);
            key_files::follow(&config.keys, ApiKeys::read)?
        };
        let wants_tokens = !config.jwt.jwks.is_empty();
        guard.known = Some(Arc::new(Known {
            rules: Rules::read(contract)?,
            api_keys,
            tokens: wants_tokens.then(|| Tokens::follow(&config.jwt)).transpose()?,
            credentials: credentials.ok_or(AuthError::NoCredentialKey)?,
        }));
        Ok(guard)
    }

    /// Observes the issuer's keys on `meter`.
    pub(crate) fn observe(&self, meter: &Meter) {
        let tokens = self.known.as_ref().and_then(|known| known.tokens.as_ref());
        let issuer = tokens.map_or_else(Weak::new, |tokens| Arc::downgrade(&tokens.issuer));
        issuer::observe(&issuer, meter);
    }
}

impl Admit for GatewayGuard {
    fn call(&self, mut request: Request<Body>, next: Next<'_>) -> ResponseFuture {
        // Only gateways may send it.
        request.headers_mut().remove(HEADER);
        let Some(known) = &self.known else {
            return next.run(request);
        };
        let identified = request.extensions_mut().remove::<Identified>();
        let identity = match identified {
            _ if known.rules.allows_anonymous(request.uri().path()) => None,
            Some(Identified(identity)) => Some(identity),
            None => Some(known.identify(request.headers())),
        };
        remove_credentials(request.headers_mut());
        let identity = match identity {
            None => return next.run(request),
            Some(Ok(identity)) => identity,
            Some(Err(status)) => return Next::refuse(*status),
        };
        let path = request.uri().path();
        match refusal::admit(&known.rules, path, identity.clone()) {
            Ok(Some(_)) => {}
            Ok(None) => return Next::refuse(error_info::unknown_method(&self.methods, path).build()),
            Err(status) => return Next::refuse(*status),
        }
        let deadline = request.extensions().get::<Deadline>();
        let life = deadline.map_or(LIFE_MAX, |deadline| deadline.remaining());
        let credentials = known.credentials.get();
        let Some(credential) = credentials.sign(&identity, path, life, SystemTime::now()) else {
            return Next::refuse(refusal::invalid());
        };
        request.headers_mut().insert(HEADER, credential);
        request.extensions_mut().insert(CallerName(identity.name()));
        if identity.tables().is_some() {
            request.extensions_mut().insert(LimitedCaller);
        }
        next.run(request)
    }
}

/// Says of a request that its caller is limited to some tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitedCaller;

/// The identity, if the trace layer has verified it already: that may have cost a signature.
#[derive(Clone, Debug)]
struct Identified(Result<Identity, Box<Status>>);

impl Believe for GatewayGuard {
    fn believes(&self, request: &mut Request<Body>) -> bool {
        match (self.traces, &self.known) {
            (TraceTrust::Everybody, _) | (TraceTrust::Callers, None) => true,
            (TraceTrust::Nobody, _) => false,
            (TraceTrust::Callers, Some(known)) => {
                let identity = known.identify(request.headers());
                let is_known = identity.is_ok();
                request.extensions_mut().insert(Identified(identity));
                is_known
            }
        }
    }
}

/// No service gets the caller's credentials.
fn remove_credentials(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    headers.remove(API_KEY);
}

enum Given<'a> {
    ApiKey(&'a [u8]),
    Token(&'a [u8]),
}

impl<'a> Given<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, Status> {
        let authorizations = headers.get_all(AUTHORIZATION).iter();
        let authorizations = authorizations.map(|value| Self::authorization(value.as_bytes()));
        let api_keys = headers.get_all(API_KEY).iter();
        let api_keys = api_keys.map(|key| Some(Self::ApiKey(key.as_bytes().trim_ascii())));
        let mut given = authorizations.chain(api_keys);
        match (given.next(), given.next()) {
            (None, _) => Err(refusal::missing()),
            (Some(Some(only)), None) => Ok(only),
            // Several may be those of several callers.
            _ => Err(refusal::invalid()),
        }
    }

    /// What is in an `authorization`; `None` when its scheme is another.
    fn authorization(value: &'a [u8]) -> Option<Self> {
        let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
        let (scheme, secret) = value.split_at(end);
        match scheme.to_ascii_lowercase().as_slice() {
            b"bearer" => Some(Self::Token(secret.trim_ascii())),
            b"apikey" => Some(Self::ApiKey(secret.trim_ascii())),
            _ => None,
        }
    }
}

impl Known {
    fn identify(&self, headers: &HeaderMap) -> Result<Identity, Box<Status>> {
        let identified = match (Given::read(headers)?, &self.tokens) {
            (Given::ApiKey(key), _) => self.api_keys.get().identify(key).ok_or_else(refusal::invalid),
            (Given::Token(token), Some(tokens)) => tokens.identify(token).map_err(|refused| match refused {
                Refused::Expired => refusal::expired(),
                Refused::Unready => refusal::issuer_unknown(),
                Refused::Invalid => refusal::invalid(),
            }),
            (Given::Token(_), None) => Err(refusal::invalid()),
        };
        identified.map_err(Box::new)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
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
        let taken =
            Given::read(&headers).map(|(Given::ApiKey(secret) | Given::Token(secret))| secret.to_vec());
        remove_credentials(&mut headers);
        assert_eq!(
            headers.keys().collect::<Vec<_>>(),
            ["other"],
            "no service gets them"
        );
        taken.map_err(|status| {
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
            rules: Rules::from_contract().expect("rules"),
            api_keys: Reloaded::fixed(ApiKeys::read(&key.line).expect("a line")),
            tokens: None,
            credentials: Reloaded::fixed(CredentialKeys::random().expect("random bytes")),
        });
        let believed = |traces: TraceTrust, known: Option<&Arc<Known>>, key: &str| {
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
                assert!(known.is_none_or(|_| traces != TraceTrust::Callers));
            }
            believed
        };
        for (traces, of_known, of_strangers, without) in [
            (TraceTrust::Nobody, false, false, false),
            (TraceTrust::Callers, true, false, true),
            (TraceTrust::Everybody, true, true, true),
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
