use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use http_body_util::BodyExt as _;
use opentelemetry::trace::TraceContextExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;

use super::*;
use crate::status::reason;
use crate::testing::{
    DESCRIPTORS, Echo, NEVER, PANIC, call_at, connect, echo, repeat_to, say_to, serve as serve_on_a_port,
    text,
};

/// For calls at a drain.
const CALLS: Duration = Duration::from_secs(5);

async fn refused(result: impl Future<Output = Result<String, Status>>) -> (Code, String) {
    let status = result.await.expect_err("a refusal");
    let reason = reason(&status).unwrap_or_else(|| panic!("no ErrorInfo: {status:?}"));
    (status.code(), reason)
}

#[tokio::test]
async fn every_refusal_over_a_socket_has_its_reason() {
    let config = ServerConfig {
        deadline_default: Duration::from_millis(200),
        ..ServerConfig::default()
    };
    let running = serve_on_a_port(echo(&config), &config, CALLS).await;
    let channel = connect(running.address);
    assert_eq!(say_to(channel.clone(), "hello").await.expect("an echo"), "hello");

    let at = |path: &'static str| {
        let call = call_at(channel.clone(), path, text("x"));
        refused(async { call.await.map(|answer| answer.text) })
    };
    assert_eq!(
        at("/test.Echo/Shout").await,
        (Code::Unimplemented, "METHOD_UNKNOWN".to_owned())
    );
    assert_eq!(
        at("/test.Nobody/Say").await,
        (Code::Unimplemented, "SERVICE_UNKNOWN".to_owned())
    );
    assert_eq!(
        refused(say_to(channel.clone(), &"x".repeat(5 << 20))).await,
        (Code::ResourceExhausted, "MESSAGE_TOO_LARGE".to_owned())
    );
    assert_eq!(
        refused(say_to(channel.clone(), NEVER)).await,
        (Code::DeadlineExceeded, "DEADLINE_EXCEEDED".to_owned())
    );
    assert_eq!(
        refused(say_to(channel.clone(), PANIC)).await,
        (Code::Internal, "INTERNAL".to_owned())
    );
    // Bytes that aren't the message: how tonic words it is known to the error_info layer.
    #[derive(Clone, PartialEq, prost::Message)]
    struct Number {
        #[prost(uint64, tag = "1")]
        number: u64,
    }
    let malformed = call_at(channel.clone(), crate::testing::SAY, Number { number: 7 });
    assert_eq!(
        refused(async { malformed.await.map(|answer| answer.text) }).await,
        (Code::InvalidArgument, "MESSAGE_MALFORMED".to_owned())
    );
    assert_eq!(
        say_to(channel, "still here").await.expect("an echo"),
        "still here"
    );
}

#[tokio::test]
async fn the_same_stack_answers_in_process() {
    let stack = echo(&ServerConfig::default());
    let mut grpc = tonic::client::Grpc::new(stack.clone());
    let path = http::uri::PathAndQuery::from_static(crate::testing::SAY);
    let codec = tonic_prost::ProstCodec::<crate::testing::Text, crate::testing::Text>::default();
    let answer = grpc.unary(tonic::Request::new(text("near")), path, codec).await;
    assert_eq!(answer.expect("an echo").into_inner().text, "near");
    let known: Vec<_> = stack.methods.services().into_iter().map(str::to_owned).collect();
    assert!(known.contains(&"test.Echo".to_owned()) && known.contains(&health::SERVICE_NAME.to_owned()));
}

#[test]
fn a_service_without_descriptor_is_refused() {
    let services = Services::new(health::FILE_DESCRIPTOR_SET)
        .expect("descriptors")
        .mount(Echo);
    let error =
        stack(services, &Health::default(), &ServerConfig::default()).expect_err("nobody describes it");
    assert!(error.to_string().contains("test.Echo"), "{error}");
    assert!(Services::new(&[0xff]).is_err());
}

