//! Histories of indexes with schemas that are made up: any mix of types, arrays, objects inside objects, further views
//! of a field, analyzers. In between come updates, deletes, merges, restarts, and other schemas for the same documents.
//!
//! A history depends on its seed alone. `SOUK_SEED=n` runs the one history of a seed, `SOUK_LONG=1` many more of them.

pub(crate) mod queries;
mod sorts;
mod universe;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;
use souk_index::{Document, Index, IndexOptions, IndexWriter, Operation, Schema};

use self::universe::Universe;
use super::compare::Documents;
use super::{commit, compare};

/// Histories of a normal run, and of a long one.
const HISTORIES: [u64; 2] = [64, 2_000];
/// Steps of a history; each ends in searches.
const STEPS: u64 = 8;
/// Searches after each step.
const SEARCHES: u64 = 42;

/// An index, and the documents that it ought to have.
struct History {
    rng: Rng,
    universe: Universe,
    schema: Schema,
    folder: tempfile::TempDir,
    /// How often the schema was changed: each has a folder of its own.
    generation: u32,
    options: IndexOptions,
    index: Index,
    writer: IndexWriter,
    /// As they are to be found.
    documents: Documents,
    /// As they were given.
    given: Documents,
    sequence: u64,
}

fn open(folder: &Path, generation: u32, schema: &Schema, options: &IndexOptions) -> (Index, IndexWriter) {
    let folder = folder.join(generation.to_string());
    let index = Index::open(&folder, schema.clone(), options.clone()).expect("the index opens");
    let writer = index.writer().expect("the writer");
    (index, writer)
}

impl History {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let universe = Universe::new(&mut rng);
        let schema = universe.schema(&mut rng);
        let folder = tempfile::tempdir().expect("a folder");
        let options = IndexOptions::default().merging_eagerly(rng.usize(2..6));
        let (index, writer) = open(folder.path(), 0, &schema, &options);
        Self {
            rng,
            universe,
            schema,
            folder,
            generation: 0,
            options,
            index,
            writer,
            documents: Documents::new(),
            given: Documents::new(),
            sequence: 0,
        }
    }

    /// Inserts, updates and deletes, the same key several times among them.
    fn change(&mut self) {
        let mut operations = Vec::new();
        for _ in 0..self.rng.usize(1..40) {
            let key = self.universe.key(&mut self.rng);
            if self.rng.u8(..5) == 0 {
                self.documents.remove(&key);
                self.given.remove(&key);
                operations.push(Operation::Delete { key });
                continue;
            }
            let given = self.universe.document(&mut self.rng);
            self.documents
                .insert(key.clone(), self.universe.found(&key, &given));
            let document = Document {
                key: key.clone(),
                fields: given.clone(),
            };
            operations.push(match self.given.insert(key, given) {
                None if self.rng.bool() => Operation::Insert(document),
                _ => Operation::Upsert(document),
            });
        }
        self.sequence += 1;
        commit(&mut self.writer, operations, self.sequence);
    }

    fn restart(self) -> Self {
        self.writer.close().expect("the writer closes");
        drop(self.index);
        let (index, writer) = open(self.folder.path(), self.generation, &self.schema, &self.options);
        assert_eq!(index.durable_sequence(), self.sequence);
        Self {
            index,
            writer,
            ..self
        }
    }

    /// Builds an index with another schema from the documents.
    fn change_schema(mut self) -> Self {
        self.schema = self.universe.schema(&mut self.rng);
        self.generation += 1;
        let (index, writer) = open(self.folder.path(), self.generation, &self.schema, &self.options);
        (self.index, self.writer) = (index, writer);
        let inserts = self.given.iter().map(|(key, fields)| {
            Operation::Insert(Document {
                key: key.clone(),
                fields: fields.clone(),
            })
        });
        commit(&mut self.writer, inserts.collect(), self.sequence);
        self
    }

    /// How many documents the searches found.
    fn search(&mut self) -> u64 {
        let searcher = self.index.searcher();
        assert_eq!(
            (searcher.sequence(), self.index.misfits().count),
            (self.sequence, 0),
            "{:?}",
            self.index.misfits()
        );
        assert_eq!(
            searcher.count().expect("counting works"),
            self.documents.len() as u64
        );
        let mut found = 0;
        for _ in 0..SEARCHES {
            let query = queries::query(&mut self.rng, &self.schema, "", 3);
            let sorts = sorts::sorts(&mut self.rng, &self.schema);
            let asked = (query, sorts);
            found += compare::search(
                &mut self.rng,
                &self.index,
                &mut self.writer,
                &self.documents,
                asked,
            ) as u64;
        }
        found
    }
}

/// Searches, and documents found by them.
fn run(seed: u64) -> (u64, u64) {
    let mut history = History::new(seed);
    let mut found = 0;
    for _ in 0..STEPS {
        history.change();
        match history.rng.u8(..8) {
            0 => history.writer.merge_all().expect("the merge works"),
            1 | 2 => history = history.restart(),
            3 | 4 => history = history.change_schema(),
            _ => {}
        }
        found += history.search();
    }
    (STEPS * SEARCHES, found)
}

/// Runs a history; a failure names its seed.
fn run_named(seed: u64) -> (u64, u64) {
    struct Name(u64);
    impl Drop for Name {
        fn drop(&mut self) {
            if thread::panicking() {
                println!("SOUK_SEED={} runs this history alone", self.0);
            }
        }
    }
    let _name = Name(seed);
    run(seed)
}

#[test]
fn searches_on_any_schema_agree_with_brute_force() {
    let variable = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    if let Some(seed) = souk_seeds::given() {
        println!("{:?} searches and hits", run_named(seed));
        return;
    }
    let histories = HISTORIES[usize::from(variable("SOUK_LONG") == Some(1))];
    let first = souk_seeds::seed() % (u64::MAX - histories);
    println!("seeds from {first}");
    let next = AtomicU64::new(0);
    let (searches, found) = (AtomicU64::new(0), AtomicU64::new(0));
    let worker = || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            if nth >= histories {
                break;
            }
            let (asked, hits) = run_named(first + nth);
            searches.fetch_add(asked, Ordering::Relaxed);
            found.fetch_add(hits, Ordering::Relaxed);
        }
    };
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads.min(4) {
            scope.spawn(worker);
        }
    });
    let (searches, found) = (searches.into_inner(), found.into_inner());
    println!("{searches} searches, {found} hits");
    assert!(
        searches >= 20_000 && found / searches >= 2,
        "the test tests too little"
    );
}
