//! Reading rows by their keys, and what of a stored row a read gives back.

use bytes::Bytes;

use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::expiry::Expiry;
use crate::filter::Filter;
use crate::key;
use crate::kv::Space;
use crate::limits;
use crate::read::{ColumnSelection, Snapshot};
use crate::row::{Row, codec};
use crate::value::PrimaryKey;

/// What a read wants of each row, checked.
pub(super) struct Projection<'a> {
    columns: &'a ColumnSelection,
    filter: Option<&'a Filter>,
    /// Whether a key column is selected: then every row has one.
    selects_key: bool,
    expiry: Expiry,
}

impl<'a> Projection<'a> {
    /// Of rows of this table, as they are visible now.
    pub(super) fn new(
        snapshot: &Snapshot,
        table: &Table,
        columns: &'a ColumnSelection,
        filter: Option<&'a Filter>,
    ) -> Result<Self> {
        snapshot.shared.catalog.read().check_owned(table)?;
        let mut selects_key = false;
        if let ColumnSelection::Named(names) = columns {
            limits::check("MAX_SELECTED_COLUMNS", limits::MAX_SELECTED_COLUMNS, names.len())?;
            if names.is_empty() {
                return Err(Error::invalid("column selection", "names no column"));
            }
            selects_key = names
                .iter()
                .any(|name| table.schema().key_position(name).is_some());
        }
        if let Some(filter) = filter {
            filter.check()?;
        }
        Ok(Self {
            columns,
            filter,
            selects_key,
            expiry: Expiry::of(table, snapshot.shared.options.clock.now()),
        })
    }

    /// Whether it gives back every stored row.
    pub(super) fn takes_all(&self, table: &Table) -> bool {
        *self.columns == ColumnSelection::All
            && self.filter.is_none()
            && table.schema().time_to_live.is_none()
    }

    /// The row of a stored value, unless it has expired, has none of the columns, or the filter refuses it.
    pub(super) fn row(&self, key: PrimaryKey, value: &[u8]) -> Result<Option<Row>> {
        let row = match self.columns {
            ColumnSelection::Named(names) if self.selects_key => {
                // Whether the row has expired shows only in all of its columns.
                let row = codec::decode(key, value, &ColumnSelection::All)?;
                self.expiry.visible(row).map(|mut row| {
                    row.columns_mut()
                        .retain(|name| names.iter().any(|each| each == name));
                    row
                })
            }
            ColumnSelection::Named(_) => {
                let row = codec::decode(key, value, self.columns)?;
                let row = self.expiry.visible(row);
                row.filter(|row| !row.columns().is_empty())
            }
            ColumnSelection::All => self.expiry.visible(codec::decode(key, value, self.columns)?),
        };
        Ok(row.filter(|row| self.filter.is_none_or(|filter| filter.matches(Some(row)))))
    }
}

/// A row by its key; see [`Snapshot::get_selected`].
pub(super) async fn get(
    snapshot: &Snapshot,
    table: &Table,
    primary_key: &PrimaryKey,
    columns: &ColumnSelection,
    filter: Option<&Filter>,
) -> Result<Option<Row>> {
    let projection = Projection::new(snapshot, table, columns, filter)?;
    table.schema().check_key(primary_key)?;
    let key = key::row(table.id(), primary_key);
    let value = snapshot.kv.get(Space::Rows, &key).await?;
    value.map_or(Ok(None), |value| projection.row(primary_key.clone(), &value))
}

/// Rows by their keys; see [`Snapshot::multi_get`].
pub(super) async fn multi_get(
    snapshot: &Snapshot,
    table: &Table,
    keys: &[PrimaryKey],
) -> Result<Vec<Option<Row>>> {
    limits::check("MAX_MULTI_GET_ROWS", limits::MAX_MULTI_GET_ROWS, keys.len())?;
    let projection = Projection::new(snapshot, table, &ColumnSelection::All, None)?;
    let mut stored_keys: Vec<Bytes> = Vec::with_capacity(keys.len());
    for primary_key in keys {
        table.schema().check_key(primary_key)?;
        stored_keys.push(key::row(table.id(), primary_key));
    }
    let values = snapshot.kv.multi_get(Space::Rows, stored_keys).await?;
    keys.iter()
        .zip(values)
        .map(|(key, value)| value.map_or(Ok(None), |value| projection.row(key.clone(), &value)))
        .collect()
}
