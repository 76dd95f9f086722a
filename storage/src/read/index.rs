//! Reading secondary indexes.

use bytes::Bytes;

use super::range::bounded;
use crate::catalog::Table;
use crate::codec::{Malformed, put_ordered};
use crate::error::{Error, Result};
use crate::expiry::Expiry;
use crate::key::{self, INDEX_PREFIX_BYTES};
use crate::kv::{Direction, Scan, Space};
use crate::limits::{MAX_SCANNED_BYTES, MAX_SCANNED_ROWS};
use crate::read::{IndexEntry, IndexPage, IndexPosition, Snapshot};
use crate::schema::SecondaryIndexSchema;
use crate::secondary;
use crate::value::Value;

/// A page of a secondary index; see [`Snapshot::index_range`].
pub(super) async fn page(
    snapshot: &Snapshot,
    table: &Table,
    name: &str,
    prefix: &[Value],
    after: Option<&IndexPosition>,
    direction: Direction,
    limit: usize,
) -> Result<IndexPage> {
    snapshot.shared.catalog.read().check_owned(table)?;
    let index = table.index(name, snapshot.generation)?;
    let begin = begin(table, index.number, &index, prefix)?;
    let mut high = key::after(&begin);
    let mut low = Bytes::from(begin);
    if let Some(position) = after {
        let place = place(table, index.number, &index, position)?;
        if !place.starts_with(&low) {
            return Err(Error::invalid(
                format!("position in index {name:?}"),
                "lies outside of the prefix",
            ));
        }
        match direction {
            Direction::Forward => low = key::just_after(&place),
            Direction::Backward => high = place,
        }
    }
    let scan = Scan {
        space: Space::Index,
        low,
        high,
        direction,
        rows: bounded(limit, MAX_SCANNED_ROWS),
        bytes: MAX_SCANNED_BYTES,
    };
    let scanned = snapshot.kv.scan(scan).await?;
    let expiry = Expiry::of(table, snapshot.shared.options.clock.now());
    let mut page = IndexPage::default();
    if scanned.next.is_some() {
        page.next = scanned.entries.last().map(|(key, _)| position_of(key));
    }
    for (key, value) in &scanned.entries {
        let entry = entry(&index, key, value, expiry).map_err(|Malformed(expected)| {
            Error::corrupt(format!(
                "index {name:?} of table {:?}: expected {expected}",
                table.name()
            ))
        })?;
        page.entries.extend(entry);
    }
    Ok(page)
}

/// What the entries with these first values begin with.
fn begin(table: &Table, number: u16, index: &SecondaryIndexSchema, prefix: &[Value]) -> Result<Vec<u8>> {
    let subject = || format!("prefix in index {:?}", index.name);
    if prefix.len() > index.columns.len() {
        return Err(Error::invalid(
            subject(),
            format!("has {} values for {} columns", prefix.len(), index.columns.len()),
        ));
    }
    let mut begin = key::index(table.id(), number);
    for value in prefix {
        if value.as_double().is_some_and(|number| !number.is_finite()) {
            return Err(Error::invalid(subject(), "holds NaN or an infinity"));
        }
        secondary::check_length(value).map_err(|_| Error::invalid(subject(), "holds too long a value"))?;
        put_ordered(&mut begin, value);
    }
    Ok(begin)
}

/// The stored key of a position, which may come from anywhere.
fn place(
    table: &Table,
    number: u16,
    index: &SecondaryIndexSchema,
    position: &IndexPosition,
) -> Result<Bytes> {
    let mut place = key::index(table.id(), number);
    place.extend_from_slice(position.as_bytes());
    let fits = key::read_index_entry(position.as_bytes(), index.columns.len())
        .is_ok_and(|(_, key)| table.schema().check_key(&key).is_ok());
    if fits {
        Ok(place.into())
    } else {
        Err(Error::invalid(
            format!("position in index {:?}", index.name),
            "is not one of this index",
        ))
    }
}

fn position_of(key: &Bytes) -> IndexPosition {
    IndexPosition(key.slice(INDEX_PREFIX_BYTES.min(key.len())..))
}

fn entry(
    index: &SecondaryIndexSchema,
    key: &Bytes,
    value: &[u8],
    expiry: Expiry,
) -> Result<Option<IndexEntry>, Malformed> {
    let Some(included) = secondary::decode(index, value, expiry)? else {
        return Ok(None);
    };
    let position = position_of(key);
    let (values, key) = key::read_index_entry(position.as_bytes(), index.columns.len())?;
    Ok(Some(IndexEntry {
        values,
        key,
        included,
        position,
    }))
}
