//! The messages of an answer, one after the other, and how it ended.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http::HeaderMap;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use souk_chassis::layers::messages::take_plain;
use souk_chassis::status::{GRPC_STATUS, StatusBuilder, status_in};
use tonic::body::Body;
use tonic::{Code, Status};

use super::metadata;
use crate::one_message::in_turn;

pub(crate) enum Next {
    Message(Bytes),
    /// The end: with an error, if it is one, and with what came behind the messages for the client.
    End(Option<Status>, HeaderMap),
}

/// Reads a body of frames. After [`Next::End`] it isn't asked any more; until it is dropped, the call holds its place.
pub(crate) struct Messages {
    body: Body,
    buffer: BytesMut,
    bytes_max: usize,
    /// Whether the headers have said already that the call went well.
    told: bool,
}

impl Messages {
    /// The messages of `body`, each of at most `bytes_max` bytes, behind `headers`.
    pub(crate) fn new(headers: &HeaderMap, body: Body, bytes_max: usize) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
            bytes_max,
            told: headers.contains_key(GRPC_STATUS),
        }
    }

    /// The next message, or the end. Nothing is lost when nobody waits for it any more.
    pub(crate) async fn next(&mut self) -> Next {
        let error = |status| Next::End(Some(status), HeaderMap::new());
        loop {
            match take_plain(&mut self.buffer, self.bytes_max) {
                Ok(Some(message)) => return Next::Message(message),
                Ok(None) => {}
                Err(status) if status.code() == Code::ResourceExhausted => {
                    return error(too_large(self.bytes_max));
                }
                Err(status) => return error(status),
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        return Next::End(status_in(&trailers), metadata(&trailers));
                    }
                },
                Some(Err(status)) => return error(status),
                None if self.told => return Next::End(None, HeaderMap::new()),
                None => {
                    let message = "the service ended its stream without a status";
                    return error(StatusBuilder::internal(message).build());
                }
            }
        }
    }

    /// The end, behind the only message.
    pub(super) async fn end(&mut self) -> (Option<Status>, HeaderMap) {
        match self.next().await {
            Next::End(status, trailers) => (status, trailers),
            Next::Message(_) => {
                let status = StatusBuilder::internal("the service answered with more than one message");
                (Some(status.build()), HeaderMap::new())
            }
        }
    }

    /// What was read, without what is left of its bytes.
    pub(super) fn into_body(self) -> Body {
        self.body
    }

    /// A body of the messages as `write` makes them, and of what `end` makes of their end: its error, if it is one, and what came behind
    /// them for the client. After a silence it sends the `heartbeat` of that time.
    pub(crate) fn rewritten<W, E>(
        self,
        write: W,
        end: E,
        heartbeat: Option<(Duration, &'static [u8])>,
    ) -> Body
    where
        W: Fn(&[u8]) -> Result<Bytes, Status> + Clone + Send + 'static,
        E: Fn(Option<&Status>, &HeaderMap) -> Bytes + Send + 'static,
    {
        let rewriting = Rewriting {
            messages: self,
            write,
            end,
            heartbeat,
            writing: None,
            ended: false,
        };
        let frames = stream::unfold(rewriting, |mut rewriting| async move {
            let frame = Frame::data(rewriting.next().await?);
            Some((Ok::<_, Status>(frame), rewriting))
        });
        Body::new(StreamBody::new(frames))
    }
}

struct Rewriting<W, E> {
    messages: Messages,
    write: W,
    end: E,
    heartbeat: Option<(Duration, &'static [u8])>,
    /// A message that was read, while it is written.
    writing: Option<BoxFuture<'static, Result<Bytes, Status>>>,
    /// The end was given. The messages are kept, and with them what the call holds, until nobody asks any more.
    ended: bool,
}

impl<W, E> Rewriting<W, E>
where
    W: Fn(&[u8]) -> Result<Bytes, Status> + Clone + Send + 'static,
    E: Fn(Option<&Status>, &HeaderMap) -> Bytes,
{
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let written = match self.heartbeat {
            None => self.message().await,
            Some((silence, heartbeat)) => match tokio::time::timeout(silence, self.message()).await {
                Ok(written) => written,
                Err(_) => return Some(Bytes::from_static(heartbeat)),
            },
        };
        Some(written.unwrap_or_else(|(status, trailers)| {
            self.ended = true;
            (self.end)(status.as_ref(), &trailers)
        }))
    }

    /// The next message, or the end. Nothing is lost when nobody waits for it any more.
    async fn message(&mut self) -> Result<Bytes, (Option<Status>, HeaderMap)> {
        let writing = match &mut self.writing {
            Some(writing) => writing,
            None => match self.messages.next().await {
                Next::Message(message) => {
                    let (write, bytes) = (self.write.clone(), message.len());
                    let written = in_turn(bytes, move || write(&message));
                    self.writing.insert(written.boxed())
                }
                Next::End(status, trailers) => return Err((status, trailers)),
            },
        };
        let written = writing.await;
        self.writing = None;
        written.map_err(|status| (Some(status), HeaderMap::new()))
    }
}

/// The refusal of an answer beyond the limit.
pub(crate) fn too_large(bytes_max: usize) -> Status {
    let message = format!("the answer has more than {bytes_max} bytes; ask for less at a time");
    StatusBuilder::resource_exhausted("ANSWER_TOO_LARGE", message)
        .metadata("limit_bytes", bytes_max)
        .build()
}
