//! Where a document stands under one key of an order, comparable across segments and restarts.

/// A document's value under one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    /// It has none.
    Missing,
    /// A number, mapped to a u64 so that the order is kept.
    Number(u64),
    /// A string or a document key.
    Bytes(Vec<u8>),
}
