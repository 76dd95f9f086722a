//! Rows, and where they are, as answers have them.

use std::sync::{Arc, OnceLock};

use souk_api::FoundRow;
use souk_api::wire::{signed, time_to_wire};
use souk_engine::storage::{
    CapacityUnits, ChangeKind, IndexEntry, KeyBound, PrimaryKey, Row, RowChange, Split, Value, WrittenRow,
};
use souk_engine::{MAX_PAGE_BYTES, TableDefinition, ValueType, WatchEvent};
use souk_proto::row::{RowWriter, ValueRef};
use souk_proto::table::v1::{self as pb, key_range};
use souk_proto::r#type::v1::Value as WireValue;

use crate::value::{cell_ref, key_refs, key_to_wire};

/// Writes the rows of a table as messages, by its definition.
#[derive(Clone, Debug)]
pub(crate) struct RowsToWire {
    definition: Arc<TableDefinition>,
    /// The ordinals of the columns that are declared as times, in the order of their names. Made at the first INTEGER.
    times: OnceLock<Vec<usize>>,
    /// Each cell with its version, instead of the newest value of each column.
    versions: bool,
}

impl RowsToWire {
    pub(crate) fn new(definition: Arc<TableDefinition>, versions: bool) -> Self {
        Self {
            definition,
            times: OnceLock::new(),
            versions,
        }
    }

    fn is_time(&self, column: &str) -> bool {
        let declared = &self.definition.columns;
        let name = |place: &usize| declared.get(*place).map(|column| column.name.as_str());
        let times = self.times.get_or_init(|| {
            let columns = declared.iter().enumerate();
            let times = columns.filter(|(_, column)| column.value == ValueType::Time);
            let mut times: Vec<usize> = times.map(|(place, _)| place).collect();
            times.sort_unstable_by_key(name);
            times
        });
        let found = times.binary_search_by(|place| name(place).cmp(&Some(column)));
        found.is_ok()
    }

    fn value<'v>(&self, column: &str, value: &'v Value) -> ValueRef<'v> {
        let is_time = matches!(value, Value::Integer(_)) && self.is_time(column);
        cell_ref(value, is_time)
    }

    pub(crate) fn row(&self, row: &Row) -> pb::Row {
        let mut writer = RowWriter::with_capacity(row.message_bytes());
        key_refs(&row.key).for_each(|value| writer.key(value));
        if self.versions {
            for (column, cells) in row.columns().iter() {
                for cell in cells {
                    writer.cell(column, self.value(column, &cell.value), cell.version);
                }
            }
        } else {
            for (column, value) in row.columns().newest() {
                writer.column(column, self.value(column, value));
            }
        }
        writer.finish(signed(row.revision))
    }

    pub(crate) fn rows(&self, rows: &[Row]) -> Vec<pb::Row> {
        rows.iter().map(|row| self.row(row)).collect()
    }

    /// What a write gives back of what was asked for.
    pub(crate) fn written(&self, written: &WrittenRow, asked: pb::ReturnRow) -> Option<pb::Row> {
        let key = written.key.as_ref().filter(|_| asked == pb::ReturnRow::Key);
        let row = written.row.as_ref().map(|row| self.row(row));
        row.or_else(|| key.map(key_alone))
    }

    pub(crate) fn hit(&self, hit: FoundRow) -> pb::RowHit {
        pb::RowHit {
            row: Some(hit.row.map_or_else(|| key_alone(&hit.key), |row| self.row(&row))),
            score: hit.score,
            sort_values: hit.sort_values,
            highlights: hit.highlights,
            inner_hits: hit.inner_hits,
        }
    }

    pub(crate) fn change(&self, change: &RowChange) -> pb::RowChange {
        let kind = match change.kind {
            ChangeKind::Put => pb::RowChangeKind::Put,
            ChangeKind::Update => pb::RowChangeKind::Update,
            ChangeKind::Delete => pb::RowChangeKind::Delete,
        };
        pb::RowChange {
            kind: kind.into(),
            row: Some(self.row_or_key(change.row.as_ref(), &change.key)),
        }
    }

    /// A row, or the key alone of one that is no more.
    pub(crate) fn row_or_key(&self, row: Option<&Row>, key: &PrimaryKey) -> pb::Row {
        row.map_or_else(|| key_alone(key), |row| self.row(row))
    }

    /// An event of a watch, in messages of at most [`MAX_PAGE_BYTES`] unless one row is larger. All but the last one have the sequence before the
    /// event's, so that a stream that breaks between them resumes with the whole event.
    pub(crate) fn event(&self, event: &WatchEvent<RowChange>) -> Vec<pb::WatchRowsResponse> {
        let message = |sequence: i64| pb::WatchRowsResponse {
            sequence,
            commit_time: Some(time_to_wire(event.commit_time)),
            changes: Vec::new(),
        };
        let (mut messages, mut last, mut room) = (Vec::new(), message(event.sequence), MAX_PAGE_BYTES);
        for change in &event.changes {
            let bytes = change.message_bytes();
            if bytes > room && !last.changes.is_empty() {
                let full = std::mem::take(&mut last.changes);
                messages.push(pb::WatchRowsResponse {
                    changes: full,
                    ..message(event.sequence - 1)
                });
                room = MAX_PAGE_BYTES;
            }
            room = room.saturating_sub(bytes);
            last.changes.push(self.change(change));
        }
        messages.push(last);
        messages
    }

    pub(crate) fn entry(&self, entry: IndexEntry, columns: &[String]) -> pb::IndexEntry {
        let values = entry.values.iter().zip(columns);
        let values = values.map(|(value, column)| WireValue::from(self.value(column, value)));
        let included = entry.included.into_iter().map(|(column, value)| {
            let value = WireValue::from(self.value(&column, &value));
            (column, value)
        });
        pb::IndexEntry {
            values: values.collect(),
            key: key_to_wire(&entry.key),
            columns: included.collect(),
        }
    }
}

fn key_alone(key: &PrimaryKey) -> pb::Row {
    pb::Row {
        key: key_to_wire(key),
        ..pb::Row::default()
    }
}

pub(crate) fn consumed(units: CapacityUnits) -> pb::CapacityUnits {
    pb::CapacityUnits {
        read: signed(units.read),
        write: signed(units.write),
    }
}

pub(crate) fn split(split: &Split) -> pb::Split {
    // Tables are split before keys: none is `After`.
    let key = |bound: &KeyBound| match bound {
        KeyBound::Before(key) | KeyBound::After(key) => Some(pb::Key {
            values: key_to_wire(key),
        }),
        KeyBound::Min | KeyBound::Max => None,
    };
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    pb::Split {
        range: Some(pb::KeyRange {
            prefix: None,
            low: key(&split.start).map(key_range::Low::Gte),
            high: key(&split.end).map(key_range::High::Lt),
        }),
        rows: count(split.rows),
        bytes: count(split.bytes),
    }
}
