//! The tables of an engine, as they are declared.

use std::any::TypeId;
use std::sync::Arc;

use souk_index::Document;
use souk_storage::{PrimaryKey, Row, TableSchema};

use crate::columns::{ColumnPlaces, CorruptRow};
use crate::error::{EngineError, Result};
use crate::resource::Resource;
use crate::stored;

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
    pub(crate) fields: Vec<souk_index::Field>,
    pub(crate) document_version: u32,
    /// The fields that say whose a row is.
    pub(crate) owners: &'static [(&'static str, &'static str)],
    /// Makes the document of a row of the table.
    document: fn(&Row, &ColumnPlaces) -> Result<Document, CorruptRow>,
    /// Where its rows have their columns.
    pub(crate) places: Arc<ColumnPlaces>,
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
            places: Arc::default(),
            id: R::id_of,
        }
    }

    /// The document of a row of the table.
    ///
    /// # Errors
    /// When the row doesn't hold a resource.
    pub(crate) fn document(&self, row: &Row) -> Result<Document, CorruptRow> {
        (self.document)(row, &self.places)
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
