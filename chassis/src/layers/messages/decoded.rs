//! Estimates the memory of a decoded message from its bytes, before it is decoded.
//!
//! Two bytes can become a message of a thousand, so bytes alone bound nothing. One walk over the fields charges each with what its
//! [layout](super::layouts) says. What prost wouldn't decode ends the walk as it ends the decoding.

use std::sync::Arc;

use bytes::Buf as _;
use prost::encoding::{WireType, decode_key, decode_varint};
use tonic::Status;

use super::layouts::{Field, Layouts, NUMBER};
use crate::status::StatusBuilder;

/// Most memory that what stands in one message may take once it is decoded, in bytes. A list that grows takes up to three times its
/// part for a moment.
pub const DECODED_BYTES_MAX: usize = 32 * 1024 * 1024;

const DEPTH_MAX: usize = 100;

/// Least that a text takes that isn't empty, in bytes.
const TEXT_BYTES_MIN: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct MessageLimits {
    /// Most bytes of one.
    pub(super) bytes_max: usize,
    /// May there be more than one?
    pub(super) is_stream: bool,
    /// `None` where they aren't decoded.
    pub(super) decoded: Option<DecodedLimit>,
}

impl MessageLimits {
    /// The limit that a plain message of so many bytes may be beyond, so that it must be seen whole. The length of others says enough.
    pub(super) fn concerns(&self, bytes: usize) -> Option<&DecodedLimit> {
        let decoded = self.decoded.as_ref();
        decoded.filter(|decoded| decoded.layouts.most_of(bytes) > DECODED_BYTES_MAX)
    }

    /// Refuses (DECODED_TOO_LARGE) an uncompressed message, or the prefix of one, that would take too much memory.
    pub(super) fn check(&self, message: &[u8], is_whole: bool) -> Result<(), Status> {
        let limit = self.concerns(message.len());
        limit.map_or(Ok(()), |limit| limit.check(message, is_whole))
    }
}

#[derive(Clone, Debug)]
pub(super) struct DecodedLimit {
    layouts: Arc<Layouts>,
    shape: usize,
}

enum End {
    /// prost ends here, too.
    Malformed,
    TooLarge,
}

impl DecodedLimit {
    /// For the requests of the RPC at `path`; `None` where it isn't known, and so not decoded.
    pub(super) fn of(layouts: &Arc<Layouts>, path: &str) -> Option<Self> {
        let (layouts, shape) = (Arc::clone(layouts), layouts.request(path)?);
        Some(Self { layouts, shape })
    }

    /// Refuses a message, or the first bytes of one, that would take too much.
    fn check(&self, mut bytes: &[u8], is_whole: bool) -> Result<(), Status> {
        let mut walk = Walk {
            layouts: &self.layouts,
            left: DECODED_BYTES_MAX,
            is_whole,
        };
        match walk.message(self.shape, &mut bytes, 0, 0) {
            Err(End::TooLarge) => Err(too_large(DECODED_BYTES_MAX)),
            // What is malformed is refused where it is decoded.
            Ok(()) | Err(End::Malformed) => Ok(()),
        }
    }
}

struct Walk<'a> {
    layouts: &'a Layouts,
    /// What it may still take, in bytes.
    left: usize,
    is_whole: bool,
}

impl Walk<'_> {
    /// Takes what a message of `shape` takes from what is left, and moves on until `rest` bytes of `buffer` are left. As in prost, a
    /// part may reach beyond the message that it begins in: only when it has been decoded that is noticed.
    fn message(&mut self, shape: usize, buffer: &mut &[u8], rest: usize, depth: usize) -> Result<(), End> {
        let shape = self.layouts.get(shape).ok_or(End::Malformed)?;
        if depth > DEPTH_MAX {
            return Err(End::Malformed);
        }
        // Groups are of fields that aren't known: all in them is skipped.
        let mut groups = 0_usize;
        let mut entries_of = None;
        while buffer.len() > rest {
            let (number, wire_type) = decode_key(buffer).map_err(|_| End::Malformed)?;
            let field = shape.get(&number).copied().filter(|_| groups == 0);
            let bytes = match wire_type {
                WireType::StartGroup => {
                    groups += 1;
                    continue;
                }
                WireType::EndGroup => {
                    groups = groups.checked_sub(1).ok_or(End::Malformed)?;
                    continue;
                }
                WireType::Varint => {
                    decode_varint(buffer).map_err(|_| End::Malformed)?;
                    0
                }
                WireType::SixtyFourBit => 8,
                WireType::ThirtyTwoBit => 4,
                WireType::LengthDelimited => {
                    let length = decode_varint(buffer).map_err(|_| End::Malformed)?;
                    usize::try_from(length).map_err(|_| End::Malformed)?
                }
            };
            let delimited = wire_type == WireType::LengthDelimited;
            let (taken, inner) = match field {
                Some(Field::Message { shape, bytes }) if delimited => (bytes, Some(shape)),
                Some(Field::Entry { shape, bytes, first }) if delimited => {
                    let follows = entries_of.replace(number) == Some(number);
                    (if follows { bytes } else { first }, Some(shape))
                }
                Some(Field::Text { bytes: besides }) if delimited => {
                    let text = if bytes == 0 { 0 } else { bytes.max(TEXT_BYTES_MIN) };
                    (besides.saturating_add(text), None)
                }
                Some(Field::Numbers) if delimited => (bytes.saturating_mul(NUMBER), None),
                Some(Field::Numbers) => (NUMBER, None),
                _ => (0, None),
            };
            let behind = match buffer.len().checked_sub(bytes) {
                Some(behind) => behind,
                // The rest of it hasn't arrived.
                None if inner.is_some() && !self.is_whole => 0,
                None => return Err(End::Malformed),
            };
            self.left = self.left.checked_sub(taken).ok_or(End::TooLarge)?;
            match inner {
                Some(shape) => self.message(shape, buffer, behind, depth + 1)?,
                None => buffer.advance(bytes),
            }
        }
        if buffer.len() == rest {
            Ok(())
        } else {
            Err(End::Malformed)
        }
    }
}