#[tokio::test]
async fn a_drain_says_so_first_lets_calls_finish_and_ends() {
    let config = ServerConfig::default();
    let running = serve_on_a_port(echo(&config), &config, CALLS).await;
    let channel = connect(running.address);
    let mut health = HealthClient::new(channel.clone());
    let states = health.watch(HealthCheckRequest::default()).await;
    let mut states = states.expect("a stream").into_inner();
    let mut next = async || {
        states
            .message()
            .await
            .expect("no error")
            .map(|state| state.status())
    };
    assert_eq!(next().await, Some(ServingStatus::Serving));
    let mut stream = repeat_to(channel.clone(), "twice").await.expect("a stream");
    stream.message().await.expect("no error").expect("a message");

    running.stop.cancel();
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    assert_eq!(next().await, None);
    // What had begun goes on to its end.
    assert_eq!(stream.message().await.expect("no error"), Some(text("twice")));
    assert_eq!(stream.message().await.expect("no error"), None);
    let served = running.task.await.expect("no panic");
    assert_eq!(served.calls_cut_off, 0);
    let late = say_to(connect(running.address), "late")
        .await
        .expect_err("nobody listens");
    assert_eq!(late.code(), Code::Unavailable);
}

#[tokio::test]
async fn what_has_no_end_is_cut_off_at_the_deadline_and_counted() {
    let config = ServerConfig::default();
    let running = serve_on_a_port(echo(&config), &config, Duration::from_millis(200)).await;
    let mut stream = repeat_to(connect(running.address), NEVER)
        .await
        .expect("a stream");
    stream.message().await.expect("no error").expect("a message");
    running.stop.cancel();
    let served = running.task.await.expect("no panic");
    assert_eq!(served.calls_cut_off, 1);
}

#[tokio::test]
async fn what_is_not_http2_is_hung_up_on() {
    let config = ServerConfig::default();
    let running = serve_on_a_port(echo(&config), &config, CALLS).await;
    for words in ["GET / HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1} a TLS hello"] {
        let mut stream = TcpStream::connect(running.address).await.expect("a connection");
        stream.write_all(words.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        // Closed with or without a reset: words it doesn't have.
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty(), "{answer:?}");
    }
    say_to(connect(running.address), "hello").await.expect("an echo");
}

