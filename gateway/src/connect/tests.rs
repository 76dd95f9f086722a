use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use prost::Message as _;
use prost_reflect::MessageDescriptor;
use serde_json::json;
use souk_chassis::status::{StatusBuilder, reason};
use souk_proto::shop::v1::GetShopRequest;
use tonic::{Code, Status};
use tonic_types::ErrorInfo;

use super::request::{Asked, Codec, Shape, media_types};
use super::*;
use crate::json::pool;

const BYTES_MAX: usize = 64;

fn kind() -> MessageDescriptor {
    let pool = pool(souk_proto::FILE_DESCRIPTOR_SET).expect("our own descriptors");
    pool.get_message_by_name("souk.shop.v1.GetShopRequest")
        .expect("a message")
}

fn shape(codec: Codec, streams: bool) -> Shape {
    Shape { codec, streams }
}

fn post(headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::POST;
    for (name, value) in headers {
        let name: HeaderName = name.parse().expect("a name");
        request
            .headers_mut()
            .insert(name, value.parse().expect("a value"));
    }
    request
}

fn get(query: &str) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = format!("/a/b?{query}").parse().expect("an address");
    request
}

/// The id of the shop that is asked for with `body`, or the reason why it can't be read.
fn shop_id(shape: Shape, mut request: Request<Body>, body: &[u8]) -> Result<String, String> {
    let asked = Asked::read(shape, kind(), &mut request, BYTES_MAX);
    let message = asked.and_then(|asked| asked.message(body));
    let message = message.map_err(|status| reason(&status).expect("a reason"))?;
    Ok(GetShopRequest::decode(message.as_slice())
        .expect("a request")
        .shop_id)
}

fn envelope(flags: u8, length: u32, message: &[u8]) -> Vec<u8> {
    [&[flags][..], &length.to_be_bytes(), message].concat()
}

