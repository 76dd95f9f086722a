//! What is written of rows.

use std::collections::BTreeMap;

use souk_api::wire::unsigned;
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::TableWrite;
use souk_engine::storage::{
    CellPut, ColumnChange, ColumnName, Condition, Existence, ReturnRow, RowOperation, TableSchema, Value,
};
use souk_proto::table::v1::{self as pb, row_write::Operation};
use souk_proto::r#type::v1::Value as WireValue;

use crate::filter::{check_rules, filter};
use crate::value::{cell, key, key_values};

/// Reads the writes of a batch; `None` breaks a rule, or comes with a violation.
pub(crate) fn batch(
    given: Vec<pb::RowWrite>,
    schema: &TableSchema,
    violations: &mut Violations,
) -> Option<Vec<TableWrite>> {
    let path = FieldPath::root("writes");
    let conditions = given.iter().filter_map(|write| write.condition.as_ref());
    let filters = conditions.filter_map(|condition| condition.columns.as_ref());
    check_rules(filters, &path, violations)?;
    let writes = given.into_iter().enumerate();
    let writes: Vec<_> = writes
        .map(|(nth, given)| {
            let at = path.index(nth);
            write(
                given,
                schema,
                |kind| at.field(kind),
                &at.field("condition"),
                violations,
            )
        })
        .collect();
    writes.into_iter().collect()
}

/// Reads the write of a call that writes one row: the fields of the write are fields of the request. `None` is as in [`batch`].
pub(crate) fn one(
    given: pb::RowWrite,
    schema: &TableSchema,
    violations: &mut Violations,
) -> Option<TableWrite> {
    let condition_at = FieldPath::root("condition");
    write(given, schema, |_| FieldPath::message(), &condition_at, violations)
}

/// Reads a write. Its operation stands at the path that `operation_at` makes of the operation's kind. `None` is as in [`batch`].
fn write(
    given: pb::RowWrite,
    schema: &TableSchema,
    operation_at: impl Fn(&str) -> FieldPath,
    condition_at: &FieldPath,
    violations: &mut Violations,
) -> Option<TableWrite> {
    let operation = match given.operation? {
        Operation::Put(given) => put(given, schema, &operation_at("put"), violations),
        Operation::Update(given) => update(given, &operation_at("update"), violations),
        Operation::Delete(given) => delete(&given, &operation_at("delete"), violations),
    };
    let condition = condition(given.condition.as_ref(), condition_at, violations);
    let operation = operation?;
    let returning = match operation {
        // Afterwards there is no row to give back.
        RowOperation::Delete { .. } => ReturnRow::None,
        _ => returning(given.returning.as_ref()),
    };
    Some(TableWrite::new(operation).when(condition?).returning(returning))
}

/// Reads what replaces a row.
fn put(
    given: pb::RowPut,
    schema: &TableSchema,
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<RowOperation> {
    let is_appended = schema.auto_increment.is_some() && given.key.len() + 1 == schema.key.len();
    if is_appended {
        if !given.cells.is_empty() {
            let message = "can't be put in a row that is yet to be numbered; put columns";
            violations.push(at.field("cells"), "NOT_ALLOWED", message);
        }
        return Some(RowOperation::Append {
            key: key_values(&given.key, &at.field("key"), violations)?,
            columns: columns(given.columns)?,
        });
    }
    let key = key(&given.key, &at.field("key"), violations)?;
    if given.cells.is_empty() {
        let columns = columns(given.columns)?;
        return Some(RowOperation::Put { key, columns });
    }
    let mut cells = Vec::with_capacity(given.columns.len() + given.cells.len());
    for (column, value) in given.columns {
        let (value, version) = (cell(&value)?, None);
        cells.push(CellPut {
            column,
            value,
            version,
        });
    }
    for pb::Cell {
        column,
        value,
        version,
    } in given.cells
    {
        let value = cell(&value?)?;
        cells.push(CellPut {
            column,
            value,
            version,
        });
    }
    Some(RowOperation::PutCells { key, cells })
}

/// Reads what changes columns.
fn update(given: pb::RowUpdate, at: &FieldPath, violations: &mut Violations) -> Option<RowOperation> {
    let key = key(&given.key, &at.field("key"), violations)?;
    let mut changes = Vec::with_capacity(given.put.len());
    for (column, value) in given.put {
        let (value, version) = (cell(&value)?, None);
        changes.push(ColumnChange::Put {
            column,
            value,
            version,
        });
    }
    for pb::Cell {
        column,
        value,
        version,
    } in given.put_cells
    {
        let value = cell(&value?)?;
        changes.push(ColumnChange::Put {
            column,
            value,
            version,
        });
    }
    let increments = given.increment.into_iter();
    changes.extend(increments.map(|(column, by)| ColumnChange::Increment { column, by }));
    let deleted = given.delete.into_iter();
    changes.extend(deleted.map(|column| ColumnChange::DeleteAll { column }));
    let versions = given.delete_versions.into_iter();
    changes.extend(
        versions.map(|pb::CellVersion { column, version }| ColumnChange::DeleteVersion { column, version }),
    );
    Some(RowOperation::Update { key, changes })
}

/// Reads what deletes a row.
fn delete(given: &pb::RowDelete, at: &FieldPath, violations: &mut Violations) -> Option<RowOperation> {
    let key = key(&given.key, &at.field("key"), violations)?;
    Some(RowOperation::Delete { key })
}

/// Reads a condition, which stands at `at`.
fn condition(
    given: Option<&pb::Condition>,
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<Condition> {
    let Some(given) = given else {
        return Some(Condition::none());
    };
    Some(Condition {
        existence: match given.existence() {
            pb::Existence::Unspecified => Existence::Ignore,
            pb::Existence::MustExist => Existence::MustExist,
            pb::Existence::MustNotExist => Existence::MustNotExist,
        },
        revision: given.revision.map(unsigned),
        columns: match &given.columns {
            Some(given) => Some(filter(given, &at.field("columns"), violations)?),
            None => None,
        },
    })
}

/// How much is to be given back.
pub(crate) fn asked(given: Option<&pb::Returning>) -> pb::ReturnRow {
    given.map_or(pb::ReturnRow::None, pb::Returning::row)
}

/// Reads what is given back.
fn returning(given: Option<&pb::Returning>) -> ReturnRow {
    let Some(given) = given else {
        return ReturnRow::None;
    };
    match given.row() {
        pb::ReturnRow::Unspecified | pb::ReturnRow::None => ReturnRow::None,
        pb::ReturnRow::Key => ReturnRow::Key,
        pb::ReturnRow::Columns => ReturnRow::AfterModify(given.columns.clone()),
        pb::ReturnRow::All => ReturnRow::All,
    }
}

fn columns(given: BTreeMap<String, WireValue>) -> Option<Vec<(ColumnName, Value)>> {
    let mut columns = Vec::with_capacity(given.len());
    for (name, value) in given {
        columns.push((ColumnName::from(name), cell(&value)?));
    }
    Some(columns)
}
