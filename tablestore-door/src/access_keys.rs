//! Access keys: an id that requests name, and a secret that signs them.
//!
//! Signatures are HMACs, so that the server has to have the secret itself: a file of keys is as secret as the keys are. [`AccessKey`] and
//! [`AccessKeys`] don't show it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use souk_access::credential::{KeyError, new_secret};
use souk_access::{Identity, Role};
use souk_tablestore::limits::MAX_BODY_BYTES;
use souk_tablestore::{Reason, RequestHead, SigningKey};
use tokio::sync::Semaphore;

use crate::instance::Instance;

/// Most keys of a file.
pub const KEYS_MAX: usize = 10_000;
/// Longest id of a key, bytes.
pub const ID_BYTES_MAX: usize = 64;
/// Longest secret, bytes.
pub const SECRET_BYTES_MAX: usize = 256;
/// Fewest bytes of a secret in a file.
pub const SECRET_BYTES_MIN: usize = 16;
/// Calls of one key at a time, from their heads on; the next ones wait.
pub const CALLS_OF_KEY_MAX: usize = 32;
/// Bytes of the bodies of one key that come at a time: eight of the largest.
pub const COMING_BYTES_OF_KEY_MAX: usize = 8 * MAX_BODY_BYTES;

/// Why there is no such access key, or no such file of them. Never shows a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessKeysError {
    /// The id.
    #[error("an id has 1 to {ID_BYTES_MAX} letters, digits, - and _")]
    Id,
    /// The secret.
    #[error("a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} visible ASCII characters")]
    Secret,
    /// The instance.
    #[error("an instance has 3 to 64 letters, digits and -, a letter first")]
    Instance,
    /// The role. Others have rows of their own, which tables of clients can't have.
    #[error("the role must be admin, operator or reader")]
    Role,
    /// A line of a file.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// Too many keys.
    #[error("there are more than {KEYS_MAX} keys")]
    Count,
    /// The operating system gave no random bytes.
    #[error(transparent)]
    Random(#[from] KeyError),
}

/// An access key. `Debug` shows its id alone.
#[derive(Clone)]
pub struct AccessKey {
    id: String,
    secret: String,
    pub(crate) instance: Instance,
    instance_name: String,
    identity: Identity,
    caller: Arc<str>,
    /// The places of its calls.
    pub(crate) places: Arc<Semaphore>,
    /// The bytes of its bodies that may come.
    pub(crate) coming: Arc<Semaphore>,
    /// Its newest signing key: of one scheme, region and day. An access key that is read again has none yet.
    signing: Arc<Mutex<Option<Arc<SigningKey>>>>,
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AccessKey").field(&self.id).finish()
    }
}

impl AccessKey {
    /// A key of an instance, with the secret that signs.
    ///
    /// # Errors
    /// Which part can't be. A secret that is as short as that of a demo is taken: files are stricter.
    pub fn new(id: &str, secret: &str, instance: &str, role: Role) -> Result<Self, AccessKeysError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if !(1..=ID_BYTES_MAX).contains(&id.len()) || !id.bytes().all(fits) {
            return Err(AccessKeysError::Id);
        }
        let visible = secret.bytes().all(|byte| byte.is_ascii_graphic());
        if !(1..=SECRET_BYTES_MAX).contains(&secret.len()) || !visible {
            return Err(AccessKeysError::Secret);
        }
        if role.needs_subject() {
            return Err(AccessKeysError::Role);
        }
        let identity = Identity::new(role, "").map_err(|_| AccessKeysError::Role)?;
        Ok(Self {
            id: id.to_owned(),
            secret: secret.to_owned(),
            instance: Instance::new(instance).ok_or(AccessKeysError::Instance)?,
            instance_name: instance.to_owned(),
            identity,
            caller: format!("tablestore {id}").into(),
            places: Arc::new(Semaphore::new(CALLS_OF_KEY_MAX)),
            coming: Arc::new(Semaphore::new(COMING_BYTES_OF_KEY_MAX)),
            signing: Arc::default(),
        })
    }

    /// Makes a key with a random secret, and its line in a file of keys.
    ///
    /// # Errors
    /// As [`Self::new`]; [`AccessKeysError::Random`].
    pub fn make(id: &str, instance: &str, role: Role) -> Result<(Self, String), AccessKeysError> {
        let key = Self::new(id, &new_secret()?, instance, role)?;
        let line = format!("{id} {} {instance} {role}", key.secret);
        Ok((key, line))
    }

    /// Its id, which requests name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The secret that signs requests with it.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The instance whose tables it meets.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.instance_name
    }

    /// What it may do.
    #[must_use]
    pub fn role(&self) -> Role {
        self.identity.role()
    }

    /// The signing key of a request that is signed with it. Only one whose signature was right is kept.
    ///
    /// # Errors
    /// [`Reason::SignatureMismatch`].
    pub(crate) fn verify(&self, head: &RequestHead) -> Result<Arc<SigningKey>, Reason> {
        let kept = self.kept_signing().clone();
        if let Some(kept) = kept.filter(|kept| kept.scheme() == head.scheme()) {
            kept.verify(head)?;
            return Ok(kept);
        }
        let made = Arc::new(SigningKey::new(&self.secret, head.scheme()));
        made.verify(head)?;
        *self.kept_signing() = Some(Arc::clone(&made));
        Ok(made)
    }

    fn kept_signing(&self) -> MutexGuard<'_, Option<Arc<SigningKey>>> {
        self.signing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By which its shares and transactions are known to the engine.
    pub(crate) fn caller(&self) -> Arc<str> {
        Arc::clone(&self.caller)
    }
}

