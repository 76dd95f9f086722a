//! The messages of an answer, one after the other, and how it ended.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use souk_chassis::layers::messages::take_plain;
use souk_chassis::status::{GRPC_STATUS, StatusBuilder};
use tonic::body::Body;
use tonic::{Code, Status};

use super::{metadata, status_of};

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
                        return Next::End(status_of(&trailers), metadata(&trailers));
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
}

/// The refusal of an answer beyond the limit.
pub(crate) fn too_large(bytes_max: usize) -> Status {
    let message = format!("the answer has more than {bytes_max} bytes; ask for less at a time");
    StatusBuilder::resource_exhausted("ANSWER_TOO_LARGE", message)
        .metadata("limit_bytes", bytes_max)
        .build()
}
