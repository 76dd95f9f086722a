//! Estimates the cost of JSON as a message from its bytes, in one pass, before it is parsed; what isn't JSON fails later.
//!
//! Memory: a message that is parsed from JSON keeps its fields in a tree whose first node is large: `{"a":{}}` takes a hundred times its
//! bytes. Time: encoding a message computes the length of each message in it recursively (`prost::encoding::message::encode`), so that a
//! value costs as much as its depth.

use souk_chassis::layers::messages::{DECODED_BYTES_MAX, decoded_too_large};
use souk_chassis::status::StatusBuilder;
use tonic::Status;

use crate::one_message::AT_ONCE_BYTES_MAX;

/// Bytes of a message with a field in it: a node with the places of eleven.
pub(super) const OBJECT: usize = 768;

/// Bytes of another value, in a list or a field.
const VALUE: usize = 64;

/// Bytes of one more path of a field mask, which is one text with commas; texts aren't told apart.
const PATH: usize = 128;

/// More than of messages: the largest batch has some 80,000 objects.
const JSON_BYTES_MAX: usize = 2 * DECODED_BYTES_MAX;

/// Most visits of an encoder to values, one for each level that a value lies below: some 0.2 s. The largest batch takes 0.8 million.
const VISITS_MAX: usize = 2 << 20;

/// Levels that are read of JSON: serde_json ends there.
const DEPTH_MAX: usize = 128;

/// What stands in a body.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Of memory.
    bytes: usize,
    /// Of an encoder to values.
    visits: usize,
}

impl Cost {
    fn of(json: &[u8]) -> Self {
        let (mut cost, mut depth) = (Self::default(), 0_usize);
        let mut bytes = json.iter();
        while let Some(byte) = bytes.next() {
            let taken = match byte {
                b'{' => OBJECT,
                // A list has one value more than commas.
                b'[' | b',' => VALUE,
                b'"' => {
                    let paths = skip_text(&mut bytes);
                    cost.bytes = cost.bytes.saturating_add(paths.saturating_mul(PATH));
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    continue;
                }
                _ => continue,
            };
            if *byte != b',' {
                depth += 1;
            }
            cost.bytes = cost.bytes.saturating_add(taken);
            cost.visits = cost.visits.saturating_add(depth);
        }
        cost
    }
}

/// Bytes of memory that JSON takes as a message.
pub(super) fn bytes(json: &[u8]) -> usize {
    Cost::of(json).bytes
}

/// Refuses (DECODED_TOO_LARGE) what takes more than [`JSON_BYTES_MAX`].
pub(super) fn check_bytes(bytes: usize) -> Result<(), Status> {
    match bytes > JSON_BYTES_MAX {
        true => Err(decoded_too_large(JSON_BYTES_MAX)),
        false => Ok(()),
    }
}

/// How much work it is to read JSON, in bytes of a flat body.
pub(crate) fn work(json: &[u8]) -> usize {
    match json.len() {
        // Enough to be read in a turn.
        length if length > AT_ONCE_BYTES_MAX => length,
        length => length.max(Cost::of(json).visits),
    }
}

/// Refuses JSON that would take more than [`JSON_BYTES_MAX`] (DECODED_TOO_LARGE) or [`VISITS_MAX`] (NESTED_VALUES_MAX).
pub(crate) fn check(json: &[u8]) -> Result<(), Status> {
    let most = |each: usize| json.len().saturating_mul(each);
    if most(OBJECT) <= JSON_BYTES_MAX && most(DEPTH_MAX) <= VISITS_MAX {
        return Ok(());
    }
    let cost = Cost::of(json);
    check_bytes(cost.bytes)?;
    if cost.visits > VISITS_MAX {
        let message = format!(
            "the values of the body, each counted once for every level that it lies below, are more than {VISITS_MAX}; nest them less, or \
             send fewer at a time"
        );
        let refusal = StatusBuilder::resource_exhausted("NESTED_VALUES_MAX", message);
        return Err(refusal.metadata("limit_values", VISITS_MAX).build());
    }
    Ok(())
}

/// Passes over the rest of a text, and counts its commas.
fn skip_text<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> usize {
    let mut commas = 0;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => {
                bytes.next();
            }
            b',' => commas += 1,
            _ => {}
        }
    }
    commas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_values_are_counted_and_texts_are_not() {
        let times = 4 << 20;
        for (what, refused) in [
            (r#"{"bool":{}},"#, true),
            ("{", true),
            ("[", true),
            ("1,", true),
            (r#""\\",{{{{"#, true),
            (" ", false),
            ("12345678", false),
        ] {
            let json = what.repeat(times / what.len());
            assert_eq!(check(json.as_bytes()).is_err(), refused, "{what}");
        }
        let text = |of: &str, bytes: usize| format!(r#"{{"text":"{}"}}"#, of.repeat(bytes / of.len()));
        assert!(check(text(r#"\"{["#, times).as_bytes()).is_ok(), "a text");
        assert!(check(text("A sentence, and another one. ", times).as_bytes()).is_ok());
        assert!(
            check(text("a,", times).as_bytes()).is_err(),
            "a field mask of all paths"
        );
        // Few bytes, and much work.
        let deep = |levels: usize, values: usize| {
            let (open, close) = (r#"{"a":"#.repeat(levels), "}".repeat(levels));
            format!("{open}[{}]{close}", "{},".repeat(values))
        };
        assert!(check(deep(120, 21_000).as_bytes()).is_err());
        assert!(check(deep(3, 21_000).as_bytes()).is_ok());
        assert!(
            check(deep(120, 1_024).as_bytes()).is_ok(),
            "all clauses of a search at its depth"
        );
        // As much as a batch of 200 media with 256 tags each has, and one with as many attributes.
        for batch in [
            r#"{"tag":"sea","score":0.9},"#.repeat(200 * 257),
            r#"{"a":{"b":"c"}},"#.repeat(200 * 65),
        ] {
            assert!(check(batch.as_bytes()).is_ok());
        }
    }
}