#[tokio::test]
async fn behind_a_front_http1_is_taken_too() {
    let config = ServerConfig::default();
    let stack = echo(&config);
    let stack = stack.clone().behind(stack);
    let running = serve_on_a_port(stack, &config, CALLS).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    // In two parts: the first could be the beginning of the preface.
    for part in [
        "P",
        "OST /test.Echo/Shout HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    ] {
        stream.write_all(part.as_bytes()).await.expect("sent");
        stream.flush().await.expect("sent");
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("grpc-status: 12"), "{answer}");

    let mut large = TcpStream::connect(running.address).await.expect("a connection");
    let headers = format!("GET / HTTP/1.1\r\nx-large: {}\r\n\r\n", "x".repeat(64 << 10));
    // It may hang up before it has read all of it.
    let _ = large.write_all(headers.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = large.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    assert_eq!(
        say_to(connect(running.address), "hello").await.expect("an echo"),
        "hello"
    );
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let config = ServerConfig {
        connections_max: 1,
        ..ServerConfig::default()
    };
    let running = serve_on_a_port(echo(&config), &config, CALLS).await;
    let first = connect(running.address);
    say_to(first.clone(), "first").await.expect("an echo");
    let second = connect(running.address);
    let mut waiting = Box::pin(say_to(second, "second"));
    let early = tokio::time::timeout(Duration::from_millis(100), &mut waiting).await;
    assert!(early.is_err(), "there is no place yet");
    drop(first);
    assert_eq!(waiting.await.expect("an echo"), "second");
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_those_without_a_call_make_room() {
    let config = ServerConfig {
        connections_per_address_max: 2,
        ..ServerConfig::default()
    };
    let running = serve_on_a_port(echo(&config), &config, CALLS).await;
    let first = connect(running.address);
    say_to(first.clone(), "first").await.expect("an echo");
    let mut silent = TcpStream::connect(running.address).await.expect("a connection");
    let second = connect(running.address);
    say_to(second.clone(), "second").await.expect("an echo");
    let mut rest = Vec::new();
    // Cut with or without a reset.
    let _ = silent.read_to_end(&mut rest).await;
    // Nobody else may be sent away.
    let mut third = TcpStream::connect(running.address).await.expect("a connection");
    let _ = third.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "{rest:?}");
    for channel in [first, second] {
        say_to(channel, "again").await.expect("an echo");
    }
}

#[tokio::test]
async fn headers_without_a_body_are_answered_in_time() {
    let config = ServerConfig {
        body_timeout: Duration::from_millis(100),
        ..ServerConfig::default()
    };
    let running = serve_on_a_port(echo(&config), &config, CALLS).await;
    let stream = TcpStream::connect(running.address).await.expect("a connection");
    let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let mut client = client.ready().await.expect("a stream");
    let request = http::Request::post(format!("http://x{}", crate::testing::SAY))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("a request");
    let (answer, _held_back) = client.send_request(request, false).expect("sent");
    let answer = answer.await.expect("an answer");
    let status = Status::from_header_map(answer.headers()).expect("a refusal");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(reason(&status).as_deref(), Some("BODY_TIMEOUT"));
    connection.abort();
    // What comes with its headers has all the time of a call.
    say_to(connect(running.address), "hello").await.expect("an echo");
}

#[tokio::test]
async fn health_is_asked_for_in_few_words() {
    let config = ServerConfig::default();
    let running = serve_on_a_port(echo(&config), &config, CALLS).await;
    let mut health = HealthClient::new(connect(running.address));
    for (bytes, expected) in [(1_000, "SERVICE_UNKNOWN"), (1_100, "MESSAGE_TOO_LARGE")] {
        let service = "x".repeat(bytes);
        let status = health
            .check(HealthCheckRequest { service })
            .await
            .expect_err("nobody's name");
        assert_eq!(reason(&status).as_deref(), Some(expected));
    }
}

/// A gateway's connection carries the calls of all callers.
#[tokio::test]
async fn bodies_that_wait_for_a_place_hold_back_no_others_of_their_connection() {
    let config = ServerConfig {
        concurrency_max: 1,
        ..ServerConfig::behind_a_gateway()
    };
    let running = serve_on_a_port(echo(&config), &config, CALLS).await;
    let channel = connect(running.address);
    let large = "x".repeat(3 << 20);
    let texts = std::iter::once(NEVER).chain(std::iter::repeat_n(large.as_str(), 20));
    let calls: Vec<_> = texts
        .map(|text| {
            let (channel, text) = (channel.clone(), text.to_owned());
            tokio::spawn(async move { say_to(channel, &text).await })
        })
        .collect();
    let mut health = HealthClient::new(channel);
    for _ in 0..200 {
        let asked = health.check(HealthCheckRequest::default());
        let asked = tokio::time::timeout(CALLS, asked).await;
        asked.expect("an answer in time").expect("health");
    }
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn reflection_is_asked_for_in_few_words_and_on_few_streams() {
    let config = ServerConfig::default();
    let running = serve_on_a_port(echo(&config), &config, CALLS).await;
    let channel = connect(running.address);
    let ask = async |host: usize| {
        let question = ServerReflectionRequest {
            host: "x".repeat(host),
            message_request: Some(MessageRequest::FileContainingSymbol("test.Echo".to_owned())),
        };
        let questions = stream::iter([question]).chain(stream::pending());
        let mut client = ServerReflectionClient::new(channel.clone());
        Ok::<_, Status>(client.server_reflection_info(questions).await?.into_inner())
    };
    let mut open = Vec::new();
    for (bytes, is_heard) in [(4_000, true), (4_100, false)] {
        let mut answers = ask(bytes).await.expect("a stream");
        // The stream is under way: it ends.
        let answer = answers.message().await.expect("no error");
        assert_eq!(answer.is_some(), is_heard, "{bytes}");
        open.push(answers);
    }
    while open.len() < reflection::STREAMS_PER_CALLER_MAX {
        open.push(ask(0).await.expect("a stream"));
    }
    drop(open.remove(1));
    let mut refused = None;
    while refused.is_none() {
        match ask(0).await {
            Ok(answers) => open.push(answers),
            Err(status) => refused = reason(&status),
        }
        assert!(open.len() <= reflection::STREAMS_PER_CALLER_MAX);
    }
    assert_eq!(refused.as_deref(), Some("REFLECTIONS_PER_CALLER_MAX"));
}

#[tokio::test]
async fn an_address_has_a_share_of_the_fronts_own_answers_until_they_are_taken() {
    let config = ServerConfig {
        concurrency_max: 1,
        ..ServerConfig::default()
    };
    let stack = echo(&config);
    let own = async |address: &str| {
        let remote = address.parse().expect("an address");
        let request = Request::builder().extension(crate::connection_info::ConnectionInfo::new(None, remote));
        let (head, ()) = request.body(()).expect("a request").into_parts();
        let answer = Response::new(Body::new(
            http_body_util::Full::from("the contract").map_err(|never| match never {}),
        ));
        stack.own_answer(&head, None, std::future::ready(answer)).await
    };
    let mut untaken = Vec::new();
    for _ in 0..ANSWERS_PER_CALL / 2 {
        untaken.push(own("192.0.2.1:1").await.expect("an answer"));
    }
    let refusal = own("192.0.2.1:2").await.expect_err("half is its share");
    assert_eq!(reason(&refusal).as_deref(), Some("CALLER_OWN_ANSWER_LIMIT"));
    assert!(own("192.0.2.2:1").await.is_ok());
    untaken.pop();
    assert!(own("192.0.2.1:2").await.is_ok());
}

/// The trace that [`traced`] requests belong to.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn traced() -> http::request::Builder {
    Request::builder().header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"))
}

/// Continues all traces, or none.
#[derive(Debug)]
struct Trusts(bool);

impl Believe for Trusts {
    fn believes(&self, request: &mut Request<Body>) -> bool {
        assert_eq!(request.uri().path(), "/GetRow", "it sees what is called");
        self.0
    }
}

#[tokio::test]
async fn a_call_of_another_protocol_has_a_span_of_its_name_until_it_is_answered() {
    for is_believed in [true, false] {
        other_protocol(is_believed).await;
    }
}

async fn other_protocol(is_believed: bool) {
    let recorded = crate::layers::testing::record();
    let services = Services::new(&DESCRIPTORS).expect("descriptors");
    let services = services.believing(Trusts(is_believed));
    let stack = stack(services, &Health::default(), &ServerConfig::default()).expect("no services");
    let request = traced().uri("/GetRow").body(());
    let (head, ()) = request.expect("a request").into_parts();
    let own = async |method, status: u16, failure: Option<&str>| {
        let call = NamedCall {
            system: "other",
            method,
        };
        let before = recorded.spans().len();
        let answer = async {
            tokio::task::yield_now().await;
            assert_eq!(recorded.spans().len(), before, "it goes on");
            let context = opentelemetry::Context::current();
            assert!(context.span().is_recording(), "what it does is below");
            let mut response = Response::new(Body::empty());
            *response.status_mut() = status.try_into().expect("a status");
            (response, failure.map(str::to_owned))
        };
        let answered = stack.own_call(&head, call, answer).await;
        (answered, recorded.spans().pop().expect("a span"))
    };
    for (method, status, failure, name, code, error) in [
        (Some("GetRow"), 200, None, "GetRow", "OK", ""),
        (Some("PutRow"), 403, Some("NotSo"), "PutRow", "NotSo", ""),
        (Some("GetRow"), 503, Some("Busy"), "GetRow", "Busy", "Busy"),
        (None, 404, Some("NoSuch"), "_OTHER", "NoSuch", ""),
    ] {
        let (answered, span) = own(method, status, failure).await;
        assert_eq!(answered.expect("an answer").status(), status);
        assert_eq!(span.name, name);
        let told = ["rpc.system.name", "rpc.method", "rpc.status_code", "error.type"]
            .map(|attribute| crate::layers::testing::attribute(&span, attribute));
        assert_eq!(told, ["other", name, code, error]);
        let links = span.links.links.iter().map(|link| link.span_context.trace_id());
        let links: Vec<_> = links.map(|trace| trace.to_string()).collect();
        let is_continued = span.span_context.trace_id().to_string() == TRACE;
        assert_eq!(is_continued, is_believed);
        let expected: &[&str] = if is_believed { &[] } else { &[TRACE] };
        assert_eq!(links, expected);
    }
    assert_eq!(recorded.lines(), [""; 0]);
    stack.drain();
    let (refused, span) = own(Some("GetRow"), 200, None).await;
    let refusal = refused.expect_err("it drains");
    assert_eq!(reason(&refusal).as_deref(), Some("DRAINING"));
    assert_eq!(
        crate::layers::testing::attribute(&span, "rpc.status_code"),
        "UNAVAILABLE"
    );
    assert_eq!(recorded.lines().len(), 1, "the refusal is logged");
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = taken.local_addr().expect("an address");
    let error = bind(address).await.expect_err("taken");
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("address {address} is already in use")),
        "{text}"
    );
    let foreign = std::net::SocketAddr::from(([192, 0, 2, 1], 0));
    let text = bind(foreign).await.expect_err("documentation only").to_string();
    assert!(text.contains("no interface has it"), "{text}");
}