/// The refusal of what would take more memory than `bytes_max`; also for messages in other forms.
pub fn too_large(bytes_max: usize) -> Status {
    let message = format!(
        "what stands in the message would take more than {bytes_max} bytes of memory once it is decoded; send fewer elements at a time"
    );
    let refusal = StatusBuilder::resource_exhausted("DECODED_TOO_LARGE", message);
    refusal.metadata("limit_bytes", bytes_max).build()
}

#[cfg(test)]
pub(super) mod testing;

#[cfg(test)]
mod tests {
    use prost::encoding::{encode_key, encode_varint};

    use super::*;

    /// Of the RPC whose request is `Outer`: `list` (1), `text` (2), `numbers` (3), `map` (4), `inner` (5), all but the last repeated.
    fn limit() -> DecodedLimit {
        let layouts = Layouts::read(&[&testing::contract()]).expect("descriptors");
        DecodedLimit::of(&Arc::new(layouts), testing::PATH).expect("a known RPC")
    }

    fn record(number: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_key(number, WireType::LengthDelimited, &mut bytes);
        encode_varint(content.len() as u64, &mut bytes);
        bytes.extend_from_slice(content);
        bytes
    }

    fn is_refused(message: &[u8]) -> bool {
        limit().check(message, true).is_err()
    }

    #[test]
    fn empty_elements_are_refused_however_they_are_packed() {
        let count = 2_000_000;
        for number in [1, 2, 4] {
            let elements = record(number, b"").repeat(count);
            assert!(is_refused(&elements), "field {number}");
            assert!(is_refused(&record(5, &elements)), "field {number} further in");
        }
        assert!(
            is_refused(&record(3, &vec![0; (4 << 20) + 1])),
            "numbers of a byte"
        );
        assert!(
            !is_refused(&record(9, b"").repeat(count)),
            "nobody keeps what isn't known"
        );
        assert!(
            !is_refused(&record(2, &vec![b'a'; 4 << 20])),
            "a long text is one"
        );
    }

    #[test]
    fn what_is_malformed_is_charged_as_far_as_it_is_decoded() {
        let elements = record(1, b"").repeat(2_000_000);
        let mut cut = elements.clone();
        cut.push(0x80);
        assert!(is_refused(&cut), "wrong behind");
        let mut wrong = vec![0x80; 11];
        wrong.extend_from_slice(&elements);
        assert!(!is_refused(&wrong), "wrong in front");
        // A message of two bytes, in which one of four million begins.
        let beyond = record(5, &elements);
        let mut outer = Vec::new();
        encode_key(5, WireType::LengthDelimited, &mut outer);
        encode_varint(2, &mut outer);
        outer.extend_from_slice(&beyond);
        assert!(is_refused(&outer), "beyond its message");
        // In a group that isn't known, and behind it.
        let mut group = Vec::new();
        encode_key(9, WireType::StartGroup, &mut group);
        let begun = group.clone();
        encode_key(9, WireType::EndGroup, &mut group);
        assert!(is_refused(&[&group[..], &elements].concat()), "behind a group");
        assert!(!is_refused(&[&begun[..], &elements].concat()), "in a group");
    }

    #[test]
    fn a_prefix_is_refused_for_what_stands_in_it_however_deep() {
        let is_refused = |prefix: &[u8]| limit().check(prefix, false).is_err();
        for message in [
            record(1, b"").repeat(2_000_000),
            record(5, &record(5, &record(1, b"").repeat(2_000_000))),
        ] {
            assert!(is_refused(&message[..message.len() / 2]));
            assert!(!is_refused(&message[..100_000]), "that doesn't take too much");
        }
        // Of a text that hasn't arrived nobody knows how long it is.
        let mut announced = Vec::new();
        encode_key(2, WireType::LengthDelimited, &mut announced);
        encode_varint(1 << 30, &mut announced);
        announced.resize(1 << 20, b'a');
        assert!(!is_refused(&announced));
        // What should be a message, and is a number whose rest hasn't arrived.
        for (wire_type, bytes) in [(WireType::SixtyFourBit, 8), (WireType::ThirtyTwoBit, 4)] {
            for number in [1, 4, 5] {
                let mut cut = Vec::new();
                encode_key(number, wire_type, &mut cut);
                cut.resize(cut.len() + bytes - 1, 0);
                assert!(!is_refused(&cut), "field {number}");
            }
        }
    }

    #[test]
    fn deep_messages_are_walked_as_deep_as_they_are_decoded() {
        let mut message = record(1, b"").repeat(1_000_000);
        for _ in 0..DEPTH_MAX - 1 {
            message = record(5, &message);
        }
        assert!(is_refused(&message));
        for _ in 0..1_000 {
            message = record(5, &message);
        }
        assert!(!is_refused(&message), "prost ends before the elements");
    }
}
