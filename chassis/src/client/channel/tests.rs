use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use h2::Reason;
use h2::server::Builder;
use http::HeaderMap;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::Code;
use tower::ServiceExt as _;

use super::*;
use crate::causes::chain;
use crate::client::tests::stage::{Call, Order, Stage, bounded, ok, played};
use crate::config::{ClientTlsConfig, ServerTlsConfig};
use crate::tls::Acceptor;
use crate::tls::testing::Authority as Certificates;

/// A request of `parts`.
fn request(parts: impl IntoIterator<Item = &'static [u8], IntoIter: Send + 'static>) -> Request<Body> {
    let frames = stream::iter(parts).map(|part| Ok::<_, Status>(Frame::data(Bytes::from_static(part))));
    with_body(Body::new(StreamBody::new(frames)))
}

fn with_body(body: Body) -> Request<Body> {
    let request = Request::post("/test.Echo/Say").body(body);
    request.expect("a request")
}

type Sent = Result<Response<Body>, CallError>;

/// Sends `request`; what comes of it can be waited for.
fn send(channel: &Channel, request: Request<Body>) -> AbortOnDropHandle<Sent> {
    AbortOnDropHandle::new(tokio::spawn(channel.clone().oneshot(request)))
}

/// The whole of an answer that begins and ends well.
async fn whole(sent: AbortOnDropHandle<Sent>) -> Bytes {
    let response = sent.await.expect("no panic").expect("an answer");
    let body = response.into_body().collect().await.expect("no error");
    assert_eq!(body.trailers(), Some(&ok()));
    body.to_bytes()
}

async fn no_answer(sent: AbortOnDropHandle<Sent>) -> Status {
    match sent.await.expect("no panic") {
        Err(CallError::NoAnswer(status)) => status,
        other => panic!("{other:?}"),
    }
}

async fn late(sent: AbortOnDropHandle<Sent>) -> Status {
    match sent.await.expect("no panic") {
        Err(CallError::Late(status)) => status,
        other => panic!("{other:?}"),
    }
}

/// With so much time.
fn within(time: &'static str, mut request: Request<Body>) -> Request<Body> {
    let time = HeaderValue::from_static(time);
    request.headers_mut().insert(deadline::GRPC_TIMEOUT, time);
    request
}

#[tokio::test]
async fn a_request_is_sent_whole_and_fit_for_the_wire() {
    bounded(async {
        let stage = Stage::new().await;
        let mut asked = request([&b"he"[..], b"llo"]);
        for (name, value) in [
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "timeout=5"),
            ("te", "gzip"),
            ("x-stays", "yes"),
        ] {
            asked.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let sent = send(&stage.channel(), asked);
        let mut played = stage.play(Builder::new()).await;
        let mut call = played.call().await;
        assert_eq!(call.read().await, b"hello");
        let uri = call.request.uri();
        assert_eq!(
            uri.to_string(),
            format!("http://{}/test.Echo/Say", stage.address())
        );
        let headers = call.request.headers();
        let expected = [(TE, TRAILERS), (USER_AGENT, AGENT)];
        let mut expected = HeaderMap::from_iter(expected);
        expected.insert("x-stays", HeaderValue::from_static("yes"));
        assert_eq!(*headers, expected);
        call.answer(Bytes::from_static(b"world"));
        assert_eq!(whole(sent).await, "world");
    })
    .await;
}

#[tokio::test]
async fn calls_share_one_connection_and_one_attempt_to_make_it() {
    bounded(async {
        let stage = Stage::new().await;
        let channel = stage.channel();
        let sent: Vec<_> = (0..20).map(|_| send(&channel, request([&b"a"[..]]))).collect();
        let mut played = stage.play(Builder::new()).await;
        for _ in 0..20 {
            played.call().await.answer(Bytes::from_static(b"b"));
        }
        assert!(
            join_all(sent.into_iter().map(whole))
                .await
                .iter()
                .all(|answer| answer == "b")
        );
        assert!(stage.connected().now_or_never().is_none(), "one connection");
    })
    .await;
}

#[tokio::test]
async fn what_is_still_sent_when_the_answer_has_ended_is_cancelled() {
    bounded(async {
        let stage = Stage::new().await;
        let (sender, parts) = mpsc::unbounded_channel::<Result<Frame<Bytes>, Status>>();
        let body = StreamBody::new(UnboundedReceiverStream::new(parts));
        let sent = send(&stage.channel(), with_body(Body::new(body)));
        let mut played = stage.play(Builder::new()).await;
        let Call { request, mut respond } = played.call().await;
        let mut answer = respond.send_response(Response::new(()), false).expect("open");
        answer.send_trailers(ok()).expect("open");
        assert_eq!(whole(sent).await, "");
        let mut body = request.into_body();
        let ended = body.data().await.expect("no end").expect_err("no more of it");
        assert_eq!(ended.reason(), Some(Reason::CANCEL));
        drop(sender);
    })
    .await;
}

