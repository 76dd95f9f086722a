//! API keys for a suite that authenticates its callers.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use souk_access::{Identity, Role, credential};
use souk_gateway::auth::{make_key, make_key_for};
use tempfile::TempDir;

/// A file of API keys with one for each role, the key that gateway and services have in common, and where their logs go.
pub struct Guard {
    folder: TempDir,
    keys: BTreeMap<Role, String>,
    /// Keys of callers beyond one for each role.
    callers: Vec<String>,
    credential_key: String,
    /// Further settings of the gateway, as `key=value`.
    settings: Vec<String>,
}

impl Guard {
    /// A key for each role; `subject` says whose rows are a role's own.
    ///
    /// # Errors
    /// When the files can't be written.
    pub fn new(subject: impl Fn(Role) -> &'static str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let (mut keys, mut lines) = (BTreeMap::new(), String::new());
        for role in Role::ALL {
            let made = make_key(role.word(), role, subject(role))?;
            lines.push_str(&made.line);
            lines.push('\n');
            keys.insert(role, made.key);
        }
        let credential_key = credential::new_secret()?;
        std::fs::write(folder.path().join("keys"), lines)?;
        std::fs::write(folder.path().join("credential"), &credential_key)?;
        Ok(Self {
            folder,
            keys,
            callers: Vec::new(),
            credential_key,
            settings: Vec::new(),
        })
    }

    /// Adds a key with the id `id` for one more caller, and gives it.
    ///
    /// # Errors
    /// When the id or the subject can't be, or the file can't be written.
    pub fn add_caller(&mut self, id: &str, role: Role, subject: &str) -> anyhow::Result<String> {
        self.add(id, &Identity::new(role, subject)?)
    }

    /// Adds a key with the id `id` for one more caller, who may be limited to some tables, and gives it.
    ///
    /// # Errors
    /// When the id can't be, or the file can't be written.
    pub fn add(&mut self, id: &str, caller: &Identity) -> anyhow::Result<String> {
        let made = make_key_for(id, caller)?;
        let file = self.folder.path().join("keys");
        writeln!(OpenOptions::new().append(true).open(file)?, "{}", made.line)?;
        self.callers.push(made.key.clone());
        Ok(made.key)
    }

    /// With further settings of the gateway, as `key=value`.
    #[must_use]
    pub fn set(mut self, settings: impl IntoIterator<Item = String>) -> Self {
        self.settings.extend(settings);
        self
    }

    /// The API key of a role.
    #[must_use]
    pub fn key(&self, role: Role) -> &str {
        self.keys.get(&role).map_or("", String::as_str)
    }

    /// Everything that nobody may ever read in a log or a span.
    #[must_use]
    pub fn secrets(&self) -> Vec<&str> {
        self.keys
            .values()
            .chain(&self.callers)
            .map(String::as_str)
            .chain([self.credential_key.as_str()])
            .collect()
    }

    /// The key that gateway and services have in common.
    #[must_use]
    pub fn credential_key(&self) -> &str {
        &self.credential_key
    }

    /// Where the files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What all processes log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The arguments by which `souk COMMAND` authenticates callers: by API keys at the front door, by the gateway's credentials behind it.
    #[must_use]
    pub fn arguments(&self, command: &str) -> Vec<String> {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let mut settings = Vec::new();
        if matches!(command, "serve" | "gateway") {
            settings.push(format!("auth.keys={}", file("keys")));
            settings.extend(self.settings.iter().cloned());
        }
        if command != "serve" {
            settings.push(format!("auth.credential_key={}", file("credential")));
        }
        settings
            .into_iter()
            .flat_map(|setting| ["--set".to_owned(), setting])
            .collect()
    }
}