/// How the caller of half a request goes away.
#[derive(Clone, Copy, Debug)]
enum Going {
    Reset(h2::Reason),
    HangUp,
}

#[tokio::test]
async fn a_request_that_breaks_off_is_of_a_caller_who_went_away() {
    use crate::layers::testing::{attribute, plain_frame, record};
    use prost::Message as _;

    let config = ServerConfig {
        workers: 0,
        ..ServerConfig::default()
    };
    for going in [
        Going::HangUp,
        Going::Reset(h2::Reason::CANCEL),
        Going::Reset(h2::Reason::INTERNAL_ERROR),
        Going::Reset(h2::Reason::PROTOCOL_ERROR),
    ] {
        let recorded = record();
        let running = serve_on_a_port(echo(&config), &config, CALLS).await;
        let stream = TcpStream::connect(running.address).await.expect("a connection");
        let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        let connection = tokio::spawn(connection);
        let mut client = client.ready().await.expect("a stream");
        let request = || {
            http::Request::post(format!("http://x{}", crate::testing::SAY))
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .body(())
                .expect("a request")
        };
        let (broken, mut half) = client.send_request(request(), false).expect("sent");
        half.send_data(bytes::Bytes::from_static(&[0, 0, 0, 0, 100, 1]), false)
            .expect("sent");
        let mut client = client.ready().await.expect("a stream");
        // When another call is answered, the first has arrived.
        let (answer, mut whole) = client.send_request(request(), false).expect("sent");
        let words = plain_frame(&text("hello").encode_to_vec());
        whole.send_data(words, true).expect("sent");
        let answer = answer.await.expect("an answer");
        let mut body = answer.into_body();
        while let Some(data) = body.data().await {
            data.expect("no error");
        }
        match going {
            Going::HangUp => connection.abort(),
            Going::Reset(reason) => half.send_reset(reason),
        }
        drop((broken, half, whole, body, client));
        let _ = connection.await;
        running.stop.cancel();
        running.task.await.expect("no panic");
        let codes: Vec<_> = recorded
            .spans()
            .iter()
            .map(|span| attribute(span, "rpc.status_code"))
            .collect();
        assert_eq!(codes, ["OK", "CANCELLED"], "{going:?}");
        let lines = recorded.lines();
        assert!(
            lines
                .iter()
                .all(|line| !line.contains("ERROR") && !line.contains("call ")),
            "{going:?}: {lines:#?}"
        );
    }
}