#[tokio::test]
async fn after_a_goaway_calls_go_elsewhere_and_those_under_way_end_where_they_are() {
    bounded(async {
        let stage = Stage::new().await;
        let channel = stage.channel();
        let first = send(&channel, request([&b"1"[..]]));
        let mut old = stage.play(Builder::new()).await;
        let under_way = old.call().await;
        old.order(Order::Leave);
        // The client has read that, once it has answered the ping that comes with it: then the server says which was the last.
        let (mut new, second) = loop {
            let next = send(&channel, request([&b"2"[..]]));
            tokio::select! {
                new = stage.play(Builder::new()) => break (new, next),
                call = old.call() => {
                    call.answer(Bytes::new());
                    whole(next).await;
                }
            }
        };
        new.call().await.answer(Bytes::from_static(b"second"));
        assert_eq!(whole(second).await, "second");
        under_way.answer(Bytes::from_static(b"first"));
        assert_eq!(whole(first).await, "first");
        old.task.await.expect("it ends with the last call on it");
    })
    .await;
}

#[tokio::test]
async fn what_a_goaway_leaves_out_has_no_answer() {
    bounded(async {
        let stage = Stage::new().await;
        let channel = stage.channel();
        let sent = send(&channel, request([&b"1"[..]]));
        let mut raw = stage.connected().await;
        raw.read_exact(&mut [0; 64]).await.expect("it speaks");
        // SETTINGS without any, then GOAWAY: the last stream that was worked on is 0.
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        raw.write_all(&[&settings[..], &goaway].concat())
            .await
            .expect("a connection");
        assert_eq!(no_answer(sent).await.code(), Code::Unavailable);
        let sent = send(&channel, request([&b"1"[..]]));
        let mut played = stage.play(Builder::new()).await;
        played.call().await.answer(Bytes::new());
        whole(sent).await;
    })
    .await;
}

#[tokio::test]
async fn a_refused_stream_has_no_answer_and_the_connection_stays() {
    bounded(async {
        let stage = Stage::new().await;
        let channel = stage.channel();
        let sent = send(&channel, request([&b"1"[..]]));
        let mut played = stage.play(Builder::new()).await;
        played.call().await.respond.send_reset(h2::Reason::REFUSED_STREAM);
        let status = no_answer(sent).await;
        assert_eq!(
            crate::status::reason(&status).as_deref(),
            Some("BACKEND_UNAVAILABLE")
        );
        let sent = send(&channel, request([&b"2"[..]]));
        played.call().await.answer(Bytes::new());
        whole(sent).await;
    })
    .await;
}

#[tokio::test]
async fn a_lost_connection_is_made_again_for_the_next_call() {
    bounded(async {
        let stage = Stage::new().await;
        let channel = stage.channel();
        let (cut, told) = (send(&channel, request([&b"1"[..]])), send(&channel, request([])));
        let mut played = stage.play(Builder::new()).await;
        let (one, two) = (played.call().await, played.call().await);
        let (half, empty) = match one.request.body().is_end_stream() {
            true => (two, one),
            false => (one, two),
        };
        let Call { mut respond, .. } = half;
        let mut begun = respond.send_response(Response::new(()), false).expect("open");
        begun.send_data(Bytes::from_static(b"some"), false).expect("open");
        let response = cut.await.expect("no panic").expect("an answer");
        let mut body = response.into_body();
        let frame = body.frame().await.expect("a frame").expect("no error");
        assert_eq!(frame.into_data().expect("data"), "some");
        played.order(Order::Cut);
        // One call had begun to be answered: it ends with a status. The other had not.
        let frame = body.frame().await.expect("a frame").expect("no error");
        let trailers = frame.into_trailers().expect("trailers");
        let status = Status::from_header_map(&trailers).expect("a status");
        assert_eq!(status.code(), Code::Unavailable);
        assert!(!status.message().contains("h2"), "{}", status.message());
        assert_eq!(no_answer(told).await.code(), Code::Unavailable);
        drop(empty);

        let sent = send(&channel, request([&b"2"[..]]));
        let mut played = stage.play(Builder::new()).await;
        played.call().await.answer(Bytes::new());
        whole(sent).await;
    })
    .await;
}

