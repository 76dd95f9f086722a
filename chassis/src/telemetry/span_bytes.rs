//! Spans as bytes of OTLP.
//!
//! Written straight from what the SDK recorded, where opentelemetry-otlp clones each batch of spans, makes messages of some thirty pieces of
//! memory of each, and encodes those: most of what recording every call cost a gateway. Fields and numbers are those of
//! `opentelemetry/proto/trace/v1/trace.proto` and `common/v1/common.proto`; the tests compare with what opentelemetry-proto makes.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status};
use opentelemetry::{Array, InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanData;

/// Of the flags of spans and links: that the next one is known (`SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK`).
const REMOTENESS_IS_KNOWN: u32 = 0x100;

/// Of the flags of spans and links: the parent, or the linked span, is another process's (`SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK`).
const IS_REMOTE: u32 = 0x200;

/// Writes the fields of a message (<https://protobuf.dev/programming-guides/encoding/>). Fields of default values aren't written.
struct Fields<'a>(&'a mut Vec<u8>);

/// How a field is written.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Sized = 2,
    Fixed32 = 5,
}

impl Fields<'_> {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn key(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field << 3 | wire as u32));
    }

    fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.chosen_number(field, value);
        }
    }

    /// One of several fields: it is written for its being there.
    fn chosen_number(&mut self, field: u32, value: u64) {
        self.key(field, Wire::Varint);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.chosen_fixed64(field, value);
        }
    }

    fn chosen_fixed64(&mut self, field: u32, value: u64) {
        self.key(field, Wire::Fixed64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u32, value: u32) {
        self.key(field, Wire::Fixed32);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.chosen_bytes(field, bytes);
        }
    }

    fn chosen_bytes(&mut self, field: u32, bytes: &[u8]) {
        self.parts(field, &[bytes]);
    }

    /// A message of parts that are bytes already.
    fn parts(&mut self, field: u32, parts: &[&[u8]]) {
        self.key(field, Wire::Sized);
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.varint(bytes as u64);
        for part in parts {
            self.0.extend_from_slice(part);
        }
    }

    /// A message within this one, whose length is known after it.
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Fields<'_>)) {
        self.key(field, Wire::Sized);
        // Most are shorter than 128 bytes; the others make room for what their length takes more.
        let at = self.0.len();
        self.0.push(0);
        write(&mut Fields(self.0));
        let mut length = self.0.len() - at - 1;
        let mut place = at;
        while length >= 0x80 {
            let low = length.to_le_bytes()[0] | 0x80;
            if let Some(byte) = self.0.get_mut(place) {
                *byte = low;
            }
            place += 1;
            self.0.insert(place, 0);
            length >>= 7;
        }
        if let Some(byte) = self.0.get_mut(place) {
            *byte = length.to_le_bytes()[0];
        }
    }

    fn attribute<'a>(&mut self, field: u32, key: &str, value: impl Into<AnyValue<'a>>) {
        let value = value.into();
        self.message(field, |pair| {
            pair.bytes(1, key.as_bytes());
            pair.message(2, |any| any.value(value));
        });
    }

    fn attributes(&mut self, field: u32, attributes: &[KeyValue]) {
        for attribute in attributes {
            self.attribute(field, attribute.key.as_str(), &attribute.value);
        }
    }

    fn value(&mut self, value: AnyValue<'_>) {
        match value {
            AnyValue::String(text) => self.chosen_bytes(1, text.as_bytes()),
            AnyValue::Bool(yes) => self.chosen_number(2, u64::from(yes)),
            AnyValue::I64(number) => self.chosen_number(3, number.cast_unsigned()),
            AnyValue::F64(number) => self.chosen_fixed64(4, number.to_bits()),
            AnyValue::Array(array) => self.message(5, |values| {
                let mut each = |value| values.message(1, |any| any.value(value));
                match array {
                    Array::Bool(list) => list.iter().for_each(|value| each(AnyValue::Bool(*value))),
                    Array::I64(list) => list.iter().for_each(|value| each(AnyValue::I64(*value))),
                    Array::F64(list) => list.iter().for_each(|value| each(AnyValue::F64(*value))),
                    Array::String(list) => list
                        .iter()
                        .for_each(|value| each(AnyValue::String(value.as_str()))),
                    // There is no other yet.
                    _ => {}
                }
            }),
            AnyValue::Unknown => {}
        }
    }

    /// Ids and state of `context` as fields 1 to 3, as spans and links have them.
    fn context(&mut self, context: &SpanContext) {
        self.bytes(1, &context.trace_id().to_bytes());
        self.bytes(2, &context.span_id().to_bytes());
        self.bytes(3, context.trace_state().header().as_bytes());
    }
}

