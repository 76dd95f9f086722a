//! Connections that calls are made over, each with a thread for its calls.
//!
//! The client shares the cores with what it measures, so it takes little of them: what the gateway calls its backends by
//! ([`Channel`]), on a thread that does all of a connection's work, so that no call wakes another thread of the client. Calls that are ready together
//! are written together.

use std::num::NonZero;
use std::time::Duration;

use http::Uri;
use souk_chassis::client::{Channel, channel};
use souk_chassis::config::ClientConfig;
use tokio::runtime::{Builder, Handle};

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Threads that call, one a core at most. They end with the process.
#[derive(Clone, Debug)]
pub(crate) struct Threads(Vec<Handle>);

impl Threads {
    /// Starts as many as `connections` keep busy.
    pub(crate) fn start(connections: usize) -> anyhow::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let start = |_| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let handle = runtime.handle().clone();
            std::thread::Builder::new()
                .name("caller".to_owned())
                .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
            Ok(handle)
        };
        (0..connections.clamp(1, cores))
            .map(start)
            .collect::<anyhow::Result<_>>()
            .map(Self)
    }

    /// So many connections to the process at `target`, made at their first calls.
    pub(crate) fn connect(&self, target: &str, connections: usize) -> anyhow::Result<Vec<Connection>> {
        let uri: Uri = target.parse()?;
        let config = ClientConfig {
            connect_timeout: CONNECT_MAX,
            ..ClientConfig::default()
        };
        let threads = self.0.iter().cycle().take(connections.max(1));
        threads
            .map(|thread| {
                Ok(Connection {
                    channel: channel(&uri, &config)?,
                    thread: thread.clone(),
                })
            })
            .collect()
    }
}

/// A connection, and the thread that its calls are to be made on.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    pub(crate) thread: Handle,
}
