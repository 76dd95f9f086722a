//! A client of HTTP/1.1, as browsers and curl are, and the frames of gRPC-Web.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, Bytes};
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::TcpStream;

/// Marks the frame that holds the trailers.
const TRAILERS: u8 = 0x80;

/// Sends one request on a connection of its own, and waits for the headers of the answer.
pub(crate) async fn begin(address: SocketAddr, request: Request<Full<Bytes>>) -> Response<Incoming> {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("a client");
    // Ends with the answer: nothing else is sent.
    tokio::spawn(connection);
    let (mut parts, body) = request.into_parts();
    let host = address.to_string().parse().expect("a header");
    parts.headers.entry(HOST).or_insert(host);
    sender
        .send_request(Request::from_parts(parts, body))
        .await
        .expect("an answer")
}

/// Reads an answer to its end.
pub(crate) async fn whole(answer: Response<Incoming>) -> Response<Bytes> {
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.expect("a whole answer").to_bytes();
    Response::from_parts(parts, body)
}

/// Sends one request and reads the answer.
pub(crate) async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> Response<Bytes> {
    whole(begin(address, request).await).await
}

/// The two forms of gRPC-Web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Binary,
    Text,
}

pub(crate) const FORMS: [Form; 2] = [Form::Binary, Form::Text];

/// A call in that form.
pub(crate) fn call(form: Form, path: &str, message: &impl Message) -> Request<Full<Bytes>> {
    let plain = message.encode_to_vec();
    let length = u32::try_from(plain.len()).expect("a short message").to_be_bytes();
    let frame = [&[0][..], &length, &plain].concat();
    let (content_type, body) = match form {
        Form::Binary => ("application/grpc-web+proto", frame),
        Form::Text => ("application/grpc-web-text", STANDARD.encode(frame).into_bytes()),
    };
    Request::post(path)
        .header(CONTENT_TYPE, content_type)
        .header("x-grpc-web", "1")
        .body(Full::new(body.into()))
        .expect("a request")
}

/// Messages and trailers of an answer; those of a call that only failed stand in its headers.
pub(crate) fn read<M: Message + Default>(form: Form, answer: &Response<Bytes>) -> (Vec<M>, HeaderMap) {
    let body = match form {
        Form::Binary => answer.body().clone(),
        Form::Text => decode_pieces(answer.body()).into(),
    };
    let (mut rest, mut messages, mut trailers) = (body, Vec::new(), HeaderMap::new());
    while !rest.is_empty() {
        let flag = rest.get_u8();
        let length = usize::try_from(rest.get_u32()).expect("a length");
        let content = rest.split_to(length);
        if flag == TRAILERS {
            for line in std::str::from_utf8(&content).expect("text").lines() {
                let (name, value) = line.split_once(':').expect("a trailer");
                let name: http::HeaderName = name.parse().expect("a name");
                trailers.insert(name, value.trim().parse().expect("a value"));
            }
        } else {
            messages.push(M::decode(content).expect("a message"));
        }
    }
    if trailers.is_empty() {
        trailers = answer.headers().clone();
    }
    (messages, trailers)
}

/// Pieces of base64, each with its own padding, one behind the other.
fn decode_pieces(text: &[u8]) -> Vec<u8> {
    text.chunks(4)
        .flat_map(|group| STANDARD.decode(group).expect("base64"))
        .collect()
}
