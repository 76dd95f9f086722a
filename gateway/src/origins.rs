//! CORS: which web pages may call the gateway from a browser, and what they may read of its responses.
//!
//! Browsers send a preflight for pages of other origins, which without origins in the settings is refused. Requests without a preflight (GET,
//! and POST without JSON) are checked by their origin, too, while callers aren't authenticated: they would be cross-site request forgery.
//! This protects users of browsers, not the gateway: other programs aren't concerned.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER};
use http::{Request, Uri};
use serde::{Deserialize, Serialize};
use souk_chassis::config::Problems;
use souk_chassis::status::StatusBuilder;
use tonic::{Code, Status};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::json::VERBS;

/// How long a browser remembers that a page may call.
const PREFLIGHT_AGE: Duration = Duration::from_secs(2 * 60 * 60);

/// Most origins in the settings.
pub const ORIGINS_MAX: usize = 64;

/// Pages that are served on the machine itself, on any port: those that the demo answers to.
pub const LOOPBACK: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// The page's site compared with the one that it calls. Browsers set it; pages can't.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Answer headers that pages may read: how a call ended, and in which trace.
const EXPOSED: [HeaderName; 5] = [
    HeaderName::from_static("grpc-status"),
    HeaderName::from_static("grpc-message"),
    HeaderName::from_static("grpc-status-details-bin"),
    HeaderName::from_static("traceparent"),
    RETRY_AFTER,
];

/// Request headers that pages may send: those of Connect's and gRPC-Web clients, keys, trace context.
const SENT: [HeaderName; 15] = [
    ACCEPT,
    AUTHORIZATION,
    CONTENT_TYPE,
    HeaderName::from_static("baggage"),
    HeaderName::from_static("connect-accept-encoding"),
    HeaderName::from_static("connect-content-encoding"),
    HeaderName::from_static("connect-protocol-version"),
    HeaderName::from_static("connect-timeout-ms"),
    HeaderName::from_static("grpc-timeout"),
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-grpc-web"),
    HeaderName::from_static("x-user-agent"),
];

/// Settings of web pages: the gateway's own, and calls from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// Origins of the pages that may call, as in `https://shop.example`; without a port it is the default one, a port of
    /// `*` is any port, `*` alone is every page. None by default. At most [`ORIGINS_MAX`].
    pub origins: Vec<String>,
    /// Whether the gateway serves its own page; on by default.
    pub console: ConsoleMode,
}

/// Whether the console is served at `/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ConsoleMode {
    /// Served; the default.
    #[default]
    On,
    /// 404 instead.
    Off,
}

impl WebConfig {
    /// Allows pages of this machine ([`LOOPBACK`]) alone.
    pub fn loopback() -> Self {
        Self {
            origins: LOOPBACK.map(str::to_owned).to_vec(),
            console: ConsoleMode::On,
        }
    }

    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub fn check(&self, path: &str, problems: &mut Problems) {
        if self.origins.len() > ORIGINS_MAX {
            let count = self.origins.len();
            let message = format!("has {count} origins; at most {ORIGINS_MAX} can be");
            problems.push_in(path, "origins", message);
        }
        for (index, origin) in self.origins.iter().enumerate() {
            if Pattern::parse(origin).is_none() {
                let words = format!(
                    "`{origin}` is no origin; it must be https://host, http://host:port or `*`, without a path"
                );
                problems.push_in(path, format_args!("origins[{index}]"), words);
            }
        }
    }

    /// The origins whose pages these settings allow.
    pub(crate) fn allowed_origins(&self) -> AllowedOrigins {
        let patterns = self.origins.iter().filter_map(|origin| Pattern::parse(origin));
        AllowedOrigins(patterns.collect())
    }
}

/// The origins whose pages may call.
#[derive(Clone, Debug)]
pub(crate) struct AllowedOrigins(Arc<[Pattern]>);

