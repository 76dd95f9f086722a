//! What the store knows of a table besides its rows: its schema, and how far its indexes are.

use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;
use crate::schema::{SecondaryIndexSchema, TableSchema};

/// How far a secondary index is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecondaryIndexState {
    /// Writes keep it, but rows from before it was created are still being added. It can't be read yet.
    Building,
    /// It can be read.
    Ready,
    /// A row can't stand in it. Writes don't keep it, and it can't be read; drop it.
    Failed {
        /// Which row, and why.
        reason: String,
    },
}

/// A secondary index with its number and state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberedIndex {
    /// Its number in the table, as keys of entries have it; never given to another index of the table.
    pub(crate) number: u16,
    pub(crate) state: SecondaryIndexState,
    /// Whether it was created without the rows there were: such a row gets its entry when it is next written.
    pub(crate) partial: bool,
    /// Snapshots older than this generation of the catalog don't hold all of its entries.
    pub(crate) since: u64,
    schema: Arc<SecondaryIndexSchema>,
}

impl NumberedIndex {
    pub(crate) fn new(
        number: u16,
        state: SecondaryIndexState,
        partial: bool,
        schema: SecondaryIndexSchema,
    ) -> Self {
        Self {
            number,
            state,
            partial,
            since: 0,
            schema: Arc::new(schema),
        }
    }

    /// Whether writes keep its entries.
    pub(crate) fn is_kept(&self) -> bool {
        match self.state {
            SecondaryIndexState::Building | SecondaryIndexState::Ready => true,
            SecondaryIndexState::Failed { .. } => false,
        }
    }
}

impl Deref for NumberedIndex {
    type Target = SecondaryIndexSchema;

    fn deref(&self) -> &SecondaryIndexSchema {
        &self.schema
    }
}

/// How far the hidden index is by which expired cells are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpiryIndex {
    /// Nothing of the table expires.
    Absent,
    /// Writes keep it; rows from before are still being added.
    Building,
    /// Every row has its entry.
    Ready,
}

/// A table as it is at one moment; changes make a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    /// What it is declared as; lists the same indexes in the same order.
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) indexes: Vec<NumberedIndex>,
    /// The number of the next index.
    pub(crate) next_index: u16,
    pub(crate) expiry: ExpiryIndex,
}

impl Definition {
    /// Of a table without rows.
    pub(crate) fn new(schema: TableSchema) -> Self {
        let numbered = (0u16..).zip(&schema.indexes);
        let indexes: Vec<_> = numbered
            .map(|(number, index)| {
                NumberedIndex::new(number, SecondaryIndexState::Ready, false, index.clone())
            })
            .collect();
        Self {
            next_index: indexes.last().map_or(0, |last| last.number.saturating_add(1)),
            expiry: match schema.time_to_live {
                None => ExpiryIndex::Absent,
                Some(_) => ExpiryIndex::Ready,
            },
            schema: Arc::new(schema),
            indexes,
        }
    }

    /// An index by its name.
    pub(crate) fn index(&self, name: &str) -> Result<&NumberedIndex> {
        self.indexes
            .iter()
            .find(|index| index.name == name)
            .ok_or_else(|| Error::IndexNotFound {
                table: self.schema.name.clone(),
                index: name.to_owned(),
            })
    }

    /// An index by its number.
    pub(crate) fn numbered(&self, number: u16) -> Option<&NumberedIndex> {
        self.indexes.iter().find(|index| index.number == number)
    }

    /// With another schema that has the same indexes.
    pub(crate) fn with_schema(&self, schema: TableSchema) -> Self {
        Self {
            schema: Arc::new(schema),
            ..self.clone()
        }
    }

    /// With one index more, and that index.
    pub(crate) fn with_index(
        &self,
        index: SecondaryIndexSchema,
        state: SecondaryIndexState,
        partial: bool,
    ) -> Result<(Self, NumberedIndex)> {
        if self.indexes.iter().any(|each| each.name == index.name) {
            return Err(Error::IndexExists {
                table: self.schema.name.clone(),
                index: index.name,
            });
        }
        let schema = TableSchema::clone(&self.schema).index(index.clone());
        schema.check()?;
        let number = self.next_index;
        limits::check(
            "MAX_INDEX_NUMBER",
            usize::from(limits::MAX_INDEX_NUMBER),
            usize::from(number),
        )?;
        let index = NumberedIndex::new(number, state, partial, index);
        let mut changed = self.with_schema(schema);
        changed.indexes.push(index.clone());
        changed.next_index = number.saturating_add(1);
        Ok((changed, index))
    }

    /// Without one index, and that index.
    pub(crate) fn without_index(&self, name: &str) -> Result<(Self, NumberedIndex)> {
        let index = self.index(name)?.clone();
        let mut schema = TableSchema::clone(&self.schema);
        schema.indexes.retain(|each| each.name != name);
        let mut changed = self.with_schema(schema);
        changed.indexes.retain(|each| each.number != index.number);
        Ok((changed, index))
    }

    /// With one index in another state.
    pub(crate) fn with_state(&self, number: u16, state: &SecondaryIndexState) -> Self {
        let mut changed = self.clone();
        for index in &mut changed.indexes {
            if index.number == number {
                index.state = state.clone();
            }
        }
        changed
    }
}
