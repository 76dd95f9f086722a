//! Caller credentials: a short-lived header, signed with a shared key, by which a service knows the caller that the gateway
//! authenticated. The gateway makes one for each call.
//!
//! The header [`HEADER`] is URL-safe base64 of `version (1) | role (1) | expiry in ms since the Unix epoch (8) | subject |
//! HMAC-SHA256 (32)`, with bytes in brackets. For a caller who is limited to some tables, version 2 has `length (2) | names of
//! tables` before the subject; services that only know version 1 refuse it. The HMAC also covers the path of the RPC, so that
//! the credential is worthless for any other. It grants nothing: the service looks up by its own rules what the caller may do.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderName, HeaderValue};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::caller::{Identity, Role, SUBJECT_BYTES_MAX};
use crate::table_names::TABLE_NAMES_BYTES_MAX;

/// The header with the credential. The gateway removes what a client sends under this name.
pub const HEADER: HeaderName = HeaderName::from_static("souk-caller");

/// Longest lifetime of a credential: a call that waits longer for its service fails.
pub const LIFE_MAX: Duration = Duration::from_secs(60);

/// Tolerance between the clocks of gateway and services.
pub const CLOCK_SKEW: Duration = Duration::from_secs(5);

/// Fewest bytes of a key's text.
pub const KEY_BYTES_MIN: usize = 32;

/// Most keys that are taken at a time, while one is replaced by another.
pub const KEYS_MAX: usize = 4;

/// Version of the layout.
const VERSION: u8 = 1;
/// Version of the layout with names of tables.
const VERSION_LIMITED: u8 = 2;
/// Bytes of version, role and expiry.
const HEAD_BYTES: usize = 10;
/// Bytes of the field with the length of the names of tables.
const LENGTH_BYTES: usize = 2;
/// Bytes of the HMAC.
const HMAC_BYTES: usize = 32;
/// Longest header, in characters.
const HEADER_CHARS_MAX: usize =
    (HEAD_BYTES + LENGTH_BYTES + TABLE_NAMES_BYTES_MAX + SUBJECT_BYTES_MAX + HMAC_BYTES).div_ceil(3) * 4;
/// Domain separation: an HMAC that the key makes for another purpose is no credential.
const PURPOSE: &[u8] = b"souk-caller\0";

/// Why there are no usable credential keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A key is too short to be secret.
    #[error("a credential key has at least {KEY_BYTES_MIN} bytes; make one with `souk make-credential-key`")]
    Short,
    /// There is none, or there are too many.
    #[error("there must be 1 to {KEYS_MAX} credential keys, one a line: the first signs, all are accepted")]
    Count,
    /// The operating system gave no random bytes.
    #[error("the operating system gives no random bytes")]
    Random,
}

/// The keys that sign and verify credentials. `Debug` shows their number alone.
#[derive(Clone)]
pub struct CredentialKeys(Arc<Vec<hmac::Key>>);

impl std::fmt::Debug for CredentialKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CredentialKeys({})", self.0.len())
    }
}

