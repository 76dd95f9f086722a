//! What every service needs between the wire and its domain: times, points, values, masks, page sizes, request ids.
//!
//! Conversions from the wire note what is wrong in a [`Violations`](souk_chassis::status::Violations), with the path of
//! the field, and go on: a client learns of all mistakes at once.

mod attributes;
mod change;
mod column;
mod mask;
mod number;
mod point;
mod request;
mod stream;
mod text;
mod time;
mod value;

pub use attributes::{
    ATTRIBUTE_BYTES_MAX, ATTRIBUTE_KEY_CHARS_MAX, ATTRIBUTES_MAX, attributes, attributes_to_wire,
};
pub use change::{Change, Updatable};
pub use column::message_of_column;
pub use mask::UpdateMask;
pub use number::{check_not_negative, check_range, signed};
pub use point::{point, point_to_wire};
pub use request::{
    GET_BATCH_MAX, ID_CHARS_MAX, LIST_SIZE_DEFAULT, LIST_SIZE_MAX, SEARCH_SIZE_DEFAULT, SEARCH_SIZE_MAX,
    WRITE_BATCH_MAX, batch, check_batch, check_id, check_ids, check_len, checked, etag, min_sequence,
    page_size, request_id, required, settled,
};
pub use stream::{Answers, answers, endless_answers};
pub use text::{check_name, check_text};
pub use time::{duration, duration_to_wire, time, time_to_wire};
pub use value::{change_kind, query_value, value_to_wire};

#[cfg(test)]
mod tests;
