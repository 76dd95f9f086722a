//! Converts schemas of tables and of their secondary indexes from the wire to the engine, and back.

use std::time::Duration;

use souk_engine::definition::MAX_COLUMNS;
use souk_engine::storage::{IndexScope, KeyKind, SecondaryIndexSchema, SecondaryIndexState, TableSchema};
use souk_engine::{ColumnDefinition, TableDefinition, TableHandle, ValueType};
use souk_tablestore::messages::{
    self, DefinedColumnType, IndexSyncPhase, IndexType, IndexUpdateMode, PrimaryKeyOption, PrimaryKeyType,
};
use souk_tablestore::{Reason, ServiceError, limits, name};

use crate::error::{invalid, unsupported};

/// The time to live of what never expires, as clients write it, in seconds.
pub(crate) const FOR_EVER: i32 = -1;

/// The table that a request asks for, under its name in the engine, without its secondary indexes: see [`index`].
pub(crate) fn definition(
    engine_name: &str,
    request: &messages::CreateTableRequest,
) -> Result<TableDefinition, ServiceError> {
    let meta = &request.table_meta;
    let mut schema = TableSchema::new(engine_name);
    let keys = &meta.primary_key;
    if !(1..=limits::MAX_KEY_COLUMNS).contains(&keys.len()) {
        return Err(Reason::KeyColumnCount {
            limit: limits::MAX_KEY_COLUMNS,
        }
        .into());
    }
    for (at, column) in keys.iter().enumerate() {
        check_name(&column.name)?;
        if keys.iter().take(at).any(|other| other.name == column.name) {
            return Err(Reason::DuplicatedKeyColumn {
                name: column.name.as_str().into(),
            }
            .into());
        }
        let kind = key_kind(column.r#type)?;
        if let Some(option) = column.option {
            if PrimaryKeyOption::try_from(option).is_err() {
                return Err(invalid(format!("Invalid primary key option: {option}.")));
            }
            match (at, kind, schema.auto_increment) {
                (0, _, _) => {
                    let table = meta.table_name.as_str().into();
                    return Err(Reason::FirstKeyAutoIncrement { table }.into());
                }
                (_, _, Some(_)) => return Err(Reason::AutoIncrementCount.into()),
                (_, KeyKind::Integer, None) => schema.auto_increment = Some(at),
                (_, KeyKind::String | KeyKind::Binary, None) => {
                    let name = column.name.as_str().into();
                    return Err(Reason::AutoIncrementKeyNotInteger { name }.into());
                }
            }
        }
        schema = schema.key(&column.name, kind);
    }
    let options = request.table_options.as_ref();
    let options = options.ok_or(Reason::TimeToLiveMissing)?;
    options.time_to_live.ok_or(Reason::TimeToLiveMissing)?;
    options.max_versions.ok_or(Reason::MaxVersionsMissing)?;
    set_options(&mut schema, options)?;
    // Clients in Python can't ask for it, and have the calls.
    schema.transactions = request.enable_local_txn.unwrap_or(true);
    let mut definition = TableDefinition::new(schema);
    add_columns(&mut definition, &meta.defined_column)?;
    Ok(definition)
}

/// Takes the options that are given.
pub(crate) fn set_options(
    schema: &mut TableSchema,
    options: &messages::TableOptions,
) -> Result<(), ServiceError> {
    if options.update_full_row == Some(true) {
        return Err(unsupported("update_full_row"));
    }
    if let Some(seconds) = options.time_to_live {
        schema.time_to_live = match u64::try_from(seconds) {
            Ok(seconds) if seconds > 0 => Some(Duration::from_secs(seconds)),
            Err(_) if seconds == FOR_EVER => None,
            _ => return Err(Reason::InvalidTimeToLive.into()),
        };
    }
    if let Some(versions) = options.max_versions {
        schema.max_versions = match u32::try_from(versions) {
            Ok(versions) if versions > 0 => versions,
            _ => return Err(Reason::NoVersions.into()),
        };
    }
    if let Some(seconds) = options.deviation_cell_version_in_sec {
        let seconds = u64::try_from(seconds)
            .ok()
            .filter(|seconds| *seconds <= MAX_DEVIATION_SECONDS);
        schema.max_version_offset = Duration::from_secs(seconds.ok_or(Reason::InvalidDeviation)?);
    }
    if let Some(allow) = options.allow_update {
        schema.allow_update = allow;
    }
    Ok(())
}

const MAX_DEVIATION_SECONDS: u64 = i64::MAX.unsigned_abs() / 1_000_000;

/// Refuses reserved throughput: there is none here.
pub(crate) fn check_throughput(throughput: &messages::ReservedThroughput) -> Result<(), ServiceError> {
    let units = &throughput.capacity_unit;
    for units in [units.read, units.write].into_iter().flatten() {
        if units < 0 {
            return Err(Reason::NegativeCapacity { units }.into());
        }
        if units > 0 {
            return Err(Reason::ReservedReadForbidden.into());
        }
    }
    Ok(())
}

/// Declares columns.
pub(crate) fn add_columns(
    definition: &mut TableDefinition,
    columns: &[messages::DefinedColumnSchema],
) -> Result<(), ServiceError> {
    if columns.len() > MAX_COLUMNS {
        let text = format!("The number of defined columns exceeds {MAX_COLUMNS}.");
        return Err(invalid(text));
    }
    for column in columns {
        check_name(&column.name)?;
        let value = value_type(column.r#type)?;
        if definition.schema.key.iter().any(|(key, _)| *key == column.name) {
            let name = column.name.as_str().into();
            return Err(Reason::DuplicatedColumn { name }.into());
        }
        match definition.columns.iter().find(|other| other.name == column.name) {
            None => definition.columns.push(ColumnDefinition {
                name: column.name.clone(),
                value,
            }),
            Some(there) if there.value == value => {}
            Some(_) => {
                let text = format!("The column '{}' is defined with another type.", column.name);
                return Err(invalid(text));
            }
        }
    }
    Ok(())
}

/// Takes declarations of columns away, unless an index needs them.
pub(crate) fn remove_columns(
    definition: &mut TableDefinition,
    columns: &[String],
) -> Result<(), ServiceError> {
    for column in columns {
        let indexes = definition.schema.indexes.iter();
        let mut needed =
            indexes.filter(|index| index.columns.contains(column) || index.included.contains(column));
        if let Some(index) = needed.next() {
            let text = format!("The column '{column}' is used by the index '{}'.", index.name);
            return Err(invalid(text));
        }
        let before = definition.columns.len();
        definition.columns.retain(|declared| declared.name != *column);
        if definition.columns.len() == before {
            return Err(Reason::NoSuchColumn {
                name: column.as_str().into(),
            }
            .into());
        }
    }
    Ok(())
}

/// The secondary index that is asked for, of the table that is being defined.
pub(crate) fn index(
    definition: &TableDefinition,
    meta: &messages::IndexMeta,
) -> Result<SecondaryIndexSchema, ServiceError> {
    let schema = &definition.schema;
    if IndexUpdateMode::try_from(meta.index_update_mode).is_err() {
        return Err(unsupported(format!(
            "index update mode {}",
            meta.index_update_mode
        )));
    }
    let scope = match IndexType::try_from(meta.index_type) {
        Ok(IndexType::Global) => IndexScope::Global,
        Ok(IndexType::Local) => IndexScope::Local,
        Err(_) => return Err(unsupported(format!("index type {}", meta.index_type))),
    };
    let mut columns = meta.primary_key.clone();
    if columns.is_empty() {
        return Err(Reason::KeyColumnCount {
            limit: limits::MAX_KEY_COLUMNS,
        }
        .into());
    }
    for column in &columns {
        match column_type(definition, column)? {
            DeclaredType::Key(_)
            | DeclaredType::Attribute(ValueType::String | ValueType::Integer | ValueType::Binary) => {}
            DeclaredType::Attribute(_) => return Err(Reason::IndexColumnType.into()),
        }
    }
    if schema
        .auto_increment
        .is_some_and(|at| schema.key.get(at).map(|(name, _)| name) == columns.first())
    {
        return Err(Reason::FirstColumnAutoIncrement.into());
    }
    // The engine appends the table's key: what the client has appended of it already is left to it.
    let whole = with_key(schema, &columns);
    while columns.len() > 1 {
        let shorter = &columns[..columns.len() - 1];
        if with_key(schema, shorter) != whole {
            break;
        }
        columns.pop();
    }
    for column in &meta.defined_column {
        if matches!(column_type(definition, column)?, DeclaredType::Key(_)) {
            let name = column.as_str().into();
            return Err(Reason::DuplicatedColumn { name }.into());
        }
    }
    Ok(SecondaryIndexSchema {
        name: meta.name.clone(),
        columns,
        included: meta.defined_column.clone(),
        scope,
    })
}

/// The columns of an index, and those of the table's key that aren't among them: the primary key of the index.
pub(crate) fn with_key(schema: &TableSchema, columns: &[String]) -> Vec<String> {
    let mut whole = columns.to_vec();
    let rest = schema.key.iter().map(|(name, _)| name);
    whole.extend(rest.filter(|name| !columns.contains(name)).cloned());
    whole
}

/// The type of a column that a table declares, in its primary key or as an attribute.
pub(crate) enum DeclaredType {
    Key(KeyKind),
    Attribute(ValueType),
}

/// Finds the type of a column by its name.
pub(crate) fn column_type(definition: &TableDefinition, name: &str) -> Result<DeclaredType, Reason> {
    if let Some((_, kind)) = definition.schema.key.iter().find(|(key, _)| key == name) {
        return Ok(DeclaredType::Key(*kind));
    }
    let declared = definition.columns.iter().find(|column| column.name == name);
    let declared = declared.ok_or_else(|| Reason::NoSuchColumn { name: name.into() })?;
    Ok(DeclaredType::Attribute(declared.value.clone()))
}

/// The key of a table, as answers have it.
pub(crate) fn key_told(schema: &TableSchema) -> Vec<messages::PrimaryKeySchema> {
    let columns = schema.key.iter().enumerate();
    let told = columns.map(|(at, (name, kind))| messages::PrimaryKeySchema {
        name: name.clone(),
        r#type: key_type(*kind).into(),
        option: (schema.auto_increment == Some(at)).then_some(PrimaryKeyOption::AutoIncrement.into()),
    });
    told.collect()
}

/// The declared columns of a table, as answers have them.
pub(crate) fn columns_told<'a>(
    columns: impl IntoIterator<Item = &'a ColumnDefinition>,
) -> Vec<messages::DefinedColumnSchema> {
    let columns = columns.into_iter();
    let told = columns.filter_map(|column| {
        Some(messages::DefinedColumnSchema {
            name: column.name.clone(),
            r#type: defined_type(&column.value)?.into(),
        })
    });
    told.collect()
}

/// A secondary index, as answers have it.
pub(crate) fn index_told(
    table: &TableHandle,
    schema: &TableSchema,
    index: &SecondaryIndexSchema,
) -> messages::IndexMeta {
    let is_local = index.scope == IndexScope::Local;
    let phase = match table.secondary_index_state(&index.name) {
        Ok(SecondaryIndexState::Ready) => Some(IndexSyncPhase::Incr),
        Ok(SecondaryIndexState::Building) => Some(IndexSyncPhase::Full),
        Ok(SecondaryIndexState::Failed { .. }) | Err(_) => None,
    };
    messages::IndexMeta {
        name: index.name.clone(),
        primary_key: with_key(schema, &index.columns),
        defined_column: index.included.clone(),
        // They are all synchronous here; clients expect of a global one that it isn't.
        index_update_mode: match is_local {
            true => IndexUpdateMode::Sync.into(),
            false => IndexUpdateMode::Async.into(),
        },
        index_type: match is_local {
            true => IndexType::Local.into(),
            false => IndexType::Global.into(),
        },
        index_sync_phase: phase.map(i32::from),
    }
}

/// The options of a table, as answers have them.
pub(crate) fn options_told(schema: &TableSchema) -> messages::TableOptions {
    let seconds = |life: Duration| i32::try_from(life.as_secs()).unwrap_or(i32::MAX);
    messages::TableOptions {
        time_to_live: Some(schema.time_to_live.map_or(FOR_EVER, seconds)),
        max_versions: Some(i32::try_from(schema.max_versions).unwrap_or(i32::MAX)),
        deviation_cell_version_in_sec: Some(
            i64::try_from(schema.max_version_offset.as_secs()).unwrap_or(i64::MAX),
        ),
        allow_update: Some(schema.allow_update),
        ..messages::TableOptions::default()
    }
}

/// Nothing is reserved.
pub(crate) fn throughput_told() -> messages::ReservedThroughputDetails {
    messages::ReservedThroughputDetails {
        capacity_unit: messages::CapacityUnit {
            read: Some(0),
            write: Some(0),
        },
        last_increase_time: 0,
        last_decrease_time: None,
    }
}

pub(crate) fn key_type(kind: KeyKind) -> PrimaryKeyType {
    match kind {
        KeyKind::Integer => PrimaryKeyType::Integer,
        KeyKind::String => PrimaryKeyType::String,
        KeyKind::Binary => PrimaryKeyType::Binary,
    }
}

/// `None` of a type that columns of tables made here don't have.
fn defined_type(value: &ValueType) -> Option<DefinedColumnType> {
    Some(match value {
        ValueType::Integer | ValueType::Time | ValueType::Duration => DefinedColumnType::Integer,
        ValueType::Double => DefinedColumnType::Double,
        ValueType::Boolean => DefinedColumnType::Boolean,
        ValueType::String | ValueType::Json => DefinedColumnType::String,
        ValueType::Binary => DefinedColumnType::Blob,
        ValueType::Point | ValueType::Attributes | ValueType::List(_) | ValueType::Message(_) => return None,
    })
}

fn key_kind(number: i32) -> Result<KeyKind, Reason> {
    match PrimaryKeyType::try_from(number) {
        Ok(PrimaryKeyType::Integer) => Ok(KeyKind::Integer),
        Ok(PrimaryKeyType::String) => Ok(KeyKind::String),
        Ok(PrimaryKeyType::Binary) => Ok(KeyKind::Binary),
        Ok(PrimaryKeyType::Boolean) => Err(Reason::InvalidKeyType {
            kind: "BOOLEAN".into(),
        }),
        Err(_) => Err(Reason::InvalidKeyType {
            kind: number.to_string().into(),
        }),
    }
}

fn value_type(number: i32) -> Result<ValueType, Reason> {
    match DefinedColumnType::try_from(number) {
        Ok(DefinedColumnType::Integer) => Ok(ValueType::Integer),
        Ok(DefinedColumnType::Double) => Ok(ValueType::Double),
        Ok(DefinedColumnType::Boolean) => Ok(ValueType::Boolean),
        Ok(DefinedColumnType::String) => Ok(ValueType::String),
        Ok(DefinedColumnType::Blob) => Ok(ValueType::Binary),
        Err(_) => Err(Reason::InvalidColumnType {
            kind: number.to_string().into(),
        }),
    }
}

/// Refuses a name that no declared column may have.
fn check_name(given: &str) -> Result<(), Reason> {
    match given.is_empty() {
        true => Err(Reason::EmptyColumnName),
        false => name::check_column(given),
    }
}
