//! The fields of an index, and values that are compared with theirs.

use bytes::Bytes;
use souk_engine::index::{FieldKind, GeoPoint, QueryValue, ResolvedField, Schema};
use souk_engine::{DateFormat, Reading, SearchIndexDefinition, TimeUnit};
use souk_tablestore::{Reason, ServiceError, Value, variant};
use std::cell::Cell;

use super::note::Note;
use crate::error::{invalid, missing};

/// Nanoseconds of a millisecond: what clients have times in.
pub(super) const MILLISECOND: i64 = 1_000_000;

/// What is known of the fields of an index while a search is read.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) schema: &'a Schema,
    pub(super) index: &'a SearchIndexDefinition,
    pub(super) note: &'a Note,
    /// Whether the filter of a sort is read, which has no inner hits: their sorts have filters, in which the tree would begin anew.
    pub(super) in_sort: bool,
    /// Filters of sorts that were read of the request so far.
    pub(super) sort_filters: &'a Cell<usize>,
}

impl<'a> Fields<'a> {
    /// Those of an index, for a request of which nothing is read yet.
    pub(super) fn new(
        schema: &'a Schema,
        index: &'a SearchIndexDefinition,
        note: &'a Note,
        sort_filters: &'a Cell<usize>,
    ) -> Self {
        Self {
            schema,
            index,
            note,
            in_sort: false,
            sort_filters,
        }
    }

    pub(super) fn resolve(&self, field: &str) -> Option<&'a ResolvedField> {
        self.schema.resolve(field)
    }

    pub(super) fn is_date(&self, field: &str) -> bool {
        self.resolve(field)
            .is_some_and(|field| field.kind == FieldKind::Date)
    }

    /// Reads a value for a field. Whether it fits the field is the index's to say, but for times.
    pub(super) fn value(
        &self,
        field: &str,
        bytes: Option<&Bytes>,
        part: &str,
    ) -> Result<QueryValue, ServiceError> {
        let bytes = bytes.ok_or_else(|| missing(part))?.clone();
        let value = variant::decode(bytes).map_err(|_| Reason::UnknownVariantType)?;
        if self.is_date(field) {
            return self.time(field, &value).map(QueryValue::Time);
        }
        Ok(match value {
            Value::Integer(number) => QueryValue::Integer(number),
            Value::Double(number) => QueryValue::Double(number),
            Value::Boolean(truth) => QueryValue::Boolean(truth),
            Value::String(text) => QueryValue::String(text.to_string()),
            Value::Binary(bytes) => QueryValue::Bytes(bytes.to_vec()),
        })
    }

    /// The same of a value that may be left out.
    pub(super) fn optional(
        &self,
        field: &str,
        bytes: Option<&Bytes>,
    ) -> Result<Option<QueryValue>, ServiceError> {
        bytes
            .map(|bytes| self.value(field, Some(bytes), "A value"))
            .transpose()
    }

    /// The time that a value stands for, as the field's times are written, in nanoseconds since the Unix epoch. A number is in milliseconds where
    /// the field has no numbers.
    pub(super) fn time(&self, field: &str, value: &Value) -> Result<i64, ServiceError> {
        let formats = self.formats(field);
        let nanos = match value {
            Value::Integer(number) => match formats.iter().find_map(|format| format.of_integer(*number)) {
                Some(nanos) => Some(nanos),
                None if formats.is_empty() => self.epoch(field, *number),
                None => number.checked_mul(MILLISECOND),
            },
            Value::String(text) => formats.iter().find_map(|format| format.of_text(text)),
            Value::Double(_) | Value::Boolean(_) | Value::Binary(_) => None,
        };
        nanos.ok_or_else(|| {
            invalid(format!(
                "The value for the DATE field '{field}' is none by its date formats."
            ))
        })
    }

    /// A number of a field whose times aren't of Tablestore's formats.
    fn epoch(&self, field: &str, number: i64) -> Option<i64> {
        let unit = match self.index.source(field).reading {
            Reading::Epoch(unit) => unit,
            _ => TimeUnit::Nanos,
        };
        number.checked_mul(unit.nanos())
    }

    fn formats(&self, field: &str) -> &'a [DateFormat] {
        let (top, inside) = field.split_once('.').unwrap_or((field, ""));
        let source = self.index.sources.get(top);
        let formats = source.and_then(|source| source.dates.get(inside));
        formats.map(Vec::as_slice).unwrap_or_default()
    }
}

/// The name of a field that a part of a search is about, as the index has it.
pub(super) fn name(field: Option<&str>) -> Result<String, ServiceError> {
    let field = field.filter(|field| !field.is_empty());
    field
        .map(index_name)
        .ok_or_else(|| missing("The name of a field"))
}

/// Stands before names that begin with `_`, which an index keeps for itself; and so before those that begin with both.
const MARK: char = 'u';

/// What the index calls a field, or a path from one.
pub(super) fn index_name(field: &str) -> String {
    match field.trim_start_matches(MARK).starts_with('_') {
        true => format!("{MARK}{field}"),
        false => field.to_owned(),
    }
}

/// What clients call a field of the index, or a path from one.
pub(super) fn client_name(field: &str) -> &str {
    let is_marked = field.trim_start_matches(MARK).starts_with('_');
    field.strip_prefix(MARK).filter(|_| is_marked).unwrap_or(field)
}

/// A point, written as `latitude,longitude`.
pub(super) fn point(text: &str) -> Result<GeoPoint, ServiceError> {
    let read = || {
        let (latitude, longitude) = text.split_once(',')?;
        let degrees = |text: &str| text.trim().parse().ok();
        GeoPoint::new(degrees(latitude)?, degrees(longitude)?).ok()
    };
    let shown: String = text.chars().take(64).collect();
    read().ok_or_else(|| {
        invalid(format!(
            "'{shown}' is no point: write it as 'latitude,longitude'."
        ))
    })
}

/// A number that isn't negative.
pub(super) fn count(number: i32, part: &str) -> Result<usize, ServiceError> {
    usize::try_from(number).map_err(|_| invalid(format!("{part} is {number}, which is negative.")))
}

/// What the number of an enumeration stands for; `default` where there is none.
pub(super) fn enumeration<E: TryFrom<i32>>(
    number: Option<i32>,
    default: E,
    part: &str,
) -> Result<E, ServiceError> {
    match number {
        None => Ok(default),
        Some(number) => E::try_from(number).map_err(|_| {
            Reason::InvalidSearchType {
                part: part.into(),
                kind: number,
            }
            .into()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{client_name, index_name};

    #[test]
    fn names_of_fields_come_back() {
        for (field, name) in [
            ("_id", "u_id"),
            ("u_id", "uu_id"),
            ("uu_id", "uuu_id"),
            ("user_id", "user_id"),
            ("u", "u"),
            ("items._x", "items._x"),
        ] {
            assert_eq!(index_name(field), name);
            assert_eq!(client_name(name), field);
        }
    }
}
