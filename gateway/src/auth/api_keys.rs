//! API keys: `souk_<id>_<secret>`, of which a file holds the hash.
//!
//! The secret is 32 random bytes, which can't be guessed however fast the hash is; a slow one (argon2) would cost every call. So it is
//! SHA-256. Hashes are compared by their HMACs under a random key, so that timing reveals nothing of them.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::{digest, hmac};
use souk_access::caller::IdentityError;
use souk_access::credential::{self, KeyError};
use souk_access::{Identity, Role, TableNames};

/// What every key begins with, so that secret scanners find it.
const PREFIX: &str = "souk_";
const HASH_PREFIX: &str = "sha256:";
const ID_CHARS_MAX: usize = 64;
/// Most keys in a file.
const KEYS_MAX: usize = 100_000;
/// Longest key that is looked at, in bytes.
const KEY_BYTES_MAX: usize = 256;

/// The keys of a file. Holds nothing that a key could be made from.
pub struct ApiKeys {
    /// Random, and new with each reading.
    blind: hmac::Key,
    /// By id: the HMAC of the key's hash, and its holder.
    known: HashMap<Box<str>, (hmac::Tag, Identity)>,
    /// Compared with where no key has the id, so that both cases take the same time.
    nobody: hmac::Tag,
}

impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApiKeys({})", self.known.len())
    }
}

impl ApiKeys {
    /// Parses a file of keys: a line each with id, hash, role and subject, as [`make_key`] gives it; behind the role and a colon may be the
    /// tables that the holder is limited to. Empty lines and those that begin with `#` are skipped.
    ///
    /// # Errors
    /// The number of the first line that can't be used, and why, never what is in it; more than 100,000 keys; or that the operating system
    /// gives no random bytes.
    pub fn read(text: &str) -> Result<Self, String> {
        let blind = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| KeyError::Random.to_string())?;
        let mut keys = Self {
            nobody: hmac::sign(&blind, b"nobody"),
            known: HashMap::new(),
            blind,
        };
        for (at, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (id, hash, identity) = entry(line).map_err(|problem| format!("line {at}: {problem}"))?;
            let tag = hmac::sign(&keys.blind, &hash);
            if keys.known.insert(id.into(), (tag, identity)).is_some() {
                return Err(format!("line {at}: the id is there twice; each key has its own"));
            }
            if keys.known.len() > KEYS_MAX {
                return Err(format!("there are more than {KEYS_MAX} keys"));
            }
        }
        Ok(keys)
    }

    /// The holder of a key, if it is known.
    pub fn identify(&self, key: &[u8]) -> Option<Identity> {
        if key.len() > KEY_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(key).ok()?;
        let (id, _) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let known = self.known.get(id);
        let expected = known.map_or(&self.nobody, |(tag, _)| tag);
        let hash = digest::digest(&digest::SHA256, key);
        hmac::verify(&self.blind, hash.as_ref(), expected.as_ref()).ok()?;
        known.map(|(_, identity)| identity.clone())
    }
}

/// Parses a line: id, hash and holder.
fn entry(line: &str) -> Result<(&str, Vec<u8>, Identity), String> {
    let form = "must be: id sha256:HASH role[:tables] subject";
    let mut parts = line.splitn(4, char::is_whitespace).map(str::trim);
    let (Some(id), Some(hash), Some(role)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(form.to_owned());
    };
    check_id(id)?;
    let hash = hash.strip_prefix(HASH_PREFIX).ok_or(form)?;
    let hash = URL_SAFE_NO_PAD
        .decode(hash)
        .map_err(|_| "the hash is no URL-safe base64")?;
    if hash.len() != digest::SHA256_OUTPUT_LEN {
        return Err("the hash isn't one of SHA-256".to_owned());
    }
    // At the role: a version that doesn't know it refuses the file, and takes nobody for a caller without limits.
    let (role, tables) = match role.split_once(':') {
        Some((role, tables)) => {
            let tables = tables.parse::<TableNames>();
            (role, Some(tables.map_err(|error| error.to_string())?))
        }
        None => (role, None),
    };
    let role = Role::of_word(role)
        .ok_or_else(|| format!("the role must be one of {}", Role::ALL.map(Role::word).join(", ")))?;
    let subject = parts.next().unwrap_or_default();
    check_subject(subject)?;
    let identity = Identity::new(role, subject).map_err(|error| error.to_string())?;
    Ok((id, hash, identity.with_tables(tables)))
}

/// Refuses a subject that looks like tables with a blank before their colon: its holder wouldn't be limited.
fn check_subject(subject: &str) -> Result<(), String> {
    match subject.trim_start().starts_with(':') {
        true => Err("a subject can't begin with a colon, and tables stand right behind the role".to_owned()),
        false => Ok(()),
    }
}

fn check_id(id: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=ID_CHARS_MAX).contains(&id.len()) && id.chars().all(fits) {
        return Ok(());
    }
    Err(format!("an id has 1 to {ID_CHARS_MAX} of a-z, 0-9 and -"))
}

/// A key that was made.
pub struct NewKey {
    /// The key, to be told to its holder and nobody else: it can't be found out again.
    pub key: String,
    /// The line for the file of keys.
    pub line: String,
}

/// Why a key can't be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MakeKeyError {
    /// Its id, or a subject that can't stand in a line.
    #[error("{0}")]
    Line(String),
    /// Its holder.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its secret.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Makes a key named `id` for somebody.
