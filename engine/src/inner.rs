//! What the clones of an engine and its collections share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use souk_storage::Database;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::call_slots::{CallSlot, CallSlots};
use crate::consumer_groups::ConsumerGroups;
use crate::error::{EngineError, Result};
use crate::health::{Health, Indexes};
use crate::index_state::{IndexState, Phase};
use crate::keeper::{Keeper, KeeperContext};
use crate::log_tail::LogTail;
use crate::observer::Observer;
use crate::open_index::OpenIndex;
use crate::open_table::OpenTable;
use crate::read_ahead::{Events, ReadAhead};
use crate::search_pool::SearchPool;
use crate::slices::Snapshots;
use crate::transactions::Transactions;
use crate::views::Views;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) database: Database,
    pub(crate) clock: Arc<dyn souk_storage::Clock>,
    pub(crate) searches: SearchPool,
    pub(crate) snapshots: Snapshots,
    pub(crate) views: Views,
    pub(crate) watches: Arc<CallSlots>,
    /// Of calls that read a whole table to split it.
    pub(crate) splits: Arc<CallSlots>,
    /// Of calls that look for own rows among those of others.
    pub(crate) scans: Arc<CallSlots>,
    pub(crate) transactions: Transactions,
    pub(crate) consumer_groups: ConsumerGroups,
    pub(crate) read_ahead: ReadAhead<Events>,
    /// Whether every call has a known principal.
    pub(crate) guarded: bool,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) tail: Arc<LogTail>,
    /// The tables that are open, by name.
    pub(crate) tables: RwLock<BTreeMap<Arc<str>, Arc<OpenTable>>>,
    /// Created tables that couldn't be opened, by name. Their indexes tell health why.
    pub(crate) closed: Mutex<BTreeMap<Arc<str>, Arc<IndexState>>>,
    pub(crate) health: watch::Receiver<Health>,
    /// What health is told of the indexes.
    pub(crate) indexes: watch::Sender<Indexes>,
    /// Who keeps the indexes, by their names.
    pub(crate) keepers: Mutex<BTreeMap<Arc<str>, Keeper>>,
    /// Watches over unopened indexes; taken when the engine closes.
    pub(crate) sleepers: Mutex<Option<JoinHandle<()>>>,
    /// What the keepers of new indexes get.
    pub(crate) keeper_context: KeeperContext,
    /// The folder of all indexes.
    pub(crate) folder: PathBuf,
    /// Held by whoever changes tables or their indexes.
    pub(crate) changing: Arc<tokio::sync::Mutex<()>>,
    /// Cancelled when the engine closes.
    pub(crate) closing: CancellationToken,
}

impl Inner {
    /// The tables that are open, by name.
    pub(crate) fn tables(&self) -> Vec<Arc<OpenTable>> {
        self.tables.read().values().map(Arc::clone).collect()
    }

    /// A table that is open.
    pub(crate) fn table(&self, name: &str) -> Option<Arc<OpenTable>> {
        self.tables.read().get(name).map(Arc::clone)
    }

    /// A slot for a watch, or for a call that waits as one does.
    ///
    /// # Errors
    /// [`EngineError::TooManyWatches`].
    pub(crate) fn watch_slot(&self, caller: Option<Arc<str>>) -> Result<CallSlot> {
        let slot = self.watches.take(caller);
        let max = self.watches.max();
        slot.map_err(|of| EngineError::TooManyWatches { max, of })
    }

    /// Has the health count the indexes that there are now.
    pub(crate) fn count_indexes(&self) {
        let closed: Vec<_> = self.closed.lock().values().map(Arc::clone).collect();
        self.indexes.send_replace(indexes(&self.tables(), closed));
    }

    /// Why a created table couldn't be opened.
    pub(crate) fn why_closed(&self, name: &str) -> Option<String> {
        match self.closed.lock().get(name)?.phase() {
            Phase::Failed(reason) => Some(reason),
            _ => None,
        }
    }
}

/// The indexes that there are. Those of tables that couldn't be opened count, one for each.
pub(crate) fn indexes(tables: &[Arc<OpenTable>], closed: Vec<Arc<IndexState>>) -> Indexes {
    let state = |index: &Arc<OpenIndex>| Arc::clone(&index.state);
    let all = tables.iter().flat_map(|table| table.indexes().to_vec());
    let all = all.map(|index| state(&index)).collect();
    let shares = |table: &Arc<OpenTable>| table.weighted().iter().map(|(index, _)| state(index)).collect();
    let counted = tables.iter().map(shares);
    let counted = counted.chain(closed.into_iter().map(|state| vec![state]));
    Indexes {
        counted: counted.collect(),
        all,
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Keepers hold the database; without this, dropping an engine that wasn't closed would leave its directory locked.
        self.closing.cancel();
    }
}
