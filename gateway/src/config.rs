//! Settings and command line of the gateway.

use std::collections::BTreeMap;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum as _};
use serde::{Deserialize, Serialize};
use souk_access::{AuthConfig, ProcessKind};
use souk_chassis::args::ProcessArgs;
use souk_chassis::config::{ClientConfig, Config, ConfigError, Problems, ServerConfig};
use souk_chassis::telemetry::TelemetryConfig;
use souk_proto::FILE_DESCRIPTOR_SET;

use crate::backend::{BackendUriError, Backends, Target};
use crate::contract;
use crate::origins::{ConsoleMode, WebConfig};
use crate::retry::RetryConfig;

/// The command line of the gateway; `souk gateway` has the same.
#[derive(Clone, Debug, Default, Args)]
pub struct GatewayArgs {
    /// Where the services of a name are served, as in order=http://127.0.0.1:50061; several processes with commas.
    #[arg(long = "backend", value_name = "NAME=URI", value_parser = named)]
    pub backends: Vec<(String, String)>,
    /// PEM file of the certificate authorities to trust for backends at https addresses.
    #[arg(long, value_name = "FILE")]
    pub backend_ca: Option<String>,
    /// PEM file of the client certificate chain.
    #[arg(long, value_name = "FILE")]
    pub backend_cert: Option<String>,
    /// PEM file of the client certificate's private key.
    #[arg(long, value_name = "FILE")]
    pub backend_key: Option<String>,
    /// Web pages that may call from browsers, as in `https://shop.example`; several with commas.
    #[arg(long, value_name = "ORIGINS", value_delimiter = ',')]
    pub web_origins: Vec<String>,
    /// Whether `/` shows the console, a page with what is here [default: on].
    #[arg(long, value_enum, value_name = "MODE")]
    pub console: Option<ConsoleMode>,
    /// What every process takes.
    #[command(flatten)]
    pub process: ProcessArgs,
}

impl GatewayArgs {
    /// The settings in effect: flags over environment over file over defaults.
    ///
    /// # Errors
    /// All problems of all sources at once; having no backend is one.
    pub fn load(&self) -> Result<GatewayConfig, ConfigError> {
        let loader = self.process.loader();
        let loader = self.backends.iter().fold(loader, |loader, (name, uri)| {
            loader.flag("--backend", format!("backends.{name}"), &Some(uri))
        });
        // None leaves the setting as it is.
        let origins = Some(&self.web_origins).filter(|origins| !origins.is_empty());
        let origins = origins.and_then(|origins| serde_json::to_string(origins).ok());
        let console = self.console.and_then(|mode| mode.to_possible_value());
        let console = console.as_ref().map(PossibleValue::get_name);
        loader
            .flag("--backend-ca", "client.tls.ca", &self.backend_ca)
            .flag("--backend-cert", "client.tls.cert", &self.backend_cert)
            .flag("--backend-key", "client.tls.key", &self.backend_key)
            .flag("--web-origins", "web.origins", &origins)
            .flag("--console", "web.console", &console)
            .load()
    }
}

fn named(text: &str) -> Result<(String, String), &'static str> {
    let (name, uri) = text.split_once('=').ok_or("must be NAME=URI")?;
    Ok((name.to_owned(), uri.to_owned()))
}

/// Settings of a gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// The listener and its limits.
    pub server: ServerConfig,
    /// Who is let in.
    pub auth: AuthConfig,
    /// The connections to remote backends.
    pub client: ClientConfig,
    /// Repeating safe calls to them.
    pub retry: RetryConfig,
    /// Logs.
    pub telemetry: TelemetryConfig,
    /// Web pages: the console, and those of others that may call.
    pub web: WebConfig,
    /// Addresses of the backends by their names, each `http://host:port` or `https://host:port`, or several with commas between.
    pub backends: BTreeMap<String, String>,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            server: ServerConfig::forwarding(),
            auth: AuthConfig::default(),
            client: ClientConfig::default(),
            retry: RetryConfig::default(),
            telemetry: TelemetryConfig::default(),
            web: WebConfig::default(),
            backends: BTreeMap::new(),
        }
    }
}

