//! The tables of a database.

pub(crate) mod codec;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::schema::{SecondaryIndexSchema, TableSchema};

/// Number of a table, unique for the life of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// Handle of a table; cheap to clone. It belongs to the database that gave it.
#[derive(Debug, Clone)]
pub struct Table(Arc<Definition>);

#[derive(Debug)]
struct Definition {
    id: TableId,
    schema: TableSchema,
}

impl Table {
    pub(crate) fn new(id: TableId, schema: TableSchema) -> Self {
        Self(Arc::new(Definition { id, schema }))
    }

    /// Its number.
    pub fn id(&self) -> TableId {
        self.0.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.schema.name
    }

    /// What it is declared as.
    pub fn schema(&self) -> &TableSchema {
        &self.0.schema
    }

    /// An index by name, with its number in the table.
    pub(crate) fn index(&self, name: &str) -> Result<(u16, &SecondaryIndexSchema)> {
        (0u16..)
            .zip(&self.0.schema.indexes)
            .find(|(_, index)| index.name == name)
            .ok_or_else(|| Error::IndexNotFound {
                table: self.name().to_owned(),
                index: name.to_owned(),
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
