//! Reads the messages of a response, and its end.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream, StreamExt as _};
use http::HeaderMap;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use souk_chassis::layers::messages::take_plain;
use souk_chassis::status::{GRPC_STATUS, StatusBuilder, status_in};
use tonic::body::Body;
use tonic::{Code, Status};

use super::metadata;
use crate::one_message::in_turn;

pub(crate) enum MessageOrEnd {
    Message(Bytes),
    /// The error, if the call failed, and the trailers for the client.
    End(Option<Status>, HeaderMap),
}

/// Reads a body of frames, to [`MessageOrEnd::End`]. The call holds its place until this is dropped.
pub(crate) struct Messages {
    pub(super) body: Body,
    buffer: BytesMut,
    bytes_max: usize,
    /// The status was in the headers, and was OK.
    trailers_only: bool,
}

impl Messages {
    /// The messages of `body`, each of at most `bytes_max` bytes, which follows `headers`.
    pub(crate) fn new(headers: &HeaderMap, body: Body, bytes_max: usize) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
            bytes_max,
            trailers_only: headers.contains_key(GRPC_STATUS),
        }
    }

    /// The next message, or the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> MessageOrEnd {
        let error = |status| MessageOrEnd::End(Some(status), HeaderMap::new());
        loop {
            match take_plain(&mut self.buffer, self.bytes_max) {
                Ok(Some(message)) => return MessageOrEnd::Message(message),
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
                        return MessageOrEnd::End(status_in(&trailers), metadata(&trailers));
                    }
                },
                Some(Err(status)) => return error(status),
                None if self.trailers_only => return MessageOrEnd::End(None, HeaderMap::new()),
                None => {
                    let message = "the service ended its stream without a status";
                    return error(StatusBuilder::internal(message).build());
                }
            }
        }
    }

    /// The end of a unary response, after its message.
    pub(super) async fn end(&mut self) -> (Option<Status>, HeaderMap) {
        match self.next().await {
            MessageOrEnd::End(status, trailers) => (status, trailers),
            MessageOrEnd::Message(_) => {
                let status = StatusBuilder::internal("the service answered with more than one message");
                (Some(status.build()), HeaderMap::new())
            }
        }
    }

    /// A response body in another form: `write` makes a frame of each message, `end` one of the error, if there is one, and the
    /// trailers. The `heartbeat` is sent whenever nothing else was for its time.
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
        // After the end the messages are kept until the next poll, and with them what the call holds.
        let frames = stream::unfold((self, end, false), move |(mut messages, end, ended)| {
            let write = write.clone();
            async move {
                if ended {
                    return None;
                }
                let (frame, ended) = match messages.next().await {
                    MessageOrEnd::Message(message) => {
                        match in_turn(message.len(), move || write(&message)).await {
                            Ok(frame) => (frame, false),
                            Err(status) => (end(Some(&status), &HeaderMap::new()), true),
                        }
                    }
                    MessageOrEnd::End(status, trailers) => (end(status.as_ref(), &trailers), true),
                };
                Some((frame, (messages, end, ended)))
            }
        });
        let Some((silence, heartbeat)) = heartbeat else {
            return body(frames);
        };
        body(stream::unfold(Box::pin(frames), move |mut frames| async move {
            let frame = match tokio::time::timeout(silence, frames.next()).await {
                Ok(frame) => frame?,
                Err(_) => Bytes::from_static(heartbeat),
            };
            Some((frame, frames))
        }))
    }
}

fn body(frames: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    Body::new(StreamBody::new(
        frames.map(|frame| Ok::<_, Status>(Frame::data(frame))),
    ))
}

/// The refusal of an answer beyond the limit.
pub(crate) fn too_large(bytes_max: usize) -> Status {
    let message = format!("the answer has more than {bytes_max} bytes; ask for less at a time");
    let refusal = StatusBuilder::resource_exhausted("ANSWER_TOO_LARGE", message);
    refusal.metadata("limit_bytes", bytes_max).build()
}
