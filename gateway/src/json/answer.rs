//! Answers of unary calls: one message, read to its end, as JSON.

use http::Response;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use souk_chassis::layers::messages::Encoding;
use souk_chassis::status::StatusBuilder;
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;

use crate::answer::{Content, JSON, Unary, error};

pub(crate) async fn unary(
    response: Response<Body>,
    kind: MessageDescriptor,
    pool: &DescriptorPool,
    bytes_max: usize,
    encoding: Option<Encoding>,
    ends: Instant,
) -> Response<Body> {
    let answer = Unary::read(response, bytes_max, Some(ends)).await;
    let written = match answer.message {
        Ok(message) => Content::of(message, |message| as_json(kind, message), encoding, ends).await,
        Err(status) => Err(status),
    };
    match written {
        Ok(json) => json.answer(answer.metadata, JSON, answer.body),
        Err(status) => {
            let mut response = error::response(pool, &status);
            response.headers_mut().extend(answer.metadata);
            response
        }
    }
}

/// An encoded message of an answer as JSON, in one line.
pub(crate) fn as_json(kind: MessageDescriptor, message: &[u8]) -> Result<Vec<u8>, Status> {
    write(&decode(kind, message)?)
}

pub(crate) fn decode(kind: MessageDescriptor, message: &[u8]) -> Result<DynamicMessage, Status> {
    DynamicMessage::decode(kind, message).map_err(|error| {
        StatusBuilder::internal("the answer of the service isn't of its contract")
            .source(error)
            .build()
    })
}

pub(crate) fn write(message: &DynamicMessage) -> Result<Vec<u8>, Status> {
    serde_json::to_vec(message).map_err(|error| {
        StatusBuilder::internal("the answer can't be written as JSON")
            .source(error)
            .build()
    })
}
