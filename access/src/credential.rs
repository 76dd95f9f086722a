//! How a service knows whom the gateway let in: a short-lived credential that the gateway makes for each call, with a key
//! that both have.
//!
//! The header [`HEADER`] is URL-safe base64 of `version | role | expiry in ms (8) | subject | HMAC-SHA256 (32)`. The code
//! covers the path of the RPC, too: a credential for one RPC is none for another. It says who calls, not what for: which
//! rows that is are the rules of the service itself.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderName, HeaderValue};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::caller::{Identity, Role, SUBJECT_BYTES_MAX};

/// The header with the credential. What a client sends under this name is removed by the gateway.
pub const HEADER: HeaderName = HeaderName::from_static("souk-caller");

/// Longest time between making a credential and its use: a call that waits longer for its service has failed.
pub const LIFE_MAX: Duration = Duration::from_secs(60);

/// How far the clocks of gateway and services may be apart.
pub const CLOCK_SKEW: Duration = Duration::from_secs(5);

/// Fewest bytes of a key.
pub const KEY_BYTES_MIN: usize = 32;

/// Most keys that are taken at a time, while one is replaced by another.
pub const KEYS_MAX: usize = 4;

/// Version of the layout.
const VERSION: u8 = 1;
/// Bytes before the subject.
const HEAD: usize = 10;
/// Bytes of the code.
const TAG: usize = 32;
/// Longest header, in characters.
const HEADER_CHARS_MAX: usize = (HEAD + SUBJECT_BYTES_MAX + TAG).div_ceil(3) * 4;
/// Keeps codes for this purpose apart from all others that a key may be used for.
const PURPOSE: &[u8] = b"souk-caller\0";

/// A key that can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Too short to be secret.
    #[error(
        "a credential key has at least {KEY_BYTES_MIN} characters; make one with `souk make-credential-key`"
    )]
    Short,
    /// None, or too many.
    #[error("there must be 1 to {KEYS_MAX} credential keys, one a line: the first signs, all are accepted")]
    Count,
    /// The operating system gave no random bytes.
    #[error("the operating system gives no random bytes")]
    Random,
}

/// The keys that make and check credentials. Shows nothing of them.
#[derive(Clone)]
pub struct CredentialKeys(Arc<Vec<hmac::Key>>);

impl std::fmt::Debug for CredentialKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CredentialKeys({})", self.0.len())
    }
}

