//! Messages of the contract as JSON, as they are over HTTP: values may be written plainly.

use prost::Message;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use souk_gateway::json;
use souk_proto::FILE_DESCRIPTOR_SET;

/// The contract in this binary lacks a message.
#[derive(Debug, thiserror::Error)]
#[error("the contract in this binary lacks {message}")]
pub struct ContractError {
    message: &'static str,
}

/// Reads and writes messages of one kind.
#[derive(Clone, Debug)]
pub struct MessageJson {
    kind: MessageDescriptor,
}

impl MessageJson {
    /// Of the message of this full name.
    ///
    /// # Errors
    /// When it isn't in the contract.
    pub fn of(message: &'static str) -> Result<Self, ContractError> {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).ok();
        let kind = pool.and_then(|pool| pool.get_message_by_name(message));
        Ok(Self {
            kind: kind.ok_or(ContractError { message })?,
        })
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong, with the path of a field, or with line and column.
    pub fn read<M: Message + Default>(&self, json: &[u8]) -> Result<M, String> {
        let read = json::parse(self.kind.clone(), json).map_err(|status| status.message().to_owned())?;
        M::decode(read.encode_to_vec().as_slice()).map_err(|error| error.to_string())
    }

    /// Writes one in a line, without its end.
    ///
    /// # Errors
    /// When it isn't a message of this kind.
    pub fn write(&self, message: &impl Message) -> Result<String, String> {
        let written = json::as_json(self.kind.clone(), &message.encode_to_vec());
        let (_, json) = written.map_err(|status| status.message().to_owned())?;
        String::from_utf8(json).map_err(|error| error.to_string())
    }
}
