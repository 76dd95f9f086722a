use futures_util::stream;
use http::HeaderMap;
use http_body_util::{BodyExt as _, StreamBody};
use tonic::Code;
use tower::Layer as _;

use super::decoded::testing::{PATH, contract};
use super::*;
use crate::layers::testing::{CALL, CHECK, answering, call, end, framed, message};

const LIMIT: usize = 2_000;

/// Those of the contract take streams, and so does [`CALL`].
fn methods() -> Methods {
    let sets = [
        &contract(),
        crate::health::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
    ];
    Methods::read(&sets, |_| true).expect("descriptors")
}

fn server(bytes_max: usize) -> MessagesLayer {
    let layouts = Layouts::read(&[&contract()]).expect("descriptors");
    MessagesLayer::new(bytes_max, methods(), Some(Arc::new(layouts)))
}

fn gateway(bytes_max: usize) -> MessagesLayer {
    MessagesLayer::new(bytes_max, methods(), None)
}

/// Answers with what it read, as one message a frame, or with the error of reading.
fn echo(layer: MessagesLayer) -> impl Inner {
    layer.layer(answering(|request: Request<Body>| async move {
        assert!(!request.headers().contains_key("grpc-encoding") || request.uri().path() != CALL);
        match request.into_body().collect().await {
            Ok(body) => {
                let mut trailers = HeaderMap::new();
                Status::ok("").add_header(&mut trailers).expect("valid headers");
                let frames = [
                    http_body::Frame::data(body.to_bytes()),
                    http_body::Frame::trailers(trailers),
                ];
                let frames = stream::iter(frames.map(Ok::<_, Status>));
                Response::new(Body::new(StreamBody::new(frames)))
            }
            // What a proxy makes of it: its own error. The layer's must win.
            Err(_) => refuse(Status::internal("stream reset")),
        }
    }))
}

/// A request whose body comes in chunks of `chunk` bytes.
fn sent(body: &[u8], chunk: usize, headers: &[(&'static str, &'static str)]) -> Request<Body> {
    let chunks: Vec<_> = body
        .chunks(chunk)
        .map(|chunk| Ok::<_, Status>(http_body::Frame::data(bytes::Bytes::copy_from_slice(chunk))))
        .collect();
    let mut request = Request::builder().uri(CALL);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
        .body(Body::new(StreamBody::new(stream::iter(chunks))))
        .expect("a valid request")
}

fn refused(status: &Status, code: Code, reason: &str) {
    assert_eq!(status.code(), code, "{status:?}");
    assert_eq!(
        crate::status::reason(status).as_deref(),
        Some(reason),
        "{status:?}"
    );
}

#[tokio::test]
async fn messages_within_the_limit_pass_in_chunks_of_any_size() {
    let two = [message(&[1; LIMIT]), message(b""), message(&[2; 7])].concat();
    for layer in [server(LIMIT), gateway(LIMIT)] {
        for chunk in [1, 3, 5, 6, 1000, two.len()] {
            let (bytes, status) = end(call(&echo(layer.clone()), sent(&two, chunk, &[])).await).await;
            assert_eq!(status.code(), Code::Ok, "{chunk}");
            assert_eq!(bytes, two, "{chunk}");
        }
    }
}