impl CredentialKeys {
    /// A key that nobody else has, for gateway and services in one process.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn random() -> Result<Self, KeyError> {
        let key =
            hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| KeyError::Random)?;
        Ok(Self(Arc::new(vec![key])))
    }

    /// The keys in a text, one a line; empty lines and those that begin with `#` are passed over. The first makes
    /// credentials, all check them: that is how a key is replaced without a pause.
    ///
    /// # Errors
    /// When a key is too short, or there are none or too many.
    pub fn read(text: &str) -> Result<Self, KeyError> {
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

    /// The credential of a caller for the RPC at `path`, good for `life` at most.
    pub fn make(
        &self,
        identity: &Identity,
        path: &str,
        life: Duration,
        now: SystemTime,
    ) -> Option<HeaderValue> {
        let expires =
            millis(now).saturating_add(life.min(LIFE_MAX).as_millis().try_into().unwrap_or(u64::MAX));
        let mut bytes = Vec::with_capacity(HEAD + identity.subject().len() + TAG);
        bytes.extend_from_slice(&[VERSION, identity.role().number()]);
        bytes.extend_from_slice(&expires.to_be_bytes());
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

    /// Who calls the RPC at `path`, by a credential; `None` when it isn't one of these keys for this RPC and this time.
    pub fn check(&self, credential: &HeaderValue, path: &str, now: SystemTime) -> Option<Identity> {
        if credential.len() > HEADER_CHARS_MAX {
            return None;
        }
        let mut bytes = URL_SAFE_NO_PAD.decode(credential.as_bytes()).ok()?;
        let tag = bytes.split_off(bytes.len().checked_sub(TAG).filter(|end| *end >= HEAD)?);
        let covered = covered(path, &bytes).concat();
        self.0
            .iter()
            .find(|key| hmac::verify(key, &covered, &tag).is_ok())?;
        let (head, subject) = bytes.split_first_chunk::<HEAD>()?;
        let [version, role, expires @ ..] = *head;
        let (now, skew) = (millis(now), CLOCK_SKEW.as_millis().try_into().unwrap_or(0_u64));
        let good_for = u64::from_be_bytes(expires).checked_add(skew)?.checked_sub(now)?;
        let life_max = u64::try_from(LIFE_MAX.as_millis()).ok()?;
        if version != VERSION || good_for > life_max + 2 * skew {
            return None;
        }
        Identity::new(
            Role::of_number(i32::from(role))?,
            std::str::from_utf8(subject).ok()?,
        )
        .ok()
    }
}

/// A new key as text, for a file.
///
/// # Errors
/// When the operating system gives no random bytes.
pub fn new_secret() -> Result<String, KeyError> {
    let mut bytes = [0_u8; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| KeyError::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// What the code covers.
fn covered<'a>(path: &'a str, bytes: &'a [u8]) -> [&'a [u8]; 4] {
    // A path holds no zero byte, so nothing can be moved across the border.
    [PURPOSE, path.as_bytes(), b"\0", bytes]
}

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

    fn secret(of: char) -> String {
        of.to_string().repeat(KEY_BYTES_MIN)
    }

    #[test]
    fn a_credential_is_for_one_rpc_and_a_short_time() {
        let (keys, now) = (CredentialKeys::random().expect("random"), SystemTime::now());
        let credential = keys.make(&someone(), PATH, LIFE, now).expect("made");
        assert_eq!(keys.check(&credential, PATH, now), Some(someone()));
        assert_eq!(
            keys.check(&credential, PATH, now + LIFE + CLOCK_SKEW),
            Some(someone())
        );
        let late = now + LIFE + CLOCK_SKEW + Duration::from_millis(2);
        assert_eq!(keys.check(&credential, PATH, late), None);
        assert_eq!(
            keys.check(&credential, "/souk.order.v1.OrderService/DeleteOrder", now),
            None
        );
        assert_eq!(
            CredentialKeys::random()
                .expect("random")
                .check(&credential, PATH, now),
            None
        );
        // Made for longer than any is good for, or far in the future.
        let long = keys.make(&someone(), PATH, LIFE * 1_000, now).expect("made");
        assert_eq!(keys.check(&long, PATH, now + LIFE_MAX + CLOCK_SKEW * 2), None);
        let future = keys
            .make(&someone(), PATH, LIFE_MAX, now + LIFE_MAX)
            .expect("made");
        assert_eq!(keys.check(&future, PATH, now), None);
    }

    #[test]
    fn a_credential_with_any_character_changed_or_gone_is_none() {
        let (keys, now) = (CredentialKeys::random().expect("random"), SystemTime::now());
        let credential = keys.make(&someone(), PATH, LIFE, now).expect("made");
        let text = credential.to_str().expect("ascii").to_owned();
        for at in 0..text.len() {
            for other in *b"AB_" {
                let mut changed = text.clone().into_bytes();
                if changed[at] == other {
                    continue;
                }
                changed[at] = other;
                let changed = HeaderValue::from_bytes(&changed).expect("a value");
                assert_eq!(keys.check(&changed, PATH, now), None, "changed at {at}");
            }
            let cut = HeaderValue::from_str(&text[..at]).expect("a value");
            assert_eq!(keys.check(&cut, PATH, now), None, "cut at {at}");
        }
        let long = HeaderValue::from_str(&"A".repeat(HEADER_CHARS_MAX + 1)).expect("a value");
        assert_eq!(keys.check(&long, PATH, now), None);
    }

    #[test]
    fn keys_are_replaced_one_after_the_other() {
        let (old, new, now) = (secret('o'), secret('n'), SystemTime::now());
        let before = CredentialKeys::read(&old).expect("a key");
        let during = CredentialKeys::read(&format!("# since today\n{new}\n\n{old}\n")).expect("two keys");
        let after = CredentialKeys::read(&new).expect("a key");
        let make = |keys: &CredentialKeys| keys.make(&someone(), PATH, LIFE, now).expect("made");
        assert!(during.check(&make(&before), PATH, now).is_some());
        assert!(after.check(&make(&during), PATH, now).is_some());
        assert!(after.check(&make(&before), PATH, now).is_none());
        assert!(!format!("{during:?}").contains('n'.to_string().repeat(3).as_str()));
    }

    #[test]
    fn keys_that_could_be_guessed_are_refused() {
        assert_eq!(CredentialKeys::read("").err(), Some(KeyError::Count));
        assert_eq!(CredentialKeys::read("short").err(), Some(KeyError::Short));
        let many = format!("{}\n", secret('k')).repeat(KEYS_MAX + 1);
        assert_eq!(CredentialKeys::read(&many).err(), Some(KeyError::Count));
        let (one, other) = (new_secret().expect("random"), new_secret().expect("random"));
        assert!(one != other && CredentialKeys::read(&one).is_ok());
    }
}