#[tokio::test]
async fn an_answer_of_the_fronts_own_is_under_the_layers() {
    let config = ServerConfig {
        rate: crate::config::RateConfig {
            caller_calls_per_second: 1,
            caller_burst: 3,
            // Those who are known pay for nobody else.
            calls_per_second: 1,
            burst: 1,
        },
        ..ServerConfig::default()
    };
    let recorded = crate::layers::testing::record();
    let stack = echo(&config);
    // Calls of health are under no rate; a preflight for one is.
    let remote = "192.0.2.1:1".parse().expect("an address");
    let (head, ()) = traced()
        .extension(crate::connection_info::ConnectionInfo::new(None, remote))
        .uri("/grpc.health.v1.Health/Check")
        .body(())
        .expect("a request")
        .into_parts();
    let told = || Some(Status::not_found("no path \"/nowhere\""));
    let own = |told| stack.own_answer(&head, told, std::future::ready(Response::new(Body::empty())));
    assert!(own(None).await.is_ok());
    assert!(own(told()).await.is_ok());
    let codes = recorded.spans().into_iter().map(|span| {
        assert_eq!(span.span_context.trace_id().to_string(), TRACE);
        crate::layers::testing::attribute(&span, "rpc.status_code")
    });
    assert_eq!(codes.collect::<Vec<_>>(), ["OK", "NOT_FOUND"]);
    let lines = recorded.lines();
    let [line] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert!(
        line.contains("call refused") && !line.contains("nowhere"),
        "{line}"
    );
    assert!(own(told()).await.is_ok());
    let refusal = own(told()).await.expect_err("above the rate");
    assert_eq!(reason(&refusal).as_deref(), Some("CALLER_RATE_LIMIT"));
    stack.drain();
    let refusal = own(None).await.expect_err("it drains");
    assert_eq!(reason(&refusal).as_deref(), Some("DRAINING"));
}
