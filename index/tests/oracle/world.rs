//! An index with a random history, and the documents that it ought to have.

use fastrand::Rng;
use souk_index::{
    Cancellation, Error, Index, IndexOptions, IndexWriter, Operation, SearchRequest, SearchResult, Searcher,
};

use crate::universe::{Documents, Universe, once_in};

pub(crate) struct World {
    pub(crate) universe: Universe,
    pub(crate) documents: Documents,
    pub(crate) index: Index,
    pub(crate) writer: IndexWriter,
    /// How many keys documents have.
    keys: usize,
    sequence: u64,
}

impl World {
    /// An index of a few segments, sometimes of many, after updates, deletes, and perhaps merges.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let universe = Universe::new(rng);
        let merged_at = if rng.bool() { 100 } else { rng.usize(2..5) };
        let options = IndexOptions::default().merging_eagerly(merged_at);
        let index = Index::create_in_ram(universe.schema.clone(), options).expect("an index");
        let writer = index.writer().expect("the writer");
        let keys = rng.usize(5..61);
        let documents = Documents::new();
        let mut world = Self {
            universe,
            documents,
            index,
            writer,
            keys,
            sequence: 0,
        };
        let writes = if once_in(rng, 8) {
            rng.usize(12..25)
        } else {
            rng.usize(1..6)
        };
        for _ in 0..writes {
            world.write(rng);
        }
        if once_in(rng, 4) {
            world.writer.merge_all().expect("the merge works");
        }
        world
    }

    /// Inserts, updates and deletes, the same key several times among them.
    pub(crate) fn write(&mut self, rng: &mut Rng) {
        let count = rng.usize(1..=self.keys / 2 + 1);
        let operations = (0..count).map(|_| {
            let document = self.universe.document(rng, self.keys);
            let key = document.key.clone();
            if once_in(rng, 6) {
                self.documents.remove(&key);
                return Operation::Delete { key };
            }
            let seen = self.universe.seen(&document);
            match self.documents.insert(key, seen) {
                None if rng.bool() => Operation::Insert(document),
                _ => Operation::Upsert(document),
            }
        });
        let operations = operations.collect();
        self.sequence += 1;
        self.writer.apply(operations).expect("the changes are taken in");
        self.writer.commit(self.sequence).expect("the commit works");
        assert_eq!(self.index.misfits().count, 0, "{:?}", self.index.misfits());
    }
}

/// The answer to a search, or why there is none.
pub(crate) fn ask(searcher: &Searcher, request: &SearchRequest) -> Result<SearchResult, Error> {
    searcher.search(request, &Cancellation::none())
}

/// The answer to a search that has one.
pub(crate) fn answer(searcher: &Searcher, request: &SearchRequest) -> SearchResult {
    match ask(searcher, request) {
        Ok(result) => result,
        Err(error) => panic!("{error}\n{request:#?}"),
    }
}
