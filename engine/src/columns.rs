//! Columns of a row, as a resource writes and reads them.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use souk_index::GeoPoint;
use souk_index::geo::GeoError;
use souk_storage::{ColumnName, Row, Value};

use crate::protobuf::{self, Malformed, Writer};

/// First byte of a column with a message: how the rest is encoded.
const MESSAGE_FORMAT: u8 = 1;
/// Field of the message of a column with strings: `repeated string`.
const STRINGS: u64 = 1;
/// Units of a stored coordinate in one degree.
const UNITS_PER_DEGREE: f64 = 1e7;

/// A stored row that doesn't hold what its resource is made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column:?}: {detail}; the row was written by another version, or is damaged")]
pub struct CorruptRow {
    /// The column, or the key.
    pub column: String,
    /// What was found.
    pub detail: String,
}

impl CorruptRow {
    /// Says what is wrong with a column.
    pub fn new(column: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            column: column.into(),
            detail: detail.into(),
        }
    }
}

/// Columns that there is room for from the first on: most rows have no more.
const FIRST_ROOM: usize = 24;

/// The columns of one row, to be written. What is empty or absent has no column.
///
/// ```
/// use souk_engine::Columns;
/// let columns = Columns::new().string("name", "Ada").integer("age", 36).integer("height", None).string("note", "");
/// assert_eq!(columns.len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    cells: Vec<(ColumnName, Value)>,
}

impl Columns {
    /// No column.
    #[must_use]
    pub fn new() -> Self {
        Self {
            cells: Vec::with_capacity(FIRST_ROOM),
        }
    }

    /// A STRING column; none when empty.
    #[must_use]
    pub fn string(self, name: &str, value: &str) -> Self {
        if value.is_empty() {
            self
        } else {
            self.value(name, Value::String(value.into()))
        }
    }

    /// An INTEGER column.
    #[must_use]
    pub fn integer(self, name: &str, value: impl Into<Option<i64>>) -> Self {
        self.optional(name, value.into().map(Value::Integer))
    }

    /// A DOUBLE column.
    #[must_use]
    pub fn double(self, name: &str, value: impl Into<Option<f64>>) -> Self {
        self.optional(name, value.into().map(Value::Double))
    }

    /// A BOOLEAN column.
    #[must_use]
    pub fn boolean(self, name: &str, value: impl Into<Option<bool>>) -> Self {
        self.optional(name, value.into().map(Value::Boolean))
    }

    /// A BINARY column; none when empty.
    #[must_use]
    pub fn binary(self, name: &str, value: Bytes) -> Self {
        if value.is_empty() {
            self
        } else {
            self.value(name, Value::Binary(value))
        }
    }

    /// A BINARY column with an encoded protobuf message, for what has a structure (lists, maps, objects): fields of the
    /// message may be added later. None when the message is empty.
    #[must_use]
    pub fn message(self, name: &str, encoded: &[u8]) -> Self {
        if encoded.is_empty() {
            return self;
        }
        self.binary(name, [&[MESSAGE_FORMAT], encoded].concat().into())
    }

    /// Several strings in one BINARY column; none when empty.
    #[must_use]
    pub fn strings(self, name: &str, values: &[String]) -> Self {
        let message = values.iter().fold(Writer::default(), |message, value| {
            message.bytes(STRINGS, value.as_bytes())
        });
        self.message(name, &message.finish())
    }

    /// A point, as two INTEGER columns of 1e-7 degrees: `<name>_latitude_e7` and `<name>_longitude_e7`.
    #[must_use]
    pub fn point(self, name: &str, value: impl Into<Option<GeoPoint>>) -> Self {
        let Some(point) = value.into() else {
            return self;
        };
        let [latitude, longitude] = point_columns(name);
        // Exact: a point has whole units, at most 1.8e9 of them.
        let units = |degrees: f64| (degrees * UNITS_PER_DEGREE).round() as i64;
        self.integer(&latitude, units(point.latitude()))
            .integer(&longitude, units(point.longitude()))
    }

    /// A column of any type.
    #[must_use]
    pub fn value(mut self, name: &str, value: Value) -> Self {
        self.cells.push((name.into(), value));
        self
    }

    fn optional(self, name: &str, value: Option<Value>) -> Self {
        match value {
            Some(value) => self.value(name, value),
            None => self,
        }
    }

    /// How many columns there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Is there no column?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The columns in the order they were added.
    #[must_use]
    pub fn into_cells(self) -> Vec<(ColumnName, Value)> {
        self.cells
    }

