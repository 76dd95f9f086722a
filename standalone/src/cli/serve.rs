//! Everything in one process: the gateway over all services, which it calls without a network.

use std::path::PathBuf;

use clap::Args;
use souk_access::{CredentialKeys, ProcessKind, Reloaded};
use souk_api::hosting::Settings;
use souk_chassis::args::ServiceArgs;
use souk_chassis::config::{ConfigError, Problems};
use souk_chassis::host::{Exit, Host};
use souk_chassis::process::{Process, RunError, StartError};
use souk_gateway::Gateway;
use souk_gateway::backend::{Backends, Target};
use souk_gateway::config::GatewayConfig;
use souk_gateway::origins::{ConsoleMode, WebConfig};

use super::tablestore::{self, Endpoint, TablestoreArgs};
use crate::services;

/// Arguments of `souk serve`.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ServeArgs {
    /// Takes backups of every service into this folder while it serves, and at SIGUSR1.
    #[arg(long, value_name = "FOLDER")]
    backup_to: Option<PathBuf>,
    /// Time between two backups [default: 1h].
    #[arg(long, value_name = "DURATION", requires = "backup_to")]
    backup_every: Option<String>,
    /// Web pages that may call from browsers, as in https://shop.example; several with commas.
    #[arg(long, value_name = "ORIGINS", value_delimiter = ',')]
    web_origins: Vec<String>,
    /// Whether `/` shows the console, a page with what is here.
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    console: ConsoleMode,
    #[command(flatten)]
    tablestore: TablestoreArgs,
    #[command(flatten)]
    service: ServiceArgs,
}

impl ServeArgs {
    /// The pages that may call.
    fn web(&self) -> Result<WebConfig, ConfigError> {
        let web = WebConfig {
            origins: self.web_origins.clone(),
            console: self.console,
        };
        let mut problems = Problems::default();
        web.check("--web-origins", &mut problems);
        if problems.is_empty() {
            Ok(web)
        } else {
            Err(problems.into())
        }
    }

    /// The flags of their own stand for settings that every service has.
    fn service(self) -> ServiceArgs {
        let mut service = self.service;
        let to = self.backup_to.map(|to| to.display().to_string());
        let settings = [("to", to), ("every", self.backup_every)];
        let given = settings
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let given = given.map(|(name, value)| format!("engine.backup.{name}={value}"));
        service.process.overrides.extend(given);
        service
    }
}

/// A process with everything.
pub(super) fn process() -> Process {
    Process::new("souk-gateway").roles(services::ALL.iter().map(|service| service.role))
}

/// Runs everything until it is told to stop.
pub(super) async fn run(args: ServeArgs) -> Result<Exit, RunError> {
    let (web, tablestore) = (args.web()?, args.tablestore.clone());
    let settings: Settings = args.service().load()?;
    settings
        .auth
        .checked(ProcessKind::Whole, settings.server.listen)?;
    let endpoint = tablestore.endpoint(&settings.server)?;
    let roles = endpoint.is_some().then_some(tablestore::ROLE);
    process()
        .roles(roles)
        .run(&settings.telemetry, &settings.server, async |host| {
            Ok(start(&settings, &web, endpoint, host).await?.stack)
        })
        .await
}

/// Opens all services, each in its own folder, and the gateway over them, for the pages of `web`; and the endpoint for Tablestore's clients.
pub(super) async fn start(
    settings: &Settings,
    web: &WebConfig,
    endpoint: Option<Endpoint>,
    host: &mut Host,
) -> Result<Gateway, StartError> {
    // A key of this start: nobody else has to know it.
    let authenticates_callers = settings.auth.authenticates_callers();
    let credentials = authenticates_callers
        .then(CredentialKeys::random)
        .transpose()?
        .map(Reloaded::fixed);
    let (mut backends, mut tables) = (Backends::default(), None);
    for service in services::ALL {
        let opened = service.open(settings, host, &credentials).await?;
        backends = backends.with(service.name, Target::Local(opened.stack));
        tables = tables.or((service.name == services::TABLES).then_some(opened.engine));
    }
    if let Some((endpoint, engine)) = endpoint.zip(tables) {
        endpoint.open(engine, settings.auth.traces, host).await?;
    }
    let config = GatewayConfig {
        server: settings.server.clone(),
        web: web.clone(),
        auth: settings.auth.clone(),
        ..GatewayConfig::default()
    };
    Ok(Gateway::with_credentials(&config, backends, credentials)?)
}
