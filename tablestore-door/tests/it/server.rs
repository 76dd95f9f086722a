//! The endpoint on an engine of its own, in a temporary folder.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use souk_access::{Reloaded, Role};
use souk_chassis::config::ServerConfig;
use souk_chassis::server::Listener;
use souk_engine::storage::{DatabaseOptions, SecondaryIndexState};
use souk_engine::{Engine, EngineConfig, Tables};
use souk_tablestore_door::{AccessKeys, Door, DoorTimes};
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::client::Client;

/// The keys of the tests: two of one instance, one of another, and one that reads alone.
const KEYS: &str = "demo demo-secret-of-tests demo admin
other other-secret-of-tests demo admin
stranger stranger-secret-of-tests elsewhere admin
reader reader-secret-of-tests demo reader
";

/// How long what ends may take.
pub(crate) const END_MAX: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) keys: Arc<Reloaded<AccessKeys>>,
    stop: CancellationToken,
    serving: AbortOnDropHandle<()>,
    folder: TempDir,
    config: EngineConfig,
    times: DoorTimes,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(DatabaseOptions::default()).await
    }

    pub(crate) async fn start_with(storage: DatabaseOptions) -> Self {
        Self::start_as(|config| config.storage = storage).await
    }

    /// With other settings of the engine.
    pub(crate) async fn start_as(set: impl FnOnce(&mut EngineConfig)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = EngineConfig::new(folder.path());
        set(&mut config);
        Self::open(folder, config, DoorTimes::default()).await
    }

    /// With other times of calls.
    pub(crate) async fn start_within(times: DoorTimes) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = EngineConfig::new(folder.path());
        Self::open(folder, config, times).await
    }

    /// Ends, and begins again over the same data.
    pub(crate) async fn reopen(self) -> Self {
        let times = self.times;
        let (folder, config) = self.stop().await;
        Self::open(folder, config, times).await
    }

    async fn open(folder: TempDir, engine_config: EngineConfig, times: DoorTimes) -> Self {
        let engine = Engine::open(engine_config.clone(), Tables::new())
            .await
            .expect("an engine");
        let config = ServerConfig {
            listen: "127.0.0.1:0".parse().expect("an address"),
            workers: 0,
            ..ServerConfig::default()
        };
        let keys = Reloaded::fixed(AccessKeys::read(KEYS).expect("keys"));
        let door = Door::with_times(engine.clone(), Arc::clone(&keys), times, &config).expect("a door");
        let listener = Listener::bind(&config).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serving = tokio::spawn(async move {
            door.serve(listener, &config, stopped.cancelled(), END_MAX).await;
        });
        Self {
            address,
            engine,
            keys,
            stop,
            serving: AbortOnDropHandle::new(serving),
            folder,
            config: engine_config,
            times,
        }
    }

    /// A client with the key of an id.
    pub(crate) fn client(&self, id: &str) -> Client {
        let line = KEYS.lines().find(|line| line.split(' ').next() == Some(id));
        let mut parts = line.expect("a key").split(' ').skip(1);
        let (secret, instance) = (
            parts.next().expect("a secret"),
            parts.next().expect("an instance"),
        );
        Client::new(self.address, id, secret, instance)
    }

    /// Waits until a secondary index can be read.
    pub(crate) async fn indexed(&self, table: &str, index: &str) {
        let table = self.engine.table(table).expect("a table");
        let ready = async {
            while table.secondary_index_state(index).expect("an index") != SecondaryIndexState::Ready {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(END_MAX, ready).await.expect("in time");
    }

    /// Waits until the background has done what changes of tables have left to it.
    pub(crate) async fn settled(&self) {
        self.engine.database().jobs_done().await.expect("no jobs");
    }

    /// Drains and closes.
    pub(crate) async fn end(self) {
        self.stop().await;
    }

    async fn stop(self) -> (TempDir, EngineConfig) {
        self.stop.cancel();
        tokio::time::timeout(END_MAX, self.serving)
            .await
            .expect("in time")
            .expect("no panic");
        self.engine.close(Instant::now() + END_MAX).await.expect("closed");
        (self.folder, self.config)
    }
}

/// Names of roles that keys have are those of access.
#[test]
fn keys_of_the_tests_are_of_roles() {
    for line in KEYS.lines() {
        let role = line.rsplit(' ').next().expect("a role");
        assert!(Role::of_word(role).is_some(), "{line}");
    }
}
