//! The fields of an event, for lines, records and spans.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};

#[derive(Default)]
pub(super) struct Fields {
    pub(super) message: String,
    pub(super) others: Map<String, Value>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            _ => self.add(field, value),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }
}

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.others.insert(field.name().to_owned(), value.into());
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
