//! Reads settings from their sources, names the origin of each problem, and reports all of them at once.

use std::fmt;
use std::path::Path;

use serde_json::{Map, Value};

use super::Config;
use crate::private_files;

const PREFIX: &str = "SOUK_";

/// Variables with our prefix that aren't settings: where the file is, and what test suites read.
const RESERVED: &str = "SOUK_API_KEY SOUK_CONFIG SOUK_CREDENTIAL_KEY SOUK_LONG SOUK_SEED SOUK_FAULTS SOUK_CASE \
     SOUK_FUZZ_SECONDS SOUK_SERIES_CALLS SOUK_CHAOS_ROWS SOUK_CHAOS_SECONDS SOUK_CRASH_ROUNDS \
     SOUK_FRESHNESS_WRITES SOUK_ORACLE_SEARCHES SOUK_REDESIGN_BATCHES SOUK_GRPCURL SOUK_CLIENT_TOOLS";

/// Largest settings file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What is wrong with the settings, collected.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    /// Each with where it was set, and the setting that it is about.
    list: Vec<String>,
    /// Which source set which path, last one last: gives [`push`](Self::push) its origins.
    origins: Vec<(String, String)>,
}

impl Problems {
    /// Was nothing noted?
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Notes what is wrong with the setting at `path`, as in `server.listen`, and what is expected. Its origin is found from the path; a
    /// default has none. An empty path is for what isn't about one setting.
    pub fn push(&mut self, path: &str, message: impl Into<String>) {
        let below = |long: &str, short: &str| {
            long.strip_prefix(short)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let mut origins = self.origins.iter().rev();
        let origin = origins.find(|(set, _)| below(path, set) || below(set, path));
        let origin = origin.map(|(_, origin)| origin.clone());
        self.push_from(&origin.unwrap_or_default(), path, message);
    }

    /// [`push`](Self::push) for the setting `name` of the section at `path`.
    pub fn push_in(&mut self, path: &str, name: impl fmt::Display, message: impl Into<String>) {
        self.push(&format!("{path}.{name}"), message);
    }

    pub(super) fn push_if_zero<T: Default + PartialEq>(&mut self, path: &str, name: &str, value: &T) {
        if *value == T::default() {
            self.push_in(path, name, "must be more than zero");
        }
    }

    fn push_from(&mut self, origin: &str, path: &str, message: impl Into<String>) {
        let known = [origin, path].into_iter().filter(|part| !part.is_empty());
        let known: String = known.map(|part| format!("{part}: ")).collect();
        self.list.push(known + &message.into());
    }
}

/// Notes those settings of a section that are zero and must not be.
macro_rules! push_zeros {
    ($problems:ident, $path:ident, $section:ident: $($name:ident $(. $inner:ident)?)+) => {
        $(
            let name = concat!(stringify!($name) $(, ".", stringify!($inner))?);
            $problems.push_if_zero($path, name, &$section.$name$(.$inner)?);
        )+
    };
}

pub(super) use push_zeros;

/// All problems of the settings. Shows one a line.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{} problem{} in the settings\n  {}", .0.len(), if .0.len() == 1 { "" } else { "s" }, .0.join("\n  "))]
pub struct ConfigError(
    /// The problems, in the order of the sources: each with where it was set and the setting, where it is about one.
    pub Vec<String>,
);

impl From<Problems> for ConfigError {
    fn from(problems: Problems) -> Self {
        Self(problems.list)
    }
}

/// A path, the source that sets it, and the value that it gives.
type Setting = (Vec<String>, String, Given);

enum Given {
    /// Typed, from a file.
    Typed(Value),
    /// Text, from the environment or the command line; what it means depends on the setting.
    Text(String),
}

/// Collects the sources; [`load`](Self::load) makes settings of them.
#[derive(Debug, Default)]
#[must_use = "a loader does nothing until load()"]
pub struct Loader {
    /// Names and texts, or why they can't be read.
    files: Vec<(String, Result<String, String>)>,
    environment: Vec<(String, String)>,
    overrides: Vec<String>,
    /// Flag, path and value.
    flags: Vec<(&'static str, String, String)>,
}

impl Loader {
    /// A TOML file. It must exist.
    pub fn file(mut self, path: &Path) -> Self {
        let text = private_files::read_text(path, FILE_BYTES_MAX);
        let text = text.map_err(|error| format!("can't be read: {error}"));
        self.files.push((path.display().to_string(), text));
        self
    }

    /// TOML text under the name that errors show.
    #[cfg(test)]
    pub fn file_text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.push((name.into(), Ok(text.into())));
        self
    }

    /// Variables, of which those that begin with `SOUK_` are taken. `SOUK_CONFIG` and what test suites read aren't settings.
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment.extend(variables);
        self
    }

    /// Overrides as `key=value`, as in `server.listen=0.0.0.0:50051`.
    pub fn overrides<S: Into<String>>(mut self, overrides: impl IntoIterator<Item = S>) -> Self {
        self.overrides.extend(overrides.into_iter().map(Into::into));
        self
    }

    /// The value of a command-line flag for the setting at `path`, if it was given: `--listen` for `server.listen`.
    pub fn flag(
        mut self,
        flag: &'static str,
        path: impl Into<String>,
        value: &Option<impl ToString>,
    ) -> Self {
        let value = value.as_ref().map(|value| (flag, path.into(), value.to_string()));
        self.flags.extend(value);
        self
    }

