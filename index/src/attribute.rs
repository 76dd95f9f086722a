//! Attributes: values under names that no schema knows, of types that no schema declares.
//!
//! A field of attributes is one column of strings, and their terms. A document has a string for each value: the
//! attribute's name, a zero byte, the type, and the value so that the byte order is that of values. So strings of one
//! attribute lie together, in the order: false and true, numbers, times, texts, bytes. Integers and doubles are one type,
//! and compare exactly: the double nearest to an integer, then how far from it the integer lies.
//!
//! The library's own JSON fields keep a column for each name, which makes the number of names a cost of every segment,
//! round integers beside doubles, and cut times to seconds in terms.

use std::ops::Bound;

use tantivy::columnar::MonotonicallyMappableToU64;

use crate::document::FieldValue;
use crate::request::QueryValue;
use crate::result::SortValue;

/// Between an attribute's name and its values: no name has it.
const AFTER_NAME: char = '\0';
/// The first character behind [`AFTER_NAME`].
const BEHIND_NAME: char = '\u{1}';
/// Doubles below this are no farther apart than integers.
const ALL_INTEGERS: f64 = 9_007_199_254_740_992.0;
/// Added to the distance of an integer from its double: -512 to 512.
const DISTANCE_ZERO: i128 = 0x8000;
/// Digits of a double.
const DOUBLE_DIGITS: usize = 16;

/// The types of attributes, in their order, by their signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AttributeType {
    Boolean = b'1' as isize,
    Number,
    Time,
    Text,
    Bytes,
}

impl AttributeType {
    const ALL: [Self; 5] = [Self::Boolean, Self::Number, Self::Time, Self::Text, Self::Bytes];

    fn sign(self) -> char {
        char::from(self as u8)
    }
}

/// A value as a query gives it, with its type.
pub(crate) fn query_term(name: &str, value: &QueryValue) -> (AttributeType, String) {
    let (of, term) = match value {
        QueryValue::Boolean(flag) => (AttributeType::Boolean, boolean(*flag)),
        QueryValue::Integer(number) => (AttributeType::Number, integer(*number)),
        QueryValue::Double(number) => (AttributeType::Number, double(*number)),
        QueryValue::Time(time) => (AttributeType::Time, digits(time.to_u64())),
        QueryValue::String(text) => (AttributeType::Text, text.clone()),
        QueryValue::Bytes(bytes) => (AttributeType::Bytes, hexadecimal(bytes)),
    };
    (of, format!("{}{term}", first_of(name, of)))
}

/// A value as a document has it; `None` when it is none that an attribute can have.
pub(crate) fn document_term(name: &str, value: &FieldValue) -> Option<String> {
    let (of, term) = match value {
        FieldValue::Boolean(flag) => (AttributeType::Boolean, boolean(*flag)),
        FieldValue::Long(number) => (AttributeType::Number, integer(*number)),
        FieldValue::Double(number) if number.is_finite() => (AttributeType::Number, double(*number)),
        FieldValue::Date(time) => (AttributeType::Time, digits(time.to_u64())),
        FieldValue::String(text) => (AttributeType::Text, text.as_str().to_owned()),
        FieldValue::Bytes(bytes) => (AttributeType::Bytes, hexadecimal(bytes)),
        FieldValue::Double(_) | FieldValue::GeoPoint(_) | FieldValue::Objects(_) => return None,
    };
    Some(format!("{}{term}", first_of(name, of)))
}

/// The bounds between which lie all values of the attribute, and no others.
pub(crate) fn bounds(name: &str) -> (Bound<String>, Bound<String>) {
    let (first, behind) = (format!("{name}{AFTER_NAME}"), format!("{name}{BEHIND_NAME}"));
    (Bound::Included(first), Bound::Excluded(behind))
}

/// The string that no value of this type lies before; strings of texts begin with it.
pub(crate) fn first_of(name: &str, of: AttributeType) -> String {
    format!("{name}{AFTER_NAME}{}", of.sign())
}

/// A string that lies behind all values of this type.
pub(crate) fn behind_of(name: &str, of: AttributeType) -> String {
    format!("{name}{AFTER_NAME}{}", char::from(of as u8 + 1))
}

/// The value of a term.
pub(crate) fn value(term: &str) -> Option<SortValue> {
    let (_, value) = term.split_once(AFTER_NAME)?;
    let mut rest = value.chars();
    let sign = rest.next()?;
    let of = AttributeType::ALL.into_iter().find(|of| of.sign() == sign)?;
    let rest = rest.as_str();
    Some(match of {
        AttributeType::Boolean => SortValue::Boolean(rest == "1"),
        AttributeType::Number => number(rest)?,
        AttributeType::Time => SortValue::Date(i64::from_u64(parse(rest)?)),
        AttributeType::Text => SortValue::String(rest.to_owned()),
        AttributeType::Bytes => SortValue::Bytes(bytes(rest)?),
    })
}

fn boolean(flag: bool) -> String {
    if flag { "1" } else { "0" }.to_owned()
}

fn integer(number: i64) -> String {
    let nearest = number as f64;
    with_distance(nearest, i128::from(number) - nearest as i128)
}

fn double(number: f64) -> String {
    with_distance(number + 0.0, 0)
}

/// A number by the double next to it and its distance from that.
fn with_distance(nearest: f64, distance: i128) -> String {
    let position = nearest.to_u64();
    if nearest.abs() < ALL_INTEGERS {
        return digits(position);
    }
    format!("{position:016x}{:04x}", distance.saturating_add(DISTANCE_ZERO))
}

/// The digits of a fraction, so to speak: zeros at the end say nothing.
fn digits(position: u64) -> String {
    let mut digits = format!("{position:016x}");
    digits.truncate(digits.trim_end_matches('0').len());
    digits
}

fn parse(digits: &str) -> Option<u64> {
    u64::from_str_radix(&format!("{digits:0<DOUBLE_DIGITS$}"), 16).ok()
}

fn number(digits: &str) -> Option<SortValue> {
    let (double, distance) = digits.split_at_checked(DOUBLE_DIGITS).unwrap_or((digits, ""));
    let double = f64::from_u64(parse(double)?);
    let distance = match distance {
        "" => 0,
        digits => i128::from_str_radix(digits, 16).ok()? - DISTANCE_ZERO,
    };
    let whole = (double.fract() == 0.0).then_some(double as i128 + distance);
    let integer = whole.and_then(|whole| i64::try_from(whole).ok());
    Some(integer.map_or(SortValue::Double(double), SortValue::Long))
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let starts = (0..text.len()).step_by(2);
    starts
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests;
