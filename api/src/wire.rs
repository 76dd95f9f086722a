//! What every service needs between the wire and its domain: times, points, values, masks, page sizes, request ids.
//!
//! What a request may hold stands beside its fields in the contract, and is enforced by [`received`]. What no rule can say
//! is noted with it, in the same [`Violations`](souk_chassis::status::Violations), so that a client learns of all mistakes at
//! once. Conversions give `None` for what breaks a rule: that has been noted.

mod attributes;
mod column;
mod mask;
mod number;
mod point;
mod request;
mod rules;
mod stream;
mod time;
mod value;

pub use attributes::{ATTRIBUTE_BYTES_MAX, attributes_of_column, attributes_to_column, check_attributes};
pub use column::{narrow, objects_of_column, objects_to_column};
pub use mask::UpdateMask;
pub use number::{signed, unsigned};
pub use point::{point, point_to_wire, round_point};
pub use request::{
    GET_BATCH_MAX, LIST_SIZE_DEFAULT, LIST_SIZE_MAX, SEARCH_SIZE_DEFAULT, SEARCH_SIZE_MAX, WRITE_BATCH_MAX,
    checked, etag, page_size, request_id, settled,
};
pub(crate) use rules::note;
pub use rules::{broken, received, valid};
pub use stream::{Answers, answers, endless_answers};
pub use time::{duration, duration_to_wire, time, time_to_wire};
pub use value::{change_kind, query_value, value_to_wire};

#[cfg(test)]
mod tests;
