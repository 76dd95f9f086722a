use std::time::Duration;

use h2::server::Builder as Server;
use http::Response;
use tokio::time::Instant;

use tonic::body::Body;

use super::*;
use crate::client::bodies::Wanted;
use crate::client::tests::stage::{bounded, played};

/// Bytes on the way in each direction.
const PIPE: usize = 64 * 1024;

/// With pings after 60 s, to be answered in 20.
async fn open(io: tokio::io::DuplexStream) -> hyper::Result<Connection> {
    Connection::open(io, &ClientConfig::default()).await
}

fn request() -> (Request<Upload>, Wanted) {
    let (upload, wanted) = Upload::new(Body::empty());
    let request = Request::post("http://order/test.Echo/Say").body(upload);
    (request.expect("a request"), wanted)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_pings_is_kept_while_idle() {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (connection, mut played) = tokio::join!(open(ours), played(theirs, Server::new()));
    let connection = connection.expect("a connection");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let (request, _wanted) = request();
    let answer = tokio::spawn(connection.send(request));
    let mut call = played.call().await;
    call.respond.send_response(Response::new(()), true).expect("open");
    answer.await.expect("no panic").expect("an answer");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_falls_silent_is_given_up_and_its_calls_end() {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let began = Instant::now();
    let connection = open(ours).await.expect("a connection");
    let (first, _wanted) = request();
    let error = tokio::time::timeout(Duration::from_secs(3600), connection.send(first)).await;
    let mut error = error.expect("it is given up").expect_err("no answer");
    assert!(error.take_message().is_none(), "it was sent");
    assert_eq!(began.elapsed(), Duration::from_secs(60 + 20));
    let (next, _wanted) = request();
    let mut error = connection.send(next).await.expect_err("it takes no more calls");
    assert!(error.take_message().is_some(), "nothing was sent");
    drop(theirs);
}

#[tokio::test]
async fn it_ends_when_nobody_wants_it() {
    bounded(async {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (connection, played) = tokio::join!(open(ours), played(theirs, Server::new()));
        drop(connection);
        played.task.await.expect("the server sees it end");
    })
    .await;
}

#[tokio::test]
async fn late_answers_to_calls_that_were_given_up_dont_end_it() {
    /// At a time. The last 50 are remembered, and 1,024 frames for others would be borne, were they counted.
    const CALLS: usize = 200;
    bounded(async {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (connection, mut played) = tokio::join!(open(ours), played(theirs, Server::new()));
        let connection = connection.expect("a connection");
        for _ in 0..8 {
            let given_up = [(); CALLS].map(|()| {
                let (request, wanted) = request();
                (connection.send(request), wanted)
            });
            let mut late = Vec::new();
            while late.len() < CALLS {
                late.push(played.call().await);
            }
            drop(given_up);
            for call in &mut late {
                call.respond.send_response(Response::new(()), true).expect("open");
            }
        }
        let (request, _wanted) = request();
        let answer = tokio::spawn(connection.send(request));
        let mut call = played.call().await;
        call.respond.send_response(Response::new(()), true).expect("open");
        answer.await.expect("no panic").expect("an answer");
    })
    .await;
}
