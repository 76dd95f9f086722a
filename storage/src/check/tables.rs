//! What tables there are, by what the catalog says.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::catalog::{self, NumberedIndex, Table, TableId};
use crate::error::Result;
use crate::key;

/// Number of the index by which the store finds what has expired: the oldest version of a row, and its key.
const HIDDEN: u16 = u16::MAX;

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
        let id = key.first_chunk().map(|id| TableId(u32::from_be_bytes(*id)))?;
        self.0.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Table> {
        self.0.values()
    }
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
}

/// The indexes that a table declares.
pub(crate) fn indexes_of(table: &Table) -> Vec<KnownIndex> {
    let schema = table.schema();
    let indexes = NumberedIndex::all(&schema).map(|(number, index)| KnownIndex {
        number,
        name: index.name.clone(),
        columns: index.columns.len(),
        complete: true,
    });
    indexes.collect()
}

/// An index of a table by its number, the hidden one included.
pub(super) fn index_of(table: &Table, number: u16) -> Option<KnownIndex> {
    if number == HIDDEN && table.schema().time_to_live.is_some() {
        return Some(KnownIndex {
            number,
            name: "of times to live".to_owned(),
            columns: 1,
            complete: true,
        });
    }
    indexes_of(table).into_iter().find(|index| index.number == number)
}
