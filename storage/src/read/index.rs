//! Reading secondary indexes.

use bytes::Bytes;
use souk_kv::{Direction, Scan, Space};
use tokio::task::yield_now;

use super::index_request::{IndexBound, IndexEntry, IndexPage, IndexPosition, IndexRequest};
use super::range::bounded;
use crate::catalog::Table;
use crate::codec::{Malformed, put_ordered};
use crate::error::{Error, Result};
use crate::expiry::Expiry;
use crate::filter::{ColumnVersions, Filter};
use crate::key::{self, INDEX_PREFIX_BYTES};
use crate::limits::{MAX_SCANNED_BYTES, MAX_SCANNED_ROWS};
use crate::metering::{CapacityUnits, Meter};
use crate::read::Snapshot;
use crate::row::ColumnSelection;
use crate::schema::{KeyKind, SecondaryIndexSchema, TableSchema};
use crate::secondary;
use crate::value::{Value, ValueRef};

/// A page of a secondary index; see [`Snapshot::index`].
pub(super) async fn page(snapshot: &Snapshot, table: &Table, request: &IndexRequest) -> Result<IndexPage> {
    snapshot.check_owned(table)?;
    let schema = table.schema();
    let found = table.index(&request.index, snapshot.generation)?;
    let reading = Reading::new(&schema, &found, request, Expiry::new(table, snapshot.now()))?;
    let whole = key::index(table.id(), found.number);
    let start = reading.cut(&whole, &request.start)?;
    let end = reading.cut(&whole, &request.end)?;
    let (mut low, mut high) = match request.direction {
        Direction::Forward => (start, end),
        Direction::Backward => (end, start),
    };
    if let Some(position) = &request.after {
        let place = reading.place(&whole, position)?;
        if place < low || place >= high {
            return Err(Error::invalid(
                format!("position in index {:?}", found.name),
                "lies outside of the range",
            ));
        }
        match request.direction {
            Direction::Forward => low = key::just_after(&place),
            Direction::Backward => high = place,
        }
    }
    let rules = request.filter.as_ref().map_or(0, Filter::rules);
    let scan = Scan {
        space: Space::Index,
        low,
        high,
        direction: request.direction,
        entries: bounded(request.limit, MAX_SCANNED_ROWS),
        bytes: bounded(request.bytes, MAX_SCANNED_BYTES / rules.max(1)),
    };
    let scanned = snapshot.kv.scan(scan).await?;
    let mut page = IndexPage::default();
    if scanned.next.is_some() {
        page.next = scanned.entries.last().map(|(key, _)| position_of(key));
    }
    let mut bytes = 0;
    let mut room = if request.bytes == 0 {
        usize::MAX
    } else {
        request.bytes
    };
    let mut before = None;
    for (key, value) in &scanned.entries {
        let entry = reading.entry(key, value, &mut bytes);
        let entry = entry.map_err(|Malformed(expected)| {
            Error::corrupt(format!(
                "index {:?} of table {:?}: expected {expected}",
                found.name,
                table.name()
            ))
        })?;
        let Some(entry) = entry else { continue };
        if rules > 0 {
            yield_now().await;
        }
        if reading.passes(&entry)? {
            let taken = entry.message_bytes();
            if taken > room && !page.entries.is_empty() {
                page.next = before;
                break;
            }
            room = room.saturating_sub(taken);
            page.entries.push(entry);
        }
        before = Some(position_of(key));
    }
    page.consumed = CapacityUnits::reading(bytes);
    Ok(page)
}

/// One reading of an index, checked.
struct Reading<'a> {
    schema: &'a TableSchema,
    index: &'a SecondaryIndexSchema,
    columns: &'a ColumnSelection,
    filter: Option<&'a Filter>,
    expiry: Expiry,
    meter: Meter,
}

/// What a filter sees of an entry.
struct Seen<'a>(&'a SecondaryIndexSchema, &'a IndexEntry);

impl ColumnVersions for Seen<'_> {
    fn versions<'a>(&'a self, column: &str) -> impl Iterator<Item = ValueRef<'a>> {
        let Self(index, entry) = self;
        let place = index.columns.iter().position(|each| each == column);
        let value = place.and_then(|place| entry.values.get(place));
        let included = entry.included.iter().find(|(name, _)| name == column);
        let value = value.or(included.map(|(_, value)| value));
        value.map(ValueRef::from).into_iter()
    }
}

