//! What a service says about one of its tables, and what the engine hands back.

use std::fmt::Debug;

use souk_access::Role;
use souk_index::{Field, Object};
use souk_storage::{PrimaryKey, TableSchema};

use crate::columns::{ColumnReader, Columns, CorruptRow};
use crate::key;

/// A domain type with its table and its searchable fields. One type is one table: two tables of the same shape need
/// two types, for example by a marker (`Person<Consumer>`).
///
/// What is written, searched and streamed goes through these functions only, so they must agree with each other:
/// `from_columns(id, to_columns(x)) == x` and `id_of(key(id)) == id`.
pub trait Resource: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The table's name, for example `orders`; also the folder of its indexes.
    const TABLE: &'static str;
    /// The resource's name in messages and, upper-cased, in reasons: `order` gives `ORDER_NOT_FOUND`.
    const NAME: &'static str;
    /// The path of the id in requests, for example `order_id`.
    const ID_FIELD: &'static str;
    /// To be raised when [`Resource::to_document`] makes other documents from the same rows without a change of
    /// [`Resource::fields`]: the index is then rebuilt.
    const DOCUMENT_VERSION: u32 = 1;

    /// Whose rows callers of a role meet where the rule of an RPC says `own`: a KEYWORD field, which is a column of the
    /// same name or the id. A role that isn't here has no rows of its own: its calls are refused.
    const OWNERS: &'static [(Role, &'static str)] = &[];

    /// The value of that field for a role of [`Resource::OWNERS`].
    fn owner(&self, role: Role) -> Option<&str> {
        let _ = role;
        None
    }

    /// The id, unique in the table.
    fn id(&self) -> &str;

    /// The primary key of an id, which has been checked (see [`crate::wire::check_id`]). By default the md5 of the
    /// id, then the id: load then spreads over the key space.
    ///
    /// # Errors
    /// When the id is longer than a key column may be.
    fn key(id: &str) -> Result<PrimaryKey, souk_storage::Error> {
        key::hashed(id)
    }

    /// The id in a primary key.
    ///
    /// # Errors
    /// When the key isn't one of [`Resource::key`].
    fn id_of(key: &PrimaryKey) -> Result<String, CorruptRow> {
        key::hashed_id(key)
    }

    /// The table: key columns, options, secondary indexes. By default the key columns of [`key::hashed`] alone.
    fn table() -> TableSchema {
        key::hashed_table(Self::TABLE)
    }

    /// The searchable fields. The engine adds `create_time` and `update_time` (DATE).
    fn fields() -> Vec<Field>;

    /// The row's columns without the id.
    fn to_columns(&self) -> Columns;

    /// The resource of a row.
    ///
    /// # Errors
    /// When the row doesn't hold what [`Resource::to_columns`] writes.
    fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow>;

    /// Adds the values of the searchable fields to `document`.
    fn to_document(&self, document: &mut Object);
}

/// A resource with what the engine keeps about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<R> {
    /// The resource.
    pub resource: R,
    /// The sequence of its last write; 0 for one that was only validated.
    pub revision: i64,
    /// Which history of the database gave that sequence.
    pub history: u64,
    /// When it was created: nanoseconds since the Unix epoch.
    pub create_time: i64,
    /// When it was last changed: nanoseconds since the Unix epoch.
    pub update_time: i64,
}

impl<R> Stored<R> {
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
pub struct Found<R> {
    /// What exists, in the order of the request.
    pub found: Vec<Stored<R>>,
    /// The ids that don't, in the order of the request.
    pub missing: Vec<String>,
}
