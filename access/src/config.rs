//! The settings of authentication, `auth`. They name files: no secret is a setting, so none is ever printed.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use souk_chassis::config::{ConfigError, Problems, duration};
use souk_chassis::private_files::warn_of_readers;
use souk_chassis::reload::Reloaded;

use crate::credential::CredentialKeys;
use crate::key_files::{KeyFileError, follow};

/// The environment variable that may hold the credential key itself, instead of a file. It is no setting.
pub const CREDENTIAL_KEY_VARIABLE: &str = "SOUK_CREDENTIAL_KEY";

/// The system's certificate authorities on Debian, Alpine and distributions based on them.
const SYSTEM_CA: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Range of [`JwtConfig::refresh`].
const REFRESH: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(24 * 60 * 60);

/// Range of [`JwtConfig::keys_age_max`].
const KEYS_AGE_MAX: RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(30 * 24 * 60 * 60);

/// Most names of [`AuthConfig::hosts`].
pub const HOSTS_MAX: usize = 64;

/// Highest [`JwtConfig::leeway`].
const LEEWAY_MAX: Duration = Duration::from_secs(300);

/// How callers are authenticated. A service has `credential_key` and `insecure_allow_anonymous` alone: its gateway has the
/// rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// File of API keys; see `souk make-key`. Empty when there are none.
    pub keys: PathBuf,
    /// JSON Web Tokens.
    pub jwt: JwtConfig,
    /// File of the credential keys that gateway and services share; see `souk make-credential-key`. Empty when there is none.
    pub credential_key: PathBuf,
    /// Allows listening beyond this machine although callers aren't authenticated, and may do everything.
    pub insecure_allow_anonymous: bool,
    /// Host names, besides addresses and `localhost`, by which a gateway may be called that doesn't authenticate callers.
    /// Calls by other names are refused, since web pages could make them by DNS rebinding. At most [`HOSTS_MAX`].
    pub hosts: Vec<String>,
    /// Callers whose trace context a gateway accepts.
    pub traces: TraceTrust,
}

/// Callers whose trace context (`traceparent`) a gateway accepts, and with it their sampling decision. The calls of others
/// begin new traces, with a link to the context that they sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceTrust {
    /// None.
    Nobody,
    /// Authenticated ones; all where callers aren't authenticated.
    #[default]
    Callers,
    /// All.
    Everybody,
}

/// The JSON Web Tokens that are accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwtConfig {
    /// File or `https` address of the issuer's public keys (JWKS). Empty when no tokens are accepted.
    pub jwks: String,
    /// PEM file of the certificate authorities to trust for the `https` address; the system's by default.
    pub ca: PathBuf,
    /// How often the `https` address is fetched; 10 s to a day, 5 minutes by default.
    #[serde(with = "duration")]
    pub refresh: Duration,
    /// How long the last keys are used while new ones can't be read; 1 minute to 30 days, a day by default.
    #[serde(with = "duration")]
    pub keys_age_max: Duration,
    /// The `iss` that tokens must have.
    pub issuer: String,
    /// The `aud` that tokens must have.
    pub audience: String,
    /// Name of the claim that holds the role; `souk_role` by default.
    pub role_claim: String,
    /// Name of the claim with the tables that the caller is limited to; `souk_tables` by default.
    pub tables_claim: String,
    /// Tolerance for the issuer's clock; at most 5 minutes, 30 s by default.
    #[serde(with = "duration")]
    pub leeway: Duration,
}

impl Default for JwtConfig {
    fn default() -> Self {
        Self {
            jwks: String::new(),
            ca: SYSTEM_CA.into(),
            refresh: Duration::from_secs(300),
            keys_age_max: Duration::from_secs(24 * 60 * 60),
            issuer: String::new(),
            audience: String::new(),
            role_claim: "souk_role".to_owned(),
            tables_claim: "souk_tables".to_owned(),
            leeway: Duration::from_secs(30),
        }
    }
}

/// Where the issuer's keys are: what `auth.jwt.jwks` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file.
    File,
    /// An `https` address.
    Address,
}

/// What a process serves, which decides what settings it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessKind {
    /// Gateway and services in one process.
    Whole,
    /// A gateway of services in other processes.
    Gateway,
    /// A service behind a gateway.
    Service,
}