/// The access keys of a server. `Debug` shows their number alone.
#[derive(Clone, Default)]
pub struct AccessKeys(HashMap<String, AccessKey>);

impl fmt::Debug for AccessKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessKeys({})", self.0.len())
    }
}

impl AccessKeys {
    /// One key alone.
    #[must_use]
    pub fn of(key: AccessKey) -> Self {
        Self(HashMap::from([(key.id.clone(), key)]))
    }

    /// The keys in a text: a line each with id, secret, instance and role, as [`AccessKey::make`] gives it. Empty lines and those that begin
    /// with `#` are passed over.
    ///
    /// # Errors
    /// The number of the first line that can't be used, and why; never what is in it.
    pub fn read(text: &str) -> Result<Self, AccessKeysError> {
        let mut keys = HashMap::new();
        // By their names in lower case.
        let mut instances: HashMap<String, String> = HashMap::new();
        for (line, entry) in (1..).zip(text.lines()) {
            let entry = entry.trim();
            if entry.is_empty() || entry.starts_with('#') {
                continue;
            }
            let wrong = |problem: String| AccessKeysError::Line { line, problem };
            let key = read_line(entry).map_err(wrong)?;
            // The engine's names of tables don't differ by case alone.
            let instance = key.instance();
            let known = instances.entry(instance.to_ascii_lowercase());
            if known.or_insert_with(|| instance.to_owned()) != instance {
                return Err(wrong(
                    "its instance differs from another one by case alone".to_owned(),
                ));
            }
            if keys.insert(key.id.clone(), key).is_some() {
                return Err(wrong("the id is there twice; each key has its own".to_owned()));
            }
            if keys.len() > KEYS_MAX {
                return Err(AccessKeysError::Count);
            }
        }
        Ok(Self(keys))
    }

    /// The same keys; those whose ids were there before have their places and room still, which calls hold.
    pub(crate) fn after(mut self, before: &Self) -> Self {
        for (id, key) in &mut self.0 {
            if let Some(before) = before.get(id) {
                key.places = Arc::clone(&before.places);
                key.coming = Arc::clone(&before.coming);
            }
        }
        self
    }

    /// The key of an id.
    pub(crate) fn get(&self, id: &str) -> Option<&AccessKey> {
        self.0.get(id)
    }
}

