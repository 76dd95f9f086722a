//! Messages of answers as JSON.

use prost_reflect::{DynamicMessage, MessageDescriptor};
use souk_chassis::status::StatusBuilder;
use tonic::Status;

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
