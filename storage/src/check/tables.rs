//! What tables there are, by what the catalog says.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::catalog::{self, ExpiryIndex, IndexState, Table};
use crate::error::Result;
use crate::id::TableId;
use crate::key;
use crate::secondary::EXPIRY_INDEX;

/// The tables of a cut.
#[derive(Debug, Default)]
pub(crate) struct Tables(BTreeMap<TableId, Table>);

impl Tables {
    /// Takes an entry of the catalog, if it is of a table.
    pub(crate) fn take(&mut self, key: &Bytes, value: &[u8]) -> Result<()> {
        let (low, high) = key::tables();
        if (low..high).contains(key) {
            let id = key::table_of(key)?;
            self.0
                .insert(id, Table::new(id, catalog::codec::decode(id, value)?));
        }
        Ok(())
    }

    /// A table by its number.
    pub(crate) fn get(&self, id: TableId) -> Option<&Table> {
        self.0.get(&id)
    }

    /// The table of a row or of an entry of an index.
    pub(crate) fn of_row(&self, key: &[u8]) -> Option<&Table> {
        self.0.get(&table_of(key)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Table> {
        self.0.values()
    }
}

/// The number of the table that a row or an entry of an index is of, from its key.
pub(super) fn table_of(key: &[u8]) -> Option<TableId> {
    key.first_chunk().map(|id| TableId(u32::from_be_bytes(*id)))
}

/// A secondary index as a check sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownIndex {
    pub(crate) number: u16,
    pub(crate) name: String,
    /// How many values stand before the primary key in the keys of its entries.
    pub(crate) columns: usize,
    /// Whether every row that can have an entry has one.
    pub(crate) complete: bool,
    /// Whether writes keep its entries: those of an index that couldn't be filled are of no account.
    pub(crate) kept: bool,
}

/// The indexes that a table declares.
pub(crate) fn indexes_of(table: &Table) -> Vec<KnownIndex> {
    let definition = table.definition();
    let indexes = definition.indexes.iter().map(|index| KnownIndex {
        number: index.number,
        name: index.name.clone(),
        columns: index.columns.len(),
        complete: index.state == IndexState::Ready && !index.partial,
        kept: index.is_kept(),
    });
    indexes.collect()
}

/// An index of a table by its number, the hidden one included.
pub(super) fn index_of(table: &Table, number: u16) -> Option<KnownIndex> {
    if number != EXPIRY_INDEX {
        return indexes_of(table).into_iter().find(|index| index.number == number);
    }
    let complete = match table.definition().expiry {
        ExpiryIndex::Absent => return None,
        ExpiryIndex::Building => false,
        ExpiryIndex::Ready => true,
    };
    Some(KnownIndex {
        number,
        name: "of times to live".to_owned(),
        columns: 1,
        complete,
        kept: true,
    })
}
