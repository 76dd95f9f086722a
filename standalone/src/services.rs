//! The services of the suite: the one place where a service is registered.
//!
//! `souk serve` and `souk demo` open all of them behind a gateway, each in its folder and its role; each is a command by itself; and the
//! end-to-end suites start them by the same list. What they serve is in the package of the contract that has the name of their folder.

use std::fmt;
use std::pin::Pin;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args as _, Command, Error, FromArgMatches, Subcommand};
use souk_api::hosting::{self, Credentials, Service, Settings};
use souk_chassis::args::ServiceArgs;
use souk_chassis::health::Health;
use souk_chassis::host::{Exit, Host};
use souk_chassis::process::{RunError, StartError};
use souk_chassis::server::{self, Stack};
use souk_chassis::telemetry::ServiceRole;
use souk_engine::Engine;
use souk_meta_svc::MediaServices;
use souk_order_svc::OrderServices;
use souk_shop_svc::ShopServices;
use souk_table_svc::TableServices;

/// All of them.
pub const ALL: &[Registration] = &[
    Registration::new::<OrderServices>("order-svc", "Orders, consumers, salespersons and products alone"),
    Registration::new::<ShopServices>("shop-svc", "Shops alone"),
    Registration::new::<MediaServices>("meta-svc", "Metadata of media alone"),
    Registration::new::<TableServices>("table-svc", "Tables that users define alone"),
];

type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What a service is to the processes that serve it.
pub struct Registration {
    /// The command of `souk` that serves it alone.
    pub command: &'static str,
    about: &'static str,
    /// Its role in telemetry: `service.name`.
    pub role: ServiceRole,
    /// The folder of its data, and what it is called as a backend of a gateway.
    pub name: &'static str,
    run: fn(ServiceArgs) -> Local<'static, Result<Exit, RunError>>,
    open: for<'a> fn(&'a Settings, &'a mut Host, &'a Credentials) -> Local<'a, Result<Opened, StartError>>,
}

/// The folder of the service whose tables users define.
pub(crate) const TABLES: &str = TableServices::FOLDER;

/// A service in a process with others.
pub(crate) struct Opened {
    /// What it serves.
    pub(crate) stack: Stack,
    /// What it works on.
    pub(crate) engine: Engine,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Registration {
    const fn new<S: Service>(command: &'static str, about: &'static str) -> Self {
        Self {
            command,
            about,
            role: ServiceRole::new(S::NAME),
            name: S::FOLDER,
            run: |args| Box::pin(hosting::run::<S>(args)),
            open: |settings, host, credentials| Box::pin(open::<S>(settings, host, credentials)),
        }
    }

    /// Opens it in its folder and its role, in a process with others.
    pub(crate) async fn open(
        &self,
        settings: &Settings,
        host: &mut Host,
        credentials: &Credentials,
    ) -> Result<Opened, StartError> {
        self.role.scope((self.open)(settings, host, credentials)).await
    }
}

async fn open<S: Service>(
    settings: &Settings,
    host: &mut Host,
    credentials: &Credentials,
) -> Result<Opened, StartError> {
    let directory = settings.data.join(S::FOLDER);
    let health = Health::default();
    let (engine, server) = (&settings.engine, &settings.server);
    let service = hosting::start::<S>(&directory, engine, server, host, &health, credentials).await?;
    let services = hosting::guarded::<S>(hosting::mounted(&service)?, credentials.clone())?;
    Ok(Opened {
        stack: server::stack(services, &health, server)?,
        engine: service.engine().clone(),
    })
}

/// The command of one service alone.
#[derive(Debug)]
pub(crate) struct Alone {
    service: &'static Registration,
    args: ServiceArgs,
}

impl Alone {
    pub(crate) async fn run(self) -> Result<Exit, RunError> {
        (self.service.run)(self.args).await
    }
}

impl FromArgMatches for Alone {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = matches.subcommand();
        let found = given.and_then(|(name, args)| Some((ALL.iter().find(|one| one.command == name)?, args)));
        let (service, args) = found.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
        Ok(Self {
            service,
            args: ServiceArgs::from_arg_matches(args)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Alone {
    fn augment_subcommands(command: Command) -> Command {
        ALL.iter().fold(command, |command, service| {
            let alone = Command::new(service.command).about(service.about);
            command.subcommand(ServiceArgs::augment_args(alone))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        ALL.iter().any(|service| service.command == name)
    }
}
