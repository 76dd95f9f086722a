//! Where a document stands under one key of an order, comparable across segments and restarts; and under several.

use crate::error::AllowanceExceeded;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use crate::allowance::{Allowance, Grant};

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

/// Where a document stands under several keys, in the memory of its search.
#[derive(Debug)]
pub(crate) struct Standings {
    values: Vec<Standing>,
    held: Grant,
}

impl Standings {
    /// Room for so many keys.
    ///
    /// # Errors
    /// [`AllowanceExceeded`].
    pub(crate) fn new(keys: usize, allowance: &Allowance) -> Result<Self, AllowanceExceeded> {
        let bytes = size_of::<Self>() + keys * size_of::<Standing>();
        Ok(Self {
            held: allowance.take(bytes)?,
            values: Vec::with_capacity(keys),
        })
    }

    /// Adds where it stands under the next key.
    pub(crate) fn push(&mut self, standing: Standing) {
        self.values.push(standing);
    }

    /// Makes where it stands under the key that was added last this number, or nothing.
    pub(super) fn replace(&mut self, standing: Standing) {
        if let Some(last) = self.values.last_mut() {
            *last = standing;
        }
    }

    /// Makes where it stands under the key that was added last a string.
    ///
    /// # Errors
    /// [`AllowanceExceeded`].
    pub(crate) fn spell(&mut self, bytes: &[u8]) -> Result<(), AllowanceExceeded> {
        self.held.grow(bytes.len())?;
        if let Some(last) = self.values.last_mut() {
            *last = Standing::Bytes(bytes.to_vec());
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

impl PartialEq for Standings {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Eq for Standings {}

impl Hash for Standings {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.values.hash(state);
    }
}

impl Deref for Standings {
    type Target = [Standing];

    fn deref(&self) -> &[Standing] {
        &self.values
    }
}
