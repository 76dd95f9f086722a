//! The row each write is about, and what the store has of it.

use std::borrow::Cow;

use bytes::Bytes;
use souk_kv::{KvSnapshot, Space};

use super::numbers::Numbers;
use crate::batch::{Condition, RowOperation, RowWrite};
use crate::error::{Error, Result};
use crate::key;
use crate::value::{KeyValue, PrimaryKey};

/// Where a write goes, as far as the write itself tells.
#[derive(Debug)]
pub(crate) enum Place {
    /// To the row of this stored key.
    Row(Bytes),
    /// To a row that gets the next number.
    Next {
        /// Key of the counter.
        counter: Bytes,
        /// Place of the number in the primary key.
        position: usize,
    },
}

impl Place {
    /// What writers of the same place wait for each other on.
    pub(crate) fn lock(&self) -> &Bytes {
        match self {
            Self::Row(key) => key,
            Self::Next { counter, .. } => counter,
        }
    }
}

/// A write and its row.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    /// The write's place in its batch.
    pub(crate) position: usize,
    pub(crate) write: &'a RowWrite,
    pub(crate) key: Cow<'a, PrimaryKey>,
    /// Key of the row in the store.
    pub(crate) row: Bytes,
    /// What is stored there.
    pub(crate) found: Option<Bytes>,
    /// Whether nobody looked, for it makes no difference.
    pub(crate) blind: bool,
}

/// Whether the row that is there makes no difference: it is replaced as a whole, without a condition, and has left no
/// entries in an index. (A transaction has to know what it replaces.)
fn is_blind(write: &RowWrite) -> bool {
    let schema = write.table.schema();
    matches!(write.operation, RowOperation::Put { .. })
        && write.condition == Condition::none()
        && write.hidden.is_none()
        && schema.indexes.is_empty()
        && schema.time_to_live.is_none()
        && !schema.transactions
}

/// Finds the rows of these writes; appended ones get their numbers.
pub(crate) async fn find<'a>(
    snapshot: &dyn KvSnapshot,
    writes: impl Iterator<Item = (usize, &'a RowWrite, &'a Place)> + Clone + Send,
    numbers: &mut Numbers,
) -> Result<Vec<Target<'a>>> {
    let counters = writes.clone().filter_map(|(_, _, place)| match place {
        Place::Row(_) => None,
        Place::Next { counter, .. } => Some(counter),
    });
    numbers.read(snapshot, counters).await?;
    let mut targets = Vec::with_capacity(writes.size_hint().0);
    for (position, write, place) in writes {
        let (key, row) = match (place, &write.operation) {
            (Place::Next { counter, position }, RowOperation::Append { key, .. }) => {
                let key = numbered(key, *position, numbers.next(counter)?)?;
                let row = key::row(write.table.id(), &key);
                (Cow::Owned(key), row)
            }
            (place, operation) => {
                let key = operation
                    .key()
                    .ok_or_else(|| Error::invalid("appended row", "has no counter"))?;
                (Cow::Borrowed(key), place.lock().clone())
            }
        };
        targets.push(Target {
            position,
            write,
            key,
            row,
            found: None,
            blind: is_blind(write),
        });
    }
    let looked_at = targets.iter().filter(|target| !target.blind);
    let keys: Vec<Bytes> = looked_at.map(|target| target.row.clone()).collect();
    if !keys.is_empty() {
        let found = snapshot.multi_get(Space::Rows, keys).await?;
        let looked_at = targets.iter_mut().filter(|target| !target.blind);
        for (target, found) in looked_at.zip(found) {
            target.found = found;
        }
    }
    Ok(targets)
}

/// The primary key of these values and a number between them.
pub(crate) fn numbered(others: &[KeyValue], position: usize, number: i64) -> Result<PrimaryKey> {
    let mut values = others.to_vec();
    values.insert(position.min(values.len()), KeyValue::Integer(number));
    PrimaryKey::new(values)
}