impl AllowedOrigins {
    fn has(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().unwrap_or_default();
        self.0.iter().any(|pattern| pattern.matches(origin))
    }

    /// Refuses (ORIGIN_UNKNOWN) a call that a browser makes for a page that isn't allowed to.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Status> {
        let headers = request.headers();
        let site = headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
        let allowed = match (site, headers.get(ORIGIN)) {
            // A page of this server, or a typed address.
            (Some(b"same-origin" | b"none"), _) => true,
            // An older browser, without Sec-Fetch-Site.
            (None, Some(origin)) => self.has(origin) || is_own(origin, request),
            (Some(_), Some(origin)) => self.has(origin),
            (site, None) => site.is_none(),
        };
        if allowed {
            return Ok(());
        }
        let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
        let origin = origin.unwrap_or("null");
        let message =
            format!("pages of {origin:?} may not call this server; add their origin to web.origins");
        let refusal = StatusBuilder::new(Code::PermissionDenied, "ORIGIN_UNKNOWN", message);
        Err(refusal.metadata("origin", origin).build())
    }

    /// The CORS layer: answers preflights, and tells browsers which responses allowed pages may read.
    pub(crate) fn layer(&self) -> CorsLayer {
        let pages = self.clone();
        CorsLayer::new()
            .allow_origin(AllowOrigin::predicate(move |origin, _| pages.has(origin)))
            .allow_methods(VERBS)
            .allow_headers(SENT)
            .expose_headers(EXPOSED)
            .max_age(PREFLIGHT_AGE)
    }
}

/// Whether `origin` is that of the server that `request` was sent to, compared by host and port.
fn is_own<B>(origin: &HeaderValue, request: &Request<B>) -> bool {
    let host = match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => request.headers().get(HOST).and_then(|host| host.to_str().ok()),
    };
    let origin = origin.to_str().unwrap_or_default();
    let (Some((scheme, _)), Some(host)) = (origin.split_once("://"), host) else {
        return false;
    };
    let own = format!("{scheme}://{host}");
    without_default_port(origin).eq_ignore_ascii_case(without_default_port(&own))
}

/// `origin` as browsers write it: without the port that its scheme has by default.
fn without_default_port(origin: &str) -> &str {
    let port = match origin.split_once("://") {
        Some(("http", _)) => ":80",
        Some(("https", _)) => ":443",
        _ => return origin,
    };
    origin.strip_suffix(port).unwrap_or(origin)
}

/// An entry of [`WebConfig::origins`], in lower case and without a default port.
#[derive(Debug, PartialEq, Eq)]
enum Pattern {
    Every,
    One(String),
    /// Every port of this `scheme://host`.
    AnyPort(String),
}

