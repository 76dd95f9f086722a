//! Demo data: streams of rows that depend on their parameters alone, and can start at any row.
//!
//! The same seed and size give the same rows on every machine, so that an interrupted load goes on where it was.

pub mod media;
pub mod names;
pub mod orders;
pub mod people;
pub mod products;
pub mod random;
pub mod shops;
mod towns;
pub mod tpch;

use souk_proto::r#type::v1::{Value, value};

/// The seed of data when none is given.
pub const SEED: u64 = 20_260_921;

/// Text as an attribute.
fn text_value(text: impl Into<String>) -> Value {
    Value {
        kind: Some(value::Kind::StringValue(text.into())),
    }
}

#[cfg(test)]
mod tests;
