//! The endpoint for clients of Tablestore, in a process with the tables that users define.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use souk_access::{Role, TraceTrust};
use souk_chassis::config::{ConfigError, Problems, ServerConfig};
use souk_chassis::host::{CALLS_SHARE, Host};
use souk_chassis::process::StartError;
use souk_chassis::server::{BindError, Listener};
use souk_engine::Engine;
pub(super) use souk_tablestore_door::ROLE;
use souk_tablestore_door::{AccessKey, Door, follow_keys};

/// The access key of the demo: its id, its secret, its instance.
const DEMO: (&str, &str, &str) = ("demo", "demo-secret", "demo");

/// Arguments of the endpoint.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct TablestoreArgs {
    /// Address for clients of Tablestore; see docs/TABLESTORE.md.
    #[arg(long, value_name = "ADDRESS", requires = "tablestore_keys")]
    tablestore_listen: Option<SocketAddr>,
    /// File of their access keys, which hold secrets; see `souk make-tablestore-key`.
    #[arg(long, value_name = "FILE", requires = "tablestore_listen")]
    tablestore_keys: Option<PathBuf>,
}

/// An endpoint that is to be opened.
pub(super) struct Endpoint {
    config: ServerConfig,
    keys: Keys,
    /// Taken already, where that may fail.
    listener: Option<Listener>,
}

enum Keys {
    File(PathBuf),
    Demo,
}

impl TablestoreArgs {
    /// The endpoint that is asked for, with the settings of the server beside it.
    pub(super) fn endpoint(self, server: &ServerConfig) -> Result<Option<Endpoint>, ConfigError> {
        let Some((listen, keys)) = self.tablestore_listen.zip(self.tablestore_keys) else {
            return Ok(None);
        };
        let config = beside(server, listen);
        let mut problems = Problems::default();
        config.check("--tablestore-listen", &mut problems);
        match problems.is_empty() {
            true => Ok(Some(Endpoint {
                config,
                keys: Keys::File(keys),
                listener: None,
            })),
            false => Err(problems.into()),
        }
    }
}

/// The settings of a server that is beside another one, at its own address.
fn beside(server: &ServerConfig, listen: SocketAddr) -> ServerConfig {
    ServerConfig {
        listen,
        // Its connections share the threads of the process.
        workers: 0,
        ..server.clone()
    }
}

impl Endpoint {
    /// That of the demo; `None` when its address is taken, which is said.
    pub(super) async fn of_demo(
        listen: SocketAddr,
        server: &ServerConfig,
    ) -> Result<Option<Self>, StartError> {
        let config = beside(server, listen);
        match Listener::bind(&config).await {
            Ok(listener) => Ok(Some(Self {
                config,
                keys: Keys::Demo,
                listener: Some(listener),
            })),
            Err(BindError::Address(address, _, error)) => {
                say(&format!(
                    "no endpoint for clients of Tablestore: {address} can't be listened on ({error}); --tablestore-listen names another"
                ));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens it on the tables of an engine; it ends with the process. It continues the `traces` of these callers.
    pub(super) async fn open(
        self,
        engine: Engine,
        traces: TraceTrust,
        host: &Host,
    ) -> Result<(), StartError> {
        ROLE.scope(self.open_in_role(engine, traces, host)).await
    }

    async fn open_in_role(self, engine: Engine, traces: TraceTrust, host: &Host) -> Result<(), StartError> {
        let (id, secret, instance) = DEMO;
        let (door, told) = match &self.keys {
            Keys::File(path) => (
                Door::new(engine, follow_keys(path)?, traces, &self.config)?,
                String::new(),
            ),
            Keys::Demo => {
                let key = AccessKey::new(id, secret, instance, Role::Admin)?;
                let told = format!(": instance {instance}, access key {id}, secret {secret}");
                (Door::demo(engine, key, traces, &self.config)?, told)
            }
        };
        let listener = match self.listener {
            Some(listener) => listener,
            None => Listener::bind(&self.config).await?,
        };
        let scheme = match &listener.tls {
            Some(_) => "https",
            None => "http",
        };
        say(&format!(
            "Tablestore endpoint on {scheme}://{}{told}",
            listener.local_addr()?
        ));
        let (config, draining) = (self.config, host.draining.clone());
        let calls_deadline = config.drain_deadline.saturating_mul(CALLS_SHARE) / 100;
        host.spawn("tablestore", async move {
            let stop = draining.cancelled();
            door.serve(listener, &config, stop, calls_deadline).await;
        });
        Ok(())
    }
}

/// A line on standard output, for whoever started the process.
fn say(line: &str) {
    // A closed standard output doesn't stop the services.
    let _ = writeln!(io::stdout().lock(), "{line}");
}
