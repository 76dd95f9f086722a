//! Calls of the run, and what an error says of what was done.

use std::time::Duration;

use serde_json::Value;
use souk_e2e::dynamic::Dynamic;
use souk_e2e::rejection::Rejection;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::never_sent::never_sent;

/// What a call has, as the header says it.
const TIME: &str = "5S";
/// When a call is over at the latest: who answers has been given some time more to say so.
const TIME_MAX: Duration = Duration::from_secs(10);

/// How a call failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// Nothing was done.
    Refused,
    /// Whether something was done isn't known.
    Unknown,
    /// It must not fail so.
    Wrong(String),
}

impl Failed {
    fn of(name: &str, status: &Status) -> Self {
        let reason = Rejection::of(status).map_or(String::new(), |rejection| rejection.reason);
        let broken = std::error::Error::source(status).is_some();
        match status.code() {
            _ if never_sent(status) => Self::Refused,
            // Of an index that was redesigned between two pages.
            _ if reason == "PAGE_TOKEN_INVALID" => Self::Refused,
            Code::ResourceExhausted => Self::Refused,
            Code::Unavailable if ["STORE_FAILED", "INDEX_BUILDING", "INDEX_FAILED"].contains(&&*reason) => {
                Self::Refused
            }
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => Self::Unknown,
            // The connection broke.
            _ if broken && reason.is_empty() => Self::Unknown,
            _ => Self::Wrong(format!("{name}: {status:?}")),
        }
    }
}

/// A client whose calls end.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) dynamic: Dynamic,
    timed: Dynamic,
}

impl Calls {
    pub(super) fn new(channel: Channel) -> anyhow::Result<Self> {
        let dynamic = Dynamic::new(channel)?;
        Ok(Self {
            timed: dynamic.clone().with("grpc-timeout", TIME)?,
            dynamic,
        })
    }

    pub(super) async fn call(&self, name: &str, request: &Value) -> Result<Value, Failed> {
        match tokio::time::timeout(TIME_MAX, self.timed.call(name, request)).await {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(status))) => Err(Failed::of(name, &status)),
            Ok(Err(error)) => Err(Failed::Wrong(format!("{name} {request}: {error:#}"))),
            Err(_) => Err(Failed::Wrong(format!("{name} hasn't ended after {TIME_MAX:?}"))),
        }
    }
}