impl Pattern {
    /// `None` for what no browser sends as an origin.
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Every);
        }
        let (address, any_port) = match text.strip_suffix(":*") {
            Some(address) => (address, true),
            None => (text, false),
        };
        let uri: Uri = address.parse().ok()?;
        let host = uri.host().filter(|host| !host.is_empty())?;
        let scheme = uri
            .scheme_str()
            .filter(|scheme| matches!(*scheme, "http" | "https"))?;
        let origin = match uri.port_u16() {
            Some(_) if any_port => return None,
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        };
        // Browsers write origins in lower case, without a path, not even `/`.
        if !origin.eq_ignore_ascii_case(address) {
            return None;
        }
        let origin = origin.to_ascii_lowercase();
        Some(if any_port {
            Self::AnyPort(origin)
        } else {
            Self::One(without_default_port(&origin).to_owned())
        })
    }

    fn matches(&self, origin: &str) -> bool {
        match self {
            Self::Every => true,
            Self::One(one) => one == without_default_port(origin),
            Self::AnyPort(host) => origin.strip_prefix(host.as_str()).is_some_and(|rest| {
                rest.is_empty()
                    || rest.strip_prefix(':').is_some_and(|port| {
                        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
                    })
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_match_by_scheme_host_and_port() {
        let matches = |pattern: &str, origin: &str| Pattern::parse(pattern).expect(pattern).matches(origin);
        assert!(matches("https://Shop.example", "https://shop.example"));
        assert!(matches("http://127.0.0.1:3000", "http://127.0.0.1:3000"));
        assert!(matches("http://localhost:*", "http://localhost:5173"));
        assert!(matches("http://localhost:*", "http://localhost"));
        assert!(matches("http://[::1]:*", "http://[::1]:80"));
        assert!(matches("*", "null"));
        assert!(matches("https://shop.example:443", "https://shop.example"));
        assert!(matches("https://shop.example", "https://shop.example:443"));
        assert!(matches("HTTP://[::1]:80", "http://[::1]"));
        for (pattern, origin) in [
            ("https://shop.example", "http://shop.example"),
            ("https://shop.example", "https://shop.example.evil"),
            ("https://shop.example", "https://shop.example:8443"),
            ("https://shop.example:80", "https://shop.example"),
            ("http://shop.example:443", "http://shop.example"),
            ("http://localhost:*", "http://localhost.evil:80"),
            ("http://localhost:*", "http://localhost:80.evil"),
            ("http://localhost:*", "null"),
        ] {
            assert!(!matches(pattern, origin), "{pattern} {origin}");
        }
    }

    #[test]
    fn a_page_is_the_servers_own_with_or_without_the_default_port() {
        for (origin, host, own) in [
            ("https://shop.example", "shop.example:443", true),
            ("http://shop.example", "Shop.example:80", true),
            ("https://shop.example", "shop.example", true),
            ("https://shop.example", "shop.example:80", false),
            ("http://shop.example", "shop.example:443", false),
            ("null", "null", false),
        ] {
            let request = Request::get("/").header(HOST, host).body(());
            let found = is_own(&HeaderValue::from_static(origin), &request.expect("a request"));
            assert_eq!(found, own, "{origin} {host}");
        }
    }

    #[test]
    fn what_a_browser_sends_for_a_page_that_may_not_call_is_refused() {
        let config = WebConfig {
            origins: vec!["https://shop.example".to_owned()],
            console: ConsoleMode::On,
        };
        let check = |headers: &[(&str, &str)]| {
            let mut request = Request::post("/v1/indexes/orders:rebuild").header(HOST, "127.0.0.1:50051");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            config
                .allowed_origins()
                .check(&request.body(()).expect("a request"))
                .is_ok()
        };
        for allowed in [
            &[][..],
            &[
                ("origin", "https://shop.example"),
                ("sec-fetch-site", "cross-site"),
            ],
            &[("origin", "http://127.0.0.1:50051")],
            &[
                ("origin", "http://127.0.0.1:50051"),
                ("sec-fetch-site", "same-origin"),
            ],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-origin")],
        ] {
            assert!(check(allowed), "{allowed:?}");
        }
        for refused in [
            &[("origin", "https://evil.example")][..],
            &[("origin", "null")],
            &[
                ("origin", "http://127.0.0.1:50052"),
                ("sec-fetch-site", "same-site"),
            ],
            &[
                ("origin", "https://evil.example"),
                ("sec-fetch-site", "cross-site"),
            ],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            // Of http while this is https.
            &[
                ("origin", "http://127.0.0.1:50051"),
                ("sec-fetch-site", "cross-site"),
            ],
        ] {
            assert!(!check(refused), "{refused:?}");
        }
    }

    #[test]
    fn what_is_no_origin_is_a_problem_of_its_setting() {
        for bad in [
            "",
            "shop.example",
            "ftp://a",
            "https://a/",
            "https://a/b",
            "https://",
            "http://a:1:*",
        ] {
            assert_eq!(Pattern::parse(bad), None, "{bad}");
        }
        for good in LOOPBACK {
            assert!(Pattern::parse(good).is_some(), "{good}");
        }
    }
}