    /// The columns in the order they were added.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.cells.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// Columns whose places are kept, of one table.
const PLACES: usize = 64;

/// Where the columns of a table's rows were found, in the order in which a resource asks for them. Rows of a table mostly
/// have the same columns, so that one look each is enough.
#[derive(Debug)]
pub(crate) struct ColumnPlaces([AtomicUsize; PLACES]);

impl Default for ColumnPlaces {
    fn default() -> Self {
        Self([const { AtomicUsize::new(0) }; PLACES])
    }
}

impl ColumnPlaces {
    /// The newest value of the column that a row is asked for as its `nth`.
    pub(crate) fn value<'a>(&self, row: &'a Row, nth: usize, name: &str) -> Option<&'a Value> {
        let place = self.find(row, nth, name)?;
        row.columns().at(place).first().map(|cell| &cell.value)
    }

    fn find(&self, row: &Row, nth: usize, name: &str) -> Option<usize> {
        let place = self.0.get(nth);
        let known = place.map_or(nth, |place| place.load(Ordering::Relaxed));
        let found = row.columns().find(name, known)?;
        // Beside it is near enough: a column that some rows lack doesn't change it with each row.
        if found.abs_diff(known) > 1
            && let Some(place) = place
        {
            place.store(found, Ordering::Relaxed);
        }
        Some(found)
    }
}

/// Reads the newest version of each column.
#[derive(Clone, Debug)]
pub struct ColumnReader<'a> {
    from: Source<'a>,
}

#[derive(Clone, Debug)]
enum Source<'a> {
    Row(&'a Row),
    /// One of many rows, with how often it was asked.
    OneOf(&'a Row, &'a ColumnPlaces, Cell<usize>),
    Columns(&'a Columns),
}

impl<'a> ColumnReader<'a> {
    /// Reads a row.
    #[must_use]
    pub fn of_row(row: &'a Row) -> Self {
        Self {
            from: Source::Row(row),
        }
    }

    /// Reads a row of the table that `places` are of.
    pub(crate) fn of_one(row: &'a Row, places: &'a ColumnPlaces) -> Self {
        Self {
            from: Source::OneOf(row, places, Cell::new(0)),
        }
    }

    /// Reads columns that are about to be written.
    #[must_use]
    pub fn of_columns(columns: &'a Columns) -> Self {
        Self {
            from: Source::Columns(columns),
        }
    }

    /// The value of a column of any type; `None` when there is no such column.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        match &self.from {
            Source::Row(row) => row.get(name),
            Source::OneOf(row, places, asked) => {
                let nth = asked.replace(asked.get().saturating_add(1));
                places.value(row, nth, name)
            }
            Source::Columns(columns) => columns
                .cells
                .iter()
                .rev()
                .find(|(cell, _)| cell == name)
                .map(|(_, value)| value),
        }
    }

    /// A STRING column; empty when absent.
    ///
    /// # Errors
    /// When the column has another type.
    pub fn string(&self, name: &str) -> Result<String, CorruptRow> {
        match self.value(name) {
            None => Ok(String::new()),
            Some(Value::String(value)) => Ok(value.as_str().to_owned()),
            Some(other) => Err(mismatch(name, "STRING", other)),
        }
    }

    /// An INTEGER column that must be there.
    ///
    /// # Errors
    /// When the column is absent or has another type.
    pub fn integer(&self, name: &str) -> Result<i64, CorruptRow> {
        self.optional_integer(name)?.ok_or_else(|| absent(name))
    }

    /// An INTEGER column.
    ///
    /// # Errors
    /// When the column has another type.
    pub fn optional_integer(&self, name: &str) -> Result<Option<i64>, CorruptRow> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Integer(value)) => Ok(Some(*value)),
            Some(other) => Err(mismatch(name, "INTEGER", other)),
        }
    }

    /// A DOUBLE column that must be there.
    ///
    /// # Errors
    /// When the column is absent or has another type.
    pub fn double(&self, name: &str) -> Result<f64, CorruptRow> {
        self.optional_double(name)?.ok_or_else(|| absent(name))
    }

    /// A DOUBLE column.
    ///
    /// # Errors
    /// When the column has another type.
    pub fn optional_double(&self, name: &str) -> Result<Option<f64>, CorruptRow> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Double(value)) => Ok(Some(*value)),
            Some(other) => Err(mismatch(name, "DOUBLE", other)),
        }
    }

    /// A BOOLEAN column that must be there.
    ///
    /// # Errors
    /// When the column is absent or has another type.
    pub fn boolean(&self, name: &str) -> Result<bool, CorruptRow> {
        self.optional_boolean(name)?.ok_or_else(|| absent(name))
    }

    /// A BOOLEAN column.
    ///
    /// # Errors
    /// When the column has another type.
    pub fn optional_boolean(&self, name: &str) -> Result<Option<bool>, CorruptRow> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Boolean(value)) => Ok(Some(*value)),
            Some(other) => Err(mismatch(name, "BOOLEAN", other)),
        }
    }

    /// A BINARY column; empty when absent.
    ///
    /// # Errors
    /// When the column has another type.
    pub fn binary(&self, name: &str) -> Result<Bytes, CorruptRow> {
        match self.value(name) {
            None => Ok(Bytes::new()),
            Some(Value::Binary(value)) => Ok(value.clone()),
            Some(other) => Err(mismatch(name, "BINARY", other)),
        }
    }

    /// An encoded message that [`Columns::message`] wrote; the empty message when absent.
    ///
    /// # Errors
    /// When the column has another type or format.
    pub fn message(&self, name: &str) -> Result<Bytes, CorruptRow> {
        let bytes = self.binary(name)?;
        if bytes.is_empty() {
            return Ok(bytes);
        }
        message_in(&bytes).ok_or_else(|| {
            let format = bytes.first();
            CorruptRow::new(name, format!("has the unknown format {format:?}"))
        })
    }

    /// The strings that [`Columns::strings`] wrote.
    ///
    /// # Errors
    /// When the column has another type or doesn't decode.
    pub fn strings(&self, name: &str) -> Result<Vec<String>, CorruptRow> {
        let message = self.message(name)?;
        let read = || {
            let values = protobuf::values(&message)?.into_iter();
            let strings = values.filter(|(field, _)| *field == STRINGS);
            let text = |(_, value): (u64, protobuf::Value<'_>)| value.text().map(str::to_owned);
            let strings = strings.map(|string| text(string).ok_or(Malformed));
            strings.collect::<Result<_, Malformed>>()
        };
        read().map_err(|error| CorruptRow::new(name, error.to_string()))
    }

    /// A point that [`Columns::point`] wrote.
    ///
    /// # Errors
    /// When the columns have another type, one of them is missing, or there is no such point.
    pub fn optional_point(&self, name: &str) -> Result<Option<GeoPoint>, CorruptRow> {
        let [latitude, longitude] = point_columns(name);
        match (
            self.optional_integer(&latitude)?,
            self.optional_integer(&longitude)?,
        ) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(absent(&latitude)),
            (Some(_), None) => Err(absent(&longitude)),
            (Some(north), Some(east)) => {
                let point = point_at(north, east);
                point
                    .map(Some)
                    .map_err(|error| CorruptRow::new(latitude, error.to_string()))
            }
        }
    }

    /// A point that must be there.
    ///
    /// # Errors
    /// As [`ColumnReader::optional_point`], and when there is none.
    pub fn point(&self, name: &str) -> Result<GeoPoint, CorruptRow> {
        self.optional_point(name)?.ok_or_else(|| absent(name))
    }
}