impl GatewayConfig {
    /// The remote backends that are set.
    ///
    /// # Errors
    /// When an address can't be used.
    pub fn backends(&self) -> Result<Backends, BackendUriError> {
        self.backends
            .iter()
            .try_fold(Backends::default(), |backends, (name, uri)| {
                Ok(backends.with(name, Target::remote(uri)?))
            })
    }
}

impl Config for GatewayConfig {
    fn check(&self, problems: &mut Problems) {
        self.server.check("server", problems);
        self.auth
            .check(ProcessKind::Gateway, "auth", self.server.listen, problems);
        self.telemetry.check("telemetry", &self.server, problems);
        self.client.check("client", problems);
        self.retry.check("retry", problems);
        self.web.check("web", problems);
        let known = contract::backends(FILE_DESCRIPTOR_SET);
        let known_names = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        for (name, uri) in &self.backends {
            let path = format!("backends.{name}");
            match Target::remote(uri) {
                _ if !known.contains(name) => {
                    problems.push(&path, format!("is no backend; there are {known_names}"));
                }
                Ok(target) if target.is_secure() && !self.client.tls.has_authority() => {
                    let message =
                        "its certificate must be checked by somebody: name the authorities (--backend-ca)";
                    problems.push(&path, message);
                }
                Ok(_) => {}
                Err(error) => problems.push(&path, error.to_string()),
            }
        }
        if self.backends.is_empty() {
            let message =
                format!("there is no backend; set at least one by --backend NAME=URI, of {known_names}");
            problems.push("", message);
        }
    }
}

#[cfg(test)]
mod tests {
    use souk_chassis::config::Loader;

    use super::*;

    fn shop_at(uri: &str) -> Vec<(String, String)> {
        vec![("shop".to_owned(), uri.to_owned())]
    }

    #[test]
    fn flags_name_the_backends() {
        let args = GatewayArgs {
            backends: shop_at("http://127.0.0.1:7"),
            process: ProcessArgs {
                listen: Some(([127, 0, 0, 1], 0).into()),
                ..ProcessArgs::default()
            },
            ..GatewayArgs::default()
        };
        let config = args.load().expect("good settings");
        assert_eq!(config.server.listen.port(), 0);
        let backends = config.backends().expect("a good address");
        let text = format!("{backends:?}");
        assert!(text.contains("shop") && !text.contains("order"), "{text}");
    }

    #[test]
    fn a_backend_with_tls_needs_authorities() {
        let mut args = GatewayArgs {
            backends: shop_at("https://shop:7"),
            ..GatewayArgs::default()
        };
        let error = args.load().expect_err("nobody checks its certificate");
        assert!(error.to_string().contains("--backend-ca"), "{error}");
        args.backend_ca = Some("ca.pem".into());
        let config = args.load().expect("good settings");
        assert_eq!(config.client.tls.ca, std::path::PathBuf::from("ca.pem"));
    }

    #[test]
    fn origins_are_named_and_checked() {
        let args = GatewayArgs {
            backends: shop_at("http://127.0.0.1:7"),
            web_origins: vec!["https://shop.example".to_owned(), "http://localhost:*".to_owned()],
            ..GatewayArgs::default()
        };
        assert_eq!(args.load().expect("good settings").web.origins, args.web_origins);
        let wrong = GatewayArgs {
            web_origins: vec!["shop.example".to_owned()],
            ..args
        };
        let text = wrong.load().expect_err("no scheme").to_string();
        assert!(
            text.contains("--web-origins: web.origins[0]: `shop.example`"),
            "{text}"
        );
    }

    #[test]
    fn a_gateway_without_or_with_unusable_backends_is_refused() {
        let none = Loader::default().load::<GatewayConfig>().expect_err("no backend");
        assert!(
            none.to_string()
                .contains("--backend NAME=URI, of media, order, shop"),
            "{none}"
        );
        let wrong = Loader::default()
            .flag("--backend", "backends.shop", &Some("shop:80"))
            .flag("--backend", "backends.shelf", &Some("http://shelf:80"))
            .load::<GatewayConfig>()
            .expect_err("no scheme, and nobody's");
        let text = wrong.to_string();
        for part in [
            "--backend: backends.shop: ",
            "http://host:port",
            "backends.shelf: is no backend",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(named("shop").is_err());
    }
}
