//! A table that is open, with its index.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use souk_index::Reason;
use souk_storage::Table;
use xxhash_rust::xxh3::Xxh3;

use crate::definition::TableDefinition;
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::handovers::Handovers;
use crate::index_change::KeptChanges;
use crate::index_state::{IndexState, Phase};
use crate::owners::OwnerPlace;
use crate::turns::Turns;

/// Where the definition of a table is at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In code; changes of its index are kept beside it.
    Code,
    /// In the catalog.
    Catalog,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct OpenTable {
    name: Arc<str>,
    pub(crate) home: Home,
    definition: RwLock<Arc<TableDefinition>>,
    pub(crate) table: Table,
    pub(crate) index: Arc<IndexState>,
    pub(crate) turns: Turns,
    /// How often an index of it was found damaged.
    pub(crate) damages: AtomicU64,
    /// Of requests that are tried.
    pub(crate) attempts: Turns,
    pub(crate) handovers: Handovers,
    /// Of the index that code declares.
    pub(crate) kept: RwLock<KeptChanges>,
    /// What the index is to be, now or when it is built.
    wanted: RwLock<Arc<Design>>,
    dropped: AtomicBool,
}

impl OpenTable {
    /// `last` is the last sequence of the database.
    pub(crate) fn new(
        home: Home,
        definition: TableDefinition,
        table: Table,
        kept: KeptChanges,
        wanted: Design,
        last: u64,
    ) -> Self {
        let name: Arc<str> = definition.name().into();
        Self {
            index: Arc::new(IndexState::new(Arc::clone(&name), definition.search.is_some())),
            name,
            home,
            definition: RwLock::new(Arc::new(definition)),
            table,
            turns: Turns::default(),
            damages: AtomicU64::new(0),
            attempts: Turns::default(),
            handovers: Handovers::since(last),
            kept: RwLock::new(kept),
            wanted: RwLock::new(Arc::new(wanted)),
            dropped: AtomicBool::new(false),
        }
    }

    /// A table of the catalog, of a database whose last sequence is `last`.
    pub(crate) fn created(definition: TableDefinition, table: Table, wanted: Design, last: u64) -> Self {
        Self::new(
            Home::Catalog,
            definition,
            table,
            KeptChanges::default(),
            wanted,
            last,
        )
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// [`Self::name`], to be shared.
    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether it has a search index.
    pub(crate) fn is_searched(&self) -> bool {
        !matches!(self.index.phase(), Phase::Absent)
    }

    /// What it is at this moment.
    pub(crate) fn definition(&self) -> Arc<TableDefinition> {
        Arc::clone(&self.definition.read())
    }

    /// Makes it something else.
    pub(crate) fn define(&self, definition: TableDefinition) {
        *self.definition.write() = Arc::new(definition);
    }

    /// Tells it from all other tables of the database, also from earlier ones of its name.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(&self.table.id().0.to_be_bytes());
        hash.update(self.name.as_bytes());
        hash.digest()
    }

    /// Which parts of its rows name owners.
    pub(crate) fn owner_places(&self) -> Vec<OwnerPlace> {
        let definition = self.definition();
        let owners = definition.owners.iter();
        owners.map(|owner| OwnerPlace::new(&definition, owner)).collect()
    }

    /// Says that it is there no more.
    pub(crate) fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Refuses when it is there no more.
    ///
    /// # Errors
    /// [`EngineError::TableNotFound`].
    pub(crate) fn check_there(&self) -> Result<()> {
        match self.dropped.load(Ordering::Acquire) {
            true => Err(EngineError::TableNotFound {
                table: self.name.to_string(),
            }),
            false => Ok(()),
        }
    }

    /// What the index is to be, now or when it is built.
    pub(crate) fn wanted(&self) -> Arc<Design> {
        Arc::clone(&self.wanted.read())
    }

    /// Makes the index to be of another design: [`crate::keeper::Keeper::redesign`] then does it.
    pub(crate) fn want(&self, design: impl Into<Arc<Design>>) {
        *self.wanted.write() = design.into();
    }

    /// Says of fields that the index doesn't have yet that they are coming.
    pub(crate) fn explained(&self, error: souk_index::Error) -> souk_index::Error {
        let Some(build) = self.index.build() else {
            return error;
        };
        let mut violations = match error {
            souk_index::Error::InvalidQuery(violations) => violations,
            other => return other,
        };
        let wanted = self.wanted();
        violations.advise(|violation| {
            let field = violation.message.split('`').nth(1)?;
            let comes = violation.reason == Reason::UnknownField && wanted.schema.resolve(field).is_some();
            let (rows, about) = (build.rows, build.about);
            comes.then(|| {
                format!("it is being added ({rows} of about {about} rows are in): search again later")
            })
        });
        souk_index::Error::InvalidQuery(violations)
    }

    /// The design that searches are read by: that of the index that answers.
    pub(crate) fn served(&self) -> Arc<Design> {
        match self.index.serving() {
            Some(serving) => serving.design,
            None => self.wanted(),
        }
    }
}