#[tokio::test]
async fn calls_wait_for_a_stream_and_leave_it_when_they_are_given_up() {
    bounded(async {
        let stage = Stage::new().await;
        let channel = stage.channel();
        let one = Builder::new().max_concurrent_streams(1).clone();
        // By its answer the limit is known.
        let sent = send(&channel, request([&b"0"[..]]));
        let mut played = stage.play(one).await;
        played.call().await.answer(Bytes::new());
        whole(sent).await;

        let first = send(&channel, request([&b"1"[..]]));
        let under_way = played.call().await;
        let mut waiting: Vec<_> = (0..5).map(|_| send(&channel, request([&b"2"[..]]))).collect();
        tokio::task::yield_now().await;
        drop(waiting.split_off(3));
        assert!(!played.has_call(), "one at a time");
        drop(first);
        assert_eq!(under_way.given_up().await, h2::Reason::CANCEL);
        for _ in 0..3 {
            let call = played.call().await;
            assert!(!played.has_call(), "one at a time");
            call.answer(Bytes::from_static(b"b"));
        }
        for sent in waiting {
            assert_eq!(whole(sent).await, "b");
        }
    })
    .await;
}

#[tokio::test]
async fn large_bodies_pass_through_small_windows_both_ways() {
    bounded(async {
        let stage = Stage::new().await;
        let part: &'static [u8] = Box::leak(vec![7; 100_000].into_boxed_slice());
        let sent = send(&stage.channel(), request(std::iter::repeat_n(part, 60)));
        let mut played = stage.play(Builder::new()).await;
        let mut call = played.call().await;
        let all = call.read().await;
        assert_eq!(all.len(), 6_000_000);
        let answer = call.respond.send_response(Response::new(()), false);
        let mut stream = answer.expect("open");
        // More than the windows hold, and nobody reads it yet.
        stream.send_data(all.into(), false).expect("open");
        stream.send_trailers(ok()).expect("open");
        assert_eq!(whole(sent).await.len(), 6_000_000);
    })
    .await;
}

#[tokio::test]
async fn large_answers_that_nobody_reads_hold_back_no_others() {
    bounded(async {
        let stage = Stage::new().await;
        let channel = stage.channel();
        let large = Bytes::from(vec![7; 3_000_000]);
        let first = send(&channel, request([&b"1"[..]]));
        let mut played = stage.play(Builder::new()).await;
        played.call().await.answer(large.clone());
        let mut unread = vec![first.await.expect("no panic").expect("an answer")];
        for _ in 0..40 {
            let sent = send(&channel, request([&b"1"[..]]));
            played.call().await.answer(large.clone());
            unread.push(sent.await.expect("no panic").expect("an answer"));
        }
        let sent = send(&channel, request([&b"2"[..]]));
        played.call().await.answer(large.clone());
        assert_eq!(whole(sent).await.len(), large.len());
        drop(unread);
    })
    .await;
}

#[tokio::test]
async fn both_sides_talk_at_once() {
    bounded(async {
        let stage = Stage::new().await;
        let (say, said) = mpsc::unbounded_channel::<Result<Frame<Bytes>, Status>>();
        let body = Body::new(StreamBody::new(UnboundedReceiverStream::new(said)));
        let sent = send(&stage.channel(), with_body(body));
        let mut played = stage.play(Builder::new()).await;
        let mut call = played.call().await;
        let answer = call.respond.send_response(Response::new(()), false);
        let mut stream = answer.expect("open");
        let mut answer = sent.await.expect("no panic").expect("headers").into_body();
        for round in ["one", "two", "three"] {
            say.send(Ok(Frame::data(round.into()))).expect("a reader");
            let heard = call.request.body_mut().data().await.expect("more");
            assert_eq!(heard.expect("no error"), round);
            stream.send_data(round.into(), false).expect("open");
            let frame = answer.frame().await.expect("a frame").expect("no error");
            assert_eq!(frame.into_data().expect("data"), round);
        }
        drop(say);
        assert!(call.read().await.is_empty(), "half closed");
        stream.send_trailers(ok()).expect("open");
        let frame = answer.frame().await.expect("a frame").expect("no error");
        assert_eq!(frame.into_trailers().expect("trailers"), ok());
        assert!(answer.frame().await.is_none());
    })
    .await;
}

#[tokio::test]
async fn an_answer_of_headers_ends_the_call_and_the_upload() {
    bounded(async {
        let stage = Stage::new().await;
        let (say, said) = mpsc::unbounded_channel::<Result<Frame<Bytes>, Status>>();
        let body = Body::new(StreamBody::new(UnboundedReceiverStream::new(said)));
        let sent = send(&stage.channel(), with_body(body));
        let mut played = stage.play(Builder::new()).await;
        let mut call = played.call().await;
        let mut refusal = Response::new(());
        *refusal.headers_mut() = ok();
        call.respond.send_response(refusal, true).expect("open");
        let response = sent.await.expect("no panic").expect("headers");
        assert!(http_body::Body::is_end_stream(response.body()));
        say.closed().await;
    })
    .await;
}

