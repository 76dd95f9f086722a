//! Numbers for groups, in the order in which they appear.

use foldhash::HashMap;

use super::budget::Account;

/// Places of an array: 16 MiB.
const MAX_PLACES: usize = 4 << 20;
/// Places that an array may have before anything was numbered.
const FREE_PLACES: usize = 16 << 10;
/// Places for each row that was numbered: an array for a few documents among very many keys costs more than it saves.
const PLACES_PER_ROW: usize = 16;
/// A place without a group.
const NONE: u32 = u32::MAX;

/// The groups of a grouping on one segment: each is of a group around it, and has a key.
pub(super) struct Slots {
    by_key: ByKey,
    /// The lowest key, and how many there may be, where keys lie close together.
    span: Option<(u64, usize)>,
    /// The number of groups around, as far as they were seen.
    around: usize,
    /// Rows that were numbered.
    rows: usize,
    /// Rows before which no array is made again: after one that couldn't grow, twice as many as there were then, so that
    /// arrays don't come and go with each new group around.
    again: usize,
    /// The group around, and the key, of each group.
    pub(super) groups: Vec<(u32, u64)>,
    /// How many documents are in each group.
    pub(super) counts: Vec<u64>,
}

enum ByKey {
    /// A place for each key, for one group around after the other.
    Places(Vec<u32>),
    /// By the group around and the key. The hash is seeded at random: callers choose keys, and shall find none that collide.
    Hashed(HashMap<(u32, u64), u32>),
}

/// Groups with their numbers: for one table, which is what is accounted for.
fn numbered(groups: &[(u32, u64)]) -> impl Iterator<Item = ((u32, u64), u32)> {
    groups.iter().copied().zip(0..)
}

impl Slots {
    /// Bytes of a group: its key and count, in lists that double, and its entry in a hash table.
    pub(super) const GROUP_BYTES: usize = 3 * (size_of::<(u32, u64)>() + size_of::<u64>()) / 2 + 40;

