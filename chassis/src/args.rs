//! What every service takes on its command line, and the settings that come out of it.
//!
//! A flag goes over a variable, a variable over the file, the file over the default:
//!
//! | setting | flag | variable | file |
//! |---|---|---|---|
//! | `server.listen` | `--listen 127.0.0.1:0` | `SOUK_SERVER__LISTEN` | `[server] listen = "127.0.0.1:0"` |
//! | `data` | `--data /var/lib/souk` | `SOUK_DATA` | `data = "/var/lib/souk"` |
//! | any other, as `server.drain_deadline` | `--set server.drain_deadline=5s` | `SOUK_SERVER__DRAIN_DEADLINE` | `[server] drain_deadline = "5s"` |
//!
//! The file is named by `--config` or `SOUK_CONFIG`; there is none by default.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::config::{Config, ConfigError, Loader, Problems, ServerConfig};
use crate::telemetry::TelemetryConfig;

/// Where settings come from beside flags of their own.
#[derive(Clone, Debug, Default, Args)]
pub struct SettingsArgs {
    /// A TOML file with settings.
    #[arg(long, value_name = "FILE", env = "SOUK_CONFIG")]
    pub config: Option<PathBuf>,
    /// Sets one setting, as in `server.drain_deadline=5s`; over the file and the environment.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

impl SettingsArgs {
    /// A loader with the file, the environment of this process and the `--set`s; flags are still to come.
    pub fn loader(&self) -> Loader {
        let loader = self.config.iter().fold(Loader::new(), Loader::file);
        loader.process_environment().overrides(&self.overrides)
    }
}

/// The command line of a service with a database.
#[derive(Clone, Debug, Default, Args)]
pub struct ServiceArgs {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Folder of the service's data; made when it isn't there.
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// File and overrides.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

impl ServiceArgs {
    /// The settings in effect. `C` has `server.listen` and `data`, as [`ServiceConfig`] has.
    ///
    /// # Errors
    /// All problems of all sources at once.
    pub fn load<C: Config>(&self) -> Result<C, ConfigError> {
        let data = self.data.as_ref().map(|data| data.display().to_string());
        let listen = self.listen.map(|listen| listen.to_string());
        let loader = self.settings.loader();
        loader
            .flag("--listen", "server.listen", listen)
            .flag("--data", "data", data)
            .load()
    }
}

/// Settings of a service with a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceConfig {
    /// Folder of the service's data.
    pub data: PathBuf,
    /// The listener and its limits.
    pub server: ServerConfig,
    /// Logs.
    pub telemetry: TelemetryConfig,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            data: PathBuf::from("souk-data"),
            server: ServerConfig::default(),
            telemetry: TelemetryConfig::default(),
        }
    }
}

impl Config for ServiceConfig {
    fn check(&self, problems: &mut Problems) {
        if self.data.as_os_str().is_empty() {
            problems.push("data", "must be a folder; set it with --data");
        }
        self.server.check("server", problems);
    }
}

#[cfg(test)]
mod tests;
