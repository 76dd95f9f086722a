//! What stands before a service: only whom the gateway let in comes through, as who it is.

use std::time::SystemTime;

use http::Request;
use souk_chassis::callers::Caller;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::admission::{Admit, Next};
use tonic::Status;
use tonic::body::Body;

use crate::credential::{CredentialKeys, HEADER};
use crate::refusal;
use crate::reload::Reloaded;
use crate::rules::Rules;

/// Lets calls in that carry a credential of the gateway, and scopes them to its caller.
///
/// Without keys everybody is let in but those who carry a credential: their gateway told them apart, which can't be done here,
/// so they would all meet the rows of all.
#[derive(Clone, Debug)]
pub struct ServiceGuard {
    rules: Rules,
    keys: Option<Reloaded<CredentialKeys>>,
}

impl ServiceGuard {
    /// A guard by the rules, for credentials of some keys; `None` where callers aren't authenticated.
    pub fn new(rules: Rules, keys: Option<Reloaded<CredentialKeys>>) -> Self {
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
        if self.rules.lets_in_anyone(path) {
            return next.run(request);
        }
        let identity = credential.and_then(|given| keys.get().check(&given, path, SystemTime::now()));
        let Some(identity) = identity else {
            return Next::refuse(refusal::unproven());
        };
        request.extensions_mut().insert(Caller(identity.name()));
        let path = request.uri().path();
        // By the service's own rules: a gateway of another version can't widen them.
        match refusal::admit(&self.rules, path, identity) {
            Ok(Some(caller)) => Box::pin(caller.scope(next.run(request))),
            Ok(None) => Next::refuse(no_rule()),
            Err(status) => Next::refuse(*status),
        }
    }
}

/// An RPC without a rule is none, even where it is mounted.
fn no_rule() -> Status {
    let message = "there is no such RPC here; see the services by reflection";
    souk_chassis::status::StatusBuilder::unimplemented("METHOD_UNKNOWN", message).build()
}
