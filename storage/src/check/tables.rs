//! What tables there are, by what the catalog says.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::catalog::{self, Table, TableId};
use crate::error::Result;
use crate::key;

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
