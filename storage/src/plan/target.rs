//! The row each write is about, and what the store has of it.

use std::borrow::Cow;

use bytes::Bytes;
use souk_kv::{KvSnapshot, Space};

use super::numbers::Numbers;
use crate::batch::{Condition, RowOperation, RowWrite};
use crate::error::{Error, Result};
use crate::expiry::Expiry;
use crate::key;
use crate::limits::MAX_SCANNED_BYTES;
use crate::row::codec;
use crate::value::{KeyValue, PrimaryKey};

/// Where a write goes, as far as the write itself tells.
#[derive(Debug)]
pub(crate) enum WriteLocation {
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

impl WriteLocation {
    /// What writers of the same location wait for each other on.
    pub(crate) fn lock(&self) -> &Bytes {
        match self {
            Self::Row(key) => key,
            Self::Next { counter, .. } => counter,
        }
    }
}

/// A write and its row.
#[derive(Debug)]
pub(crate) struct WriteTarget<'a> {
    /// The write's place in its batch.
    pub(crate) position: usize,
    pub(crate) write: &'a RowWrite,
    pub(crate) key: Cow<'a, PrimaryKey>,
    /// Key of the row in the store.
    pub(crate) row: Bytes,
    /// What is stored there; of a hidden row its format and revision alone.
    pub(crate) found: Option<Bytes>,
    /// Whether its writer may not meet it.
    pub(crate) is_hidden: bool,
    /// Whether nobody looked, for it makes no difference.
    pub(crate) blind: bool,
}

impl WriteTarget<'_> {
    /// Notes what is stored. Nothing else is kept of a hidden row than what it is known by at the commit: its writer may name many large
    /// ones that others have written.
    fn take(&mut self, found: Option<Bytes>, now: i64) -> Result<()> {
        self.is_hidden = match &found {
            Some(value) => self.hides(value, now)?,
            None => false,
        };
        self.found = match self.is_hidden {
            true => found.map(|value| Bytes::copy_from_slice(&super::revision(&value))),
            false => found,
        };
        Ok(())
    }

    fn hides(&self, value: &Bytes, now: i64) -> Result<bool> {
        let hidden = self.write.hidden.unwrap_or_default();
        if hidden == 0 {
            return Ok(false);
        }
        let row = codec::decode(self.key.clone().into_owned(), value)?;
        let visible = Expiry::new(&self.write.table, now).visible(row);
        Ok(visible.is_some_and(|row| row.revision == hidden))
    }
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

/// Finds the rows of these writes; appended ones get their numbers. `now`: nanoseconds.
pub(crate) async fn find<'a>(
    snapshot: &dyn KvSnapshot,
    writes: impl Iterator<Item = (usize, &'a RowWrite, &'a WriteLocation)> + Clone + Send,
    numbers: &mut Numbers,
    now: i64,
) -> Result<Vec<WriteTarget<'a>>> {
    let counters = writes.clone().filter_map(|(_, _, location)| match location {
        WriteLocation::Row(_) => None,
        WriteLocation::Next { counter, .. } => Some(counter),
    });
    numbers.read(snapshot, counters).await?;
    let mut targets = Vec::with_capacity(writes.size_hint().0);
    for (position, write, location) in writes {
        let (key, row) = match (location, &write.operation) {
            (WriteLocation::Next { counter, position }, RowOperation::Append { key, .. }) => {
                let key = numbered(key, *position, numbers.next(counter)?)?;
                let row = key::row(write.table.id(), &key);
                (Cow::Owned(key), row)
            }
            (location, operation) => {
                let key = operation
                    .key()
                    .ok_or_else(|| Error::invalid("appended row", "has no counter"))?;
                (Cow::Borrowed(key), location.lock().clone())
            }
        };
        targets.push(WriteTarget {
            position,
            write,
            key,
            row,
            found: None,
            is_hidden: false,
            blind: is_blind(write),
        });
    }
    let looked_at = targets.iter().filter(|target| !target.blind);
    let mut keys: Vec<Bytes> = looked_at.map(|target| target.row.clone()).collect();
    let mut looked_at = targets.iter_mut().filter(|target| !target.blind);
    while !keys.is_empty() {
        let found = snapshot
            .multi_get_within(Space::Rows, keys.clone(), MAX_SCANNED_BYTES)
            .await?;
        keys.drain(..found.len().min(keys.len()));
        for (found, target) in found.into_iter().zip(&mut looked_at) {
            target.take(found, now)?;
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

#[cfg(test)]
mod tests {
    use souk_kv::STAMP;

    use super::*;
    use crate::batch::WriteBatch;
    use crate::database::Database;
    use crate::options::DatabaseOptions;
    use crate::schema::{KeyKind, TableSchema};

    #[tokio::test]
    async fn of_hidden_rows_no_more_is_kept_than_what_they_are_known_by() {
        let database = Database::in_memory(DatabaseOptions::default())
            .await
            .expect("open");
        let schema = TableSchema::new("t").key("id", KeyKind::Integer);
        let table = database.ensure_table(schema).await.expect("a table");
        let write = |id, operation: fn(PrimaryKey) -> RowOperation| {
            RowWrite::new(&table, operation(PrimaryKey::integer(id)), Condition::none())
        };
        let put = |key| RowOperation::Put {
            key,
            columns: vec![("c".into(), "x".repeat(MAX_SCANNED_BYTES / 2).into())],
        };
        let mut writes = Vec::new();
        for id in 0..4 {
            let put = WriteBatch::new().row(write(id, put));
            let revision = database.write(put).await.expect("written").sequence;
            let mut delete = write(id, |key| RowOperation::Delete { key });
            delete.hidden = Some(if id == 2 { 0 } else { revision });
            writes.push(delete);
        }
        let location = |write: &RowWrite| {
            let key = write.operation.key().expect("a key");
            WriteLocation::Row(key::row(table.id(), key))
        };
        let locations: Vec<WriteLocation> = writes.iter().map(location).collect();
        let writes = writes.iter().zip(&locations).enumerate();
        let writes = writes.map(|(position, (write, location))| (position, write, location));
        let snapshot = database.shared.kv.snapshot().await.expect("a snapshot");
        let targets = find(&*snapshot, writes, &mut Numbers::default(), 0).await;
        for target in targets.expect("found") {
            let is_own = target.position == 2;
            assert_eq!(target.is_hidden, !is_own);
            let kept = target.found.expect("it is there").len();
            assert_eq!(kept > STAMP.end, is_own, "{kept} bytes of {}", target.position);
        }
    }
}
