//! A table that is open, with its search indexes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use souk_index::IndexSize;
use souk_storage::Table;
use xxhash_rust::xxh3::Xxh3;

use crate::definition::TableDefinition;
use crate::error::{EngineError, Result};
use crate::handovers::Handovers;
use crate::index_change::KeptChanges;
use crate::open_index::OpenIndex;
use crate::owners::OwnerPlace;
use crate::turns::Turns;

/// Where the definition of a table is at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In code; changes of its index, and further indexes, are kept beside it.
    Code,
    /// In the catalog.
    Catalog,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct OpenTable {
    name: Arc<str>,
    pub(crate) home: Home,
    definition: RwLock<Arc<TableDefinition>>,
    pub(crate) table: Table,
    /// Its search indexes.
    indexes: RwLock<Arc<[Arc<OpenIndex>]>>,
    /// How often one of several indexes was picked by weight.
    picks: AtomicU64,
    pub(crate) turns: Turns,
    /// Of requests that are tried.
    pub(crate) attempts: Turns,
    pub(crate) handovers: Handovers,
    /// Of the index that code declares.
    pub(crate) kept: RwLock<KeptChanges>,
    dropped: AtomicBool,
}

impl OpenTable {
    /// `last` is the last sequence of the database.
    pub(crate) fn new(
        home: Home,
        definition: TableDefinition,
        table: Table,
        kept: KeptChanges,
        indexes: Vec<OpenIndex>,
        last: u64,
    ) -> Self {
        Self {
            name: definition.name().into(),
            home,
            definition: RwLock::new(Arc::new(definition)),
            table,
            indexes: RwLock::new(indexes.into_iter().map(Arc::new).collect()),
            picks: AtomicU64::new(0),
            turns: Turns::default(),
            attempts: Turns::default(),
            handovers: Handovers::since(last),
            kept: RwLock::new(kept),
            dropped: AtomicBool::new(false),
        }
    }

    /// A table of the catalog, of a database whose last sequence is `last`.
    ///
    /// # Errors
    /// [`souk_index::Error::InvalidSchema`].
    pub(crate) fn created(definition: TableDefinition, table: Table, last: u64) -> Result<Self> {
        let indexes = definition.indexes.iter();
        let indexes = indexes.map(|index| OpenIndex::new(&definition, index));
        let indexes = indexes.collect::<Result<_>>()?;
        let kept = KeptChanges::default();
        Ok(Self::new(Home::Catalog, definition, table, kept, indexes, last))
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// [`Self::name`], to be shared.
    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether it has a search index.
    pub(crate) fn is_searched(&self) -> bool {
        !self.indexes.read().is_empty()
    }

    /// Its search indexes, in the order of its definition.
    pub(crate) fn indexes(&self) -> Arc<[Arc<OpenIndex>]> {
        Arc::clone(&self.indexes.read())
    }

    /// The search index of a name.
    pub(crate) fn index(&self, name: &str) -> Option<Arc<OpenIndex>> {
        let indexes = self.indexes.read();
        indexes.iter().find(|index| index.name() == name).map(Arc::clone)
    }

    /// Those that searches are sent to which name none, with their weights.
    pub(crate) fn weighted(&self) -> Vec<(Arc<OpenIndex>, u8)> {
        // Weights change under the lock: all that are read here are of one moment.
        let indexes = self.indexes.read();
        let weights = indexes.iter().map(|index| (Arc::clone(index), index.weight()));
        weights.filter(|(_, weight)| *weight > 0).collect()
    }

    /// Gives the indexes the weights that the table is defined with, between two searches.
    pub(crate) fn weigh(&self) {
        let definition = self.definition();
        let indexes = self.indexes.write();
        for index in indexes.iter() {
            if let Some(defined) = definition.search_index(index.name()) {
                index.weigh(defined.weight);
            }
        }
    }

    /// Whether another definition would leave the searches that name no index to indexes that don't answer, while one answers them now.
    pub(crate) fn would_silence(&self, definition: &TableDefinition) -> bool {
        let answers_now = self.weighted().iter().any(|(index, _)| index.answers());
        let answers_then = self.indexes().iter().any(|index| {
            let defined = definition.search_index(index.name());
            index.answers() && defined.is_some_and(|defined| defined.weight > 0)
        });
        answers_now && !answers_then
    }

    /// About how large an index of it is: as the first is that answers and can be measured, whichever that is.
    pub(crate) fn measured(&self) -> Option<IndexSize> {
        self.indexes().iter().find_map(|index| index.state.size())
    }

    /// Adds a search index behind the others.
    pub(crate) fn add(&self, index: Arc<OpenIndex>) {
        let mut indexes = self.indexes.write();
        *indexes = indexes.iter().cloned().chain([index]).collect();
    }

    /// Removes a search index.
    pub(crate) fn take_out(&self, name: &str) {
        let mut indexes = self.indexes.write();
        *indexes = indexes
            .iter()
            .filter(|index| index.name() != name)
            .cloned()
            .collect();
    }

    /// The indexes that searches which name none are sent to, with their weights: those that answer and don't stand still; where there are
    /// none, those that answer; where none does, all that have a weight.
    pub(crate) fn able(&self) -> Vec<(Arc<OpenIndex>, u8)> {
        able(self.weighted())
    }

    /// Picks the index of a search that names none: each that is [able](Self::able) gets its share in proportion to its weight.
    ///
    /// # Errors
    /// [`EngineError::NotSearched`].
    pub(crate) fn pick_index(&self) -> Result<Arc<OpenIndex>> {
        let able = self.able();
        let weights: Vec<u8> = able.iter().map(|(_, weight)| *weight).collect();
        let at = match weights.len() {
            1 => 0,
            _ => share(&weights, self.picks.fetch_add(1, Ordering::Relaxed)),
        };
        let index = able.into_iter().nth(at).map(|(index, _)| index);
        index.ok_or_else(|| EngineError::NotSearched {
            table: self.name.to_string(),
        })
    }

    /// What it is at this moment.
    pub(crate) fn definition(&self) -> Arc<TableDefinition> {
        Arc::clone(&self.definition.read())
    }

    /// Makes it something else.
    pub(crate) fn define(&self, definition: TableDefinition) {
        *self.definition.write() = Arc::new(definition);
    }

    /// Tells it from all other tables of the database, also from earlier ones of its name.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(&self.table.id().0.to_be_bytes());
        hash.update(self.name.as_bytes());
        hash.digest()
    }

