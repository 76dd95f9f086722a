//! What the layers take of a unary call, without the network: from a request to the last frame of its answer.

#![expect(clippy::expect_used, reason = "a benchmark that can't go on ends")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto};
use souk_chassis::config::{RateConfig, ServerConfig};
use souk_chassis::health::Health;
use souk_chassis::layers::{AnswerBody, Inner};
use souk_chassis::server::{Services, Stack, stack};
use tonic::Status;
use tonic::body::Body;
use tower::Service as _;

const SERVICE: &str = "test.Echo";
const CALL: &str = "/test.Echo/Say";

/// Answers with one message and OK, as a backend does.
struct Backend;

impl Inner for Backend {
    async fn call(&self, _: Request<Body>) -> Response<impl AnswerBody + Default> {
        let trailers = HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            HeaderValue::from_static("0"),
        )]);
        let message = Bytes::from_static(b"\0\0\0\0\x02\x08\x01");
        let frames = [Frame::data(message), Frame::trailers(trailers)].map(Ok::<_, Status>);
        Response::new(Body::new(StreamBody::new(futures_util::stream::iter(frames))))
    }
}

fn descriptors() -> Vec<u8> {
    let say = MethodDescriptorProto {
        name: Some("Say".to_owned()),
        ..Default::default()
    };
    let echo = ServiceDescriptorProto {
        name: Some("Echo".to_owned()),
        method: vec![say],
        ..Default::default()
    };
    let file = FileDescriptorProto {
        name: Some("test.proto".to_owned()),
        package: Some("test".to_owned()),
        service: vec![echo],
        ..Default::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}

fn around_backend(config: &ServerConfig) -> Stack {
    let services = Services::new(&descriptors()).expect("descriptors");
    let services = services.forward(vec![SERVICE.to_owned()], Backend);
    stack(services, &Health::default(), config).expect("a described service")
}

fn calls(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let rate = RateConfig {
        calls_per_second: 1_000_000_000,
        ..RateConfig::default()
    };
    let limited = ServerConfig {
        rate,
        ..ServerConfig::default()
    };
    for (name, config) in [
        ("a call", ServerConfig::default()),
        ("a call with a rate", limited),
    ] {
        let mut stack = around_backend(&config);
        c.bench_function(name, |b| {
            b.iter(|| {
                let mut request = Request::new(Body::empty());
                *request.uri_mut() = http::Uri::from_static(CALL);
                let Ok(response) = runtime.block_on(stack.call(request));
                black_box(runtime.block_on(response.into_body().collect()).expect("frames"))
            });
        });
    }
}

criterion_group!(benches, calls);
criterion_main!(benches);
