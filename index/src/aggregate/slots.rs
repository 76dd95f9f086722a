//! Numbers for groups, in the order in which they appear.

use rustc_hash::FxHashMap;

/// Places of the arrays below, all groups around together: 16 MiB.
const MAX_PLACES: usize = 4 << 20;
/// A place without a group.
const NONE: u32 = u32::MAX;

/// The groups of a grouping on one segment: each is of a group around it, and has a key.
pub(super) struct Slots {
    by_key: ByKey,
    /// The group around, and the key, of each group.
    pub(super) groups: Vec<(u32, u64)>,
    /// How many documents are in each group.
    pub(super) counts: Vec<u64>,
}

enum ByKey {
    /// Keys lie close together: a place for each, for one group around after the other.
    Places {
        lowest: u64,
        keys: usize,
        places: Vec<u32>,
    },
    Hashed(FxHashMap<(u32, u64), u32>),
}

impl Slots {
    /// `span` are the lowest and the highest key, where they are known.
    pub(super) fn new(span: Option<(u64, u64)>) -> Self {
        let keys = span.and_then(|(lowest, highest)| {
            let keys = usize::try_from(highest.checked_sub(lowest)?)
                .ok()?
                .checked_add(1)?;
            (keys <= MAX_PLACES).then_some((lowest, keys))
        });
        Self {
            by_key: match keys {
                Some((lowest, keys)) => ByKey::Places {
                    lowest,
                    keys,
                    places: Vec::new(),
                },
                None => ByKey::Hashed(FxHashMap::default()),
            },
            groups: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Groups with these keys, numbered in their order; empty yet.
    pub(super) fn of_keys(keys: &[u64]) -> Self {
        Self {
            by_key: ByKey::Hashed(FxHashMap::default()),
            groups: keys.iter().map(|key| (0, *key)).collect(),
            counts: vec![0; keys.len()],
        }
    }

    /// Counts a document in each of these groups.
    pub(super) fn count(&mut self, numbers: &[u32]) {
        for number in numbers {
            if let Some(count) = self.counts.get_mut(*number as usize) {
                *count += 1;
            }
        }
    }

    /// Replaces keys by the numbers of their groups, and counts a document in each.
    pub(super) fn number(&mut self, keys: &[u64], around: &[u32], numbers: &mut Vec<u32>) {
        numbers.clear();
        match &self.by_key {
            ByKey::Places {
                lowest,
                keys: of_each,
                places,
            } => numbers.extend(keys.iter().zip(around).map(|(key, around)| {
                let within = key.wrapping_sub(*lowest) as usize;
                let place = places.get((*around as usize * *of_each).wrapping_add(within));
                place.filter(|_| within < *of_each).copied().unwrap_or(NONE)
            })),
            ByKey::Hashed(_) => numbers.resize(keys.len(), NONE),
        }
        for (number, (key, around)) in numbers.iter_mut().zip(keys.iter().zip(around)) {
            if *number == NONE {
                *number = self.slot(*around, *key);
            }
            if let Some(count) = self.counts.get_mut(*number as usize) {
                *count += 1;
            }
        }
    }

    fn slot(&mut self, around: u32, key: u64) -> u32 {
        if let ByKey::Places { lowest, keys, places } = &mut self.by_key {
            let within = key.wrapping_sub(*lowest) as usize;
            if within < *keys {
                let at = around as usize * *keys + within;
                match places.get_mut(at) {
                    Some(slot) if *slot != NONE => return *slot,
                    Some(slot) => {
                        *slot = self.groups.len() as u32;
                        return self.add(around, key);
                    }
                    None if at < MAX_PLACES => {
                        places.resize((around as usize + 1) * *keys, NONE);
                        return self.slot(around, key);
                    }
                    None => {}
                }
            }
            // Too many groups around, or a key that the column didn't announce.
            let groups = self.groups.iter().enumerate();
            self.by_key = ByKey::Hashed(groups.map(|(at, group)| (*group, at as u32)).collect());
        }
        if let ByKey::Hashed(slots) = &mut self.by_key {
            let next = self.groups.len() as u32;
            let slot = *slots.entry((around, key)).or_insert(next);
            if slot < next {
                return slot;
            }
        }
        self.add(around, key)
    }

    fn add(&mut self, around: u32, key: u64) -> u32 {
        let slot = self.groups.len() as u32;
        self.groups.push((around, key));
        self.counts.push(0);
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_numbered_as_they_appear_whatever_their_keys() {
        for span in [None, Some((7, 9)), Some((0, u64::MAX)), Some((8, 8))] {
            let mut slots = Slots::new(span);
            let mut numbers = Vec::new();
            slots.number(&[9, 7, 9, 8], &[0, 0, 0, 0], &mut numbers);
            assert_eq!(numbers, [0, 1, 0, 2], "{span:?}");
            slots.number(&[9, u64::MAX, 7, 9], &[5_000_000, 0, 0, 0], &mut numbers);
            assert_eq!(numbers, [3, 4, 1, 0], "{span:?}");
            assert_eq!(
                slots.groups,
                [(0, 9), (0, 7), (0, 8), (5_000_000, 9), (0, u64::MAX)]
            );
            assert_eq!(slots.counts, [3, 2, 1, 1, 1]);
        }
    }
}