/// The columns of a point, latitude first.
pub(crate) fn point_columns(name: &str) -> [String; 2] {
    [format!("{name}_latitude_e7"), format!("{name}_longitude_e7")]
}

/// The point at stored coordinates.
pub(crate) fn point_at(north: i64, east: i64) -> Result<GeoPoint, GeoError> {
    let degrees = |units: i64| units as f64 / UNITS_PER_DEGREE;
    GeoPoint::new(degrees(north), degrees(east))
}

/// The encoded message that [`Columns::message`] wrote into a cell; `None` when it is of another format.
pub(crate) fn message_in(bytes: &Bytes) -> Option<Bytes> {
    bytes.starts_with(&[MESSAGE_FORMAT]).then(|| bytes.slice(1..))
}

pub(crate) fn absent(name: &str) -> CorruptRow {
    CorruptRow::new(name, "is missing")
}

fn mismatch(name: &str, expected: &str, found: &Value) -> CorruptRow {
    CorruptRow::new(name, format!("is {}, expected {expected}", type_word(found)))
}

fn type_word(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "STRING",
        Value::Integer(_) => "INTEGER",
        Value::Double(_) => "DOUBLE",
        Value::Boolean(_) => "BOOLEAN",
        Value::Binary(_) => "BINARY",
    }
}

#[cfg(test)]
mod tests {
    use souk_storage::{Cell, KeyValue, PrimaryKey, Row, Value};

    use super::{ColumnPlaces, ColumnReader};

    /// Names in the order in which they are asked for, which isn't theirs.
    const NAMES: [&str; 7] = ["seller", "buyer", "price", "amount", "paid", "note", "zone"];

    #[test]
    fn columns_are_found_whatever_the_rows_before_had() {
        let places = ColumnPlaces::default();
        for which in (0..1u32 << NAMES.len()).chain([0, 127, 1, 64, 127, 90, 37]) {
            let has = |nth: &usize| which & (1 << nth) != 0;
            let named = NAMES.iter().enumerate().filter(|(nth, _)| has(nth));
            let cells = named.map(|(nth, name)| {
                let value = Value::Integer(nth as i64);
                (*name, Cell { value, version: 1 })
            });
            let key = PrimaryKey::new(vec![KeyValue::from("o1")]).expect("short");
            let row = Row::new(key, 1, 1, cells.collect());
            let columns = ColumnReader::of_one(&row, &places);
            for (nth, name) in NAMES.iter().enumerate() {
                let expected = has(&nth).then_some(nth as i64);
                assert_eq!(
                    columns.optional_integer(name),
                    Ok(expected),
                    "{name} of {which:b}"
                );
            }
        }
    }
}