#[tokio::test]
async fn who_is_silent_on_a_new_connection_cant_be_reached() {
    bounded(async {
        let stage = Stage::new().await;
        let authority = Certificates::new();
        let config = ClientConfig {
            connect_timeout: Duration::from_millis(50),
            tls: ClientTlsConfig {
                ca: authority.ca(),
                ..ClientTlsConfig::default()
            },
            ..ClientConfig::default()
        };
        let uri = format!("https://{}", stage.address());
        let channel = Channel::new("order", &uri.parse().expect("an address"), &config).expect("good files");
        // Whoever comes next tries again.
        for _ in 0..2 {
            let sent = send(&channel, request([&b"1"[..]]));
            let silent = stage.connected().await;
            let status = no_answer(sent).await;
            assert_eq!(status.code(), Code::Unavailable);
            let words = chain(&status);
            assert!(words.ends_with("no connection in 50ms"), "{words}");
            drop(silent);
        }
    })
    .await;
}

#[tokio::test]
async fn an_attempt_that_failed_unseen_is_no_answer_to_a_later_call() {
    bounded(async {
        let stage = Stage::new().await;
        let authority = Certificates::new();
        let config = ClientConfig {
            connect_timeout: Duration::from_secs(1),
            tls: ClientTlsConfig {
                ca: authority.ca(),
                ..ClientTlsConfig::default()
            },
            ..ClientConfig::default()
        };
        let uri = format!("https://{}", stage.address());
        let channel = Channel::new("order", &uri.parse().expect("an address"), &config).expect("good files");
        let hurried = send(&channel, within("10m", request([&b"1"[..]])));
        let mut silent = stage.connected().await;
        late(hurried).await;
        // Its end is the attempt's.
        let hello = silent.read_to_end(&mut Vec::new()).await;
        hello.expect("whoever dialled hangs up");

        let (cert, key) = authority.issue("server", &["127.0.0.1"]);
        let files = ServerTlsConfig {
            cert,
            key,
            ..ServerTlsConfig::default()
        };
        let acceptor = Acceptor::new(&files).expect("good files").expect("TLS");
        let sent = send(&channel, request([&b"2"[..]]));
        let (io, _) = acceptor
            .accept(stage.connected().await, false)
            .await
            .expect("TLS");
        let mut played = played(io, Builder::new()).await;
        played.call().await.answer(Bytes::new());
        whole(sent).await;
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_is_dropped_ends_the_upload() {
    bounded(async {
        let stage = Stage::new().await;
        let (say, said) = mpsc::unbounded_channel::<Result<Frame<Bytes>, Status>>();
        let body = Body::new(StreamBody::new(UnboundedReceiverStream::new(said)));
        let sent = send(&stage.channel(), with_body(body));
        let mut played = stage.play(Builder::new()).await;
        let mut call = played.call().await;
        let stream = call.respond.send_response(Response::new(()), false);
        let mut stream = stream.expect("open");
        drop(sent.await.expect("no panic").expect("headers"));
        say.closed().await;
        let reset = poll_fn(|cx| stream.poll_reset(cx)).await;
        assert_eq!(reset.expect("a reset"), h2::Reason::CANCEL);
    })
    .await;
}

#[tokio::test]
async fn a_request_that_breaks_off_isnt_the_servers_fault() {
    bounded(async {
        let stage = Stage::new().await;
        let (say, said) = mpsc::unbounded_channel();
        let body = Body::new(StreamBody::new(UnboundedReceiverStream::new(said)));
        let sent = send(&stage.channel(), with_body(body));
        let mut played = stage.play(Builder::new()).await;
        let call = played.call().await;
        say.send(Ok(Frame::data(Bytes::from_static(b"some"))))
            .expect("a reader");
        say.send(Err(Status::cancelled("the caller went away")))
            .expect("a reader");
        match sent.await.expect("no panic") {
            Err(CallError::Request(status)) => assert_eq!(status.code(), Code::Cancelled),
            other => panic!("{other:?}"),
        }
        assert_eq!(call.given_up().await, h2::Reason::CANCEL);
    })
    .await;
}

#[tokio::test]
async fn a_call_ends_when_its_time_is_over() {
    bounded(async {
        let stage = Stage::new().await;
        let sent = send(&stage.channel(), within("50m", request([&b"1"[..]])));
        let mut played = stage.play(Builder::new()).await;
        let call = played.call().await;
        let status = late(sent).await;
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert!(status.message().contains("order"), "{}", status.message());
        assert_eq!(call.given_up().await, h2::Reason::CANCEL);
    })
    .await;
}
