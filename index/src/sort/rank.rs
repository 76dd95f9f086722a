//! Segment sort keys: where a document stands under one key of an order, within one segment.

use std::cmp::Ordering;
use std::io;

use tantivy::columnar::{BytesColumn, TermOrdHit};

/// Whether there is a value. Documents without one go before or after all others, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Before,
    Among,
    After,
}

/// A position under one key: lower is nearer to the front, whatever the key's direction.
///
/// Numbers are themselves. Strings are their ordinals in the segment's dictionary, with room between them, so that a
/// string from elsewhere can be compared with the segment's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    place: Place,
    value: u64,
}

impl Rank {
    pub(super) fn among(value: u64, descending: bool) -> Self {
        Self {
            place: Place::Among,
            value: if descending { !value } else { value },
        }
    }

    pub(super) fn missing(first: bool) -> Self {
        Self {
            place: if first { Place::Before } else { Place::After },
            value: 0,
        }
    }

    /// The value, turned back; `None` when it is missing.
    pub(super) fn value(self, descending: bool) -> Option<u64> {
        match self.place {
            Place::Among => Some(if descending { !self.value } else { self.value }),
            Place::Before | Place::After => None,
        }
    }
}

/// The position of the string with this ordinal.
pub(crate) fn of_ordinal(ordinal: u64) -> u64 {
    ordinal.saturating_mul(4).saturating_add(3)
}

/// The position of a string, which the dictionary may lack: see [`before_ordinal`].
pub(crate) fn position(
    strings: Option<&BytesColumn>,
    bytes: &[u8],
    against_substitute: Ordering,
) -> io::Result<u64> {
    let next = match strings.filter(|strings| strings.num_terms() > 0) {
        Some(strings) => match strings.dictionary().term_ord_or_next(bytes)? {
            TermOrdHit::Exact(ordinal) => return Ok(of_ordinal(ordinal)),
            TermOrdHit::Next(ordinal) => ordinal.min(strings.num_terms() as u64),
        },
        None => 0,
    };
    Ok(before_ordinal(next, against_substitute))
}

/// The position of a string that the dictionary doesn't have, before the one with this ordinal and after the one before
/// it. Two such strings matter: a limit, and what stands in for missing values. `against_substitute` tells them apart.
fn before_ordinal(ordinal: u64, against_substitute: Ordering) -> u64 {
    let within = match against_substitute {
        Ordering::Less => 0,
        Ordering::Equal => 1,
        Ordering::Greater => 2,
    };
    ordinal.saturating_mul(4).saturating_add(within)
}

/// The ordinal at a position, if it is a string's.
pub(crate) fn ordinal(position: u64) -> Option<u64> {
    (position % 4 == 3).then_some(position / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_keep_their_end_in_both_directions() {
        for descending in [false, true] {
            for value in [0, 1, u64::MAX] {
                let rank = Rank::among(value, descending);
                assert!(Rank::missing(true) < rank && rank < Rank::missing(false));
                assert_eq!(rank.value(descending), Some(value));
            }
            assert_eq!(Rank::missing(true).value(descending), None);
        }
        assert!(Rank::among(1, false) < Rank::among(2, false));
        assert!(Rank::among(2, true) < Rank::among(1, true));
    }

    #[test]
    fn strings_between_two_ordinals_have_a_position_of_their_own() {
        let positions = [
            before_ordinal(0, Ordering::Equal),
            of_ordinal(0),
            before_ordinal(1, Ordering::Less),
            before_ordinal(1, Ordering::Equal),
            before_ordinal(1, Ordering::Greater),
            of_ordinal(1),
        ];
        assert!(positions.is_sorted_by(|one, other| one < other));
        assert_eq!(
            (
                ordinal(of_ordinal(7)),
                ordinal(before_ordinal(7, Ordering::Greater))
            ),
            (Some(7), None)
        );
    }
}