    /// The settings: defaults, then files, then environment, then overrides, then flags.
    ///
    /// # Errors
    /// Everything that is wrong, each with its origin: unreadable files, TOML that isn't, unknown keys, values of the
    /// wrong type, and what [`Config::check`] finds.
    pub fn load<C: Config>(self) -> Result<C, ConfigError> {
        let mut problems = Problems::default();
        let defaults = match serde_json::to_value(C::default()) {
            Ok(defaults) => defaults,
            Err(error) => {
                problems.push("", format!("the defaults can't be written as a tree: {error}"));
                return Err(problems.into());
            }
        };
        let settings = self.settings(&mut problems);
        let mut merged = defaults.clone();
        for (path, origin, given) in settings {
            let name = path.join(".");
            match accept::<C>(&defaults, &path, given) {
                Ok(value) => {
                    *at(&mut merged, &path) = value;
                    problems.origins.push((name, origin));
                }
                Err(message) => problems.push_from(&origin, &name, message),
            }
        }
        match serde_json::from_value::<C>(merged) {
            Ok(config) => {
                config.check(&mut problems);
                if problems.is_empty() {
                    return Ok(config);
                }
            }
            // Each setting was accepted alone: what is left are settings that don't go together.
            Err(error) => problems.push("", format!("the settings don't fit together: {error}")),
        }
        Err(problems.into())
    }

    fn settings(self, problems: &mut Problems) -> Vec<Setting> {
        let mut settings = Vec::new();
        for (name, text) in self.files {
            let table = text.and_then(|text| {
                let table: toml::Table =
                    toml::from_str(&text).map_err(|error| format!("is not TOML: {error}"))?;
                serde_json::to_value(table).map_err(|error| error.to_string())
            });
            match table {
                Ok(table) if table.as_object().is_some_and(Map::is_empty) => {}
                Ok(table) => {
                    let mut found = Vec::new();
                    leaves(&[], table, &mut found);
                    let typed = |(path, value)| (path, name.clone(), Given::Typed(value));
                    settings.extend(found.into_iter().map(typed));
                }
                Err(message) => problems.push_from(&name, "", message),
            }
        }
        let mut variables: Vec<_> = self
            .environment
            .into_iter()
            .filter(|(name, _)| name.starts_with(PREFIX) && RESERVED.split(' ').all(|other| other != name))
            .collect();
        // The environment has no order of its own; errors should.
        variables.sort();
        for (name, value) in variables {
            let path = name.strip_prefix(PREFIX).unwrap_or(&name).to_lowercase();
            settings.push((keys(&path, "__"), name, Given::Text(value)));
        }
        for text in self.overrides {
            match text.split_once('=') {
                Some((path, value)) if !path.trim().is_empty() => {
                    let (path, value) = (keys(path.trim(), "."), Given::Text(value.to_owned()));
                    settings.push((path, format!("override `{text}`"), value));
                }
                _ => problems.push_from(&format!("override `{text}`"), "", "is not key=value"),
            }
        }
        let flags = self.flags.into_iter();
        settings
            .extend(flags.map(|(flag, path, value)| (keys(&path, "."), flag.to_owned(), Given::Text(value))));
        settings
    }
}

fn keys(path: &str, separator: &str) -> Vec<String> {
    path.split(separator).map(str::to_owned).collect()
}

/// The variables of this process; those that aren't Unicode are passed over.
pub(crate) fn process_environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The value that `given` means at `path`, checked alone over the defaults; or what is wrong.
fn accept<C: Config>(defaults: &Value, path: &[String], given: Given) -> Result<Value, String> {
    let mut tree = defaults.clone();
    let readings = match given {
        Given::Typed(value) => vec![value],
        Given::Text(text) => readings(at(&mut tree, path), text),
    };
    let mut first_problem = String::new();
    for value in readings {
        *at(&mut tree, path) = value.clone();
        match serde_json::from_value::<C>(tree.clone()) {
            Ok(_) => return Ok(value),
            Err(error) if first_problem.is_empty() => first_problem = explain(&error),
            Err(_) => {}
        }
    }
    Err(first_problem)
}

/// Serde's words for an unknown key are about Rust's structs; ours are about settings.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text
        .strip_prefix("unknown field ")
        .and_then(|rest| rest.split_once(", expected "))
    {
        Some((_, expected)) => format!(
            "is no setting; known here: {}",
            expected.trim_start_matches("one of ")
        ),
        None if text.starts_with("unknown field") => "is no setting".to_owned(),
        None => text,
    }
}

/// What `text` may mean for a setting whose default is `default`: text for a text, otherwise TOML, then text.
fn readings(default: &Value, text: String) -> Vec<Value> {
    if default.is_string() {
        return vec![Value::String(text)];
    }
    let toml = toml::from_str::<toml::Table>(&format!("value = {text}"))
        .ok()
        .filter(|table| table.len() == 1)
        .and_then(|mut table| table.remove("value"))
        .and_then(|value| serde_json::to_value(value).ok());
    toml.into_iter().chain([Value::String(text)]).collect()
}

/// The value at `path`, made if there is none, in the place of what is no table on the way there.
fn at<'a>(tree: &'a mut Value, path: &[String]) -> &'a mut Value {
    path.iter().fold(tree, |node, key| {
        if !node.is_object() {
            *node = Value::Object(Map::new());
        }
        &mut node[key]
    })
}

/// Adds every path of `tree` that ends in something other than a filled table, behind `path`, with its value.
fn leaves(path: &[String], tree: Value, out: &mut Vec<(Vec<String>, Value)>) {
    match tree {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                leaves(&[path, &[key]].concat(), value, out);
            }
        }
        leaf => out.push((path.to_vec(), leaf)),
    }
}
