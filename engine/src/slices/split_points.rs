//! Split points of a table whose keys don't begin with a hash: keys that are sampled from its rows at equal distances.

use souk_storage::{KeyBound, PrimaryKey};

use crate::error::Result;

/// Most sampled keys of a table. Of a table with more rows at least half as many are kept: four for each of
/// [`SLICES_MAX`](super::SLICES_MAX) slices.
const KEYS_MAX: usize = 512;

/// Sampled keys of a table: of every `distance`-th of the rows that were counted, from the first on.
#[derive(Debug)]
pub(crate) struct SplitPoints {
    keys: Vec<PrimaryKey>,
    distance: usize,
    rows: usize,
}

impl Default for SplitPoints {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            distance: 1,
            rows: 0,
        }
    }
}

impl SplitPoints {
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

    /// The split point before slice `number` of `count`: all have about the same number of rows.
    pub(crate) fn before(&self, number: u16, count: u16) -> KeyBound {
        let row = self.rows * usize::from(number) / usize::from(count);
        let key = self.keys.get(row / self.distance);
        key.map_or(KeyBound::Max, |key| KeyBound::Before(key.clone()))
    }
}

/// A resumable scan of a table's rows for split points. It is kept with the snapshot that it reads: the next call goes on where one
/// that has ended left it.
#[derive(Debug, Default)]
pub(crate) struct SplitPointScan {
    points: SplitPoints,
    at: ScannedTo,
}

/// How far rows are read.
#[derive(Debug, Default)]
enum ScannedTo {
    #[default]
    Nothing,
    /// To before this key.
    Key(PrimaryKey),
    All,
}

/// The keys of some rows, in their order.
pub(crate) struct ScannedPage {
    pub(crate) keys: Vec<PrimaryKey>,
    /// The key to go on at, if there may be more rows.
    pub(crate) next: Option<PrimaryKey>,
}

impl SplitPointScan {
    /// Reads the rows that are left, and returns the split points. `read` reads a page from a key on, or the first one.
    pub(crate) async fn finish<R>(
        &mut self,
        mut read: impl FnMut(Option<PrimaryKey>) -> R,
    ) -> Result<&SplitPoints>
    where
        R: Future<Output = Result<ScannedPage>>,
    {
        loop {
            let from = match &self.at {
                ScannedTo::Nothing => None,
                ScannedTo::Key(key) => Some(key.clone()),
                ScannedTo::All => return Ok(&self.points),
            };
            let page = read(from).await?;
            for key in &page.keys {
                self.points.count(key);
            }
            self.at = page.next.map_or(ScannedTo::All, ScannedTo::Key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future;

    use futures_util::FutureExt as _;
    use souk_storage::KeyValue;

    use super::*;
    use crate::error::EngineError;
    use crate::slices::SLICES_MAX;

    fn key(nth: usize) -> PrimaryKey {
        let nth = i64::try_from(nth).expect("a small number");
        PrimaryKey::new([KeyValue::from(nth)]).expect("a key")
    }

    #[test]
    fn slices_have_about_as_many_rows_however_many_there_are() {
        for rows in [0, 1, 5, 63, 64, 512, 513, 1_024, 1_025, 10_000] {
            let mut points = SplitPoints::default();
            let keys: Vec<_> = (0..rows).map(key).collect();
            for key in &keys {
                points.count(key);
            }
            assert!(points.keys.len() <= KEYS_MAX);
            for count in [1, 2, 7, SLICES_MAX] {
                let place = |number| match (number, points.before(number, count)) {
                    (0, _) => 0,
                    (_, KeyBound::Before(cut)) => keys.partition_point(|key| *key < cut),
                    (_, bound) => {
                        assert_eq!((rows, bound), (0, KeyBound::Max));
                        0
                    }
                };
                let mut places: Vec<_> = (0..count).map(place).collect();
                places.push(rows);
                let most = rows / usize::from(count) + points.distance + 1;
                for ends in places.windows(2) {
                    assert!(ends[0] <= ends[1], "{rows} {count}: {places:?}");
                    assert!(ends[1] - ends[0] <= most, "{rows} {count}: {places:?}");
                }
            }
        }
    }

    /// A page of ten rows, of twenty-five.
    fn page(from: Option<PrimaryKey>) -> ScannedPage {
        let first = from.map_or(0, |key| key.values()[0].as_integer().expect("a number"));
        let nth = |nth: i64| key(usize::try_from(nth).expect("a small number"));
        ScannedPage {
            keys: (first..(first + 10).min(25)).map(nth).collect(),
            next: (first + 10 < 25).then(|| nth(first + 10)),
        }
    }

    #[test]
    fn a_scan_goes_on_where_another_call_left_it() {
        let mut scan = SplitPointScan::default();
        let second = Some(key(10));
        let left = scan.finish(|from| {
            let hangs = from == second;
            async move {
                if hangs {
                    future::pending::<()>().await;
                }
                Ok(page(from))
            }
        });
        assert!(left.now_or_never().is_none(), "it waits for the second page");
        let failed = scan.finish(|from| {
            future::ready(match from == second {
                true => Ok(page(from)),
                false => Err(EngineError::Closing),
            })
        });
        assert!(
            failed.now_or_never().is_some_and(|failed| failed.is_err()),
            "the third fails"
        );
        let mut asked = Vec::new();
        let points = scan.finish(|from| {
            asked.push(from.clone());
            future::ready(Ok(page(from)))
        });
        let points = points
            .now_or_never()
            .expect("it waits for nothing")
            .expect("counted");
        assert_eq!(points.rows, 25);
        assert_eq!(points.before(1, 5), KeyBound::Before(key(5)));
        assert_eq!(asked, [Some(key(20))]);
        let done = scan.finish(|_| future::ready(Err(EngineError::Closing)));
        assert_eq!(
            done.now_or_never()
                .expect("it waits for nothing")
                .expect("counted")
                .rows,
            25
        );
    }
}
