//! A server for the tests of the client, played by the test call by call.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::Channel;
use crate::config::ClientConfig;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ends a test that would wait forever.
pub(crate) async fn bounded<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, test).await.expect("it ends")
}

/// Waits for connections.
pub(crate) struct Stage(TcpListener);

impl Stage {
    pub(crate) async fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.expect("a free port"))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("an address")
    }

    pub(crate) fn channel(&self) -> Channel {
        let uri = format!("http://{}", self.address()).parse().expect("an address");
        Channel::new("order", &uri, &ClientConfig::default()).expect("an address")
    }

    /// The next connection, nothing said on it.
    pub(crate) async fn connected(&self) -> TcpStream {
        self.0.accept().await.expect("a connection").0
    }

    /// The next connection, of HTTP/2.
    pub(crate) async fn play(&self, settings: Builder) -> Played {
        played(self.connected().await, settings).await
    }
}

/// What the server does to a connection.
#[derive(Debug)]
pub(crate) enum Order {
    /// Asks for no more calls on it.
    Leave,
    /// Ends it in the middle.
    Cut,
}

/// A call as the server has it.
pub(crate) struct Call {
    pub(crate) request: Request<RecvStream>,
    pub(crate) respond: SendResponse<Bytes>,
}

/// A connection as the server has it.
pub(crate) struct Played {
    calls: mpsc::UnboundedReceiver<Call>,
    pub(crate) orders: mpsc::UnboundedSender<Order>,
    /// Ends with the connection.
    pub(crate) task: JoinHandle<()>,
}

/// Plays the server at the other end of `io`.
pub(crate) async fn played<T>(io: T, settings: Builder) -> Played
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut connection = settings.handshake::<_, Bytes>(io).await.expect("HTTP/2");
    let (came, calls) = mpsc::unbounded_channel();
    let (orders, mut ordered) = mpsc::unbounded_channel();
    let task = tokio::spawn(async move {
        loop {
            tokio::select! {
                call = connection.accept() => match call {
                    Some(Ok((request, respond))) => {
                        let _ = came.send(Call { request, respond });
                    }
                    _ => return,
                },
                Some(order) = ordered.recv() => match order {
                    Order::Leave => connection.graceful_shutdown(),
                    Order::Cut => return,
                },
            }
        }
    });
    Played { calls, orders, task }
}

impl Played {
    pub(crate) async fn call(&mut self) -> Call {
        self.calls.recv().await.expect("a call")
    }

    /// Has another call come so far?
    pub(crate) fn has_call(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(crate) fn order(&self, order: Order) {
        self.orders.send(order).expect("a connection");
    }
}

impl Call {
    /// The whole request.
    pub(crate) async fn read(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(part) = self.request.body_mut().data().await {
            let part = part.expect("a request");
            self.request
                .body_mut()
                .flow_control()
                .release_capacity(part.len())
                .expect("not more than came");
            all.extend(part);
        }
        all
    }

    /// Answers with `body` and OK.
    pub(crate) fn answer(mut self, body: Bytes) {
        let mut stream = self
            .respond
            .send_response(Response::new(()), false)
            .expect("open");
        stream.send_data(body, false).expect("open");
        stream.send_trailers(ok()).expect("open");
    }

    /// Waits until the client has given the call up.
    pub(crate) async fn given_up(mut self) -> Reason {
        poll_fn(|cx| self.respond.poll_reset(cx)).await.expect("a reset")
    }
}

/// The trailers of a call that went well.
pub(crate) fn ok() -> HeaderMap {
    HeaderMap::from_iter([(
        http::HeaderName::from_static("grpc-status"),
        http::HeaderValue::from_static("0"),
    )])
}
