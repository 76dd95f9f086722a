//! Values of cells and keys.

use souk_api::wire::{time, time_to_wire};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::storage::{KeyValue, PrimaryKey, Value};
use souk_proto::row::ValueRef;
use souk_proto::r#type::v1::{self as pb, value::Kind};

/// What a cell is to hold; `None` breaks a rule: no kind is set, or a time is out of range.
pub(crate) fn cell(given: &pb::Value) -> Option<Value> {
    Some(match given.kind.as_ref()? {
        Kind::StringValue(text) => Value::from(text.as_str()),
        Kind::IntValue(number) => Value::Integer(*number),
        Kind::DoubleValue(number) => Value::Double(*number),
        Kind::BoolValue(truth) => Value::Boolean(*truth),
        Kind::BytesValue(bytes) => Value::Binary(bytes.clone()),
        Kind::TimeValue(at) => Value::Integer(time(at)?),
    })
}

/// What a cell holds, without a copy; `is_time` says that the column is declared as one of times.
pub(crate) fn cell_ref(value: &Value, is_time: bool) -> ValueRef<'_> {
    match value {
        Value::String(text) => ValueRef::String(text),
        Value::Integer(nanos) if is_time => ValueRef::Time(time_to_wire(*nanos)),
        Value::Integer(number) => ValueRef::Int(*number),
        Value::Double(number) => ValueRef::Double(*number),
        Value::Boolean(truth) => ValueRef::Bool(*truth),
        Value::Binary(bytes) => ValueRef::Bytes(bytes),
    }
}

/// A value of a key column, which stands at `at`; `None` comes with a violation.
pub(crate) fn key_value(given: &pb::Value, at: &FieldPath, violations: &mut Violations) -> Option<KeyValue> {
    Some(match given.kind.as_ref()? {
        Kind::StringValue(text) => KeyValue::from(text.as_str()),
        Kind::IntValue(number) => KeyValue::Integer(*number),
        Kind::BytesValue(bytes) => KeyValue::Binary(bytes.clone()),
        Kind::DoubleValue(_) | Kind::BoolValue(_) | Kind::TimeValue(_) => {
            let message = "can't be in a key; use string_value, int_value or bytes_value";
            violations.push(at, "TYPE_MISMATCH", message);
            return None;
        }
    })
}

/// The values of key columns, which stand at `at`.
pub(crate) fn key_values(
    given: &[pb::Value],
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<Vec<KeyValue>> {
    let values = given.iter().enumerate();
    let values: Vec<_> = values
        .map(|(nth, value)| key_value(value, &at.index(nth), violations))
        .collect();
    values.into_iter().collect()
}

/// A key, or the first values of one. The table checks whether it has such keys.
pub(crate) fn key(given: &[pb::Value], at: &FieldPath, violations: &mut Violations) -> Option<PrimaryKey> {
    let values = key_values(given, at, violations)?;
    if values.is_empty() {
        // A rule has refused it.
        return None;
    }
    violations.take(at, "INVALID_KEY", PrimaryKey::new(values))
}

/// The values of a key, without copies.
pub(crate) fn key_refs(key: &PrimaryKey) -> impl Iterator<Item = ValueRef<'_>> {
    key.values().iter().map(|value| match value {
        KeyValue::String(text) => ValueRef::String(text),
        KeyValue::Integer(number) => ValueRef::Int(*number),
        KeyValue::Binary(bytes) => ValueRef::Bytes(bytes),
    })
}

/// The values of a key.
pub(crate) fn key_to_wire(key: &PrimaryKey) -> Vec<pb::Value> {
    key_refs(key).map(pb::Value::from).collect()
}
