//! When callers last lost a row to somebody else: what their searches have to see, so that nothing of it is left in them.
//!
//! An index follows the rows with a lag, and what it answers beside rows (ids, totals, aggregations, suggestions) isn't
//! compared with them. So a search of a caller who meets own rows alone waits for the last write that took one from him.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use souk_storage::Row;

use crate::owners::{OwnerPlace, named};

/// Owners that are told apart, unless their hashes meet: then one waits for what the other lost.
const STRIPES: usize = 1_024;

/// The owners from whom a write takes a row, each with the field that names it.
pub(crate) type Lost = Vec<(String, String)>;

/// The last loss of each owner of a table's rows.
#[derive(Debug)]
pub(crate) struct Handovers {
    /// What is known of each owner before anything is noted.
    since: u64,
    /// Made for the first note.
    stripes: OnceLock<Box<[AtomicU64]>>,
    /// Seeded anew by each process, so that nobody can choose whose stripe is shared.
    hasher: RandomState,
}

impl Handovers {
    /// Those of a table that is opened when `last` is the last sequence: of what was before, nothing is known but that.
    pub(crate) fn since(last: u64) -> Self {
        Self {
            since: last,
            stripes: OnceLock::new(),
            hasher: RandomState::new(),
        }
    }

    /// The last write that took a row from the owner that a field names, or a later one.
    pub(crate) fn last(&self, field: &str, owner: &str) -> u64 {
        let stripes = self.stripes.get();
        let stripe = stripes.and_then(|stripes| stripes.get(self.stripe(field, owner)?));
        stripe.map_or(self.since, |last| last.load(Ordering::Acquire))
    }

    /// Notes that the write with this sequence took a row from these owners. To be called before the write is answered.
    pub(crate) fn note(&self, lost: &Lost, sequence: u64) {
        for (field, owner) in lost {
            let stripes = || (0..STRIPES).map(|_| AtomicU64::new(self.since)).collect();
            let stripes = self.stripes.get_or_init(stripes);
            if let Some(last) = self.stripe(field, owner).and_then(|stripe| stripes.get(stripe)) {
                last.fetch_max(sequence, Ordering::AcqRel);
            }
        }
    }

    fn stripe(&self, field: &str, owner: &str) -> Option<usize> {
        let hash = self.hasher.hash_one((field, owner));
        usize::try_from(hash % STRIPES as u64).ok()
    }
}

/// The owners who lose a row when what names them becomes something else; `keeps` tells who stays named.
pub(crate) fn lost(row: &Row, places: &[OwnerPlace], keeps: impl Fn(&OwnerPlace, &str) -> bool) -> Lost {
    // Whom the key names keeps the row.
    let places = places.iter().filter(|place| place.key.is_none());
    let lost = places.filter_map(|place| {
        let owner = named(place, row)?;
        (!keeps(place, owner)).then(|| (place.field.clone(), owner.to_owned()))
    });
    lost.collect()
}