#[tokio::test]
async fn a_message_beyond_the_limit_is_refused_by_its_length_alone() {
    let header = &message(&vec![0; LIMIT + 1])[..5];
    for layer in [server(LIMIT), gateway(LIMIT)] {
        for chunk in [1, 5] {
            let request = sent(header, chunk, &[]);
            let (_, status) = end(call(&echo(layer.clone()), request).await).await;
            refused(&status, Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
            use tonic_types::StatusExt as _;
            let info = status.get_details_error_info().expect("an ErrorInfo");
            assert_eq!(info.metadata["limit_bytes"], LIMIT.to_string());
            assert_eq!(info.metadata["actual_bytes"], (LIMIT + 1).to_string());
        }
    }
}

#[tokio::test]
async fn what_comes_behind_the_one_message_of_a_call_is_refused() {
    let plain = message(b"one");
    let packed = framed(1, &Encoding::Zstd.pack(b"one").expect("memory"));
    for layer in [server(LIMIT), gateway(LIMIT)] {
        for encoding in ["identity", "zstd"] {
            let one = if encoding == "zstd" { &packed } else { &plain };
            for (body, refusal) in [
                (one.to_vec(), false),
                ([one, &one[..1]].concat(), true),
                (one.repeat(3), true),
            ] {
                for chunk in [1, one.len(), 1_000] {
                    let mut request = sent(&body, chunk, &[("grpc-encoding", encoding)]);
                    *request.uri_mut() = CHECK.parse().expect("a path");
                    let (_, status) = end(call(&echo(layer.clone()), request).await).await;
                    if refusal {
                        refused(&status, Code::Unimplemented, "ONE_MESSAGE_MAX");
                    } else {
                        assert_eq!(status.code(), Code::Ok, "{status:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_stream_of_messages_is_unpacked_in_turns() {
    let packed = framed(1, &Encoding::Zstd.pack(&[0; 40_000]).expect("memory"));
    let layer = server(100_000);
    let read = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    let service = layer.layer(answering(move |request: Request<Body>| {
        let read = Arc::clone(&counted);
        async move {
            let mut body = request.into_body();
            while let Some(frame) = body.frame().await {
                frame.expect("a message");
                read.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            refuse(Status::ok(""))
        }
    }));
    let request = sent(&packed.repeat(100), 16_384, &[("grpc-encoding", "zstd")]);
    let mut answer = Box::pin(call(&service, request));
    for turn in 1..=50 {
        assert!(answer.as_mut().now_or_never().is_none(), "others have their turn");
        assert_eq!(read.load(std::sync::atomic::Ordering::Relaxed), 2 * turn);
    }
    assert_eq!(end(answer.await).await.1.code(), Code::Ok);
}

#[tokio::test]
async fn an_unknown_flag_is_malformed() {
    let (_, status) = end(call(&echo(server(LIMIT)), sent(&framed(7, b"x"), 3, &[])).await).await;
    refused(&status, Code::InvalidArgument, "FRAME_MALFORMED");
}

#[tokio::test]
async fn compressed_messages_arrive_plain() {
    let plain = [7; 1_500];
    for encoding in [Encoding::Gzip, Encoding::Zstd] {
        let packed = framed(1, &encoding.pack(&plain).expect("memory"));
        let mixed = [packed, message(b"plain")].concat();
        for chunk in [1, 6, mixed.len()] {
            let request = sent(&mixed, chunk, &[("grpc-encoding", encoding.name())]);
            let (bytes, status) = end(call(&echo(server(LIMIT)), request).await).await;
            assert_eq!(status.code(), Code::Ok, "{encoding:?} {chunk}");
            let expected = [message(&plain), message(b"plain")].concat();
            assert_eq!(bytes, expected, "{encoding:?} {chunk}");
        }
    }
}

#[tokio::test]
async fn a_bomb_is_refused_before_it_is_unpacked() {
    for encoding in [Encoding::Gzip, Encoding::Zstd] {
        let bomb = encoding.pack(&vec![0; 16 << 20]).expect("memory");
        let limit = 256 * 1024;
        assert!(bomb.len() < limit, "small enough to be let in");
        let request = sent(&framed(1, &bomb), 4096, &[("grpc-encoding", encoding.name())]);
        let (_, status) = end(call(&echo(server(limit)), request).await).await;
        refused(&status, Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    }
}

#[tokio::test]
async fn what_is_not_the_encoding_it_says_is_refused() {
    for encoding in [Encoding::Gzip, Encoding::Zstd] {
        let request = sent(
            &framed(1, b"not compressed"),
            3,
            &[("grpc-encoding", encoding.name())],
        );
        let (_, status) = end(call(&echo(server(LIMIT)), request).await).await;
        refused(&status, Code::InvalidArgument, "ENCODING_MALFORMED");
    }
    let request = sent(&message(b"x"), 3, &[("grpc-encoding", "snappy")]);
    let response = call(&echo(server(LIMIT)), request).await;
    assert_eq!(response.headers()[GRPC_ACCEPT_ENCODING], "identity,gzip,zstd");
    refused(
        &end(response).await.1,
        Code::Unimplemented,
        "ENCODING_UNSUPPORTED",
    );
}

#[tokio::test]
async fn answers_are_compressed_when_the_client_reads_it_and_it_is_worth_it() {
    let long = message(&[7; 1_500]);
    let short = message(&[7; 15]);
    let body = [&long[..], &short[..]].concat();
    for (accepted, expected) in [
        ("gzip", Some(Encoding::Gzip)),
        ("identity, gzip,zstd", Some(Encoding::Zstd)),
        ("identity,deflate", None),
    ] {
        let request = sent(&body, 700, &[("grpc-accept-encoding", accepted)]);
        let response = call(&echo(server(LIMIT)), request).await;
        let encoding = response
            .headers()
            .get("grpc-encoding")
            .map(|name| name.to_str().expect("ASCII").to_owned());
        assert_eq!(encoding.as_deref(), expected.map(Encoding::name), "{accepted}");
        let (bytes, status) = end(response).await;
        assert_eq!(status.code(), Code::Ok);
        let Some(encoding) = expected else {
            assert_eq!(bytes, body);
            continue;
        };
        assert!(bytes.len() < body.len(), "{accepted}");
        let mut buffer = bytes::BytesMut::from(&bytes[..]);
        let (header, packed) = frame::next(&mut buffer, LIMIT).expect("a frame").expect("whole");
        assert!(header.compressed);
        let plain = encoding
            .unpack(&packed, LIMIT, |_| Ok(()))
            .expect("well-formed and small");
        assert_eq!(plain, long[5..]);
        assert_eq!(buffer, short, "a short one isn't worth it");
    }
}

#[tokio::test]
async fn a_gateway_leaves_the_compression_alone() {
    let packed = framed(1, &Encoding::Zstd.pack(&[7; 1_500]).expect("memory"));
    let service = gateway(LIMIT).layer(answering(|request: Request<Body>| async move {
        assert_eq!(request.headers()["grpc-encoding"], "zstd");
        Response::new(request.into_body())
    }));
    let headers = [("grpc-encoding", "zstd"), ("grpc-accept-encoding", "gzip")];
    let response = call(&service, sent(&packed, 10, &headers)).await;
    assert!(!response.headers().contains_key("grpc-encoding"));
    let body = response.into_body().collect().await.expect("no error").to_bytes();
    assert_eq!(body, packed);
}

#[tokio::test]
async fn what_would_take_too_much_memory_is_refused_before_it_is_decoded() {
    let mebibyte = 1 << 20;
    // Empty elements of the list, two bytes each.
    let elements = [0x0a, 0].repeat(mebibyte);
    for encoding in [None, Some(Encoding::Gzip), Some(Encoding::Zstd)] {
        let (body, headers) = match encoding {
            None => (message(&elements), vec![]),
            Some(encoding) => (
                framed(1, &encoding.pack(&elements).expect("memory")),
                vec![("grpc-encoding", encoding.name())],
            ),
        };
        // The first message is a good one.
        let body = [&message(&elements[..20])[..], &body[..]].concat();
        for chunk in [1_000, 16_384, body.len()] {
            let mut request = sent(&body, chunk, &headers);
            *request.uri_mut() = PATH.parse().expect("a path");
            let (_, status) = end(call(&echo(server(4 * mebibyte)), request).await).await;
            refused(&status, Code::ResourceExhausted, "DECODED_TOO_LARGE");
        }
    }
    // Nor is the rest of it waited for, or unpacked: here there is none.
    for encoding in [None, Some(Encoding::Gzip), Some(Encoding::Zstd)] {
        let (body, headers) = match encoding {
            None => (message(&elements).slice(..mebibyte * 3 / 2), vec![]),
            Some(encoding) => {
                // Numbers that don't compress, behind what is refused: the cut is in them.
                let mut random = fastrand::Rng::with_seed(1);
                let noise = (0..mebibyte).map(|_| random.u8(..));
                let plain: Vec<u8> = elements.iter().copied().chain(noise).collect();
                let packed = encoding.pack(&plain).expect("memory");
                let cut = &packed[..packed.len() - mebibyte / 2];
                (framed(1, cut), vec![("grpc-encoding", encoding.name())])
            }
        };
        let mut request = sent(&body, 16_384, &headers);
        *request.uri_mut() = PATH.parse().expect("a path");
        let (_, status) = end(call(&echo(server(4 * mebibyte)), request).await).await;
        refused(&status, Code::ResourceExhausted, "DECODED_TOO_LARGE");
    }
    // A gateway doesn't look into what it passes on.
    let mut request = sent(&message(&elements), 16_384, &[]);
    *request.uri_mut() = PATH.parse().expect("a path");
    let passed = call(&echo(gateway(4 * mebibyte)), request).await;
    assert_eq!(end(passed).await.1.code(), Code::Ok);
}
