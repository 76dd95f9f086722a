//! What the clones of an engine and its collections share.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use souk_storage::Database;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::health::Health;
use crate::keeper::Keeper;
use crate::log_tail::LogTail;
use crate::observer::Observer;
use crate::read_ahead::ReadAhead;
use crate::search_pool::SearchPool;
use crate::slices::Snapshots;
use crate::table::OpenTable;
use crate::views::Views;
use crate::watch_places::WatchPlaces;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) database: Database,
    pub(crate) clock: Arc<dyn souk_storage::Clock>,
    pub(crate) searches: SearchPool,
    pub(crate) snapshots: Snapshots,
    pub(crate) views: Views,
    pub(crate) watches: Arc<WatchPlaces>,
    pub(crate) read_ahead: ReadAhead,
    /// Whether every call has a known principal.
    pub(crate) guarded: bool,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) tail: Arc<LogTail>,
    pub(crate) tables: HashMap<TypeId, Arc<OpenTable>>,
    pub(crate) health: watch::Receiver<Health>,
    pub(crate) keepers: Mutex<HashMap<TypeId, Keeper>>,
    /// Held by whoever changes the design of an index.
    pub(crate) redesigning: tokio::sync::Mutex<()>,
    /// Cancelled when the engine closes.
    pub(crate) closing: CancellationToken,
}

impl Inner {
    /// The tables that are open.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<OpenTable>> {
        self.tables.values()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Keepers hold the database; without this, dropping an engine that wasn't closed would leave its directory locked.
        self.closing.cancel();
    }
}