    /// Which parts of its rows name owners.
    pub(crate) fn owner_places(&self) -> Vec<OwnerPlace> {
        let definition = self.definition();
        let owners = definition.owners.iter();
        owners.map(|owner| OwnerPlace::new(&definition, owner)).collect()
    }

    /// Says that it is there no more.
    pub(crate) fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Refuses when it is there no more.
    ///
    /// # Errors
    /// [`EngineError::TableNotFound`].
    pub(crate) fn check_there(&self) -> Result<()> {
        match self.dropped.load(Ordering::Acquire) {
            true => Err(EngineError::TableNotFound {
                table: self.name.to_string(),
            }),
            false => Ok(()),
        }
    }
}

/// Whose turn the nth is of some with these weights. Over any run of turns, each has its share of them but for one or two: turns are
/// spread by multiples of the golden ratio, which draws of chance aren't.
fn share(weights: &[u8], nth: u64) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let place = (u128::from(nth.wrapping_mul(GOLDEN)) * u128::from(sum)) >> 64;
    let mut end = 0;
    let turn = weights.iter().position(|weight| {
        end += u128::from(*weight);
        place < end
    });
    turn.unwrap_or_default()
}

/// Those of several indexes that are [able](OpenTable::able).
fn able(mut indexes: Vec<(Arc<OpenIndex>, u8)>) -> Vec<(Arc<OpenIndex>, u8)> {
    if indexes.len() < 2 {
        return indexes;
    }
    let fit = [OpenIndex::is_able, OpenIndex::answers]
        .into_iter()
        .find(|is_fit| indexes.iter().any(|(index, _)| is_fit(index)));
    if let Some(is_fit) = fit {
        indexes.retain(|(index, _)| is_fit(index));
    }
    indexes
}

#[cfg(test)]
mod tests {
    use souk_index::Field;

    use super::*;
    use crate::definition::SearchIndexDefinition;
    use crate::index_state::tests::serving;
    use crate::index_state::{IndexState, STALLED_AFTER};

    #[tokio::test(start_paused = true)]
    async fn one_that_stands_still_answers_before_one_that_is_being_built() {
        let table = TableDefinition::hashed("numbers").field(Field::long("number"));
        let search = |name: &str| SearchIndexDefinition::new(name).field(Field::long("number"));
        let index = |name: &str, state: IndexState| {
            let mut index = OpenIndex::new(&table, &search(name)).expect("a design");
            index.state = Arc::new(state);
            (Arc::new(index), 50)
        };
        let old = index("numbers", serving());
        let built = index("numbers.built", IndexState::new("numbers.built".into()));
        let good = index("numbers.good", serving());
        let names = |indexes: &[&(Arc<OpenIndex>, u8)]| -> Vec<String> {
            let able = able(indexes.iter().copied().cloned().collect());
            able.iter().map(|(index, _)| index.name().to_owned()).collect()
        };
        assert_eq!(names(&[&old, &built]), ["numbers"]);
        old.0
            .state
            .stall("the device has too little room", "no space left");
        tokio::time::advance(STALLED_AFTER).await;
        assert_eq!(names(&[&old, &built]), ["numbers"]);
        assert_eq!(names(&[&old, &built, &good]), ["numbers.good"]);
        assert_eq!(names(&[&built, &built]).len(), 2, "none answers");
    }

    #[test]
    fn each_has_its_share_of_any_run_of_turns() {
        for weights in [
            vec![100],
            vec![90, 10],
            vec![1, 100],
            vec![50, 30, 15, 5],
            vec![3, 0, 7],
        ] {
            let sum: u32 = weights.iter().map(|weight| u32::from(*weight)).sum();
            for from in [0, 1, 12_345, u64::MAX - 500] {
                let mut turns = vec![0_u32; weights.len()];
                for nth in 0..1_000 {
                    turns[share(&weights, from.wrapping_add(nth))] += 1;
                }
                for (turns, weight) in turns.iter().zip(&weights) {
                    let expected = 1_000 * u32::from(*weight) / sum;
                    assert!(turns.abs_diff(expected) <= 3, "{weights:?} from {from}: {turns}");
                    assert!(*weight > 0 || *turns == 0);
                }
            }
        }
    }
}
