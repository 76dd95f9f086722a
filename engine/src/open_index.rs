//! A search index of an open table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::RwLock;
use souk_index::Reason;

use crate::definition::{SearchIndexDefinition, TableDefinition, index_name};
use crate::design::Design;
use crate::error::Result;
use crate::index_state::IndexState;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct OpenIndex {
    name: Arc<str>,
    pub(crate) state: Arc<IndexState>,
    /// How often it was found damaged.
    pub(crate) damages: AtomicU64,
    /// [`SearchIndexDefinition::weight`].
    weight: AtomicU8,
    /// What it is to be, now or when it is built.
    wanted: RwLock<Arc<Design>>,
}

impl OpenIndex {
    /// An index of a table as it is defined, but for its fields, which may have been changed since.
    ///
    /// # Errors
    /// [`souk_index::Error::InvalidSchema`].
    pub(crate) fn new(table: &TableDefinition, index: &SearchIndexDefinition) -> Result<Self> {
        let name: Arc<str> = index.name.as_str().into();
        Ok(Self {
            state: Arc::new(IndexState::new(Arc::clone(&name))),
            name,
            damages: AtomicU64::new(0),
            weight: AtomicU8::new(index.weight),
            wanted: RwLock::new(Arc::new(Design::new(table, index)?)),
        })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// [`Self::name`], to be shared.
    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its name for telemetry, which names indexes by their tables, and others than the first by this besides.
    pub(crate) fn told_name(&self) -> Option<&str> {
        let name = self.name();
        (index_name::table_of(name) != name).then_some(name)
    }

    /// Its share of the searches that name no index.
    pub(crate) fn weight(&self) -> u8 {
        self.weight.load(Ordering::Acquire)
    }

    /// Gives it another share.
    pub(crate) fn weigh(&self, weight: u8) {
        self.weight.store(weight, Ordering::Release);
    }

    /// What it is to be, now or when it is built.
    pub(crate) fn wanted(&self) -> Arc<Design> {
        Arc::clone(&self.wanted.read())
    }

    /// Makes it to be of another design: [`crate::keeper::Keeper::redesign`] then does it.
    pub(crate) fn want(&self, design: impl Into<Arc<Design>>) {
        *self.wanted.write() = design.into();
    }

    /// Whether a page token that says this of its index is of this one, as it is or is to be, in a history of the database.
    pub(crate) fn gave(&self, token_design: u64, history: u64) -> bool {
        let mut designs = self.state.served_design().into_iter().chain([self.wanted()]);
        designs.any(|design| design.token_design(history) == token_design)
    }

    /// Whether it answers, or would once it is open.
    pub(crate) fn answers(&self) -> bool {
        self.state.answers()
    }

    /// Whether it answers, and isn't known to stand still.
    pub(crate) fn is_able(&self) -> bool {
        self.answers() && self.state.lasting_stall().is_none()
    }

    /// The design that searches are read by: that of the index that answers.
    pub(crate) fn served_design(&self) -> Arc<Design> {
        self.state.served_design().unwrap_or_else(|| self.wanted())
    }

    /// Says of fields that it doesn't have yet that they are coming.
    pub(crate) fn explained(&self, error: souk_index::Error) -> souk_index::Error {
        let Some(build) = self.state.build() else {
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
}
