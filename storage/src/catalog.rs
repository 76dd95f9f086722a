//! The tables of a database.

pub(crate) mod codec;
mod definition;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use souk_kv::{Mutation, Space};

pub use self::definition::SecondaryIndexState;
pub(crate) use self::definition::{Definition, ExpiryIndex, NumberedIndex};
use crate::error::{Error, Result};
use crate::id::TableId;
use crate::key;
use crate::schema::TableSchema;

/// Handle of a table; cheap to clone. It belongs to the database that gave it, and follows changes of the table.
#[derive(Debug, Clone)]
pub struct Table(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    id: TableId,
    name: String,
    definition: RwLock<Arc<Definition>>,
}

impl Table {
    pub(crate) fn new(id: TableId, definition: Definition) -> Self {
        Self(Arc::new(Handle {
            id,
            name: definition.schema.name.clone(),
            definition: RwLock::new(Arc::new(definition)),
        }))
    }

    /// Its number.
    pub fn id(&self) -> TableId {
        self.0.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it is declared as at this moment.
    pub fn schema(&self) -> Arc<TableSchema> {
        Arc::clone(&self.0.definition.read().schema)
    }

    /// How far one of its secondary indexes is.
    ///
    /// # Errors
    /// [`Error::IndexNotFound`].
    pub fn index_state(&self, index: &str) -> Result<SecondaryIndexState> {
        Ok(self.definition().index(index)?.state.clone())
    }

    /// Whether one of its secondary indexes was created without the rows that were there, see
    /// [`Backfill::None`](crate::Backfill::None).
    ///
    /// # Errors
    /// [`Error::IndexNotFound`].
    pub fn index_is_partial(&self, index: &str) -> Result<bool> {
        Ok(self.definition().index(index)?.partial)
    }

    pub(crate) fn definition(&self) -> Arc<Definition> {
        Arc::clone(&self.0.definition.read())
    }

    /// The mutation that stores a definition of the table.
    pub(crate) fn put(&self, definition: &Definition) -> Mutation {
        Mutation::Put {
            space: Space::Catalog,
            key: key::table(self.id()),
            value: codec::encode(definition),
            stamp: false,
        }
    }

    /// An index that a snapshot of this generation of the catalog can be read by.
    pub(crate) fn index(&self, name: &str, generation: u64) -> Result<NumberedIndex> {
        let definition = self.definition();
        let index = definition.index(name)?;
        let (table, name) = (self.name().to_owned(), name.to_owned());
        match &index.state {
            SecondaryIndexState::Ready if index.since <= generation => Ok(index.clone()),
            SecondaryIndexState::Ready | SecondaryIndexState::Building => {
                Err(Error::IndexNotReady { table, index: name })
            }
            SecondaryIndexState::Failed { reason } => Err(Error::IndexFailed {
                table,
                index: name,
                reason: reason.clone(),
            }),
        }
    }
}

/// The tables by name and by number.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    by_name: BTreeMap<String, Table>,
    by_id: BTreeMap<TableId, Table>,
    /// The highest number a table ever had.
    last_id: u32,
    /// Counts the moments at which an index became readable.
    generation: u64,
}

impl Catalog {
    /// Without tables, in a database whose tables had numbers up to this one.
    pub(crate) fn new(last_id: u32) -> Self {
        Self {
            last_id,
            ..Self::default()
        }
    }

    pub(crate) fn insert(&mut self, table: Table) {
        self.last_id = self.last_id.max(table.id().0);
        self.by_name.insert(table.name().to_owned(), table.clone());
        self.by_id.insert(table.id(), table);
    }

    pub(crate) fn remove(&mut self, table: &Table) {
        self.by_name.remove(table.name());
        self.by_id.remove(&table.id());
    }

    /// Replaces the definition of a table, which all its handles see at once. `readable` is the number of the index that becomes
    /// ready by it, if one does.
    pub(crate) fn define(&mut self, table: &Table, mut definition: Definition, readable: Option<u16>) {
        if readable.is_some() {
            self.generation += 1;
        }
        for index in &mut definition.indexes {
            if Some(index.number) == readable {
                index.since = self.generation;
            }
        }
        *table.0.definition.write() = Arc::new(definition);
    }

    /// The present generation: a snapshot that is taken after this call can be read by every index that is ready in it.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Table> {
        self.by_name.get(name)
    }

    pub(crate) fn by_id(&self, id: TableId) -> Option<&Table> {
        self.by_id.get(&id)
    }

    pub(crate) fn tables(&self) -> Vec<Table> {
        self.by_name.values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The number of the next table; numbers of deleted tables aren't given again.
    pub(crate) fn next_id(&self) -> Result<TableId> {
        self.last_id
            .checked_add(1)
            .map(TableId)
            .ok_or_else(|| Error::corrupt("table numbers are used up"))
    }

    /// Refuses handles of other databases and of tables that were deleted, by [`Error::TableNotFound`].
    pub(crate) fn check_owned(&self, table: &Table) -> Result<()> {
        match self.by_id.get(&table.id()) {
            Some(known) if Arc::ptr_eq(&known.0, &table.0) => Ok(()),
            Some(_) | None => Err(Error::TableNotFound {
                table: table.name().to_owned(),
            }),
        }
    }
}
