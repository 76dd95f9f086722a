//! The settings of authentication. They name files: no secret is a setting, so none is ever printed.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use souk_chassis::config::{ConfigError, Problems, duration};
use souk_chassis::private_files::warn_of_readers;

use crate::credential::CredentialKeys;
use crate::reload::{FileError, Reloaded};

/// The variable that may hold the credential key itself, in the place of a file. It is no setting.
pub const CREDENTIAL_KEY_VARIABLE: &str = "SOUK_CREDENTIAL_KEY";

/// Where Debian, Alpine and those after them keep the authorities that everybody believes.
const SYSTEM_CA: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Times between two looks at an issuer's keys that make sense.
const REFRESH: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(24 * 60 * 60);

/// Ages of an issuer's keys that make sense.
const KEYS_AGE_MAX: RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(30 * 24 * 60 * 60);

/// Most names in the settings that a front door is called by.
pub const HOSTS_MAX: usize = 64;

/// Longest tolerance between clocks.
const LEEWAY_MAX: Duration = Duration::from_secs(300);

/// Who is let in. Of a service, only `credential_key` and the flag count: a gateway knows the callers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// File of API keys; see `souk make-key`. Empty when there are none.
    pub keys: PathBuf,
    /// Tokens of others.
    pub jwt: JwtConfig,
    /// File of the key that gateway and services have in common; see `souk make-credential-key`.
    pub credential_key: PathBuf,
    /// Listens beyond this machine although everybody may do everything.
    pub insecure_allow_anonymous: bool,
    /// Names that a front door is called by where callers aren't authenticated, besides addresses and `localhost`: by other names web
    /// pages of strangers could call it (DNS rebinding). At most [`HOSTS_MAX`].
    pub hosts: Vec<String>,
    /// Whose traces a front door goes on with.
    pub traces: TracesOf,
}

/// Whose traces a front door goes on with: they decide which calls are recorded, and in which trace. Calls of others begin traces of
/// their own, with a link to what was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TracesOf {
    /// Nobody's.
    Nobody,
    /// Of callers whose credentials are good; of everybody where callers aren't authenticated.
    #[default]
    Callers,
    /// Everybody's.
    Everybody,
}

/// JSON Web Tokens that are taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwtConfig {
    /// The file with the issuer's public keys (JWKS), or their `https` address. Empty when no tokens are taken.
    pub jwks: String,
    /// The authorities that the server of the address is believed by, in PEM; those of the system where nothing is set.
    pub ca: PathBuf,
    /// Time between two looks at the address; 10 s to a day.
    #[serde(with = "duration")]
    pub refresh: Duration,
    /// How long keys stay good while those that should replace them can't be had or read; 1 minute to 30 days.
    #[serde(with = "duration")]
    pub keys_age_max: Duration,
    /// The `iss` that tokens must have.
    pub issuer: String,
    /// The `aud` that tokens must have.
    pub audience: String,
    /// The claim that holds the role.
    pub role_claim: String,
    /// How far the clock of the issuer may be off; at most 5 minutes.
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
            leeway: Duration::from_secs(30),
        }
    }
}

/// What `auth.jwt.jwks` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The name of a file.
    File,
    /// An `https` address.
    Address,
}

/// What a process is, for what its settings must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything: gateway and services.
    Whole,
    /// The front door to other processes.
    Gateway,
    /// A service behind a gateway.
    Service,
}

impl AuthConfig {
    /// Are callers authenticated at this front door?
    pub fn knows_callers(&self) -> bool {
        !self.keys.as_os_str().is_empty() || !self.jwt.jwks.is_empty()
    }

    /// Is a key set that gateway and services have in common?
    fn has_credential_key(&self) -> bool {
        !self.credential_key.as_os_str().is_empty() || std::env::var_os(CREDENTIAL_KEY_VARIABLE).is_some()
    }

