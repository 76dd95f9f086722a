//! Settings and command line of the gateway.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use souk_access::{AuthConfig, Part};
use souk_chassis::args::{SettingsArgs, TelemetryArgs, TlsArgs};
use souk_chassis::config::{ClientConfig, Config, ConfigError, Problems, ServerConfig};
use souk_chassis::telemetry::TelemetryConfig;

use crate::backend::{BackendUriError, Backends, Target};
use crate::origins::WebConfig;
use crate::retry::RetryConfig;

/// The command line of the gateway; `souk gateway` has the same.
#[derive(Clone, Debug, Default, Args)]
pub struct GatewayArgs {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Where orders, consumers, salespersons and products are served, as in http://127.0.0.1:50061; several with commas.
    #[arg(long, value_name = "URI")]
    pub order: Option<String>,
    /// Where shops are served.
    #[arg(long, value_name = "URI")]
    pub shop: Option<String>,
    /// Where media are served.
    #[arg(long, value_name = "URI")]
    pub media: Option<String>,
    /// Authorities that backends at https addresses are believed by, in PEM.
    #[arg(long, value_name = "FILE")]
    pub backend_ca: Option<PathBuf>,
    /// Certificate chain that is shown to backends, in PEM.
    #[arg(long, value_name = "FILE")]
    pub backend_cert: Option<PathBuf>,
    /// Private key of that certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    pub backend_key: Option<PathBuf>,
    /// Certificates of the listener.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Metrics and logs.
    #[command(flatten)]
    pub telemetry: TelemetryArgs,
    /// Web pages that may call from browsers, as in `https://shop.example`; several with commas.
    #[arg(long, value_name = "ORIGINS", value_delimiter = ',')]
    pub web_origins: Vec<String>,
    /// Listens beyond this machine although nobody has to say who they are.
    #[arg(long)]
    pub insecure_allow_anonymous: bool,
    /// File and overrides.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

impl GatewayArgs {
    /// The settings in effect: flags over environment over file over defaults.
    ///
    /// # Errors
    /// All problems of all sources at once; having no backend is one.
    pub fn load(&self) -> Result<GatewayConfig, ConfigError> {
        let listen = self.listen.map(|listen| listen.to_string());
        let origins = origins_setting(&self.web_origins);
        let anonymous = self.insecure_allow_anonymous.then(|| "true".to_owned());
        let file = |file: &Option<PathBuf>| file.as_ref().map(|file| file.display().to_string());
        let loader = self.telemetry.flags(self.tls.flags(self.settings.loader()));
        loader
            .flag("--backend-ca", "client.tls.ca", file(&self.backend_ca))
            .flag("--backend-cert", "client.tls.cert", file(&self.backend_cert))
            .flag("--backend-key", "client.tls.key", file(&self.backend_key))
            .flag("--web-origins", "web.origins", origins)
            .flag("--listen", "server.listen", listen)
            .flag("--order", "order", self.order.clone())
            .flag("--shop", "shop", self.shop.clone())
            .flag("--media", "media", self.media.clone())
            .flag(
                "--insecure-allow-anonymous",
                "auth.insecure_allow_anonymous",
                anonymous,
            )
            .load()
    }
}

/// The value of `web.origins` for these; `None` leaves the setting as it is.
fn origins_setting(origins: &[String]) -> Option<String> {
    let list = || serde_json::to_string(origins).ok();
    if origins.is_empty() { None } else { list() }
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
    /// Calls from web pages.
    pub web: WebConfig,
    /// Address of the order service, `http://host:port` or `https://host:port`, or several with commas between; empty when there is none.
    pub order: String,
    /// Address of the shop service.
    pub shop: String,
    /// Address of the media service.
    pub media: String,
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
            order: String::new(),
            shop: String::new(),
            media: String::new(),
        }
    }
}

impl GatewayConfig {
    /// The remote backends that are set.
    ///
    /// # Errors
    /// When an address can't be used.
    pub fn backends(&self) -> Result<Backends, BackendUriError> {
        let target = |uri: &str| match uri {
            "" => Ok(None),
            uri => Target::remote(uri).map(Some),
        };
        Ok(Backends {
            order: target(&self.order)?,
            shop: target(&self.shop)?,
            media: target(&self.media)?,
        })
    }
}

impl Config for GatewayConfig {
    fn check(&self, problems: &mut Problems) {
        self.server.check("server", problems);
        self.auth
            .check(Part::Gateway, "auth", self.server.listen, problems);
        self.telemetry.check("telemetry", &self.server, problems);
        self.client.check("client", problems);
        self.retry.check("retry", problems);
        self.web.check("web", problems);
        let uris = [
            ("order", &self.order),
            ("shop", &self.shop),
            ("media", &self.media),
        ];
        for (name, uri) in uris {
            match Target::remote(uri) {
                _ if uri.is_empty() => {}
                Ok(target) if target.is_secure() && !self.client.tls.has_authority() => {
                    let message =
                        "its certificate must be checked by somebody: name the authorities (--backend-ca)";
                    problems.push(name, message);
                }
                Ok(_) => {}
                Err(error) => problems.push(name, error.to_string()),
            }
        }
        if uris.iter().all(|(_, uri)| uri.is_empty()) {
            problems.push(
                "",
                "there is no backend; set at least one of --order, --shop, --media",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use souk_chassis::config::Loader;

    use super::*;

    #[test]
    fn flags_name_the_backends() {
        let args = GatewayArgs {
            listen: Some(([127, 0, 0, 1], 0).into()),
            shop: Some("http://127.0.0.1:7".to_owned()),
            ..GatewayArgs::default()
        };
        let config = args.load().expect("good settings");
        assert_eq!(config.server.listen.port(), 0);
        let backends = config.backends().expect("a good address");
        assert!(backends.order.is_none() && backends.shop.is_some() && backends.media.is_none());
    }

    #[test]
    fn a_backend_with_tls_needs_authorities() {
        let mut args = GatewayArgs {
            shop: Some("https://shop:7".to_owned()),
            ..GatewayArgs::default()
        };
        let error = args.load().expect_err("nobody checks its certificate");
        assert!(error.to_string().contains("--backend-ca"), "{error}");
        args.backend_ca = Some("ca.pem".into());
        let config = args.load().expect("good settings");
        assert_eq!(config.client.tls.ca, PathBuf::from("ca.pem"));
    }

    #[test]
    fn origins_are_named_and_checked() {
        let args = GatewayArgs {
            shop: Some("http://127.0.0.1:7".to_owned()),
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
        let none = Loader::new().load::<GatewayConfig>().expect_err("no backend");
        assert!(none.to_string().contains("--order"), "{none}");
        let wrong = Loader::new()
            .flag("--shop", "shop", Some("shop:80".to_owned()))
            .load::<GatewayConfig>()
            .expect_err("no scheme");
        let text = wrong.to_string();
        assert!(
            text.contains("--shop: shop: ") && text.contains("http://host:port"),
            "{text}"
        );
    }
}
