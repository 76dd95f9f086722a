//! The messages of an answer, one after the other as their client reads them, and how it ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body as _;
use souk_chassis::layers::messages::take_plain;
use souk_chassis::status::{GRPC_STATUS, StatusBuilder};
use tonic::Status;
use tonic::body::Body;

use super::{metadata, status_of};
use crate::one_message::in_turn;

/// What comes next of an answer.
pub(crate) enum Next {
    /// A message, as it was written.
    Message(Bytes),
    /// The end; an error, if it is one.
    End {
        status: Option<Status>,
        /// What came behind the messages, for the client.
        trailers: HeaderMap,
    },
}

impl Next {
    /// The end by an error of the gateway's.
    fn error(status: Status) -> Self {
        Self::End {
            status: Some(status),
            trailers: HeaderMap::new(),
        }
    }
}

/// Makes of a plain message what its client reads.
type Write = dyn Fn(&[u8]) -> Result<Bytes, Status> + Send + Sync;

/// Reads a body of frames. After [`Next::End`] it isn't asked any more; until it is dropped, the call holds its place.
pub(crate) struct Messages {
    body: Body,
    buffer: BytesMut,
    bytes_max: usize,
    write: Arc<Write>,
    writing: Option<Pin<Box<dyn Future<Output = Result<Bytes, Status>> + Send>>>,
    /// Whether the headers have said already that the call went well.
    told: bool,
}

impl Messages {
    /// The messages of `body`, each of at most `bytes_max` bytes, behind `headers`, as `write` writes them.
    pub(crate) fn new(
        headers: &HeaderMap,
        body: Body,
        bytes_max: usize,
        write: impl Fn(&[u8]) -> Result<Bytes, Status> + Send + Sync + 'static,
    ) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
            bytes_max,
            write: Arc::new(write),
            writing: None,
            told: headers.contains_key(GRPC_STATUS),
        }
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            if let Some(writing) = &mut self.writing {
                let written = ready!(writing.as_mut().poll(cx));
                self.writing = None;
                return Poll::Ready(written.map_or_else(Next::error, Next::Message));
            }
            match take_plain(&mut self.buffer, self.bytes_max) {
                Ok(Some(message)) => {
                    let write = Arc::clone(&self.write);
                    self.writing = Some(Box::pin(in_turn(message.len(), move || write(message.as_ref()))));
                    continue;
                }
                Ok(None) => {}
                Err(status) => return Poll::Ready(Next::error(status)),
            }
            let next = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        self.buffer.extend_from_slice(&data);
                        continue;
                    }
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        Next::End {
                            status: status_of(&trailers),
                            trailers: metadata(&trailers),
                        }
                    }
                },
                Poll::Ready(Some(Err(status))) => Next::error(status),
                Poll::Ready(None) if self.told => Next::End {
                    status: None,
                    trailers: HeaderMap::new(),
                },
                Poll::Ready(None) => Next::error(
                    StatusBuilder::internal("the service ended its stream without a status").build(),
                ),
            };
            return Poll::Ready(next);
        }
    }
}
