//! The command-line flags of every serving process, and the settings that they give.
//!
//! Precedence, highest first: the setting's own flag, `--set`, the variable, the file, the default. `--help` lists all flags.
//!
//! | setting | flag | variable | file |
//! |---|---|---|---|
//! | `server.listen` | `--listen 127.0.0.1:0` | `SOUK_SERVER__LISTEN` | `[server] listen = "127.0.0.1:0"` |
//! | `data` | `--data /var/lib/souk` | `SOUK_DATA` | `data = "/var/lib/souk"` |
//! | `telemetry.metrics_listen` | `--metrics-listen 127.0.0.1:9464` | `SOUK_TELEMETRY__METRICS_LISTEN` | `[telemetry] metrics_listen = "…"` |
//! | `server.tls.cert`, `.key`, `.client_ca`, `.client_crl` | `--tls-cert`, `--tls-key`, `--tls-client-ca`, `--tls-client-crl` | `SOUK_SERVER__TLS__CERT` | `[server.tls] cert = "…"` |
//! | any, as `server.drain_deadline` | `--set server.drain_deadline=5s` | `SOUK_SERVER__DRAIN_DEADLINE` | `[server] drain_deadline = "5s"` |
//!
//! The file is named by `--config` or `SOUK_CONFIG`; there is none by default.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::config::{Config, ConfigError, Loader, process_environment};

/// The command line of every process that serves.
#[derive(Clone, Debug, Default, Args)]
pub struct ProcessArgs {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Certificate chain of the listener, in PEM; turns TLS on.
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<String>,
    /// Private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
    /// PEM file of the authorities whose client certificates are accepted; clients without one are refused then.
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<String>,
    /// PEM file of those authorities' certificate revocation lists (CRLs).
    #[arg(long, value_name = "FILE")]
    pub tls_client_crl: Option<String>,
    /// Listens without TLS where other machines can connect.
    #[arg(long)]
    pub allow_plaintext: bool,
    /// Listens where other machines can connect although callers aren't authenticated.
    #[arg(long)]
    pub insecure_allow_anonymous: bool,
    /// Address of the metrics endpoint, /metrics; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_listen: Option<SocketAddr>,
    /// Format of log lines: human or json.
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// A TOML file with settings.
    #[arg(long, value_name = "FILE", env = "SOUK_CONFIG")]
    pub config: Option<PathBuf>,
    /// Sets one setting, as in `server.drain_deadline=5s`; over the file and the environment.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

impl ProcessArgs {
    /// A loader of the settings from the file, the environment of this process, the `--set`s and these flags.
    pub fn loader(&self) -> Loader {
        let files = self.config.iter();
        let loader = files.fold(Loader::default(), |loader, file| loader.file(file));
        let [plaintext, anonymous] =
            [self.allow_plaintext, self.insecure_allow_anonymous].map(|on| on.then_some(true));
        let metrics = &self.metrics_listen;
        loader
            .environment(process_environment())
            .overrides(&self.overrides)
            .flag("--listen", "server.listen", &self.listen)
            .flag("--tls-cert", "server.tls.cert", &self.tls_cert)
            .flag("--tls-key", "server.tls.key", &self.tls_key)
            .flag("--tls-client-ca", "server.tls.client_ca", &self.tls_client_ca)
            .flag("--tls-client-crl", "server.tls.client_crl", &self.tls_client_crl)
            .flag("--allow-plaintext", "server.allow_plaintext", &plaintext)
            .flag(
                "--insecure-allow-anonymous",
                "auth.insecure_allow_anonymous",
                &anonymous,
            )
            .flag("--metrics-listen", "telemetry.metrics_listen", metrics)
            .flag("--log-format", "telemetry.log_format", &self.log_format)
    }
}

/// The command line of a service with a database.
#[derive(Clone, Debug, Default, Args)]
pub struct ServiceArgs {
    /// Folder of the service's data; created when it is missing.
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<String>,
    /// The flags of every process.
    #[command(flatten)]
    pub process: ProcessArgs,
}

impl ServiceArgs {
    /// Loads the settings. `C` has `server`, `telemetry`, `auth` and `data`.
    ///
    /// # Errors
    /// All problems of all sources, in one error.
    pub fn load<C: Config>(&self) -> Result<C, ConfigError> {
        self.process.loader().flag("--data", "data", &self.data).load()
    }
}

#[cfg(test)]
mod tests;
