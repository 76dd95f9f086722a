//! Connections in an attacker's hands: HTTP/2 without the restraint of a gRPC client, and HTTP/1.1 in bytes.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Method, Request, Response, Uri};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Status};

use super::outcome::{OVER_RATE, Outcome};

/// Time in which something comes of what was sent.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Call {
    request: Request<()>,
    /// None: it never comes.
    body: Option<Bytes>,
}

impl Call {
    /// A call by gRPC, of a message with its frame.
    pub(super) fn grpc(path: &str, message: Bytes) -> Self {
        let call = Self::http(Method::POST, "souk", path, Some(message));
        call.with("content-type", "application/grpc")
            .with("te", "trailers")
            .with("grpc-encoding", "gzip")
    }

    /// A call by gRPC of which no message ever comes.
    pub(super) fn without_body(path: &str) -> Self {
        Self {
            body: None,
            ..Self::grpc(path, Bytes::new())
        }
    }

    pub(super) fn http(method: Method, authority: &str, path: &str, body: Option<Bytes>) -> Self {
        let mut request = Request::new(());
        *request.method_mut() = method;
        let uri = Uri::builder()
            .scheme("http")
            .authority(authority)
            .path_and_query(path);
        *request.uri_mut() = uri.build().expect("a URI");
        Self {
            request,
            body: Some(body.unwrap_or_default()),
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.request
            .headers_mut()
            .insert(name, value.parse().expect("a header's value"));
        self
    }

    /// With an API key.
    pub(super) fn by(self, key: &str) -> Self {
        self.with("x-api-key", key)
    }
}

/// A connection of HTTP/2.
pub(super) struct Wire {
    send: SendRequest<Bytes>,
    _driver: AbortOnDropHandle<()>,
}

impl Wire {
    /// `None` when it isn't let in.
    pub(super) async fn open(from: Ipv4Addr, to: SocketAddr) -> Option<Self> {
        Self::with(from, to, &Builder::new()).await
    }

    /// One whose streams have no window: nobody takes what is sent on them.
    pub(super) async fn unread(from: Ipv4Addr, to: SocketAddr) -> Option<Self> {
        Self::with(from, to, Builder::new().initial_window_size(0)).await
    }

    async fn with(from: Ipv4Addr, to: SocketAddr, builder: &Builder) -> Option<Self> {
        let stream = connect(from, to).await?;
        let (send, connection) = timeout(PATIENCE, builder.handshake(stream)).await.ok()?.ok()?;
        let driver = tokio::spawn(async {
            // However it ends: its streams tell.
            let _ = connection.await;
        });
        Some(Self {
            send,
            _driver: AbortOnDropHandle::new(driver),
        })
    }

    /// Asks; `None` when the connection takes no more.
    pub(super) async fn ask(&mut self, call: &Call) -> Option<Asked> {
        let ready = timeout(PATIENCE, self.send.clone().ready()).await.ok()?;
        self.send = ready.ok()?;
        let ended = call.body.as_ref().is_some_and(Bytes::is_empty);
        let (answer, mut stream) = self.send.send_request(call.request.clone(), ended).ok()?;
        let unsent = match &call.body {
            None => Some(stream),
            Some(_) if ended => None,
            Some(body) => {
                // Whether it was still wanted the answer tells.
                let _ = stream.send_data(body.clone(), true);
                None
            }
        };
        Some(Asked {
            answer,
            _unsent: unsent,
            open: None,
        })
    }
}

/// A call under way; dropping it resets its stream.
pub(super) struct Asked {
    answer: ResponseFuture,
    /// Of a call without a body.
    _unsent: Option<SendStream<Bytes>>,
    open: Option<RecvStream>,
}

impl Asked {
    /// How it ends: with its whole answer.
    pub(super) async fn end(&mut self) -> Outcome {
        self.look(true).await
    }

    /// How it begins: a stream that has begun is open, and stays so.
    pub(super) async fn begin(&mut self) -> Outcome {
        self.look(false).await
    }

    async fn look(&mut self, to_the_end: bool) -> Outcome {
        let Ok(answer) = (&mut self.answer).await else {
            return Outcome::Cut;
        };
        match (told_at_once(&answer), to_the_end) {
            (Some(outcome), _) => outcome,
            (None, true) => read(answer).await,
            (None, false) => {
                self.open = Some(answer.into_body());
                Outcome::Open
            }
        }
    }
}

/// How a call ended whose headers are all of its answer.
fn told_at_once(answer: &Response<RecvStream>) -> Option<Outcome> {
    let grpc = answer
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    let status = Status::from_header_map(answer.headers()).filter(|_| grpc);
    status.as_ref().map(Outcome::of)
}

/// Reads an answer to its end.
async fn read(answer: Response<RecvStream>) -> Outcome {
    let (head, mut body) = answer.into_parts();
    let mut text = Vec::new();
    while let Some(part) = body.data().await {
        let Ok(part) = part else {
            return Outcome::Cut;
        };
        // A failure here is the next part's, too.
        let _ = body.flow_control().release_capacity(part.len());
        text.extend(part);
    }
    let Ok(trailers) = body.trailers().await else {
        return Outcome::Cut;
    };
    let status = trailers.as_ref().and_then(Status::from_header_map);
    match status {
        Some(status) => Outcome::of(&status),
        None if head.status == 429 && String::from_utf8_lossy(&text).contains(OVER_RATE) => Outcome::OverRate,
        None => Outcome::Http(head.status.as_u16()),
    }
}

/// A TCP connection from an address of this machine; `None` when it isn't let in.
async fn connect(from: Ipv4Addr, to: SocketAddr) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket: raise `ulimit -n`");
    socket.bind((from, 0).into()).expect("an address of 127.0.0.0/8");
    timeout(PATIENCE, socket.connect(to)).await.ok()?.ok()
}

/// A connection of HTTP/1.1 on which one call was made.
pub(super) struct Plain(TcpStream);

impl Plain {
    /// Asks for a path under the name of a host, and stays; with how it was answered.
    pub(super) async fn ask(
        from: Ipv4Addr,
        to: SocketAddr,
        host: &str,
        path: &str,
    ) -> (Option<Self>, Outcome) {
        let Some(mut stream) = connect(from, to).await else {
            return (None, Outcome::Cut);
        };
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        let mut head = [0; 12];
        let asked = async {
            stream.write_all(request.as_bytes()).await?;
            stream.read_exact(&mut head).await
        };
        let outcome = match timeout(PATIENCE, asked).await {
            Err(_) => Outcome::Silent,
            Ok(Err(_)) => Outcome::Cut,
            Ok(Ok(_)) => {
                let code = std::str::from_utf8(&head)
                    .ok()
                    .and_then(|head| head.get(9..)?.parse().ok());
                code.map_or(Outcome::Ended(Code::Unknown), Outcome::Http)
            }
        };
        (Some(Self(stream)), outcome)
    }

    /// Has the server closed it? What it has sent before is read.
    pub(super) fn is_cut(&self) -> bool {
        let mut read = [0; 4096];
        loop {
            match self.0.try_read(&mut read) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    }
}