#[test]
fn every_rpc_with_one_request_is_there() {
    let pool = pool(souk_proto::FILE_DESCRIPTOR_SET).expect("our own descriptors");
    let services = pool
        .services()
        .filter(|service| service.full_name().starts_with("souk."));
    let methods = services.flat_map(|service| service.methods().collect::<Vec<_>>());
    assert!(methods.count() > 30);
    let streams: Vec<bool> = pool
        .services()
        .flat_map(|service| {
            service
                .methods()
                .map(|method| method.is_client_streaming())
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(
        !streams.contains(&true),
        "an RPC that Connect's unary form can't call"
    );
}

#[test]
fn content_types_name_the_shape() {
    let of = |text: &str| {
        let headers = [(CONTENT_TYPE, HeaderValue::from_str(text).expect("a value"))];
        Shape::of(&headers.into_iter().collect())
    };
    assert_eq!(
        of("application/json; charset=utf-8"),
        Some(shape(Codec::Json, false))
    );
    assert_eq!(of("application/proto"), Some(shape(Codec::Proto, false)));
    assert_eq!(of("Application/Connect+Json"), Some(shape(Codec::Json, true)));
    assert_eq!(of("application/connect+proto"), Some(shape(Codec::Proto, true)));
    for other in ["text/plain", "application/grpc", "application/connect+xml", ""] {
        assert_eq!(of(other), None, "{other}");
    }
    assert_eq!(Shape::of(&HeaderMap::new()), None);
    // What is told to clients is what is read.
    for streams in [false, true] {
        for name in media_types(streams).split(", ") {
            let shape = of(name).expect(name);
            assert_eq!(shape.streams, streams);
            assert_eq!(shape.content_type(), name);
        }
    }
}

#[test]
fn messages_are_read_from_bodies_envelopes_and_addresses() {
    let proto = GetShopRequest {
        shop_id: "h 1".to_owned(),
        ..Default::default()
    }
    .encode_to_vec();
    let text = br#"{"shopId":"h 1"}"#;
    let length = u32::try_from(text.len()).expect("short");
    let (json, plain) = (shape(Codec::Json, false), shape(Codec::Proto, false));
    let stream = shape(Codec::Json, true);
    let own = URL_SAFE_NO_PAD.encode(&proto);
    let padded = URL_SAFE.encode(&proto).replace('=', "%3D");
    assert_ne!(own, padded);
    for (shape, request, body) in [
        (json, post(&[]), text.to_vec()),
        (
            json,
            post(&[
                ("connect-protocol-version", "1"),
                ("content-encoding", "identity"),
            ]),
            text.to_vec(),
        ),
        (plain, post(&[]), proto.clone()),
        (stream, post(&[]), envelope(0, length, text)),
        (
            json,
            get("encoding=json&message=%7B%22shopId%22%3A%22h+1%22%7D"),
            Vec::new(),
        ),
        (
            plain,
            get(&format!("connect=v1&message={own}&encoding=proto&base64=1")),
            Vec::new(),
        ),
        (
            plain,
            get(&format!(
                "message={padded}&encoding=proto&base64=1&compression=identity"
            )),
            Vec::new(),
        ),
    ] {
        let uri = request.uri().clone();
        assert_eq!(
            shop_id(shape, request, &body).as_deref(),
            Ok("h 1"),
            "{shape:?} {uri}"
        );
    }
}

#[test]
fn what_is_wrong_has_a_reason() {
    let (json, stream) = (shape(Codec::Json, false), shape(Codec::Json, true));
    for (shape, request, body, wanted) in [
        (json, post(&[]), &b"{"[..], "JSON_MALFORMED"),
        (json, post(&[]), b"", "JSON_MALFORMED"),
        (
            json,
            post(&[("connect-protocol-version", "2")]),
            b"{}",
            "CONNECT_VERSION_UNSUPPORTED",
        ),
        (
            json,
            post(&[("connect-timeout-ms", "-1")]),
            b"{}",
            "TIMEOUT_MALFORMED",
        ),
        (
            json,
            post(&[("connect-timeout-ms", "12345678901")]),
            b"{}",
            "TIMEOUT_MALFORMED",
        ),
        (
            json,
            post(&[("content-encoding", "br")]),
            b"{}",
            "ENCODING_UNSUPPORTED",
        ),
        (
            json,
            post(&[("content-encoding", "gzip")]),
            b"{}",
            "ENCODING_MALFORMED",
        ),
        (stream, post(&[]), b"{}", "ENVELOPE_MALFORMED"),
        (stream, post(&[]), b"\0\0\0\0\x03{}", "ENVELOPE_MALFORMED"),
        (
            stream,
            post(&[]),
            b"\0\0\0\0\x02{}\0\0\0\0\x02{}",
            "ENVELOPE_MALFORMED",
        ),
        (stream, post(&[]), b"\x02\0\0\0\x02{}", "ENVELOPE_MALFORMED"),
        (stream, post(&[]), b"\x01\0\0\0\x02{}", "ENCODING_MALFORMED"),
        (json, get("encoding=json"), b"", "QUERY_MALFORMED"),
        (
            json,
            get("encoding=json&message=***&base64=1"),
            b"",
            "QUERY_MALFORMED",
        ),
        (
            json,
            get("encoding=json&message={}&connect=v2"),
            b"",
            "CONNECT_VERSION_UNSUPPORTED",
        ),
    ] {
        let given = format!("{} {:?} {body:?}", request.uri(), request.headers());
        assert_eq!(shop_id(shape, request, body), Err(wanted.to_owned()), "{given}");
    }
}

#[test]
fn a_packed_message_is_bounded_when_it_is_unpacked() {
    use souk_chassis::layers::messages::Encoding;
    let bomb = Encoding::Gzip.pack(&vec![b' '; 1 << 20]).expect("packed");
    let request = post(&[("content-encoding", "gzip")]);
    assert_eq!(
        shop_id(shape(Codec::Json, false), request, &bomb),
        Err("MESSAGE_TOO_LARGE".to_owned())
    );
}

#[test]
fn times_are_those_of_grpc() {
    let json = shape(Codec::Json, false);
    // No more than eight digits are sent: of what is more than they hold, whole seconds.
    for (millis, taken) in [
        (0_u64, 0),
        (1_500, 1_500),
        (99_999_999, 99_999_999),
        (100_000_001, 100_000_000),
        (9_999_999_000, 9_999_999_000),
    ] {
        let given = millis.to_string();
        let mut request = post(&[("connect-timeout-ms", given.as_str()), ("grpc-timeout", "1n")]);
        Asked::read(json, kind(), &mut request, BYTES_MAX).expect("a time");
        let time = souk_chassis::layers::deadline::parse(request.headers()).expect("gRPC's");
        assert_eq!(time, Some(std::time::Duration::from_millis(taken)));
    }
    // The protocol has one header for it.
    let mut request = post(&[("grpc-timeout", "1n")]);
    Asked::read(json, kind(), &mut request, BYTES_MAX).expect("no time");
    assert!(!request.headers().contains_key("grpc-timeout"));
}

#[test]
fn errors_have_their_details_for_programs_and_people() {
    let status = StatusBuilder::not_found("SHOP_NOT_FOUND", "no such shop").build();
    let error = answer::error_json(
        &pool(souk_proto::FILE_DESCRIPTOR_SET).expect("our own descriptors"),
        &status,
    );
    assert_eq!(error.get("code"), Some(&json!("not_found")));
    assert_eq!(error.get("message"), Some(&json!("no such shop")));
    let detail = error.pointer("/details/0").expect("a detail");
    assert_eq!(detail.get("type"), Some(&json!("google.rpc.ErrorInfo")));
    assert_eq!(detail.pointer("/debug/reason"), Some(&json!("SHOP_NOT_FOUND")));
    let value = detail
        .get("value")
        .and_then(|value| value.as_str())
        .expect("a value");
    let value = STANDARD_NO_PAD.decode(value).expect("base64");
    let info = tonic_types::pb::ErrorInfo::decode(value.as_slice()).expect("an ErrorInfo");
    assert_eq!(ErrorInfo::from(info).reason, "SHOP_NOT_FOUND");
}

#[test]
fn codes_have_the_names_of_the_protocol() {
    let pool = pool(souk_proto::FILE_DESCRIPTOR_SET).expect("our own descriptors");
    let names: Vec<String> = (0..=16)
        .map(|code| {
            let error = answer::error_json(&pool, &Status::new(Code::from(code), ""));
            error
                .get("code")
                .and_then(|code| code.as_str())
                .expect("a code")
                .to_owned()
        })
        .collect();
    assert_eq!(
        names.join(" "),
        "unknown canceled unknown invalid_argument deadline_exceeded not_found already_exists permission_denied \
         resource_exhausted failed_precondition aborted out_of_range unimplemented internal unavailable data_loss \
         unauthenticated"
    );
}
