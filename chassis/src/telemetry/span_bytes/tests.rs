use std::borrow::Cow;
use std::time::Duration;

use fastrand::Rng;
use opentelemetry::trace::{Event, Link, TraceFlags, TraceId, TraceState};
use opentelemetry::{Key, StringValue};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::trace::{SpanEvents, SpanLinks};
use prost::Message as _;

use super::*;

/// Text of lengths around those at which the length of what holds it takes a byte more.
fn text(rng: &mut Rng) -> String {
    let length = *rng
        .choice(&[0, 1, 7, 100, 125, 126, 127, 128, 129, 300, 16_383, 16_384, 20_000])
        .expect("some");
    std::iter::repeat_with(|| rng.choice(['a', 'é', '店']).expect("some"))
        .take(length / 2)
        .collect()
}

fn value(rng: &mut Rng) -> Value {
    let several = rng.usize(..4);
    match rng.u8(..8) {
        0 => Value::Bool(rng.bool()),
        1 => Value::I64(rng.i64(..)),
        2 => Value::I64(rng.i64(-2..3)),
        3 => Value::F64(rng.f64() - 0.5),
        4 => Value::Array(Array::Bool((0..several).map(|_| rng.bool()).collect())),
        5 => Value::Array(Array::I64((0..several).map(|_| rng.i64(..)).collect())),
        6 => Value::Array(Array::String(
            (0..several).map(|_| StringValue::from(text(rng))).collect(),
        )),
        _ => Value::String(text(rng).into()),
    }
}

fn attributes(rng: &mut Rng) -> Vec<KeyValue> {
    (0..rng.usize(..5))
        .map(|_| KeyValue::new(Key::new(text(rng)), value(rng)))
        .collect()
}

fn context(rng: &mut Rng) -> SpanContext {
    let state = match rng.bool() {
        true => TraceState::from_key_value([("souk", "1"), ("other", "x")]).expect("a state"),
        false => TraceState::NONE,
    };
    SpanContext::new(
        TraceId::from_bytes(rng.u128(..).to_be_bytes()),
        SpanId::from_bytes(rng.u64(..).to_be_bytes()),
        TraceFlags::new(rng.u8(..)),
        rng.bool(),
        state,
    )
}

fn time(rng: &mut Rng) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(rng.u64(..2_000_000_000_000_000_000))
}

fn span(rng: &mut Rng, scope: InstrumentationScope) -> SpanData {
    let kinds = [
        SpanKind::Client,
        SpanKind::Server,
        SpanKind::Internal,
        SpanKind::Producer,
        SpanKind::Consumer,
    ];
    let mut events = SpanEvents::default();
    events.events = (0..rng.usize(..3))
        .map(|_| Event::new(text(rng), time(rng), attributes(rng), rng.u32(..2)))
        .collect();
    events.dropped_count = rng.u32(..3);
    let mut links = SpanLinks::default();
    links.links = (0..rng.usize(..3))
        .map(|_| Link::new(context(rng), attributes(rng), rng.u32(..2)))
        .collect();
    links.dropped_count = rng.u32(..3);
    SpanData {
        span_context: context(rng),
        parent_span_id: match rng.bool() {
            true => SpanId::from_bytes(rng.u64(..).to_be_bytes()),
            false => SpanId::INVALID,
        },
        parent_span_is_remote: rng.bool(),
        span_kind: rng.choice(kinds).expect("some"),
        name: Cow::Owned(text(rng)),
        start_time: time(rng),
        end_time: time(rng),
        attributes: attributes(rng),
        dropped_attributes_count: rng.u32(..3),
        events,
        links,
        status: match rng.u8(..3) {
            0 => Status::Unset,
            1 => Status::Ok,
            _ => Status::error(text(rng)),
        },
        instrumentation_scope: scope,
    }
}

#[test]
fn requests_are_those_that_opentelemetry_proto_makes() {
    let seed = souk_seeds::seed();
    let mut rng = Rng::with_seed(seed);
    for round in 0..200 {
        let of_process = Resource::builder_empty()
            .with_attribute(KeyValue::new("service.name", text(&mut rng)))
            .with_schema_url([KeyValue::new("n", value(&mut rng))], "https://schema")
            .build();
        let scopes = [
            InstrumentationScope::builder("souk").build(),
            InstrumentationScope::builder(text(&mut rng))
                .with_version("1")
                .with_schema_url("https://schema")
                .with_attributes(attributes(&mut rng))
                .build(),
        ];
        let spans: Vec<Vec<SpanData>> = scopes
            .iter()
            .map(|scope| {
                (0..1 + rng.usize(..4))
                    .map(|_| span(&mut rng, scope.clone()))
                    .collect()
            })
            .collect();
        let of_scopes: Vec<_> = scopes.iter().map(scope).collect();
        let bytes: Vec<_> = spans
            .iter()
            .map(|spans| {
                let mut bytes = Vec::new();
                for span in spans {
                    write_span(&mut bytes, span);
                }
                bytes
            })
            .collect();
        let parts = of_scopes.iter().zip(&bytes);
        let written = request(
            &resource(&of_process),
            parts.map(|(scope, spans)| (scope.as_slice(), spans.as_slice())),
        );
        let made = ExportTraceServiceRequest {
            resource_spans: group_spans_by_resource_and_scope(
                spans.into_iter().flatten().collect(),
                &ResourceAttributesWithSchema::from(&of_process),
            ),
        };
        let read = ExportTraceServiceRequest::decode(written.as_slice());
        assert_eq!(read, Ok(made), "seed {seed}, round {round}");
    }
}
