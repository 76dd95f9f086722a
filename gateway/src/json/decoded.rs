//! What JSON takes in memory once it is a message, found out from its bytes before that is done.
//!
//! A message that is made of JSON keeps its fields in a tree, whose first node is large whatever is in it: `{"a":{}}` takes a hundred
//! times its bytes. Objects and other values are counted in one pass, and nothing is kept; what isn't JSON is refused behind.

use souk_chassis::layers::messages::{DECODED_BYTES_MAX, decoded_too_large};
use tonic::Status;

/// Bytes of a message with a field in it: a node with the places of eleven.
pub(super) const OBJECT: usize = 768;

/// Bytes of another value, in a list or a field.
const VALUE: usize = 64;

/// Bytes of one more path of a field mask, which is one text with commas; texts aren't told apart.
const PATH: usize = 128;

/// More than of messages: the largest batch has some 80,000 objects.
const JSON_BYTES_MAX: usize = 2 * DECODED_BYTES_MAX;

/// Refuses JSON that would take more than [`JSON_BYTES_MAX`].
///
/// # Errors
/// RESOURCE_EXHAUSTED, DECODED_TOO_LARGE.
pub(crate) fn check(json: &[u8]) -> Result<(), Status> {
    if json.len().saturating_mul(OBJECT) <= JSON_BYTES_MAX {
        return Ok(());
    }
    let mut left = JSON_BYTES_MAX;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        let taken = match byte {
            b'{' => OBJECT,
            // A list has one value more than commas.
            b'[' | b',' => VALUE,
            b'"' => skip_text(&mut bytes).saturating_mul(PATH),
            _ => continue,
        };
        left = left
            .checked_sub(taken)
            .ok_or_else(|| decoded_too_large(JSON_BYTES_MAX))?;
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
        // As much as a batch of 200 media with 256 tags each has, and one with as many attributes.
        for batch in [
            r#"{"tag":"sea","score":0.9},"#.repeat(200 * 257),
            r#"{"a":{"b":"c"}},"#.repeat(200 * 65),
        ] {
            assert!(check(batch.as_bytes()).is_ok());
        }
    }
}
