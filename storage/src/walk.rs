//! Walking over a part of a space from its lowest key up, page by page, in bounded memory.

use bytes::Bytes;
use souk_kv::{Direction, Error, KvSnapshot, Scan, ScanPage, Space};

use crate::key;
use crate::limits::{MAX_SCANNED_BYTES, MAX_SCANNED_ROWS};

/// Above every key of every space.
const END: [u8; 16] = [0xff; 16];

/// Where a walk is.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    pub(crate) space: Space,
    /// The next key to read; `None` at the end.
    low: Option<Bytes>,
    high: Bytes,
}

impl Walk {
    /// Over all keys of a space.
    pub(crate) fn all(space: Space) -> Self {
        Self::between(space, Bytes::new(), Bytes::from_static(&END))
    }

    /// Over the keys from `low` to before `high`.
    pub(crate) fn between(space: Space, low: Bytes, high: Bytes) -> Self {
        let low = Some(low);
        Self { space, low, high }
    }

    /// Over the keys that begin with `prefix`, which ends where a key value begins or ends.
    pub(crate) fn within(space: Space, prefix: &[u8]) -> Self {
        Self::between(space, Bytes::copy_from_slice(prefix), key::after(prefix))
    }

    /// The next page; `None` at the end. After an error it stands where it stood.
    pub(crate) async fn next(
        &mut self,
        snapshot: &dyn KvSnapshot,
    ) -> Result<Option<Vec<(Bytes, Bytes)>>, Error> {
        self.next_of(snapshot, MAX_SCANNED_ROWS).await
    }

    /// The next page of at most so many entries.
    pub(crate) async fn next_of(
        &mut self,
        snapshot: &dyn KvSnapshot,
        entries: usize,
    ) -> Result<Option<Vec<(Bytes, Bytes)>>, Error> {
        let Some(low) = self.low.clone() else {
            return Ok(None);
        };
        let page = snapshot.scan(self.scan(low, Direction::Forward, entries)).await?;
        self.low = page.next;
        // A page without entries is the last.
        Ok((!page.entries.is_empty()).then_some(page.entries))
    }

    /// A page of what is left, from the highest key down to where the walk is.
    pub(crate) async fn last_of(
        &self,
        snapshot: &dyn KvSnapshot,
        high: Bytes,
        entries: usize,
    ) -> Result<ScanPage, Error> {
        let low = self.low.clone().unwrap_or_else(|| high.clone());
        let scan = self.scan(low, Direction::Backward, entries);
        snapshot.scan(Scan { high, ..scan }).await
    }

    /// The key it reads next.
    pub(crate) fn low(&self) -> Option<&Bytes> {
        self.low.as_ref()
    }

    /// The key it ends before.
    pub(crate) fn high(&self) -> Bytes {
        self.high.clone()
    }

    /// Goes on from another key; `None` ends it.
    pub(crate) fn go_to(&mut self, key: Option<Bytes>) {
        self.low = key;
    }

    fn scan(&self, low: Bytes, direction: Direction, entries: usize) -> Scan {
        Scan {
            space: self.space,
            low,
            high: self.high.clone(),
            direction,
            entries,
            bytes: MAX_SCANNED_BYTES,
        }
    }
}

/// All entries of a part of the catalog.
pub(crate) async fn all(
    snapshot: &dyn KvSnapshot,
    (mut low, high): (Bytes, Bytes),
) -> Result<Vec<(Bytes, Bytes)>, Error> {
    let mut entries = Vec::new();
    loop {
        let scan = Scan {
            space: Space::Catalog,
            low,
            high: high.clone(),
            direction: Direction::Forward,
            entries: MAX_SCANNED_ROWS,
            bytes: MAX_SCANNED_BYTES,
        };
        let page = snapshot.scan(scan).await?;
        entries.extend(page.entries);
        match page.next {
            Some(next) => low = next,
            None => return Ok(entries),
        }
    }
}
