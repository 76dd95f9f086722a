//! A database on each engine: what the store promises, it promises on both.

use std::path::Path;
use std::sync::Arc;

use souk_storage::{Database, DatabaseOptions, FjallOptions, ManualClock, Table, TableSchema};
use tempfile::TempDir;

/// The clock at the start, nanoseconds.
pub(crate) const START: i64 = 1_700_000_000_000_000_000;

/// A database whose clock stands still.
pub(crate) struct Engine {
    pub(crate) database: Database,
    pub(crate) clock: Arc<ManualClock>,
    directory: Option<TempDir>,
}

impl Engine {
    async fn open(directory: Option<TempDir>) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let database = open(directory.as_ref().map(TempDir::path), &clock).await;
        Self {
            database,
            clock,
            directory,
        }
    }

    pub(crate) async fn table(&self, schema: TableSchema) -> Table {
        self.database.ensure_table(schema).await.expect("a table")
    }

    pub(crate) fn is_on_disk(&self) -> bool {
        self.directory.is_some()
    }

    /// Closes and opens the database; the one in memory has nothing to open.
    pub(crate) async fn reopen(&mut self) {
        let Some(directory) = &self.directory else {
            return;
        };
        self.database.close().await.expect("a close");
        // The directory is free when the last handle is gone.
        let memory = open(None, &self.clock).await;
        drop(std::mem::replace(&mut self.database, memory));
        self.database = open(Some(directory.path()), &self.clock).await;
    }
}

async fn open(directory: Option<&Path>, clock: &Arc<ManualClock>) -> Database {
    let options = DatabaseOptions {
        clock: clock.clone(),
        fjall: FjallOptions {
            memory_bytes: 16 << 20,
            ..FjallOptions::default()
        },
        ..DatabaseOptions::default()
    };
    let database = match directory {
        Some(directory) => Database::open(directory, options).await,
        None => Database::in_memory(options).await,
    };
    database.expect("a database")
}

/// Runs a test on both engines.
pub(crate) async fn on_both(test: impl AsyncFn(Engine)) {
    test(Engine::open(None).await).await;
    let directory = tempfile::tempdir().expect("a directory");
    test(Engine::open(Some(directory)).await).await;
}
