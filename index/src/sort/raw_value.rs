//! Raw sort values of a document: comparable across segments and restarts.

use std::io;
use std::ops::Deref;

use crate::allowance::{Allowance, Grant};
use crate::columns::StringColumn;
use crate::error::AllowanceExceeded;
use crate::run::Run;

/// Strings of a page or of its groups that are read from a dictionary, each from another block of it, between two checks of the deadline.
pub(crate) const STRINGS_PER_CHECK: usize = 128;

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

    /// [`Self::push`], with the memory of what the value holds.
    pub(super) fn add(&mut self, sort_value: &RawSortValue) -> Result<(), AllowanceExceeded> {
        if let RawSortValue::Bytes(bytes) = sort_value {
            self.held.grow(bytes.len())?;
        }
        self.push(sort_value.clone());
        Ok(())
    }

    /// Makes where it stands under the key that was added last a string.
    pub(crate) fn spell(&mut self, bytes: &[u8]) -> Result<(), AllowanceExceeded> {
        self.held.grow(bytes.len())?;
        if let Some(last) = self.values.last_mut() {
            *last = RawSortValue::Bytes(bytes.to_vec());
        }
        Ok(())
    }

    /// Where it stands under the key that was added last, and the memory.
    pub(crate) fn into_last(mut self) -> (RawSortValue, Grant) {
        (self.values.pop().unwrap_or(RawSortValue::Missing), self.held)
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

/// Makes what was added last to some of `values`, at their places, the strings with these ordinals. Those are read in the
/// order of the dictionary.
pub(crate) fn spell(
    strings: &StringColumn,
    mut ordinals: Vec<(u64, usize)>,
    values: &mut [RawSortValues],
    run: &Run,
) -> io::Result<()> {
    ordinals.sort_unstable();
    for part in ordinals.chunks(STRINGS_PER_CHECK) {
        run.check_inside().map_err(io::Error::other)?;
        let sorted: Vec<u64> = part.iter().map(|(ordinal, _)| *ordinal).collect();
        let mut places = part.iter().map(|(_, place)| *place);
        let mut exceeded: Option<AllowanceExceeded> = None;
        strings.each_string(&sorted, |bytes| {
            let value = places.next().and_then(|place| values.get_mut(place));
            if let (Some(value), None) = (value, exceeded) {
                exceeded = value.spell(bytes).err();
            }
        })?;
        if let Some(exceeded) = exceeded {
            return Err(exceeded.into());
        }
    }
    Ok(())
}

impl Deref for RawSortValues {
    type Target = [RawSortValue];

    fn deref(&self) -> &[RawSortValue] {
        &self.values
    }
}
