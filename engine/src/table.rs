//! A table that is open, with its index.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::RwLock;
use souk_index::Reason;
use souk_storage::Table;

use crate::declaration::Declaration;
use crate::design::Design;
use crate::handovers::Handovers;
use crate::index_change::IndexChange;
use crate::index_state::IndexState;
use crate::turns::Turns;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct OpenTable {
    pub(crate) declaration: Declaration,
    pub(crate) table: Table,
    pub(crate) index: Arc<IndexState>,
    pub(crate) turns: Turns,
    /// How often an index of it was found damaged.
    pub(crate) damages: AtomicU64,
    /// Of requests that are tried.
    pub(crate) attempts: Turns,
    pub(crate) handovers: Handovers,
    /// Changes of the declared index, in order.
    pub(crate) changes: RwLock<Vec<IndexChange>>,
    /// What the index is to be, now or when it is built.
    wanted: RwLock<Arc<Design>>,
}

impl OpenTable {
    /// `last` is the last sequence of the database.
    pub(crate) fn new(
        declaration: Declaration,
        table: Table,
        changes: Vec<IndexChange>,
        wanted: Design,
        last: u64,
    ) -> Self {
        Self {
            index: Arc::new(IndexState::new(declaration.name)),
            declaration,
            table,
            turns: Turns::default(),
            damages: AtomicU64::new(0),
            attempts: Turns::default(),
            handovers: Handovers::since(last),
            changes: RwLock::new(changes),
            wanted: RwLock::new(Arc::new(wanted)),
        }
    }

    /// What the index is to be, now or when it is built.
    pub(crate) fn wanted(&self) -> Arc<Design> {
        Arc::clone(&self.wanted.read())
    }

    /// Makes the index to be of another design: [`crate::keeper::Keeper::redesign`] then does it.
    pub(crate) fn want(&self, design: Design) {
        *self.wanted.write() = Arc::new(design);
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