/// The value of an attribute.
enum AnyValue<'a> {
    Bool(bool),
    I64(i64),
    F64(f64),
    String(&'a str),
    Array(&'a Array),
    /// Of a kind that there isn't yet.
    Unknown,
}

impl<'a> From<&'a Value> for AnyValue<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Bool(yes) => Self::Bool(*yes),
            Value::I64(number) => Self::I64(*number),
            Value::F64(number) => Self::F64(*number),
            Value::String(text) => Self::String(text.as_str()),
            Value::Array(array) => Self::Array(array),
            _ => Self::Unknown,
        }
    }
}

/// Nanoseconds since 1970.
fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn kind(kind: &SpanKind) -> u64 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}

fn flags(context: &SpanContext, is_remote: bool) -> u32 {
    let remote = if is_remote { IS_REMOTE } else { 0 };
    u32::from(context.trace_flags().to_u8()) | REMOTENESS_IS_KNOWN | remote
}

/// Adds a span, as one of the `spans` of a `ScopeSpans`.
pub(super) fn write_span(to: &mut Vec<u8>, span: &SpanData) {
    Fields(to).message(2, |fields| {
        fields.context(&span.span_context);
        if span.parent_span_id != SpanId::INVALID {
            fields.bytes(4, &span.parent_span_id.to_bytes());
        }
        fields.bytes(5, span.name.as_bytes());
        fields.number(6, kind(&span.span_kind));
        fields.fixed64(7, nanos(span.start_time));
        fields.fixed64(8, nanos(span.end_time));
        fields.attributes(9, &span.attributes);
        fields.number(10, span.dropped_attributes_count.into());
        for event in span.events.iter() {
            fields.message(11, |fields| {
                fields.fixed64(1, nanos(event.timestamp));
                fields.bytes(2, event.name.as_bytes());
                fields.attributes(3, &event.attributes);
                fields.number(4, event.dropped_attributes_count.into());
            });
        }
        fields.number(12, span.events.dropped_count.into());
        for link in span.links.iter() {
            fields.message(13, |fields| {
                fields.context(&link.span_context);
                fields.attributes(4, &link.attributes);
                fields.number(5, link.dropped_attributes_count.into());
                fields.fixed32(6, flags(&link.span_context, link.span_context.is_remote()));
            });
        }
        fields.number(14, span.links.dropped_count.into());
        fields.message(15, |fields| match &span.status {
            Status::Unset => {}
            Status::Ok => fields.number(3, 1),
            Status::Error { description } => {
                fields.bytes(2, description.as_bytes());
                fields.number(3, 2);
            }
        });
        fields.fixed32(16, flags(&span.span_context, span.parent_span_is_remote));
    });
}

/// The fields of a `ResourceSpans` beside the spans.
pub(super) fn resource(resource: &Resource) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut fields = Fields(&mut bytes);
    fields.message(1, |fields| {
        for (key, value) in resource.iter() {
            fields.attribute(1, key.as_str(), value);
        }
    });
    fields.bytes(3, resource.schema_url().unwrap_or_default().as_bytes());
    bytes
}

/// The fields of a `ScopeSpans` beside the spans.
pub(super) fn scope(scope: &InstrumentationScope) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut fields = Fields(&mut bytes);
    fields.message(1, |fields| {
        fields.bytes(1, scope.name().as_bytes());
        fields.bytes(2, scope.version().unwrap_or_default().as_bytes());
        for attribute in scope.attributes() {
            fields.attribute(3, attribute.key.as_str(), &attribute.value);
        }
    });
    fields.bytes(3, scope.schema_url().unwrap_or_default().as_bytes());
    bytes
}

/// An `ExportTraceServiceRequest` of one resource, of its scopes and their spans.
pub(super) fn request<'a>(resource: &[u8], scopes: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut of_scopes = Vec::new();
    for (scope, spans) in scopes {
        Fields(&mut of_scopes).parts(2, &[scope, spans]);
    }
    let mut bytes = Vec::with_capacity(resource.len() + of_scopes.len() + 16);
    Fields(&mut bytes).parts(1, &[resource, &of_scopes]);
    bytes
}

#[cfg(test)]
mod tests;
