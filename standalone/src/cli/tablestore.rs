//! The endpoint for clients of Tablestore, in a process with the tables that users define.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use souk_access::{Role, TraceTrust};
use souk_chassis::causes::chain;
use souk_chassis::config::{ConfigError, Problems, ServerConfig};
use souk_chassis::host::{Host, calls_deadline};
use souk_chassis::process::StartError;
use souk_chassis::server::{BindError, Listener};
use souk_engine::Engine;
pub(super) use souk_tablestore_door::ROLE;
use souk_tablestore_door::{AccessKey, Door, follow_keys};

/// The id of the demo's access key, and its instance.
const DEMO: &str = "demo";
/// The secret of the demo's access key.
const DEMO_SECRET: &str = "demo-secret";

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
    /// The demo's, bound already.
    listener: Option<Listener>,
}

enum Keys {
    File(PathBuf),
    Demo,
}

impl TablestoreArgs {
    /// The endpoint that is asked for, with the settings of the gateway's server.
    pub(super) fn endpoint(self, server: &ServerConfig) -> Result<Option<Endpoint>, ConfigError> {
        let Some((listen, keys)) = self.tablestore_listen.zip(self.tablestore_keys) else {
            return Ok(None);
        };
        let config = endpoint_config(server, listen);
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

/// The settings of the gateway's server, with the address of the endpoint.
fn endpoint_config(server: &ServerConfig, listen: SocketAddr) -> ServerConfig {
    ServerConfig {
        listen,
        // Its connections share the threads of the process.
        workers: 0,
        ..server.clone()
    }
}

impl Endpoint {
    /// Binds the demo's endpoint; `None`, and a line on standard output, when its address can't be listened on.
    pub(super) async fn demo(listen: SocketAddr, server: &ServerConfig) -> Result<Option<Self>, StartError> {
        let config = endpoint_config(server, listen);
        match bind(&config).await {
            Ok(listener) => Ok(Some(Self {
                config,
                keys: Keys::Demo,
                listener: Some(listener),
            })),
            Err(error @ BindError::Address(..)) => {
                let why = chain(&error);
                say(&format!("no endpoint for clients of Tablestore: {why}"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Serves the tables of an engine under a `service.name` of its own, until the process drains. It continues the `traces` of these
    /// callers.
    pub(super) async fn open(
        self,
        engine: Engine,
        traces: TraceTrust,
        host: &Host,
    ) -> Result<(), StartError> {
        ROLE.scope(self.open_in_role(engine, traces, host)).await
    }

    async fn open_in_role(self, engine: Engine, traces: TraceTrust, host: &Host) -> Result<(), StartError> {
        let (door, suffix) = match &self.keys {
            Keys::File(path) => (
                Door::new(engine, follow_keys(path)?, traces, &self.config)?,
                String::new(),
            ),
            Keys::Demo => {
                let key = AccessKey::new(DEMO, DEMO_SECRET, DEMO, Role::Admin)?;
                let suffix = format!(": instance {DEMO}, access key {DEMO}, secret {DEMO_SECRET}");
                (Door::demo(engine, key, traces, &self.config)?, suffix)
            }
        };
        let listener = match self.listener {
            Some(listener) => listener,
            None => bind(&self.config).await?,
        };
        let scheme = match &listener.tls {
            Some(_) => "https",
            None => "http",
        };
        say(&format!(
            "Tablestore endpoint on {scheme}://{}{suffix}",
            listener.local_addr()?
        ));
        let (config, draining) = (self.config, host.draining.clone());
        let calls_deadline = calls_deadline(config.drain_deadline);
        host.spawn("tablestore", async move {
            let stop = draining.cancelled();
            door.serve(listener, &config, stop, calls_deadline).await;
        });
        Ok(())
    }
}

/// Binds the address of the endpoint. Its error advises `--tablestore-listen`, not the `--listen` of the gateway.
async fn bind(config: &ServerConfig) -> Result<Listener, BindError> {
    Listener::bind(config).await.map_err(|error| match error {
        BindError::Address(address, _, source) => {
            let advice = "can't be listened on; --tablestore-listen names another";
            BindError::Address(address, advice, source)
        }
        error => error,
    })
}

/// Prints a line.
fn say(line: &str) {
    // A closed standard output doesn't stop the services.
    let _ = writeln!(io::stdout().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_in_use_is_told_with_the_flag_that_sets_it() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = taken.local_addr().expect("an address");
        let config = endpoint_config(&ServerConfig::default(), address);
        let text = bind(&config).await.expect_err("taken").to_string();
        assert!(text.contains(&address.to_string()), "{text}");
        assert!(
            text.contains("--tablestore-listen") && !text.contains("--listen"),
            "{text}"
        );
    }
}
