//! Raw sort values of a document: comparable across segments and restarts.

use crate::error::AllowanceExceeded;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use crate::allowance::{Allowance, Grant};

/// A document's value under one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RawSortValue {
    /// It has none.
    Missing,
    /// A number, mapped to a u64 so that the order is kept.
    Number(u64),
    /// A string or a document key.
    Bytes(Vec<u8>),
}

/// Where a document stands under several keys, in the memory of its search.
#[derive(Debug)]
pub(crate) struct RawSortValues {
    values: Vec<RawSortValue>,
    held: Grant,
}

impl RawSortValues {
    /// Room for so many keys.
    pub(crate) fn new(keys: usize, allowance: &Allowance) -> Result<Self, AllowanceExceeded> {
        let bytes = size_of::<Self>() + keys * size_of::<RawSortValue>();
        Ok(Self {
            held: allowance.take(bytes)?,
            values: Vec::with_capacity(keys),
        })
    }

    /// Adds where it stands under the next key.
    pub(crate) fn push(&mut self, sort_value: RawSortValue) {
        self.values.push(sort_value);
    }

    /// Makes where it stands under the key that was added last this number, or nothing.
    pub(super) fn replace(&mut self, sort_value: RawSortValue) {
        if let Some(last) = self.values.last_mut() {
            *last = sort_value;
        }
    }

    /// Makes where it stands under the key that was added last a string.
    pub(crate) fn spell(&mut self, bytes: &[u8]) -> Result<(), AllowanceExceeded> {
        self.held.grow(bytes.len())?;
        if let Some(last) = self.values.last_mut() {
            *last = RawSortValue::Bytes(bytes.to_vec());
        }
        Ok(())
    }

    /// The memory alone, for what the values became.
    pub(crate) fn into_held(self) -> Grant {
        self.held
    }

    /// Adds where it stands under further keys.
    pub(super) fn extend(&mut self, further: Self) {
        self.values.extend(further.values);
        self.held.absorb(further.held);
    }
}

impl PartialEq for RawSortValues {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Eq for RawSortValues {}

impl Hash for RawSortValues {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.values.hash(state);
    }
}

impl Deref for RawSortValues {
    type Target = [RawSortValue];

    fn deref(&self) -> &[RawSortValue] {
        &self.values
    }
}
