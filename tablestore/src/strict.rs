//! Messages of requests are looked at before prost decodes them: prost takes a required field that isn't there for its default,
//! so that the beginning of a request could be taken for another request, and makes a hundred bytes of memory of two.

use bytes::{Buf as _, Bytes};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};

use crate::error::Reason;
use crate::limits;

include!(concat!(env!("OUT_DIR"), "/shapes.rs"));

/// What is known of a message: the numbers of fields that have to be there, and of those that are messages, with their shapes.
struct Shape {
    required: &'static [u32],
    messages: &'static [(u32, usize)],
}

/// A message whose required fields are known.
pub trait Strict: Message + Default {
    /// Its place in the table of shapes.
    #[doc(hidden)]
    const SHAPE: usize;
}

/// Why bytes are no such message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedMessage {
    /// They end too early, or are none at all.
    #[error("no message")]
    Bytes,
    /// A field that has to be there isn't.
    #[error("field {0} isn't there")]
    Required(u32),
    /// It is larger than [`limits::MAX_MESSAGE_FIELDS`].
    #[error("more than {} fields", limits::MAX_MESSAGE_FIELDS)]
    Fields,
    /// It is deeper than [`limits::MAX_MESSAGE_DEPTH`].
    #[error("more than {} levels of messages", limits::MAX_MESSAGE_DEPTH)]
    Depth,
}

impl From<MalformedMessage> for Reason {
    fn from(_: MalformedMessage) -> Self {
        Self::MalformedMessage
    }
}

/// Reads a message. Bytes within it share the memory of the whole.
///
/// # Errors
/// The bytes are no such message, or are larger or deeper than a request is.
pub fn decode<M: Strict>(bytes: Bytes) -> Result<M, MalformedMessage> {
    decode_counted(bytes, &mut 0)
}

/// [`decode`], for one of several messages whose `fields` are limited together.
pub(crate) fn decode_counted<M: Strict>(bytes: Bytes, fields: &mut usize) -> Result<M, MalformedMessage> {
    check(&bytes, M::SHAPE, 1, fields)?;
    M::decode(bytes).map_err(|_| MalformedMessage::Bytes)
}

fn check(mut bytes: &[u8], shape: usize, depth: usize, fields: &mut usize) -> Result<(), MalformedMessage> {
    let shape = SHAPES.get(shape).ok_or(MalformedMessage::Bytes)?;
    if depth > limits::MAX_MESSAGE_DEPTH {
        return Err(MalformedMessage::Depth);
    }
    // No message has more required fields than a mask has bits.
    let mut seen = 0_u64;
    while !bytes.is_empty() {
        *fields += 1;
        if *fields > limits::MAX_MESSAGE_FIELDS {
            return Err(MalformedMessage::Fields);
        }
        let (number, wire) = decode_key(&mut bytes).map_err(|_| MalformedMessage::Bytes)?;
        let length = match wire {
            WireType::Varint => {
                decode_varint(&mut bytes).map_err(|_| MalformedMessage::Bytes)?;
                0
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => decode_varint(&mut bytes).map_err(|_| MalformedMessage::Bytes)?,
            // The contract has none, and prost would look for their ends.
            WireType::StartGroup | WireType::EndGroup => return Err(MalformedMessage::Bytes),
        };
        let length = usize::try_from(length).map_err(|_| MalformedMessage::Bytes)?;
        let value = bytes.get(..length).ok_or(MalformedMessage::Bytes)?;
        if wire == WireType::LengthDelimited
            && let Some((_, inner)) = shape.messages.iter().find(|(message, _)| *message == number)
        {
            check(value, *inner, depth + 1, fields)?;
        }
        bytes.advance(length);
        if let Some(at) = shape.required.iter().position(|required| *required == number) {
            seen |= 1 << at;
        }
    }
    for (at, number) in shape.required.iter().enumerate() {
        if seen & (1 << at) == 0 {
            return Err(MalformedMessage::Required(*number));
        }
    }
    Ok(())
}