    /// What is wrong with these settings, for a process whose other settings are checked already.
    ///
    /// # Errors
    /// All problems, under `auth`.
    pub fn checked(&self, part: Part, listen: SocketAddr) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        self.check(part, "auth", listen, &mut problems);
        let error = ConfigError::from(problems);
        if error.problems().is_empty() {
            Ok(())
        } else {
            Err(error)
        }
    }

    /// Adds what is wrong with these settings to `problems`; `path` is where they stand, `listen` where `part` listens.
    pub fn check(&self, part: Part, path: &str, listen: SocketAddr, problems: &mut Problems) {
        let on = match part {
            Part::Whole | Part::Gateway => self.knows_callers(),
            Part::Service => self.has_credential_key(),
        };
        if !on && !listen.ip().to_canonical().is_loopback() && !self.insecure_allow_anonymous {
            let what = match part {
                Part::Whole | Part::Gateway => "auth.keys or auth.jwt.jwks",
                Part::Service => "auth.credential_key",
            };
            let message = format!(
                "everybody who reaches {listen} could do everything: set {what}, listen on 127.0.0.1, or say \
                 --insecure-allow-anonymous"
            );
            problems.push(path, message);
        }
        if part == Part::Service && self.knows_callers() {
            let message = "keys and jwt are settings of the gateway; a service has credential_key alone";
            problems.push(path, message);
        }
        if part == Part::Gateway && self.knows_callers() && !self.has_credential_key() {
            let message = format!(
                "must be set (or {CREDENTIAL_KEY_VARIABLE}): services must know that calls come from the gateway"
            );
            problems.push(&format!("{path}.credential_key"), message);
        }
        if self.hosts.len() > HOSTS_MAX {
            let count = self.hosts.len();
            problems.push(
                &format!("{path}.hosts"),
                format!("has {count} names; at most {HOSTS_MAX} can be"),
            );
        }
        for (index, name) in self.hosts.iter().enumerate() {
            if !is_name(name) {
                let words =
                    format!("`{name}` is no name of a host; it must be as in shop.example, without a port");
                problems.push(&format!("{path}.hosts[{index}]"), words);
            }
        }
        self.jwt.check(&format!("{path}.jwt"), problems);
    }

    /// The keys that gateway and services have in common, by the file or the variable; `None` when there are none.
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When they can't be used.
    pub fn credential_keys(&self) -> Result<Option<Reloaded<CredentialKeys>>, FileError> {
        let read = |text: &str| CredentialKeys::read(text).map_err(|error| error.to_string());
        if !self.credential_key.as_os_str().is_empty() {
            warn_of_readers(&self.credential_key);
            return Reloaded::follow(&self.credential_key, read).map(Some);
        }
        let Some(text) = std::env::var_os(CREDENTIAL_KEY_VARIABLE) else {
            return Ok(None);
        };
        match read(&text.to_string_lossy()) {
            Ok(keys) => Ok(Some(Reloaded::fixed(keys))),
            Err(problem) => Err(FileError::Content {
                path: CREDENTIAL_KEY_VARIABLE.into(),
                problem,
            }),
        }
    }
}

/// Is it a name as hosts have, without a scheme and a port?
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.split('.').all(|label| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        })
}

impl JwtConfig {
    /// Where the issuer's keys are.
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
        if self.role_claim.is_empty() {
            problems.push(&format!("{path}.role_claim"), "must not be empty");
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

    const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
    const EVERYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), 1);

    fn problems(config: &AuthConfig, part: Part, listen: SocketAddr) -> String {
        config
            .checked(part, listen)
            .map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn listening_to_everybody_without_knowing_them_needs_a_word() {
        let off = AuthConfig::default();
        for part in [Part::Whole, Part::Gateway, Part::Service] {
            assert_eq!(problems(&off, part, HERE), "");
            assert!(problems(&off, part, EVERYWHERE).contains("--insecure-allow-anonymous"));
            let said = AuthConfig {
                insecure_allow_anonymous: true,
                ..AuthConfig::default()
            };
            assert_eq!(problems(&said, part, EVERYWHERE), "");
        }
    }

    #[test]
    fn each_part_has_the_settings_that_it_uses() {
        let keys = AuthConfig {
            keys: "keys".into(),
            ..AuthConfig::default()
        };
        assert_eq!(problems(&keys, Part::Whole, EVERYWHERE), "");
        assert!(problems(&keys, Part::Gateway, HERE).contains("auth.credential_key: must be set"));
        assert!(problems(&keys, Part::Service, HERE).contains("settings of the gateway"));
        let both = AuthConfig {
            credential_key: "key".into(),
            ..keys
        };
        assert_eq!(problems(&both, Part::Gateway, EVERYWHERE), "");
    }

    #[test]
    fn tokens_need_an_issuer_and_an_audience() {
        let mut config = AuthConfig::default();
        config.jwt.jwks = "http://issuer.test/jwks".to_owned();
        config.jwt.refresh = Duration::from_secs(9);
        config.jwt.keys_age_max = Duration::from_secs(59);
        config.jwt.leeway = Duration::from_secs(301);
        config.jwt.role_claim.clear();
        let text = problems(&config, Part::Whole, HERE);
        for path in [
            "jwks",
            "refresh",
            "keys_age_max",
            "issuer",
            "audience",
            "leeway",
            "role_claim",
        ] {
            assert!(text.contains(&format!("auth.jwt.{path}: must")), "{path}: {text}");
        }
    }
}