///
/// # Errors
/// When the id or the holder can't be.
pub fn make_key(id: &str, role: Role, subject: &str) -> Result<NewKey, MakeKeyError> {
    make_key_for(id, &Identity::new(role, subject)?)
}

/// [`make_key`] for a holder that may be limited to some tables.
///
/// # Errors
/// When the id or the subject can't be.
pub fn make_key_for(id: &str, identity: &Identity) -> Result<NewKey, MakeKeyError> {
    check_id(id).map_err(MakeKeyError::Line)?;
    check_subject(identity.subject()).map_err(MakeKeyError::Line)?;
    let key = format!("{PREFIX}{id}_{}", credential::new_secret()?);
    let hash = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, key.as_bytes()));
    let tables = identity.tables();
    let tables = tables.map_or_else(String::new, |tables| format!(":{tables}"));
    let (role, subject) = (identity.role(), identity.subject());
    let line = format!("{id} {HASH_PREFIX}{hash} {role}{tables} {subject}");
    let line = line.trim_end().to_owned();
    Ok(NewKey { key, line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_its_line_and_by_nothing_else() {
        let made = make_key("web-1", Role::Consumer, "消 c1").expect("a key");
        let other = make_key("web-2", Role::Admin, "").expect("a key");
        assert!(!made.line.contains(&made.key));
        let keys = ApiKeys::read(&format!("# keys\n\n{}\n{}\n", made.line, other.line)).expect("two keys");
        let identity = keys.identify(made.key.as_bytes()).expect("known");
        assert_eq!((identity.role(), identity.subject()), (Role::Consumer, "消 c1"));
        assert_eq!(
            keys.identify(other.key.as_bytes()).map(|found| found.role()),
            Some(Role::Admin)
        );
        // One key's secret under another's name.
        let mixed = made.key.replace("web-1", "web-2");
        for wrong in [
            mixed.as_str(),
            "",
            "souk_",
            "souk_web-1_",
            "souk_web-1",
            "web-1",
            &made.line,
        ] {
            assert_eq!(keys.identify(wrong.as_bytes()), None, "{wrong}");
        }
        for at in 0..made.key.len() {
            let mut changed = made.key.clone().into_bytes();
            changed[at] = if changed[at] == b'x' { b'y' } else { b'x' };
            assert_eq!(keys.identify(&changed), None, "changed at {at}");
        }
        assert_eq!(
            ApiKeys::read("").expect("none").identify(made.key.as_bytes()),
            None
        );
        assert!(!format!("{keys:?}").contains("web-1"));
    }

    #[test]
    fn a_line_says_the_tables_that_its_holder_is_limited_to() {
        let tables: TableNames = "notes,logs_*,metrics/é:1*".parse().expect("names");
        for (role, subject) in [(Role::Operator, ""), (Role::User, "u1 of a team")] {
            let holder = Identity::new(role, subject).expect("an identity");
            for holder in [holder.clone(), holder.with_tables(Some(tables.clone()))] {
                let made = make_key_for("web", &holder).expect("a key");
                assert_eq!(
                    made.line.contains(":notes,logs_*,metrics/é:1*"),
                    holder.tables().is_some()
                );
                let keys = ApiKeys::read(&made.line).expect("a key");
                assert_eq!(keys.identify(made.key.as_bytes()), Some(holder));
            }
        }
        // What stands behind the role is of the subject, as before.
        let line = make_key("web", Role::Operator, "admin:notes")
            .expect("a key")
            .line;
        let (_, _, holder) = entry(&line).expect("a line");
        assert_eq!((holder.subject(), holder.tables()), ("admin:notes", None));
    }

    #[test]
    fn a_line_that_cant_be_used_is_named_but_not_shown() {
        let good = make_key("a", Role::User, "u1").expect("a key").line;
        let hash = good.split(' ').nth(1).expect("a hash");
        for (line, problem) in [
            ("a", "must be: id"),
            (&format!("A {hash} user u1"), "1 to 64 of a-z"),
            ("a md5:x user u1", "must be: id"),
            ("a sha256:x user u1", "base64"),
            ("a sha256:AAAA user u1", "one of SHA-256"),
            (&format!("a {hash} root u1"), "admin, operator"),
            (&format!("a {hash} user"), "needs a subject"),
            (&format!("a {hash} root:notes u1"), "admin, operator"),
            (&format!("a {hash} user: u1"), "letters, digits and _"),
            (&format!("a {hash} user:notes, u1"), "letters, digits and _"),
            (&format!("a {hash} operator :notes"), "begin with a colon"),
            (&format!("a {hash} user \t:notes u1"), "begin with a colon"),
            (&format!("a {hash} user:{} u1", "n".repeat(1_025)), "1024 bytes"),
            (&good, "twice"),
        ] {
            let error = ApiKeys::read(&format!("{good}\n{line}")).expect_err(line);
            assert!(
                error.contains("line 2") && error.contains(problem),
                "{line}: {error}"
            );
            assert!(!error.contains(hash), "{error}");
        }
        assert!(make_key("_", Role::Admin, "").is_err());
        assert!(make_key("a", Role::Seller, "").is_err());
        for subject in [":notes", " :notes"] {
            assert!(make_key("a", Role::Operator, subject).is_err(), "{subject}");
        }
    }
}
