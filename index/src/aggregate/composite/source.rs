//! One source of a composite on a segment.

use std::cmp::Ordering;

use tantivy::SegmentReader;

use crate::aggregate::column::{Buffer, Raw};
use crate::aggregate::keys::GroupKeys;
use crate::aggregate::node::Source;
use crate::run::Run;
use crate::sort::{RawSortValue, rank};

/// One source on a segment. Positions are numbers whose order is that of the groups: 0 of documents without a value, and
/// all turned over when the highest come first.
pub(super) struct OpenSource<'a> {
    pub(super) source: &'a Source,
    pub(super) keys: GroupKeys<'a>,
    /// The number and the position of a string that the dictionary lacks.
    stranger: Option<(u64, u64)>,
    pub(super) room: [Buffer; 2],
}

impl<'a> OpenSource<'a> {
    pub(super) fn open(source: &'a Source, reader: &SegmentReader, run: &Run) -> tantivy::Result<Self> {
        let keys = GroupKeys::open(&source.by, &[], reader, run)?;
        let mut stranger = None;
        if let GroupKeys::Values(values) = &keys
            && let Some((number, bytes)) = values.stranger()
        {
            stranger = Some((number, rank::position(values.strings(), bytes, Ordering::Equal)?));
        }
        Ok(Self {
            source,
            keys,
            stranger,
            room: Default::default(),
        })
    }

    fn has_strings(&self) -> bool {
        matches!(&self.keys, GroupKeys::Values(values) if values.has_strings())
    }

    pub(super) fn position(&self, key: u64) -> u128 {
        let position = match self.stranger {
            Some((number, position)) if number == key => position,
            _ if self.has_strings() => rank::of_ordinal(key),
            _ => key,
        };
        self.turned(u128::from(position) + 1)
    }

    pub(super) fn turned(&self, position: u128) -> u128 {
        if self.source.descending {
            !position
        } else {
            position
        }
    }

    /// The key at a position; `None` of documents without a value.
    pub(super) fn key(&self, position: u128) -> Option<u64> {
        let position = u64::try_from(self.turned(position).checked_sub(1)?).ok()?;
        if !self.has_strings() {
            return Some(position);
        }
        rank::ordinal(position).or(self.stranger.map(|(number, _)| number))
    }

    /// The position of a key by its name, if it may occur.
    pub(super) fn position_by_name(&self, name: Option<&Raw>) -> tantivy::Result<Option<u128>> {
        let Some(name) = name else {
            return Ok(Some(self.turned(0)));
        };
        let key = self.keys.number_of(name)?;
        Ok(key.map(|key| self.position(key)))
    }

    /// Where the last key of the page before stands.
    pub(super) fn position_of(&self, sort_value: &RawSortValue) -> tantivy::Result<u128> {
        let position = match (sort_value, &self.keys) {
            (RawSortValue::Missing, _) => return Ok(self.turned(0)),
            (RawSortValue::Number(number), _) => *number,
            (RawSortValue::Bytes(bytes), GroupKeys::Values(values)) => {
                let among = values
                    .stranger()
                    .map_or(Ordering::Less, |(_, stranger)| bytes.as_slice().cmp(stranger));
                rank::position(values.strings(), bytes, among)?
            }
            (RawSortValue::Bytes(_), _) => 0,
        };
        Ok(self.turned(u128::from(position) + 1))
    }
}
