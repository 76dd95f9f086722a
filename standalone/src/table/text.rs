//! Values as text: in CSV, and where a key is told.
//!
//! Nothing written is no value. So that what is empty is told apart from that, a text of backslashes alone, or of nothing, has one
//! backslash more, and no bytes are a backslash.

use std::borrow::Cow;
use std::str::FromStr as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use prost_types::Timestamp;
use souk_proto::r#type::v1::{Value, value::Kind};

use super::columns::CellType;

/// Most characters of a text that an error tells.
const TOLD_CHARS: usize = 40;

/// An empty value.
const EMPTY: &str = "\\";

/// What a value is written as.
pub(crate) fn of_value(value: &Kind) -> Cow<'_, str> {
    match value {
        Kind::StringValue(text) if is_escaped(text) => format!("{text}\\").into(),
        Kind::StringValue(text) => text.into(),
        Kind::IntValue(number) => number.to_string().into(),
        // The shortest that reads as the same number.
        Kind::DoubleValue(number) => format!("{number:?}").into(),
        Kind::BoolValue(truth) => truth.to_string().into(),
        Kind::BytesValue(bytes) if bytes.is_empty() => EMPTY.into(),
        Kind::BytesValue(bytes) => BASE64.encode(bytes).into(),
        Kind::TimeValue(at) => at.to_string().into(),
    }
}

/// Reads what [`of_value`] has written of a value of that type; `None` when nothing is.
///
/// # Errors
/// What it isn't.
pub(crate) fn value(cells: CellType, text: &str) -> Result<Option<Kind>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let isnt = |what: &str| {
        let told: String = text.chars().take(TOLD_CHARS).collect();
        format!("{told:?} isn't {what}")
    };
    Ok(Some(match cells {
        CellType::String | CellType::Json | CellType::Columns if is_escaped(text) => {
            Kind::StringValue(text.get(1..).unwrap_or_default().to_owned())
        }
        CellType::String | CellType::Json | CellType::Columns => Kind::StringValue(text.to_owned()),
        CellType::Integer => {
            let number = text.parse().map_err(|_| isnt("a 64-bit integer"))?;
            Kind::IntValue(number)
        }
        CellType::Double => {
            let number = text.parse().ok().filter(|number: &f64| number.is_finite());
            Kind::DoubleValue(number.ok_or_else(|| isnt("a finite number"))?)
        }
        CellType::Boolean => Kind::BoolValue(text.parse().map_err(|_| isnt("true or false"))?),
        CellType::Binary if text == EMPTY => Kind::BytesValue(Bytes::new()),
        CellType::Binary => {
            let bytes = BASE64.decode(text).map_err(|_| isnt("base64"))?;
            Kind::BytesValue(bytes.into())
        }
        CellType::Time => {
            let time = Timestamp::from_str(text);
            Kind::TimeValue(time.map_err(|_| isnt("an RFC 3339 time, as 2026-11-27T08:00:00.5Z"))?)
        }
    }))
}

/// A key, as errors and lists name it.
pub(crate) fn of_key(key: &[Value]) -> String {
    let values = key.iter().filter_map(|value| value.kind.as_ref());
    let texts: Vec<_> = values.map(of_value).collect();
    texts.join(", ")
}

/// Whether a text has a backslash more.
fn is_escaped(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\\')
}
