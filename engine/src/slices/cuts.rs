//! Cuts of a table by its rows, where its keys don't begin with a hash.

use souk_storage::{KeyBound, PrimaryKey};

/// Most keys that are kept of a table. At least half as many are, where there are rows: four for each of
/// [`SLICES_MAX`](super::SLICES_MAX) slices.
const KEYS_MAX: usize = 512;

/// Sampled keys of a table: of every `distance`-th of the rows that were counted, from the first on.
#[derive(Debug)]
pub(crate) struct Cuts {
    keys: Vec<PrimaryKey>,
    distance: usize,
    rows: usize,
}

impl Default for Cuts {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            distance: 1,
            rows: 0,
        }
    }
}

impl Cuts {
    /// Counts the next row, in the order of the keys.
    pub(crate) fn count(&mut self, key: &PrimaryKey) {
        if self.rows.is_multiple_of(self.distance) {
            if self.keys.len() == KEYS_MAX {
                let mut keeps = false;
                self.keys.retain(|_| {
                    keeps = !keeps;
                    keeps
                });
                self.distance *= 2;
            }
            self.keys.push(key.clone());
        }
        self.rows += 1;
    }

    /// The cut before slice `number` of `count`: each has about as many rows.
    pub(crate) fn before(&self, number: u16, count: u16) -> KeyBound {
        let row = self.rows * usize::from(number) / usize::from(count);
        let key = self.keys.get(row / self.distance);
        key.map_or(KeyBound::Max, |key| KeyBound::Before(key.clone()))
    }
}

#[cfg(test)]
mod tests {
    use souk_storage::KeyValue;

    use super::*;
    use crate::slices::SLICES_MAX;

    fn key(nth: usize) -> PrimaryKey {
        let nth = i64::try_from(nth).expect("a small number");
        PrimaryKey::new([KeyValue::from(nth)]).expect("a key")
    }

    #[test]
    fn slices_have_about_as_many_rows_however_many_there_are() {
        for rows in [0, 1, 5, 63, 64, 512, 513, 1_024, 1_025, 10_000] {
            let mut cuts = Cuts::default();
            let keys: Vec<_> = (0..rows).map(key).collect();
            for key in &keys {
                cuts.count(key);
            }
            assert!(cuts.keys.len() <= KEYS_MAX);
            for count in [1, 2, 7, SLICES_MAX] {
                let place = |number| match (number, cuts.before(number, count)) {
                    (0, _) => 0,
                    (_, KeyBound::Before(cut)) => keys.partition_point(|key| *key < cut),
                    (_, bound) => {
                        assert_eq!((rows, bound), (0, KeyBound::Max));
                        0
                    }
                };
                let mut places: Vec<_> = (0..count).map(place).collect();
                places.push(rows);
                let most = rows / usize::from(count) + cuts.distance + 1;
                for ends in places.windows(2) {
                    assert!(ends[0] <= ends[1], "{rows} {count}: {places:?}");
                    assert!(ends[1] - ends[0] <= most, "{rows} {count}: {places:?}");
                }
            }
        }
    }
}
