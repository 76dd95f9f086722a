//! Hexadecimal digits of bytes, without `format!`, which is slow where each write needs some.

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