impl CredentialKeys {
    /// A random key, for gateway and services in one process.
    ///
    /// # Errors
    /// [`KeyError::Random`].
    pub fn random() -> Result<Self, KeyError> {
        let key =
            hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| KeyError::Random)?;
        Ok(Self(Arc::new(vec![key])))
    }

    /// Parses keys, one a line; empty lines and those that begin with `#` are skipped. The first signs, and all
    /// verify, so that a key can be rotated without downtime.
    ///
    /// # Errors
    /// [`KeyError::Count`], [`KeyError::Short`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lines = text.lines().map(str::trim);
        let keys: Vec<_> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        if !(1..=KEYS_MAX).contains(&keys.len()) {
            return Err(KeyError::Count);
        }
        if keys.iter().any(|key| key.len() < KEY_BYTES_MIN) {
            return Err(KeyError::Short);
        }
        let key = |key: &str| hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
        Ok(Self(Arc::new(keys.into_iter().map(key).collect())))
    }

    /// Signs a credential of `identity` for the RPC at the request path `path`; it expires after `life`, at most
    /// [`LIFE_MAX`]. Never `None` with keys of [`Self::random`] or [`Self::parse`].
    pub fn sign(
        &self,
        identity: &Identity,
        path: &str,
        life: Duration,
        now: SystemTime,
    ) -> Option<HeaderValue> {
        let expires =
            millis(now).saturating_add(life.min(LIFE_MAX).as_millis().try_into().unwrap_or(u64::MAX));
        let tables = identity.tables().map(ToString::to_string);
        let version = if tables.is_some() {
            VERSION_LIMITED
        } else {
            VERSION
        };
        let tables_bytes = tables.as_ref().map_or(0, |tables| LENGTH_BYTES + tables.len());
        let mut bytes = Vec::with_capacity(HEAD_BYTES + tables_bytes + identity.subject().len() + HMAC_BYTES);
        bytes.extend_from_slice(&[version, identity.role().number()]);
        bytes.extend_from_slice(&expires.to_be_bytes());
        if let Some(tables) = tables {
            bytes.extend_from_slice(&u16::try_from(tables.len()).ok()?.to_be_bytes());
            bytes.extend_from_slice(tables.as_bytes());
        }
        bytes.extend_from_slice(identity.subject().as_bytes());
        let mut tag = hmac::Context::with_key(self.0.first()?);
        covered(path, &bytes)
            .into_iter()
            .for_each(|part| tag.update(part));
        bytes.extend_from_slice(tag.sign().as_ref());
        let mut value = HeaderValue::try_from(URL_SAFE_NO_PAD.encode(bytes)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Verifies a credential for the RPC at the request path `path`. `None` when none of the keys signed it, for this RPC, or
    /// it has expired or would expire too late.
    pub fn verify(&self, credential: &HeaderValue, path: &str, now: SystemTime) -> Option<Identity> {
        if credential.len() > HEADER_CHARS_MAX {
            return None;
        }
        let mut bytes = URL_SAFE_NO_PAD.decode(credential.as_bytes()).ok()?;
        let tag = bytes.split_off(bytes.len().checked_sub(HMAC_BYTES)?);
        let covered = covered(path, &bytes).concat();
        self.0
            .iter()
            .find(|key| hmac::verify(key, &covered, &tag).is_ok())?;
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let [version, role, expires @ ..] = *head;
        let (now, skew) = (millis(now), CLOCK_SKEW.as_millis().try_into().unwrap_or(0_u64));
        // Both ends are wider by the skew: the gateway's clock may be behind or ahead.
        let life_left = u64::from_be_bytes(expires).checked_add(skew)?.checked_sub(now)?;
        let life_max = u64::try_from(LIFE_MAX.as_millis()).ok()?;
        if life_left > life_max + 2 * skew {
            return None;
        }
        let (tables, subject) = match version {
            VERSION => (None, rest),
            VERSION_LIMITED => {
                let (length, rest) = rest.split_first_chunk::<LENGTH_BYTES>()?;
                let (tables, subject) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
                (Some(std::str::from_utf8(tables).ok()?.parse().ok()?), subject)
            }
            _ => return None,
        };
        let role = Role::from_number(i32::from(role))?;
        let identity = Identity::new(role, std::str::from_utf8(subject).ok()?).ok()?;
        Some(identity.with_tables(tables))
    }
}

/// A new random key of 256 bits as text, for a file.
///
/// # Errors
/// [`KeyError::Random`].
pub fn new_secret() -> Result<String, KeyError> {
    let mut bytes = [0_u8; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| KeyError::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The bytes that the HMAC covers; `bytes` are those before it.
fn covered<'a>(path: &'a str, bytes: &'a [u8]) -> [&'a [u8]; 4] {
    // A path has no zero byte, so the boundary between path and bytes is unambiguous.
    [PURPOSE, path.as_bytes(), b"\0", bytes]
}

/// Milliseconds since the Unix epoch; 0 before it.
fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/souk.order.v1.OrderService/GetOrder";
    const LIFE: Duration = Duration::from_secs(10);

    fn someone() -> Identity {
        Identity::new(Role::Consumer, "消 c1").expect("an identity")
    }

    fn limited() -> Identity {
        someone().with_tables(Some("notes,logs_*".parse().expect("names")))
    }

    fn secret(of: char) -> String {
        of.to_string().repeat(KEY_BYTES_MIN)
    }

    #[test]
    fn a_credential_is_for_one_rpc_and_a_short_time() {
        let (keys, now) = (CredentialKeys::random().expect("random"), SystemTime::now());
        let credential = keys.sign(&someone(), PATH, LIFE, now).expect("made");
        assert_eq!(keys.verify(&credential, PATH, now), Some(someone()));
        assert_eq!(
            keys.verify(&credential, PATH, now + LIFE + CLOCK_SKEW),
            Some(someone())
        );
        let late = now + LIFE + CLOCK_SKEW + Duration::from_millis(1);
        assert_eq!(keys.verify(&credential, PATH, late), None);
        assert_eq!(
            keys.verify(&credential, "/souk.order.v1.OrderService/DeleteOrder", now),
            None
        );
        assert_eq!(
            CredentialKeys::random()
                .expect("random")
                .verify(&credential, PATH, now),
            None
        );
        // No credential is valid for longer than LIFE_MAX, nor before it was signed.
        let long = keys.sign(&someone(), PATH, LIFE * 1_000, now).expect("made");
        assert_eq!(keys.verify(&long, PATH, now + LIFE_MAX + CLOCK_SKEW * 2), None);
        let future = keys
            .sign(&someone(), PATH, LIFE_MAX, now + LIFE_MAX)
            .expect("made");
        assert_eq!(keys.verify(&future, PATH, now), None);
    }

    #[test]
    fn a_credential_carries_the_tables_that_its_caller_is_limited_to() {
        let (keys, now) = (CredentialKeys::random().expect("random"), SystemTime::now());
        let limits = ["notes", "logs_*,notes/é:1*", &"n".repeat(TABLE_NAMES_BYTES_MAX)];
        let subjects = ["", "消 c1", &"s".repeat(SUBJECT_BYTES_MAX)];
        for tables in limits {
            for subject in subjects {
                let identity = Identity::new(Role::Operator, subject).expect("an identity");
                let identity = identity.with_tables(Some(tables.parse().expect("names")));
                let credential = keys.sign(&identity, PATH, LIFE, now).expect("made");
                assert!(credential.len() <= HEADER_CHARS_MAX);
                assert_eq!(keys.verify(&credential, PATH, now), Some(identity));
            }
        }
        let free = Identity::new(Role::Operator, "notes").expect("an identity");
        let checked = keys.verify(&keys.sign(&free, PATH, LIFE, now).expect("made"), PATH, now);
        assert_eq!(checked.expect("checked").tables(), None);
    }

    #[test]
    fn only_the_credential_of_a_limited_caller_has_another_version() {
        let (keys, now) = (CredentialKeys::random().expect("random"), SystemTime::now());
        let version = |identity: &Identity| {
            let credential = keys.sign(identity, PATH, LIFE, now).expect("made");
            let bytes = URL_SAFE_NO_PAD.decode(credential.as_bytes()).expect("base64");
            bytes.first().copied()
        };
        assert_eq!(version(&someone()), Some(VERSION));
        // Services from before, who would take it for a caller without limits, don't know this one.
        assert_eq!(version(&limited()), Some(VERSION_LIMITED));
    }

    #[test]
    fn a_credential_with_any_character_changed_or_gone_is_none() {
        for identity in [someone(), limited()] {
            with_any_character_changed_or_gone_is_none(&identity);
        }
    }

    fn with_any_character_changed_or_gone_is_none(identity: &Identity) {
        let (keys, now) = (CredentialKeys::random().expect("random"), SystemTime::now());
        let credential = keys.sign(identity, PATH, LIFE, now).expect("made");
        let text = credential.to_str().expect("ascii").to_owned();
        for at in 0..text.len() {
            for other in *b"AB_" {
                let mut changed = text.clone().into_bytes();
                if changed[at] == other {
                    continue;
                }
                changed[at] = other;
                let changed = HeaderValue::from_bytes(&changed).expect("a value");
                assert_eq!(keys.verify(&changed, PATH, now), None, "changed at {at}");
            }
            let cut = HeaderValue::from_str(&text[..at]).expect("a value");
            assert_eq!(keys.verify(&cut, PATH, now), None, "cut at {at}");
        }
        let long = HeaderValue::from_str(&"A".repeat(HEADER_CHARS_MAX + 1)).expect("a value");
        assert_eq!(keys.verify(&long, PATH, now), None);
    }

    #[test]
    fn keys_are_replaced_one_after_the_other() {
        let (old, new, now) = (secret('o'), secret('n'), SystemTime::now());
        let before = CredentialKeys::parse(&old).expect("a key");
        let during = CredentialKeys::parse(&format!("# since today\n{new}\n\n{old}\n")).expect("two keys");
        let after = CredentialKeys::parse(&new).expect("a key");
        let sign = |keys: &CredentialKeys| keys.sign(&someone(), PATH, LIFE, now).expect("made");
        assert!(during.verify(&sign(&before), PATH, now).is_some());
        assert!(after.verify(&sign(&during), PATH, now).is_some());
        assert!(after.verify(&sign(&before), PATH, now).is_none());
        assert!(!format!("{during:?}").contains('n'.to_string().repeat(3).as_str()));
    }

    #[test]
    fn keys_that_could_be_guessed_are_refused() {
        assert_eq!(CredentialKeys::parse("").err(), Some(KeyError::Count));
        assert_eq!(CredentialKeys::parse("short").err(), Some(KeyError::Short));
        let many = format!("{}\n", secret('k')).repeat(KEYS_MAX + 1);
        assert_eq!(CredentialKeys::parse(&many).err(), Some(KeyError::Count));
        let (one, other) = (new_secret().expect("random"), new_secret().expect("random"));
        assert!(one != other && CredentialKeys::parse(&one).is_ok());
    }
}
