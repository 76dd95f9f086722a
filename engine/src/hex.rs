//! Bytes in hexadecimal, as they are written often: without the formatter of the standard library, which takes a digit at a time of numbers.

/// The digit of a nibble.
pub(crate) fn digit(nibble: u8) -> u8 {
    nibble + if nibble < 10 { b'0' } else { b'a' - 10 }
}

/// Appends the digits of bytes.
pub(crate) fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.extend([byte >> 4, byte & 0xf].map(|nibble| char::from(digit(nibble))));
    }
}
