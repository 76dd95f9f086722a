//! Between resources and their rows.

use souk_index::Field;
use souk_storage::{ColumnName, Database, Row, Value};

use crate::columns::{ColumnPlaces, ColumnReader, CorruptRow, absent};
use crate::definition::{Source, TableDefinition, ValueType};
use crate::key;
use crate::resource::{Resource, Stored};

/// Column with the time of creation: nanoseconds since the Unix epoch.
const CREATE_TIME: &str = "_create_time";
/// Column with the time of the last change: nanoseconds since the Unix epoch.
const UPDATE_TIME: &str = "_update_time";
/// Column that counts the writes of a row from [`FIRST_EDITION`]: it tells a creation from a change.
const EDITION: &str = "_edition";
const FIRST_EDITION: i64 = 1;

/// Searchable time of creation.
const CREATE_TIME_FIELD: &str = "create_time";
/// Searchable time of the last change.
const UPDATE_TIME_FIELD: &str = "update_time";

/// What the engine keeps with a resource. Times are nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceMetadata {
    pub(crate) create_time: i64,
    pub(crate) update_time: i64,
    edition: i64,
}

impl ResourceMetadata {
    /// Of a resource that is created now.
    pub(crate) fn created(now: i64) -> Self {
        Self {
            create_time: now,
            update_time: now,
            edition: FIRST_EDITION,
        }
    }

    /// Of a resource that is changed now. Times never go back, whatever the clock does.
    pub(crate) fn changed(self, now: i64) -> Self {
        Self {
            create_time: self.create_time,
            update_time: now.max(self.update_time),
            edition: self.edition.saturating_add(1),
        }
    }

    /// Of a row.
    ///
    /// # Errors
    /// When the row wasn't written by an engine.
    pub(crate) fn of(row: &Row) -> Result<Self, CorruptRow> {
        Self::read(&ColumnReader::of_row(row))
    }

    fn read(columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
        Ok(Self {
            create_time: columns.integer(CREATE_TIME)?,
            update_time: columns.integer(UPDATE_TIME)?,
            edition: columns.integer(EDITION)?,
        })
    }

    /// Whether the row was only written once, by its creation.
    pub(crate) fn is_new(&self) -> bool {
        self.edition == FIRST_EDITION
    }

    /// The answer with the resource. `sequence` is that of its last write.
    pub(crate) fn with<T>(self, resource: T, sequence: u64, database: &Database) -> Stored<T> {
        Stored {
            resource,
            revision: signed(sequence),
            history: database.history_of(sequence),
            create_time: self.create_time,
            update_time: self.update_time,
        }
    }
}

/// A sequence as answers have it. No sequence is ever above `i64::MAX`.
pub(crate) fn signed(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

/// The cells of a resource's row.
pub(crate) fn to_row<R: Resource>(
    resource: &R::Record,
    metadata: ResourceMetadata,
) -> Vec<(ColumnName, Value)> {
    R::to_columns(resource)
        .integer(CREATE_TIME, metadata.create_time)
        .integer(UPDATE_TIME, metadata.update_time)
        .integer(EDITION, metadata.edition)
        .into_cells()
}

/// The resource of a row; `places` are those of its table.
///
/// # Errors
/// When the row doesn't hold one.
pub(crate) fn from_row<R: Resource>(
    row: &Row,
    places: &ColumnPlaces,
    database: &Database,
) -> Result<Stored<R::Record>, CorruptRow> {
    let (resource, metadata) = read::<R>(row, places)?;
    Ok(metadata.with(resource, row.revision, database))
}

fn read<R: Resource>(row: &Row, places: &ColumnPlaces) -> Result<(R::Record, ResourceMetadata), CorruptRow> {
    let id = key::id_of_hashed(&row.key).ok_or_else(|| absent(key::ID_COLUMN))?;
    let columns = ColumnReader::of_one(row, places);
    Ok((R::from_columns(id, &columns)?, ResourceMetadata::read(&columns)?))
}

/// The definition of a resource's table, with what the engine keeps and finds of each.
pub(crate) fn definition<R: Resource>() -> TableDefinition {
    let time = |definition: TableDefinition, field, column| {
        let definition = definition.column(column, ValueType::Time);
        definition.field_from(Field::date(field), Source::column(column))
    };
    let definition = R::definition().item(R::NAME);
    let definition = time(definition, CREATE_TIME_FIELD, CREATE_TIME);
    time(definition, UPDATE_TIME_FIELD, UPDATE_TIME)
}