    /// `span` are the lowest and the highest key, where they are known.
    pub(super) fn new(span: Option<(u64, u64)>) -> Self {
        let span = span.and_then(|(lowest, highest)| {
            let keys = usize::try_from(highest.checked_sub(lowest)?)
                .ok()?
                .checked_add(1)?;
            (keys <= MAX_PLACES).then_some((lowest, keys))
        });
        Self {
            by_key: ByKey::Hashed(HashMap::default()),
            span,
            around: 0,
            rows: 0,
            again: 0,
            groups: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Groups with these keys, numbered in their order; empty yet.
    pub(super) fn of_keys(keys: &[u64]) -> Self {
        let groups: Vec<(u32, u64)> = keys.iter().map(|key| (0, *key)).collect();
        Self {
            by_key: ByKey::Hashed(numbered(&groups).collect()),
            groups,
            counts: vec![0; keys.len()],
            ..Self::new(None)
        }
    }

    /// The number of the group with a key around which is none, and counts a document in it.
    pub(super) fn count(&mut self, key: u64) -> Option<u32> {
        let ByKey::Hashed(slots) = &self.by_key else {
            return None;
        };
        let number = *slots.get(&(0, key))?;
        *self.counts.get_mut(number as usize)? += 1;
        Some(number)
    }

    /// Forgets groups, and numbers the others anew: those of which the count, as `keep` makes it of key and count, is not 0.
    pub(super) fn retain(&mut self, keep: impl Fn(u64, u64) -> u64) {
        let groups = std::mem::take(&mut self.groups);
        for (group, count) in groups.into_iter().zip(std::mem::take(&mut self.counts)) {
            let count = keep(group.1, count);
            if count > 0 {
                self.groups.push(group);
                self.counts.push(count);
            }
        }
        match &mut self.by_key {
            ByKey::Hashed(slots) => {
                slots.clear();
                slots.extend(numbered(&self.groups));
            }
            ByKey::Places(places) => {
                places.fill(NONE);
                fill(places, self.span, &self.groups);
            }
        }
    }

    /// Replaces keys by the numbers of their groups, and counts a document in each.
    pub(super) fn number(
        &mut self,
        keys: &[u64],
        around: &[u32],
        numbers: &mut Vec<u32>,
        account: &mut Account<'_>,
    ) {
        numbers.clear();
        if matches!(self.by_key, ByKey::Hashed(_)) {
            self.make_places(account);
        }
        let mut are_known = false;
        if let (ByKey::Places(places), Some((lowest, of_each))) = (&self.by_key, self.span) {
            are_known = true;
            numbers.extend(keys.iter().zip(around).map(|(key, around)| {
                let within = key.wrapping_sub(lowest) as usize;
                let place = places.get((*around as usize * of_each).wrapping_add(within));
                let number = place.filter(|_| within < of_each).copied().unwrap_or(NONE);
                match self.counts.get_mut(number as usize) {
                    Some(count) => *count += 1,
                    None => are_known = false,
                }
                number
            }));
        } else {
            numbers.resize(keys.len(), NONE);
        }
        if !are_known {
            for (number, (key, around)) in numbers.iter_mut().zip(keys.iter().zip(around)) {
                if *number == NONE {
                    *number = self.slot(*around, *key, account);
                    if let Some(count) = self.counts.get_mut(*number as usize) {
                        *count += 1;
                    }
                }
            }
        }
        self.rows = self.rows.saturating_add(keys.len());
    }

    /// Makes an array of the hash table once that is worth it.
    fn make_places(&mut self, account: &mut Account<'_>) {
        let Some((_, keys)) = self.span else { return };
        let around = self.around.max(1);
        // Twice as many rows as the array then needs: it isn't given up soon.
        let needed = around.saturating_mul(keys);
        if self.rows >= self.again
            && worth(2 * needed.min(MAX_PLACES), self.rows)
            && needed <= MAX_PLACES
            && account.try_hold_for_segment(needed * size_of::<u32>())
        {
            let mut places = vec![NONE; needed];
            fill(&mut places, self.span, &self.groups);
            self.by_key = ByKey::Places(places);
        }
    }

    fn slot(&mut self, around: u32, key: u64, account: &mut Account<'_>) -> u32 {
        self.around = self.around.max(around as usize + 1);
        let next = self.groups.len() as u32;
        if let (ByKey::Places(places), Some((lowest, keys))) = (&mut self.by_key, self.span) {
            let within = key.wrapping_sub(lowest) as usize;
            let place = (around as usize * keys).wrapping_add(within);
            let needed = self.around.saturating_mul(keys);
            let fits = within < keys && make_room(places, needed, self.rows, account);
            match places.get_mut(place).filter(|_| fits) {
                Some(slot) if *slot != NONE => return *slot,
                Some(slot) => {
                    *slot = next;
                    return self.add(around, key);
                }
                None => {
                    account.release_of_segment(places.capacity() * size_of::<u32>());
                    self.by_key = ByKey::Hashed(numbered(&self.groups).collect());
                    self.again = 2 * self.rows;
                    if within >= keys {
                        // A key that the column didn't announce.
                        self.span = None;
                    }
                }
            }
        }
        if let ByKey::Hashed(slots) = &mut self.by_key {
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

/// Whether so many places save more than they cost.
fn worth(places: usize, rows: usize) -> bool {
    places <= FREE_PLACES || places <= rows.saturating_mul(PLACES_PER_ROW)
}

/// Makes so many places, if there aren't as many; whether there are now.
fn make_room(places: &mut Vec<u32>, needed: usize, rows: usize, account: &mut Account<'_>) -> bool {
    if needed <= places.len() {
        return true;
    }
    if needed > MAX_PLACES || !worth(needed, rows) {
        return false;
    }
    let before = places.capacity();
    if needed > before {
        let grown = needed.max((2 * before).min(MAX_PLACES));
        if !account.try_hold_for_segment((grown - before) * size_of::<u32>()) {
            return false;
        }
        places.reserve_exact(grown - places.len());
    }
    places.resize(needed, NONE);
    true
}

/// Puts the numbers of groups into their places.
fn fill(places: &mut [u32], span: Option<(u64, usize)>, groups: &[(u32, u64)]) {
    let Some((lowest, keys)) = span else { return };
    for ((around, key), number) in numbered(groups) {
        let place = around as usize * keys + key.wrapping_sub(lowest) as usize;
        if let Some(place) = places.get_mut(place) {
            *place = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::budget::testing;

    #[test]
    fn groups_are_numbered_as_they_appear_whatever_their_keys() {
        for span in [None, Some((7, 9)), Some((0, u64::MAX)), Some((8, 8))] {
            testing::with_account(|account| {
                let mut slots = Slots::new(span);
                let mut numbers = Vec::new();
                slots.number(&[9, 7, 9, 8], &[0, 0, 0, 0], &mut numbers, account);
                assert_eq!(numbers, [0, 1, 0, 2], "{span:?}");
                slots.number(&[9, u64::MAX, 7, 9], &[5_000_000, 0, 0, 0], &mut numbers, account);
                assert_eq!(numbers, [3, 4, 1, 0], "{span:?}");
                assert_eq!(
                    slots.groups,
                    [(0, 9), (0, 7), (0, 8), (5_000_000, 9), (0, u64::MAX)]
                );
                assert_eq!(slots.counts, [3, 2, 1, 1, 1]);
            });
        }
    }

    /// Rows of many groups around, of a few and of many keys: numbers are those of a map, in arrays or not.
    #[test]
    fn numbers_are_those_of_a_map_while_arrays_come_and_go() {
        let mut rng = fastrand::Rng::with_seed(5);
        for keys in [1, 40, 20_000, 300_000] {
            testing::with_account(|account| {
                let mut slots = Slots::new(Some((10, 10 + keys - 1)));
                let mut expected: HashMap<(u32, u64), u32> = HashMap::default();
                let (mut numbers, mut arrays) = (Vec::new(), [false; 2]);
                for block in 0..2_000_u32 {
                    let around: Vec<u32> = (0..64).map(|_| rng.u32(..=block / 100)).collect();
                    let own: Vec<u64> = (0..64).map(|_| 10 + rng.u64(..keys) * rng.u64(..2)).collect();
                    slots.number(&own, &around, &mut numbers, account);
                    for ((key, around), number) in own.iter().zip(&around).zip(&numbers) {
                        let next = expected.len() as u32;
                        assert_eq!(number, expected.entry((*around, *key)).or_insert(next));
                    }
                    arrays[usize::from(matches!(slots.by_key, ByKey::Places(_)))] = true;
                }
                assert_eq!(slots.counts.iter().sum::<u64>(), 2_000 * 64);
                assert_eq!(arrays[1], keys < 100_000, "{keys}");
                assert_eq!(arrays[0], keys > 1_000, "{keys}");
            });
        }
    }

    /// Each new group around asks for a larger array, for which there is no room.
    #[test]
    fn an_array_without_room_to_grow_is_not_made_again_and_again() {
        testing::with_account(|account| {
            account.hold_for_segment(42 << 20).expect("there is room");
            let mut slots = Slots::new(Some((0, 999)));
            let (mut numbers, mut turns, mut array) = (Vec::new(), 0, false);
            let keys: Vec<u64> = (0..256).map(|nth| nth * 7 % 1_000).collect();
            // Twice each: the second time there is no new group.
            for block in 0..3_000 {
                slots.number(&keys, &[block / 2; 256], &mut numbers, account);
                turns += usize::from(
                    std::mem::replace(&mut array, matches!(slots.by_key, ByKey::Places(_))) != array,
                );
            }
            assert_eq!(slots.groups.len(), 1_500 * 256);
            assert!(turns <= 20, "{turns} turns");
        });
    }

    #[test]
    fn a_few_documents_among_very_many_keys_take_no_array() {
        testing::with_account(|account| {
            let mut slots = Slots::new(Some((0, 4_000_000)));
            let mut numbers = Vec::new();
            for _ in 0..1_000 {
                slots.number(&[3_999_999; 64], &[0; 64], &mut numbers, account);
            }
            assert!(matches!(slots.by_key, ByKey::Hashed(_)));
        });
    }
}
