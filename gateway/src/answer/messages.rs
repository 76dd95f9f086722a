//! The messages of an answer, one after the other, and how it ended.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body as _;
use souk_chassis::layers::messages::take_plain;
use souk_chassis::status::{GRPC_STATUS, StatusBuilder};
use tonic::Status;
use tonic::body::Body;

use super::{metadata, status_of};

/// What comes next of an answer.
pub(crate) enum Next {
    /// A message, plain.
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

/// Reads a body of frames. After [`Next::End`] it isn't asked any more.
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

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            match take_plain(&mut self.buffer, self.bytes_max) {
                Ok(Some(message)) => return Poll::Ready(Next::Message(message)),
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
