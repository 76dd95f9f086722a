//! The tables of an engine: as they are declared, and as they are open.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::RwLock;
use souk_access::Role;
use souk_index::{Document, Reason, Schema};
use souk_storage::{PrimaryKey, Row, Table, TableSchema};

use crate::columns::{ColumnPlaces, CorruptRow};
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::handovers::Handovers;
use crate::index_admin::KeptChanges;
use crate::index_state::IndexState;
use crate::resource::Resource;
use crate::stored;
use crate::turns::Turns;

/// The tables that an engine is opened with.
#[derive(Debug, Default)]
pub struct Tables {
    pub(crate) declared: Vec<Declaration>,
}

impl Tables {
    /// No table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the table of a resource.
    #[must_use]
    pub fn table<R: Resource>(mut self) -> Self {
        self.declared.push(Declaration::of::<R>());
        self
    }
}

/// A resource without its type: what the parts of the engine need that work for any table.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(crate) name: &'static str,
    pub(crate) resource: TypeId,
    pub(crate) table: TableSchema,
    fields: Vec<souk_index::Field>,
    document_version: u32,
    /// The fields that say whose a row is.
    pub(crate) owners: &'static [(Role, &'static str)],
    /// Makes the document of a row of the table.
    pub(crate) document: fn(&Row, &ColumnPlaces) -> Result<Document, CorruptRow>,
    /// The id in a primary key.
    pub(crate) id: fn(&PrimaryKey) -> Result<String, CorruptRow>,
}

impl Declaration {
    fn of<R: Resource>() -> Self {
        Self {
            name: R::TABLE,
            resource: TypeId::of::<R>(),
            table: R::table(),
            fields: stored::fields::<R>(),
            document_version: R::DOCUMENT_VERSION,
            owners: R::OWNERS,
            document: stored::to_document::<R>,
            id: R::id_of,
        }
    }

    /// The design of the table's index, as the resource declares it.
    ///
    /// # Errors
    /// [`souk_index::Error::InvalidSchema`].
    pub(crate) fn design(&self) -> Result<Design> {
        Ok(Design {
            schema: Schema::new(self.fields.clone())?,
            sources: BTreeMap::new(),
            document_version: self.document_version,
        })
    }
}

/// A table that is open, with its index.
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
    /// Where its rows have their columns.
    pub(crate) places: ColumnPlaces,
    /// Changes of the declared index, in order.
    pub(crate) changes: RwLock<KeptChanges>,
    /// What the index is to be, now or when it is built.
    wanted: RwLock<Arc<Design>>,
}

impl OpenTable {
    /// `last` is the last sequence of the database.
    pub(crate) fn new(
        declaration: Declaration,
        table: Table,
        changes: KeptChanges,
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
            places: ColumnPlaces::default(),
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

/// Refuses two declarations of one table.
pub(crate) fn check_distinct(declared: &[Declaration]) -> Result<()> {
    for (at, declaration) in declared.iter().enumerate() {
        if declared
            .iter()
            .take(at)
            .any(|earlier| earlier.name == declaration.name)
        {
            return Err(EngineError::TableDeclaredTwice {
                table: declaration.name,
            });
        }
    }
    Ok(())
}
