//! What a service says about one of its tables, and what the engine hands back.

use std::fmt::Debug;

use xxhash_rust::xxh3::Xxh3;

use crate::columns::{ColumnReader, Columns, CorruptRow};
use crate::definition::TableDefinition;

/// What a table holds: a thin layer between records and rows. One type is one table; two tables may have records of one type.
///
/// The functions must agree with each other: `from_columns(id(x), to_columns(x)) == x`.
pub trait Resource: Debug + Send + Sync + 'static {
    /// One of them.
    type Record: Clone + Debug + PartialEq + Send + Sync + 'static;
    /// The table's name, for example `orders`; also the folder of its indexes.
    const TABLE: &'static str;
    /// The resource's name in messages and, upper-cased, in reasons: `order` gives `ORDER_NOT_FOUND`.
    const NAME: &'static str;
    /// The path of the id in requests, for example `order_id`.
    const ID_FIELD: &'static str;

    /// The table: a [hashed](TableDefinition::hashed) one. The engine adds the searchable fields `create_time` and
    /// `update_time` (DATE), and their columns.
    fn definition() -> TableDefinition;

    /// The id, unique in the table.
    fn id(record: &Self::Record) -> &str;

    /// The row's columns without the id.
    fn to_columns(record: &Self::Record) -> Columns;

    /// The record of a row.
    ///
    /// # Errors
    /// When the row doesn't hold what [`Resource::to_columns`] writes.
    fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self::Record, CorruptRow>;
}

/// A resource with what the engine keeps about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<T> {
    /// The resource.
    pub resource: T,
    /// The sequence of its last write; 0 for one that was only validated.
    pub revision: i64,
    /// Which history of the database gave that sequence.
    pub history: u64,
    /// When it was created: nanoseconds since the Unix epoch.
    pub create_time: i64,
    /// When it was last changed: nanoseconds since the Unix epoch.
    pub update_time: i64,
}

impl<T> Stored<T> {
    /// An opaque text that changes with every write, and that no other write gets, in a restored database either.
    pub fn etag(&self) -> String {
        crate::etag::of(self.revision, self.history)
    }
}

/// An answer, with the position in the change log that it has or sees.
#[derive(Clone, Debug, PartialEq)]
pub struct Written<T> {
    /// The answer.
    pub value: T,
    /// Of a write: its position in the change log. Of a read: the last write that it sees.
    pub sequence: i64,
}

/// The answer to reading several ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<T> {
    /// What exists, in the order of the request.
    pub found: Vec<Stored<T>>,
    /// The ids that don't, in the order of the request.
    pub missing: Vec<String>,
}

/// An id that makes a write the same when it is repeated, and what the request was: the same id with another request is
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    id: [u8; 16],
    fingerprint: u64,
}

impl RequestId {
    /// A UUID, and a fingerprint of the whole request.
    #[must_use]
    pub fn new(id: [u8; 16], fingerprint: u64) -> Self {
        Self { id, fingerprint }
    }

    /// The UUID.
    pub(crate) fn id(&self) -> [u8; 16] {
        self.id
    }

    /// The fingerprint for one operation on one table: two RPCs whose requests look alike don't share their ids.
    pub(crate) fn fingerprint_for(&self, table: &str, operation: &str) -> u64 {
        let mut hash = Xxh3::new();
        for part in [table, operation] {
            hash.update(&part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.update(&self.fingerprint.to_be_bytes());
        hash.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::RequestId;

    #[test]
    fn a_request_id_depends_on_the_operation() {
        let id = RequestId::new([1; 16], 7);
        let orders = id.fingerprint_for("orders", "create");
        assert_eq!(id.fingerprint_for("orders", "create"), orders);
        assert_ne!(id.fingerprint_for("products", "create"), orders);
        assert_ne!(id.fingerprint_for("orders", "create_batch"), orders);
        assert_ne!(
            RequestId::new([1; 16], 8).fingerprint_for("orders", "create"),
            orders
        );
    }
}
