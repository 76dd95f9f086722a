//! The tables of an engine: as they are declared, and as they are open.

use std::any::TypeId;
use std::sync::Arc;

use souk_index::{Document, Schema};
use souk_storage::{Row, Table, TableSchema};
use xxhash_rust::xxh3::Xxh3;

use crate::columns::CorruptRow;
use crate::error::{EngineError, Result};
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
    /// Makes the document of a row.
    pub(crate) document: fn(&Row) -> Result<Document, CorruptRow>,
}

impl Declaration {
    fn of<R: Resource>() -> Self {
        Self {
            name: R::TABLE,
            resource: TypeId::of::<R>(),
            table: R::table(),
            fields: stored::fields::<R>(),
            document_version: R::DOCUMENT_VERSION,
            document: stored::to_document::<R>,
        }
    }

    /// The schema of the table's index.
    ///
    /// # Errors
    /// [`souk_index::Error::InvalidSchema`].
    pub(crate) fn schema(&self) -> Result<Schema> {
        Ok(Schema::new(self.fields.clone())?)
    }

    /// What tells an index that answers like this declaration from all others.
    pub(crate) fn fingerprint(&self, schema: &Schema) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(&schema.fingerprint().to_be_bytes());
        hash.update(&self.document_version.to_be_bytes());
        hash.digest()
    }
}

/// A table that is open, with its index.
#[derive(Debug)]
pub(crate) struct OpenTable {
    pub(crate) declaration: Declaration,
    pub(crate) table: Table,
    pub(crate) schema: Schema,
    pub(crate) index: Arc<IndexState>,
    pub(crate) turns: Turns,
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
