//! The fields of an event, for lines, records and spans.

use serde_json::{Map, Value};
use tracing::Event;
use tracing_serde::fields::AsMap as _;

#[derive(Default)]
pub(super) struct Fields {
    pub(super) message: String,
    pub(super) others: Map<String, Value>,
}

impl Fields {
    pub(super) fn of(event: &Event<'_>) -> Self {
        // Fields of tracing can all be written.
        let Ok(Value::Object(mut others)) = serde_json::to_value(event.field_map()) else {
            return Self::default();
        };
        let message = match others.remove("message") {
            Some(Value::String(message)) => message,
            other => other.map(|other| other.to_string()).unwrap_or_default(),
        };
        Self { message, others }
    }
}

/// A field; what is no text, number or bool is written as it would be in a line.
pub(super) fn attribute<T>(value: &Value) -> T
where
    T: From<String> + From<bool> + From<i64> + From<f64>,
{
    match value {
        Value::String(text) => text.clone().into(),
        Value::Bool(bool) => (*bool).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(float)) if number.is_f64() => float.into(),
            // Attributes have no number that is larger.
            _ => number.to_string().into(),
        },
        other => other.to_string().into(),
    }
}
