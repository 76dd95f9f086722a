//! What every service takes on its command line, and the settings that come out of it.
//!
//! A flag goes over a variable, a variable over the file, the file over the default:
//!
//! | setting | flag | variable | file |
//! |---|---|---|---|
//! | `server.listen` | `--listen 127.0.0.1:0` | `SOUK_SERVER__LISTEN` | `[server] listen = "127.0.0.1:0"` |
//! | `data` | `--data /var/lib/souk` | `SOUK_DATA` | `data = "/var/lib/souk"` |
//! | `telemetry.metrics_listen` | `--metrics-listen 127.0.0.1:9464` | `SOUK_TELEMETRY__METRICS_LISTEN` | `[telemetry] metrics_listen = "…"` |
//! | `server.tls.cert`, `.key`, `.client_ca`, `.client_crl` | `--tls-cert`, `--tls-key`, `--tls-client-ca`, `--tls-client-crl` | `SOUK_SERVER__TLS__CERT` | `[server.tls] cert = "…"` |
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

/// Who may read what is sent to a listener.
#[derive(Clone, Debug, Default, Args)]
pub struct TlsArgs {
    /// Certificate chain of the listener, in PEM; turns TLS on.
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Authorities whose clients are let in, in PEM; others aren't then.
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
    /// Lists of revoked certificates of those authorities (CRLs), in PEM.
    #[arg(long, value_name = "FILE")]
    pub tls_client_crl: Option<PathBuf>,
    /// Listens without TLS where other machines can connect.
    #[arg(long)]
    pub allow_plaintext: bool,
}

impl TlsArgs {
    /// Adds these flags to `loader`.
    pub fn flags(&self, loader: Loader) -> Loader {
        let file = |file: &Option<PathBuf>| file.as_ref().map(|file| file.display().to_string());
        let plain = self.allow_plaintext.then(|| true.to_string());
        loader
            .flag("--tls-cert", "server.tls.cert", file(&self.tls_cert))
            .flag("--tls-key", "server.tls.key", file(&self.tls_key))
            .flag(
                "--tls-client-ca",
                "server.tls.client_ca",
                file(&self.tls_client_ca),
            )
            .flag(
                "--tls-client-crl",
                "server.tls.client_crl",
                file(&self.tls_client_crl),
            )
            .flag("--allow-plaintext", "server.allow_plaintext", plain)
    }
}

/// What a process tells of itself, and how.
#[derive(Clone, Debug, Default, Args)]
pub struct TelemetryArgs {
    /// Address from which metrics are fetched, as /metrics; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_listen: Option<SocketAddr>,
    /// How log lines are written: human or json.
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
}

impl TelemetryArgs {
    /// Adds these flags to `loader`.
    pub fn flags(&self, loader: Loader) -> Loader {
        let metrics = self.metrics_listen.map(|address| address.to_string());
        loader
            .flag("--metrics-listen", "telemetry.metrics_listen", metrics)
            .flag("--log-format", "telemetry.log_format", self.log_format.clone())
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
    /// Certificates.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Listens beyond this machine although nobody has to say who they are.
    #[arg(long)]
    pub insecure_allow_anonymous: bool,
    /// Metrics and logs.
    #[command(flatten)]
    pub telemetry: TelemetryArgs,
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
        let anonymous = self.insecure_allow_anonymous.then(|| "true".to_owned());
        let loader = self.telemetry.flags(self.tls.flags(self.settings.loader()));
        loader
            .flag("--listen", "server.listen", listen)
            .flag("--data", "data", data)
            .flag(
                "--insecure-allow-anonymous",
                "auth.insecure_allow_anonymous",
                anonymous,
            )
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
        self.telemetry.check("telemetry", &self.server, problems);
    }
}

#[cfg(test)]
mod tests;
