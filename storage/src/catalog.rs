//! The tables of a database.

pub(crate) mod codec;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::schema::{SecondaryIndexSchema, TableSchema};

/// Number of a table, unique for the life of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// Handle of a table; cheap to clone. It belongs to the database that gave it, and follows changes of the table.
#[derive(Debug, Clone)]
pub struct Table(Arc<Definition>);

#[derive(Debug)]
struct Definition {
    id: TableId,
    name: String,
    schema: RwLock<Arc<TableSchema>>,
}

/// A secondary index of a table as it was declared at one moment.
#[derive(Debug, Clone)]
pub(crate) struct NumberedIndex {
    /// Its number in the table, as keys of entries have it.
    pub(crate) number: u16,
    schema: Arc<TableSchema>,
    place: usize,
}

impl NumberedIndex {
    /// All indexes of a schema.
    pub(crate) fn all(schema: &TableSchema) -> impl Iterator<Item = (u16, &SecondaryIndexSchema)> {
        (0u16..).zip(&schema.indexes)
    }
}

impl Deref for NumberedIndex {
    type Target = SecondaryIndexSchema;

    #[expect(clippy::indexing_slicing, reason = "the place was found in this very schema")]
    fn deref(&self) -> &SecondaryIndexSchema {
        &self.schema.indexes[self.place]
    }
}

impl Table {
    pub(crate) fn new(id: TableId, schema: TableSchema) -> Self {
        Self(Arc::new(Definition {
            id,
            name: schema.name.clone(),
            schema: RwLock::new(Arc::new(schema)),
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
        self.0.schema.read().clone()
    }

    /// An index by name.
    pub(crate) fn index(&self, name: &str) -> Result<NumberedIndex> {
        let schema = self.schema();
        let found = NumberedIndex::all(&schema)
            .enumerate()
            .find(|(_, (_, index))| index.name == name)
            .map(|(place, (number, _))| (place, number));
        let (place, number) = found.ok_or_else(|| Error::IndexNotFound {
            table: self.name().to_owned(),
            index: name.to_owned(),
        })?;
        Ok(NumberedIndex {
            number,
            schema,
            place,
        })
    }
}

/// The tables by name and by number.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    by_name: BTreeMap<String, Table>,
    by_id: BTreeMap<TableId, Table>,
}

impl Catalog {
    pub(crate) fn insert(&mut self, table: Table) {
        self.by_name.insert(table.name().to_owned(), table.clone());
        self.by_id.insert(table.id(), table);
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

    /// The number of the next table.
    pub(crate) fn next_id(&self) -> Result<TableId> {
        let last = self.by_id.last_key_value().map_or(0, |(id, _)| id.0);
        last.checked_add(1)
            .map(TableId)
            .ok_or_else(|| Error::corrupt("table numbers are used up"))
    }

    /// Whether the handle is one of this database.
    pub(crate) fn check_owned(&self, table: &Table) -> Result<()> {
        match self.by_id.get(&table.id()) {
            Some(known) if Arc::ptr_eq(&known.0, &table.0) => Ok(()),
            Some(_) | None => Err(Error::TableNotFound {
                table: table.name().to_owned(),
            }),
        }
    }
}
