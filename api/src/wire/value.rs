//! `souk.type.v1.Value` and `souk.type.v1.ChangeKind`.

use souk_engine::ChangeKind;
use souk_index::QueryValue;
use souk_proto::r#type::v1::{self as pb, value::Kind};

use super::{time, time_to_wire};

/// A value in a query; `None` when no kind is set, a time is out of range or a double isn't finite.
#[must_use]
pub fn query_value(value: &pb::Value) -> Option<QueryValue> {
    Some(match value.kind.as_ref()? {
        Kind::StringValue(value) => QueryValue::String(value.clone()),
        Kind::IntValue(value) => QueryValue::Integer(*value),
        Kind::DoubleValue(value) => QueryValue::Double(Some(*value).filter(|value| value.is_finite())?),
        Kind::BoolValue(value) => QueryValue::Boolean(*value),
        Kind::BytesValue(value) => QueryValue::Bytes(value.to_vec()),
        Kind::TimeValue(value) => QueryValue::Time(time(value)?),
    })
}

/// A value on the wire.
#[must_use]
pub fn value_to_wire(value: QueryValue) -> pb::Value {
    pb::Value {
        kind: Some(match value {
            QueryValue::String(text) => Kind::StringValue(text),
            QueryValue::Integer(number) => Kind::IntValue(number),
            QueryValue::Double(number) => Kind::DoubleValue(number),
            QueryValue::Boolean(flag) => Kind::BoolValue(flag),
            QueryValue::Bytes(bytes) => Kind::BytesValue(bytes.into()),
            QueryValue::Time(nanos) => Kind::TimeValue(time_to_wire(nanos)),
        }),
    }
}

/// The kind of a change, as the number of the contract's enum.
#[must_use]
pub fn change_kind(kind: ChangeKind) -> i32 {
    let kind = match kind {
        ChangeKind::Created => pb::ChangeKind::Created,
        ChangeKind::Updated => pb::ChangeKind::Updated,
        ChangeKind::Deleted => pb::ChangeKind::Deleted,
    };
    kind.into()
}
