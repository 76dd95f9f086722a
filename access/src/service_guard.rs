//! Authentication of a service: verifies the gateway's credential, and runs the call on behalf of the caller in it.

use std::sync::Arc;
use std::time::SystemTime;

use http::Request;
use souk_chassis::callers::CallerName;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::admission::{Admit, Next};
use souk_chassis::reload::Reloaded;
use tonic::body::Body;

use crate::credential::{CredentialKeys, HEADER};
use crate::refusal;
use crate::rules::Rules;

/// Admits calls with a valid credential of the gateway, on behalf of the caller that it names.
///
/// Without keys, calls without a credential are admitted: no gateway authenticates. Calls with one are refused: they can't be
/// told apart here, so each caller would access the rows of all.
#[derive(Clone, Debug)]
pub struct ServiceGuard {
    rules: Rules,
    keys: Option<Arc<Reloaded<CredentialKeys>>>,
}

impl ServiceGuard {
    /// A guard that verifies credentials by `keys`, `None` where callers aren't authenticated, and authorizes by `rules`.
    pub fn new(rules: Rules, keys: Option<Arc<Reloaded<CredentialKeys>>>) -> Self {
        Self { rules, keys }
    }
}

impl Admit for ServiceGuard {
    fn call(&self, mut request: Request<Body>, next: Next<'_>) -> ResponseFuture {
        let credential = request.headers_mut().remove(HEADER);
        let Some(keys) = &self.keys else {
            return match credential {
                None => next.run(request),
                Some(_) => Next::refuse(refusal::unchecked()),
            };
        };
        let path = request.uri().path();
        if self.rules.allows_anonymous(path) {
            return next.run(request);
        }
        let identity = credential.and_then(|given| keys.get().verify(&given, path, SystemTime::now()));
        let Some(identity) = identity else {
            return Next::refuse(refusal::unproven());
        };
        request.extensions_mut().insert(CallerName(identity.name()));
        let path = request.uri().path();
        // By the service's own rules: a gateway of another version can't widen them.
        match refusal::admit(&self.rules, path, identity) {
            Ok(Some(caller)) => Box::pin(caller.scope(next.run(request))),
            Ok(None) => Next::refuse(refusal::no_such_rpc()),
            Err(status) => Next::refuse(*status),
        }
    }
}
