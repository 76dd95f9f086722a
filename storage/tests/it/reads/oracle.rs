//! What a read ought to give of a whole row, in the plainest form.

use std::cmp::Ordering;

use souk_storage::metering::CAPACITY_UNIT_BYTES;
use souk_storage::{
    CapacityUnits, Cell, ColumnSelection, Comparison, Filter, KeyValue, PrimaryKey, ReadOptions, Row,
    TableSchema, Value,
};

use super::random::{FRACTION, NUMBER};

/// Columns with their cells, the newest first.
pub(crate) type Cells = Vec<(String, Vec<Cell>)>;

/// What a read gives of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Expected {
    pub(crate) columns: Option<Cells>,
    pub(crate) next_column: Option<String>,
    pub(crate) bytes: usize,
}

pub(crate) fn cells(row: &Row) -> Cells {
    let columns = row.columns().iter();
    columns
        .map(|(name, cells)| (name.to_owned(), cells.to_vec()))
        .collect()
}

/// What a read gives of a row that is visible as a whole.
pub(crate) fn read(schema: &TableSchema, row: Option<&Row>, options: &ReadOptions) -> Expected {
    let Some(row) = row else {
        return Expected::default();
    };
    let mut columns = cells(row);
    if let ColumnSelection::Named(names) = &options.columns {
        columns.retain(|(name, _)| names.contains(name));
    }
    for (_, cells) in &mut columns {
        if let Some(time) = options.versions.time {
            cells.retain(|cell| time.from <= cell.version && cell.version < time.to);
        }
        if let Some(most) = options.versions.max_versions {
            cells.truncate(most as usize);
        }
    }
    columns.retain(|(_, cells)| !cells.is_empty());
    let mut bytes = key_bytes(schema, &row.key);
    let selects_nothing = match &options.columns {
        ColumnSelection::All => options.versions.time.is_none(),
        ColumnSelection::Named(names) => schema.key.iter().any(|(name, _)| names.contains(name)),
    };
    if columns.is_empty() && !selects_nothing {
        return Expected {
            bytes,
            ..Expected::default()
        };
    }
    let passed = options
        .filter
        .as_ref()
        .is_none_or(|filter| passes(filter, &columns));
    if let Some(start) = &options.start_column {
        columns.retain(|(name, _)| name >= start);
    }
    if let Some(end) = &options.end_column {
        columns.retain(|(name, _)| name < end);
    }
    let mut next_column = None;
    let mut skipped = 0;
    if let Some(page) = options.column_page {
        let after = page.offset + page.limit;
        next_column = columns.get(after).map(|(name, _)| name.clone());
        columns.truncate(after);
        skipped = page.offset.min(columns.len());
    }
    // In tables whose cells have versions that matter, a version counts 8 bytes.
    bytes += columns
        .iter()
        .flat_map(|(name, cells)| cells.iter().map(|cell| name.len() + value_bytes(&cell.value) + 8))
        .sum::<usize>();
    columns.drain(..skipped);
    if !passed {
        return Expected {
            bytes,
            ..Expected::default()
        };
    }
    Expected {
        columns: Some(columns),
        next_column,
        bytes,
    }
}

pub(super) fn units(bytes: usize) -> CapacityUnits {
    let units = bytes.div_ceil(CAPACITY_UNIT_BYTES).max(1);
    CapacityUnits {
        read: units as u64,
        write: 0,
    }
}

pub(super) fn key_bytes(schema: &TableSchema, key: &PrimaryKey) -> usize {
    let names = schema.key.iter().map(|(name, _)| name.len());
    let values = key.values().iter().map(|value| match value {
        KeyValue::String(text) => text.len(),
        KeyValue::Integer(_) => 8,
        KeyValue::Binary(bytes) => bytes.len(),
    });
    names.sum::<usize>() + values.sum::<usize>()
}

pub(super) fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Integer(_) | Value::Double(_) => 8,
        Value::Boolean(_) => 1,
        Value::Binary(bytes) => bytes.len(),
    }
}

/// Whether columns pass a filter.
pub(super) fn passes(filter: &Filter, columns: &Cells) -> bool {
    match filter {
        Filter::Column {
            column,
            comparison,
            value,
            pass_if_missing,
            latest_version_only,
            rule,
        } => {
            let Some((_, cells)) = columns.iter().find(|(name, _)| name == column) else {
                return *pass_if_missing;
            };
            let most = if *latest_version_only { 1 } else { cells.len() };
            cells[..most].iter().any(|cell| match rule {
                None => compares(*comparison, &cell.value, value),
                Some(rule) => {
                    part(&cell.value, rule.pattern()).is_some_and(|part| compares(*comparison, &part, value))
                }
            })
        }
        Filter::Exists { column } => columns.iter().any(|(name, _)| name == column),
        Filter::And(parts) => parts.iter().all(|part| passes(part, columns)),
        Filter::Or(parts) => parts.iter().any(|part| passes(part, columns)),
        Filter::Not(part) => !passes(part, columns),
    }
}

/// What the random rules take out of the texts `n=1,m=2.5;`.
fn part(value: &Value, pattern: &str) -> Option<Value> {
    let text = value.as_str()?.strip_prefix("n=")?.strip_suffix(';')?;
    let (number, fraction) = text.split_once(",m=")?;
    match pattern {
        NUMBER => number.parse().ok().map(Value::Integer),
        FRACTION => fraction.parse().ok().map(Value::Double),
        other => panic!("no such pattern: {other}"),
    }
}

fn compares(comparison: Comparison, left: &Value, right: &Value) -> bool {
    let same = left.kind_name() == right.kind_name();
    let order = compare(left, right);
    match comparison {
        Comparison::NotEqual => !same || order.is_ne(),
        Comparison::Equal => same && order.is_eq(),
        Comparison::Less => same && order.is_lt(),
        Comparison::LessOrEqual => same && order.is_le(),
        Comparison::Greater => same && order.is_gt(),
        Comparison::GreaterOrEqual => same && order.is_ge(),
    }
}

/// The order of values in an index: by type, then by value.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    let types = ["STRING", "INTEGER", "BINARY", "DOUBLE", "BOOLEAN"];
    let rank = |value: &Value| types.iter().position(|name| *name == value.kind_name());
    match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::Binary(left), Value::Binary(right)) => left.cmp(right),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right).expect("finite numbers"),
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
        _ => rank(left).cmp(&rank(right)),
    }
}
