//! Tables and their secondary indexes, read from the entries of a catalog: of a snapshot, or of a backup.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::catalog::{self, ExpiryIndex, SecondaryIndexState, Table};
use crate::error::Result;
use crate::id::TableId;
use crate::key;
use crate::secondary::EXPIRY_INDEX;

/// The tables of a catalog.
#[derive(Debug, Default)]
pub(crate) struct Tables(BTreeMap<TableId, Table>);

impl Tables {
    /// Adds the table of an entry of the catalog; ignores other entries.
    pub(crate) fn add(&mut self, key: &Bytes, value: &[u8]) -> Result<()> {
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
        self.0.get(&key::table_prefix(key)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Table> {
        self.0.values()
    }
}

/// A secondary index as a check sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownIndex {
    pub(crate) name: String,
    /// How many values stand before the primary key in the keys of its entries.
    pub(crate) columns: usize,
    /// Whether every row that can have an entry has one.
    pub(crate) complete: bool,
    /// Whether writes keep its entries. The entries of an index that couldn't be filled aren't checked.
    pub(crate) kept: bool,
}

/// An index of a table by its number, the hidden one included.
pub(super) fn index_of(table: &Table, number: u16) -> Option<KnownIndex> {
    let definition = table.definition();
    if number == EXPIRY_INDEX {
        return Some(KnownIndex {
            name: "of times to live".to_owned(),
            columns: 1,
            complete: match definition.expiry {
                ExpiryIndex::Absent => return None,
                ExpiryIndex::Building => false,
                ExpiryIndex::Ready => true,
            },
            kept: true,
        });
    }
    definition.numbered(number).map(|index| KnownIndex {
        name: index.name.clone(),
        columns: index.columns.len(),
        complete: index.state == SecondaryIndexState::Ready && !index.partial,
        kept: index.is_kept(),
    })
}
