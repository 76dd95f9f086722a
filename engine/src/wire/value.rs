//! `souk.type.v1.Value`.

use souk_chassis::status::{FieldPath, Violations};
use souk_index::QueryValue;
use souk_proto::r#type::v1::{self as pb, value::Kind};

use super::time;

/// A value in a query; `None`, and a violation, when no kind is set, a time is out of range or a double isn't finite.
pub fn query_value(
    value: Option<&pb::Value>,
    path: impl Into<FieldPath>,
    violations: &mut Violations,
) -> Option<QueryValue> {
    let path = path.into();
    let Some(kind) = value.and_then(|value| value.kind.as_ref()) else {
        violations.push(
            path,
            "FIELD_REQUIRED",
            "needs one of the kinds of Value, for example string_value",
        );
        return None;
    };
    Some(match kind {
        Kind::StringValue(value) => QueryValue::String(value.clone()),
        Kind::IntValue(value) => QueryValue::Integer(*value),
        Kind::DoubleValue(value) if value.is_finite() => QueryValue::Double(*value),
        Kind::DoubleValue(value) => {
            violations.push(
                path.field("double_value"),
                "OUT_OF_RANGE",
                format!("is {value}, must be finite"),
            );
            return None;
        }
        Kind::BoolValue(value) => QueryValue::Boolean(*value),
        Kind::BytesValue(value) => QueryValue::Bytes(value.to_vec()),
        Kind::TimeValue(value) => QueryValue::Time(time(value, path.field("time_value"), violations)?),
    })
}