impl AuthConfig {
    /// Whether a gateway with these settings authenticates its callers: by API keys, tokens, or both.
    pub fn authenticates_callers(&self) -> bool {
        !self.keys.as_os_str().is_empty() || !self.jwt.jwks.is_empty()
    }

    /// Whether a credential key is set, in a file or the environment.
    fn has_credential_key(&self) -> bool {
        !self.credential_key.as_os_str().is_empty() || std::env::var_os(CREDENTIAL_KEY_VARIABLE).is_some()
    }

    /// [`Self::check`] as a result, for a process whose other settings are checked already; `listen` is the address that it listens
    /// at.
    ///
    /// # Errors
    /// All problems, under `auth`.
    pub fn checked(&self, kind: ProcessKind, listen: SocketAddr) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        self.check(kind, "auth", listen, &mut problems);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.into())
        }
    }

    /// Adds what is wrong with these settings to `problems`; `path` is where they stand, `listen` where `kind` listens.
    pub fn check(&self, kind: ProcessKind, path: &str, listen: SocketAddr, problems: &mut Problems) {
        let authenticates = match kind {
            ProcessKind::Whole | ProcessKind::Gateway => self.authenticates_callers(),
            ProcessKind::Service => self.has_credential_key(),
        };
        if !authenticates && !listen.ip().to_canonical().is_loopback() && !self.insecure_allow_anonymous {
            let what = match kind {
                ProcessKind::Whole | ProcessKind::Gateway => "auth.keys or auth.jwt.jwks",
                ProcessKind::Service => "auth.credential_key",
            };
            let message = format!(
                "everybody who reaches {listen} could do everything: set {what}, listen on 127.0.0.1, or say \
                 --insecure-allow-anonymous"
            );
            problems.push(path, message);
        }
        let of_service = Self {
            credential_key: self.credential_key.clone(),
            insecure_allow_anonymous: self.insecure_allow_anonymous,
            ..Self::default()
        };
        if kind == ProcessKind::Service && *self != of_service {
            let message = "keys, jwt, hosts and traces are settings of the gateway; a service has credential_key \
                           and insecure_allow_anonymous alone";
            problems.push(path, message);
        }
        if kind == ProcessKind::Gateway && self.authenticates_callers() && !self.has_credential_key() {
            let message = format!(
                "must be set (or {CREDENTIAL_KEY_VARIABLE}): services must know that calls come from the gateway"
            );
            problems.push(&format!("{path}.credential_key"), message);
        }
        if self.hosts.len() > HOSTS_MAX {
            let count = self.hosts.len();
            problems.push(
                &format!("{path}.hosts"),
                format!("has {count} names; at most {HOSTS_MAX} are allowed"),
            );
        }
        for (index, name) in self.hosts.iter().enumerate() {
            if !is_host_name(name) {
                let message =
                    format!("`{name}` isn't a host name; it must be like shop.example, without a port");
                problems.push(&format!("{path}.hosts[{index}]"), message);
            }
        }
        self.jwt.check(&format!("{path}.jwt"), problems);
    }

    /// Reads the credential keys, from the file, which is followed, or else from the environment; `None` when neither is
    /// set. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`KeyFileError`] when the file can't be read, or the keys can't be used.
    pub fn credential_keys(&self) -> Result<Option<Arc<Reloaded<CredentialKeys>>>, KeyFileError> {
        let read = |text: &str| CredentialKeys::parse(text).map_err(|error| error.to_string());
        if !self.credential_key.as_os_str().is_empty() {
            warn_of_readers(&self.credential_key);
            return follow(&self.credential_key, read).map(Some);
        }
        let Some(text) = std::env::var_os(CREDENTIAL_KEY_VARIABLE) else {
            return Ok(None);
        };
        match read(&text.to_string_lossy()) {
            Ok(keys) => Ok(Some(Reloaded::fixed(keys))),
            Err(problem) => Err(KeyFileError::Malformed(CREDENTIAL_KEY_VARIABLE.into(), problem)),
        }
    }
}

/// Whether it is a host name, without a scheme and a port.
fn is_host_name(text: &str) -> bool {
    !text.is_empty()
        && text.split('.').all(|label| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        })
}