fn read_line(line: &str) -> Result<AccessKey, String> {
    let mut parts = line.split_whitespace();
    let (Some(id), Some(secret), Some(instance), Some(role), None) = (
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
    ) else {
        return Err("must be: id secret instance role".to_owned());
    };
    let role = Role::of_word(role).ok_or_else(|| AccessKeysError::Role.to_string())?;
    if secret.len() < SECRET_BYTES_MIN {
        return Err(AccessKeysError::Secret.to_string());
    }
    AccessKey::new(id, secret, instance, role).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use souk_access::Role;

    use super::{
        AccessKey, AccessKeys, AccessKeysError, CALLS_OF_KEY_MAX, COMING_BYTES_OF_KEY_MAX, ID_BYTES_MAX,
        KEYS_MAX, SECRET_BYTES_MAX, SECRET_BYTES_MIN,
    };

    #[test]
    fn a_key_is_read_as_it_was_made() {
        let (made, line) = AccessKey::make("app_1", "shop-data", Role::Operator).expect("a key");
        let keys = AccessKeys::read(&format!("# keys\n\n{line}\n")).expect("one");
        let read = keys.get("app_1").expect("it");
        assert_eq!(
            (read.secret(), read.instance(), read.role()),
            (made.secret(), "shop-data", Role::Operator)
        );
        assert!(keys.get("app").is_none());
        for shown in [format!("{keys:?}"), format!("{read:?}")] {
            assert!(!shown.contains(made.secret()), "{shown}");
        }
    }

    #[test]
    fn keys_that_were_there_before_have_their_places_and_room() {
        let lines = |ids: &[&str]| {
            let lines = ids.iter().map(|id| format!("{id} 0123456789abcdef demo admin\n"));
            AccessKeys::read(&lines.collect::<String>()).expect("keys")
        };
        let before = lines(&["a", "b"]);
        let held = before.get("a").expect("it");
        let _place = held.places.try_acquire().expect("a place");
        let _room = held.coming.try_acquire().expect("room");
        let after = lines(&["a", "c"]).after(&before);
        let free = |id: &str| {
            let key = after.get(id)?;
            Some((key.places.available_permits(), key.coming.available_permits()))
        };
        let all = (CALLS_OF_KEY_MAX, COMING_BYTES_OF_KEY_MAX);
        assert_eq!(
            (free("a"), free("b"), free("c")),
            (Some((all.0 - 1, all.1 - 1)), None, Some(all))
        );
    }

    #[test]
    fn lines_that_cant_be_used_are_named_and_not_shown() {
        let secret = "0123456789abcdef";
        for (line, problem) in [
            ("app".to_owned(), "must be: id secret instance role"),
            (format!("app {secret} demo"), "must be: id secret instance role"),
            (
                format!("app {secret} demo reader more"),
                "must be: id secret instance role",
            ),
            (format!("a.b {secret} demo reader"), "an id has"),
            ("app short demo reader".to_owned(), "a secret has 16 to 256"),
            (format!("app {secret} d reader"), "an instance has"),
            (format!("app {secret} demo consumer"), "the role must be"),
            (format!("app {secret} demo nobody"), "the role must be"),
            (
                format!("app {secret} demo reader\napp {secret} demo reader"),
                "twice",
            ),
            (
                format!("a {secret} demo reader\nb {secret} Demo reader"),
                "by case alone",
            ),
        ] {
            let error = AccessKeys::read(&line).expect_err("refused").to_string();
            assert!(error.contains(problem), "{line}: {error}");
            assert!(!error.contains(secret), "{error}");
        }
    }

    #[test]
    fn lengths_of_ids_secrets_and_instances_are_limited() {
        let of = |id, secret, instance| {
            let text = |bytes| "x".repeat(bytes);
            let line = format!("{} {} {} reader", text(id), text(secret), text(instance));
            AccessKeys::read(&line).err().map(|error| error.to_string())
        };
        let (id, secret) = ("an id has 1 to 64", "a secret has 16 to 256");
        let instance = "an instance has 3 to 64";
        for (given, problem) in [
            ((1, SECRET_BYTES_MIN, 3), None),
            ((ID_BYTES_MAX, SECRET_BYTES_MAX, 64), None),
            ((ID_BYTES_MAX + 1, SECRET_BYTES_MAX, 64), Some(id)),
            ((1, SECRET_BYTES_MIN - 1, 3), Some(secret)),
            ((1, SECRET_BYTES_MAX + 1, 3), Some(secret)),
            ((1, SECRET_BYTES_MIN, 2), Some(instance)),
            ((1, SECRET_BYTES_MIN, 65), Some(instance)),
        ] {
            let told = of(given.0, given.1, given.2);
            match (problem, &told) {
                (None, None) => {}
                (Some(problem), Some(told)) if told.contains(problem) => {}
                _ => panic!("{given:?}: {told:?}"),
            }
        }
    }

    #[test]
    fn no_name_of_an_instance_is_reserved() {
        for instance in [
            "ali",
            "ots-admin",
            "taobao",
            "ay-2",
            "an-instance-of-more-than-16-bytes",
        ] {
            let key = AccessKey::new("app", "0123456789abcdef", instance, Role::Admin);
            assert_eq!(key.map(|key| key.instance().to_owned()), Ok(instance.to_owned()));
        }
    }

    #[test]
    fn the_number_of_keys_is_limited() {
        let lines = |count| -> String {
            let line = |nth| format!("key_{nth} 0123456789abcdef demo reader\n");
            (0..count).map(line).collect()
        };
        assert_eq!(
            AccessKeys::read(&lines(KEYS_MAX)).map(|keys| keys.0.len()),
            Ok(KEYS_MAX)
        );
        let refused = AccessKeys::read(&lines(KEYS_MAX + 1)).map(|keys| keys.0.len());
        assert_eq!(refused, Err(AccessKeysError::Count));
        let told = AccessKeysError::Count.to_string();
        assert!(told.contains(&KEYS_MAX.to_string()), "{told}");
    }
}
