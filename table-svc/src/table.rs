//! Converts definitions of tables from the contract's messages to the engine's, and back.

use std::collections::BTreeSet;
use std::time::Duration;

use souk_access::Role;
use souk_api::wire::{UpdateMask, duration, duration_to_wire, unsigned};
use souk_api::{Error, indexes, rows};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::definition::MAX_WEIGHT;
use souk_engine::index::{Error as IndexError, Field, FieldKind, Schema};
use souk_engine::storage::limits::DEFAULT_MAX_VERSION_OFFSET;
use souk_engine::storage::{IndexScope, KeyKind, SecondaryIndexSchema, SecondaryIndexState, TableSchema};
use souk_engine::{ColumnDefinition, EngineError, Source, TableDefinition, TableHandle, ValueType};
use souk_proto::table::v1 as pb;

/// What an update may change.
const CHANGEABLE: [&str; 6] = [
    "max_versions",
    "time_to_live",
    "max_version_offset",
    "allow_update",
    "columns",
    "indexes",
];
/// What it may name, and never changes.
const FIXED: [&str; 1] = ["name"];

/// Reads a table that is to be created, which stands at `at`; `None` comes with a violation. The engine checks the whole.
pub(crate) fn definition(
    given: &pb::Table,
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<TableDefinition> {
    let mut schema = TableSchema::new(&given.name);
    for (nth, column) in given.key.iter().enumerate() {
        if column.auto_increment {
            if schema.auto_increment.is_some() {
                let message = "numbers a second column; one is numbered at most";
                violations.push(
                    at.field("key").index(nth).field("auto_increment"),
                    "NOT_ALLOWED",
                    message,
                );
            }
            schema.auto_increment = Some(nth);
        }
        schema = schema.key(&column.name, key_kind(column.r#type())?);
    }
    schema.transactions = given.transactions;
    let mut definition = TableDefinition::new(schema);
    set_changeable(&UpdateMask::All, given, &mut definition);
    if let Some(search) = &given.search_index {
        let at = at.field("search_index").field("fields");
        let index = indexes::search_index(&given.name, &search.fields, &at, violations)?;
        definition = definition.index(index.weight(MAX_WEIGHT));
    }
    for (nth, owner) in given.owners.iter().enumerate() {
        let kind = Role::from_number(owner.role)?.word();
        if definition.search().is_none()
            && violations.is_empty()
            && Schema::new(vec![Field::keyword(&owner.column)]).is_err()
        {
            let message = "isn't a name of a search field, by which indexes of the table would have it: a letter, then letters, digits and \
                           underscores; choose another, or give the table a search_index with a KEYWORD field of this column";
            violations.push(
                at.field("owners").index(nth).field("column"),
                "INVALID_NAME",
                message,
            );
            return None;
        }
        let Some(field) = owner_field(&definition, &owner.column) else {
            // An invalid column name has its violation already, by a rule.
            if violations.is_empty() {
                let message = format!(
                    "has no KEYWORD field of one value that is {:?} as it is, which says whose a row is; add it",
                    owner.column
                );
                violations.push(
                    at.field("search_index").field("fields"),
                    "FIELD_REQUIRED",
                    message,
                );
            }
            return None;
        };
        definition = definition.owner(kind, field);
    }
    Some(definition)
}

/// The field by which searches find the rows whose owner a column names; where nothing is searched, it would have the column's name.
fn owner_field(definition: &TableDefinition, column: &str) -> Option<String> {
    let Some(search) = definition.search() else {
        return Some(column.to_owned());
    };
    let field = search.fields.iter().find(|field| {
        *field.kind() == FieldKind::Keyword
            && !field.is_array()
            && search.source(field.name()) == Source::column(column)
    });
    Some(field?.name().to_owned())
}

/// Reads what an update of a table changes, with its violations.
pub(crate) fn mask(request: &pb::UpdateTableRequest, violations: &mut Violations) -> UpdateMask {
    let mask = request.update_mask.as_ref();
    UpdateMask::from_wire(mask, &CHANGEABLE, &FIXED, "update_mask", violations)
}

/// Sets the [`CHANGEABLE`] fields that the mask names; without one, those that are given.
pub(crate) fn set_changeable(mask: &UpdateMask, given: &pb::Table, definition: &mut TableDefinition) {
    let schema = &mut definition.schema;
    if mask.takes("max_versions", given.max_versions != 0) {
        schema.max_versions = u32::try_from(given.max_versions).unwrap_or_default().max(1);
    }
    if mask.takes("time_to_live", given.time_to_live.is_some()) {
        schema.time_to_live = given.time_to_live.as_ref().and_then(length);
    }
    if mask.takes("max_version_offset", given.max_version_offset.is_some()) {
        let offset = given.max_version_offset.as_ref().and_then(length);
        schema.max_version_offset = offset.unwrap_or(DEFAULT_MAX_VERSION_OFFSET);
    }
    if mask.takes("allow_update", given.allow_update.is_some()) {
        schema.allow_update = given.allow_update.unwrap_or(true);
    }
    if mask.takes("indexes", !given.indexes.is_empty()) {
        schema.indexes = given.indexes.iter().map(index).collect();
    }
    if mask.takes("columns", !given.columns.is_empty()) {
        let declared = given.columns.iter().filter_map(|column| {
            Some(ColumnDefinition {
                name: column.name.clone(),
                value: value_type(column.r#type())?,
            })
        });
        definition.columns = declared.collect();
    }
}

/// The same table without what the mask leaves out: an update is held against the rules of what it changes.
pub(crate) fn changed_parts(mask: &UpdateMask, given: &pb::Table) -> pb::Table {
    let mut checked = given.clone();
    // No update changes it, and each has one.
    checked.key = vec![pb::KeyColumn {
        name: "key".to_owned(),
        r#type: pb::KeyType::String.into(),
        auto_increment: false,
    }];
    checked.search_index = None;
    checked.owners.clear();
    for field in CHANGEABLE {
        if mask.takes(field, true) {
            continue;
        }
        match field {
            "max_versions" => checked.max_versions = 0,
            "time_to_live" => checked.time_to_live = None,
            "max_version_offset" => checked.max_version_offset = None,
            "columns" => checked.columns.clear(),
            "indexes" => checked.indexes.clear(),
            _ => {}
        }
    }
    checked
}

/// What a table is, as answers have it.
pub(crate) fn to_wire(table: &TableHandle) -> pb::Table {
    let definition = table.definition();
    let schema = &definition.schema;
    let search = definition.search();
    let columns = definition.columns.iter().map(|column| pb::DefinedColumn {
        name: column.name.clone(),
        r#type: column_type(&column.value).into(),
    });
    let indexes = schema.indexes.iter().map(|index| pb::SecondaryIndex {
        name: index.name.clone(),
        columns: index.columns.clone(),
        included: index.included.clone(),
        local: index.scope == IndexScope::Local,
        state: index_state(table, &index.name).into(),
        // One that is gone was dropped a moment ago.
        skip_backfill: table.secondary_index_is_partial(&index.name).unwrap_or_default(),
    });
    pb::Table {
        name: schema.name.clone(),
        key: key_columns(schema),
        max_versions: i32::try_from(schema.max_versions).unwrap_or(i32::MAX),
        time_to_live: schema.time_to_live.map(length_to_wire),
        max_version_offset: Some(length_to_wire(schema.max_version_offset)),
        allow_update: Some(schema.allow_update),
        transactions: schema.transactions,
        columns: columns.collect(),
        indexes: indexes.collect(),
        search_index: search.map(|search| pb::SearchIndex {
            fields: indexes::search_index_to_wire(search),
        }),
        owners: owners(&definition),
    }
}

/// Whose the rows of a table are.
fn owners(definition: &TableDefinition) -> Vec<pb::TableOwner> {
    let owners = definition.owners.iter();
    let owners = owners.filter_map(|owner| {
        Some(pb::TableOwner {
            role: Role::of_word(&owner.kind)?.number().into(),
            column: definition.owner_column(owner),
        })
    });
    owners.collect()
}

/// A table in a list.
pub(crate) fn summary(definition: &TableDefinition) -> pb::TableSummary {
    pb::TableSummary {
        name: definition.name().to_owned(),
        key: key_columns(&definition.schema),
        searched: !definition.indexes.is_empty(),
        owners: owners(definition),
    }
}

fn key_columns(schema: &TableSchema) -> Vec<pb::KeyColumn> {
    let columns = schema.key.iter().enumerate();
    let columns = columns.map(|(nth, (name, kind))| pb::KeyColumn {
        name: name.clone(),
        r#type: match kind {
            KeyKind::String => pb::KeyType::String.into(),
            KeyKind::Integer => pb::KeyType::Integer.into(),
            KeyKind::Binary => pb::KeyType::Binary.into(),
        },
        auto_increment: schema.auto_increment == Some(nth),
    });
    columns.collect()
}

/// `None` is refused by a rule.
fn key_kind(given: pb::KeyType) -> Option<KeyKind> {
    match given {
        pb::KeyType::Unspecified => None,
        pb::KeyType::String => Some(KeyKind::String),
        pb::KeyType::Integer => Some(KeyKind::Integer),
        pb::KeyType::Binary => Some(KeyKind::Binary),
    }
}

/// `None` is refused by a rule.
fn value_type(given: pb::ColumnType) -> Option<ValueType> {
    Some(match given {
        pb::ColumnType::Unspecified => return None,
        pb::ColumnType::String => ValueType::String,
        pb::ColumnType::Integer => ValueType::Integer,
        pb::ColumnType::Double => ValueType::Double,
        pb::ColumnType::Boolean => ValueType::Boolean,
        pb::ColumnType::Binary => ValueType::Binary,
        pb::ColumnType::Time => ValueType::Time,
        pb::ColumnType::Json => ValueType::Json,
    })
}

fn column_type(value: &ValueType) -> pb::ColumnType {
    match value {
        ValueType::String => pb::ColumnType::String,
        ValueType::Integer => pb::ColumnType::Integer,
        ValueType::Double => pb::ColumnType::Double,
        ValueType::Boolean => pb::ColumnType::Boolean,
        ValueType::Binary => pb::ColumnType::Binary,
        ValueType::Time => pb::ColumnType::Time,
        ValueType::Json => pb::ColumnType::Json,
        // No table that is created here has them.
        ValueType::Duration
        | ValueType::Point
        | ValueType::Attributes
        | ValueType::List(_)
        | ValueType::Message(_) => pb::ColumnType::Unspecified,
    }
}

/// Names of the secondary indexes that aren't backfilled with existing rows if they are created.
pub(crate) fn skip_backfill(given: &pb::Table) -> BTreeSet<String> {
    let indexes = given.indexes.iter().filter(|index| index.skip_backfill);
    indexes.map(|index| index.name.clone()).collect()
}

fn index(given: &pb::SecondaryIndex) -> SecondaryIndexSchema {
    SecondaryIndexSchema {
        name: given.name.clone(),
        columns: given.columns.clone(),
        included: given.included.clone(),
        scope: match given.local {
            true => IndexScope::Local,
            false => IndexScope::Global,
        },
    }
}

fn index_state(table: &TableHandle, index: &str) -> pb::SecondaryIndexState {
    match table.secondary_index_state(index) {
        Ok(SecondaryIndexState::Building) => pb::SecondaryIndexState::Building,
        Ok(SecondaryIndexState::Ready) => pb::SecondaryIndexState::Ready,
        Ok(SecondaryIndexState::Failed { .. }) => pb::SecondaryIndexState::Failed,
        // It was dropped a moment ago.
        Err(_) => pb::SecondaryIndexState::Unspecified,
    }
}

pub(crate) fn length(given: &prost_types::Duration) -> Option<Duration> {
    duration(given).map(|nanos| Duration::from_nanos(unsigned(nanos)))
}

pub(crate) fn length_to_wire(length: Duration) -> prost_types::Duration {
    duration_to_wire(i64::try_from(length.as_nanos()).unwrap_or(i64::MAX))
}

/// An error of creating or changing a table: what of its search index can't be is told by field.
pub(crate) fn refused(error: EngineError) -> Error {
    let EngineError::Index(IndexError::InvalidSchema(wrong)) = error else {
        return rows::refused(error);
    };
    let mut violations = Violations::default();
    for wrong in wrong.listed() {
        let message = format!("{:?}: {}; {}", wrong.path, wrong.message, wrong.advice);
        violations.push("table.search_index.fields", wrong.reason.code(), message);
    }
    violations.into()
}