impl JwtConfig {
    /// Whether [`Self::jwks`] is a file or an address.
    pub fn source(&self) -> KeySource {
        match self.jwks.contains("://") {
            true => KeySource::Address,
            false => KeySource::File,
        }
    }

    fn check(&self, path: &str, problems: &mut Problems) {
        if self.source() == KeySource::Address && !self.jwks.starts_with("https://") {
            let message = "must be a file or an https address: on other ways anybody could put keys in";
            problems.push(&format!("{path}.jwks"), message);
        }
        if !REFRESH.contains(&self.refresh) {
            problems.push(&format!("{path}.refresh"), "must be 10s to 24h");
        }
        if !KEYS_AGE_MAX.contains(&self.keys_age_max) {
            problems.push(&format!("{path}.keys_age_max"), "must be 1m to 30 days (720h)");
        }
        if !self.jwks.is_empty() {
            for (name, value) in [("issuer", &self.issuer), ("audience", &self.audience)] {
                if value.is_empty() {
                    let message = "must be set: without it tokens for others would be taken, too";
                    problems.push(&format!("{path}.{name}"), message);
                }
            }
        }
        for (name, claim) in [
            ("role_claim", &self.role_claim),
            ("tables_claim", &self.tables_claim),
        ] {
            if claim.is_empty() {
                problems.push(&format!("{path}.{name}"), "must not be empty");
            }
        }
        if self.leeway > LEEWAY_MAX {
            problems.push(&format!("{path}.leeway"), "must be at most 5m");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
    const WILDCARD: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), 1);

    fn problems(config: &AuthConfig, kind: ProcessKind, listen: SocketAddr) -> String {
        config
            .checked(kind, listen)
            .map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn listening_beyond_this_machine_without_authentication_has_to_be_allowed() {
        let off = AuthConfig::default();
        for kind in [ProcessKind::Whole, ProcessKind::Gateway, ProcessKind::Service] {
            assert_eq!(problems(&off, kind, LOOPBACK), "");
            assert!(problems(&off, kind, WILDCARD).contains("--insecure-allow-anonymous"));
            let allowed = AuthConfig {
                insecure_allow_anonymous: true,
                ..AuthConfig::default()
            };
            assert_eq!(problems(&allowed, kind, WILDCARD), "");
        }
    }

    #[test]
    fn each_kind_of_process_has_the_settings_that_it_uses() {
        let keys = AuthConfig {
            keys: "keys".into(),
            ..AuthConfig::default()
        };
        assert_eq!(problems(&keys, ProcessKind::Whole, WILDCARD), "");
        assert!(problems(&keys, ProcessKind::Gateway, LOOPBACK).contains("auth.credential_key: must be set"));
        let of_gateway: [fn(&mut AuthConfig); 4] = [
            |config| config.keys = "keys".into(),
            |config| config.jwt.leeway = Duration::ZERO,
            |config| config.hosts = vec!["souk.lan".to_owned()],
            |config| config.traces = TraceTrust::Everybody,
        ];
        for set in of_gateway {
            let mut config = AuthConfig::default();
            set(&mut config);
            assert!(problems(&config, ProcessKind::Service, LOOPBACK).contains("settings of the gateway"));
        }
        let both = AuthConfig {
            credential_key: "key".into(),
            ..keys
        };
        assert_eq!(problems(&both, ProcessKind::Gateway, WILDCARD), "");
    }

    #[test]
    fn tokens_need_an_issuer_and_an_audience() {
        let mut config = AuthConfig::default();
        config.jwt.jwks = "http://issuer.test/jwks".to_owned();
        config.jwt.refresh = Duration::from_secs(9);
        config.jwt.keys_age_max = Duration::from_secs(59);
        config.jwt.leeway = Duration::from_secs(301);
        config.jwt.role_claim.clear();
        config.jwt.tables_claim.clear();
        let text = problems(&config, ProcessKind::Whole, LOOPBACK);
        for path in [
            "jwks",
            "refresh",
            "keys_age_max",
            "issuer",
            "audience",
            "leeway",
            "role_claim",
            "tables_claim",
        ] {
            assert!(text.contains(&format!("auth.jwt.{path}: must")), "{path}: {text}");
        }
    }
}