impl<'a> Reading<'a> {
    fn new(
        schema: &'a TableSchema,
        index: &'a SecondaryIndexSchema,
        request: &'a IndexRequest,
        expiry: Expiry,
    ) -> Result<Self> {
        request.columns.check()?;
        if let ColumnSelection::Named(names) = &request.columns {
            let known = |name: &&String| {
                index.columns.contains(name)
                    || index.included.contains(name)
                    || schema.key_position(name).is_some()
            };
            if let Some(unknown) = names.iter().find(|name| !known(name)) {
                return Err(Error::invalid(
                    format!("column {unknown:?}"),
                    format!("is not in index {:?}", index.name),
                ));
            }
        }
        if let Some(filter) = &request.filter {
            filter.check()?;
        }
        Ok(Self {
            schema,
            index,
            columns: &request.columns,
            filter: request.filter.as_ref(),
            expiry,
            meter: Meter::of(schema),
        })
    }

    /// The place of a cut among the entries, which all begin with `whole`.
    fn cut(&self, whole: &[u8], bound: &IndexBound) -> Result<Bytes> {
        Ok(match bound {
            IndexBound::Min => Bytes::copy_from_slice(whole),
            IndexBound::Max => key::after(whole),
            IndexBound::Before(values) => self.begin(whole, values)?.into(),
            IndexBound::After(values) => key::after(&self.begin(whole, values)?),
        })
    }

    /// What the entries with these first values begin with.
    fn begin(&self, whole: &[u8], values: &[Value]) -> Result<Vec<u8>> {
        let subject = || format!("bound in index {:?}", self.index.name);
        let most = self.index.columns.len() + self.schema.key.len();
        if values.len() > most {
            return Err(Error::invalid(
                subject(),
                format!("has {} values for {most} columns", values.len()),
            ));
        }
        let mut begin = whole.to_vec();
        for value in values {
            if value.as_double().is_some_and(|number| !number.is_finite()) {
                return Err(Error::invalid(subject(), "holds NaN or an infinity"));
            }
            secondary::check_length(value)
                .map_err(|_| Error::invalid(subject(), "holds too long a value"))?;
            put_ordered(&mut begin, value);
        }
        let of_key = values.iter().skip(self.index.columns.len());
        for ((column, kind), value) in self.schema.key.iter().zip(of_key) {
            let fits = match kind {
                KeyKind::String => value.as_str().is_some(),
                KeyKind::Integer => value.as_integer().is_some(),
                KeyKind::Binary => value.as_binary().is_some(),
            };
            if !fits {
                return Err(Error::invalid(
                    subject(),
                    format!("gives key column {column:?} a {}", value.kind_name()),
                ));
            }
        }
        Ok(begin)
    }

    /// The stored key of a position, which may come from anywhere.
    fn place(&self, whole: &[u8], position: &IndexPosition) -> Result<Bytes> {
        let fits = key::read_index_entry(position.as_bytes(), self.index.columns.len())
            .is_ok_and(|(_, key)| self.schema.check_key(&key).is_ok());
        if !fits {
            return Err(Error::invalid(
                format!("position in index {:?}", self.index.name),
                "is not one of this index",
            ));
        }
        Ok([whole, position.as_bytes()].concat().into())
    }

    /// An entry, unless it has expired; adds what it counts to `bytes`.
    fn entry(&self, key: &Bytes, value: &[u8], bytes: &mut usize) -> Result<Option<IndexEntry>, Malformed> {
        let Some(mut included) = secondary::decode(self.index, value, self.expiry)? else {
            return Ok(None);
        };
        if let ColumnSelection::Named(names) = self.columns {
            included.retain(|(name, _)| names.contains(name));
        }
        let position = position_of(key);
        let (values, key) = key::read_index_entry(position.as_bytes(), self.index.columns.len())?;
        let entry = IndexEntry {
            values,
            key,
            included,
            position,
        };
        *bytes += self.measure(&entry);
        Ok(Some(entry))
    }

    /// Whether the filter lets an entry pass.
    fn passes(&self, entry: &IndexEntry) -> Result<bool> {
        let seen = Seen(self.index, entry);
        self.filter
            .map_or(Ok(true), |filter| filter.passes(&entry.key, Some(&seen), &mut 0))
    }

    /// An entry counts like a row: a key column that the index is ordered by counts once.
    fn measure(&self, entry: &IndexEntry) -> usize {
        let values = self.index.columns.iter().zip(&entry.values);
        let own = values.filter(|(name, _)| self.schema.key_position(name).is_none());
        let own = own.map(|(name, value)| name.len() + value.size());
        let included = entry.included.iter();
        let included = included.map(|(name, value)| self.meter.cell(name, value.size()));
        self.meter.key(&entry.key) + own.sum::<usize>() + included.sum::<usize>()
    }
}

fn position_of(key: &Bytes) -> IndexPosition {
    IndexPosition(key.slice(INDEX_PREFIX_BYTES.min(key.len())..))
}
