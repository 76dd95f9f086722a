//! Random histories of a table and its indexes, against a map: indexes are created, changed, weighed and dropped while it is
//! written, and over restarts; each answers as the rows say.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use souk_engine::definition::MAX_WEIGHT;
use souk_engine::index::{Field, Query, QueryValue, SearchRequest};
use souk_engine::index_admin::IndexPhase;
use souk_engine::key::hashed;
use souk_engine::{
    ColumnReader, Columns, CorruptRow, Engine, EngineConfig, EngineError, Health, IndexChange, Principal,
    Resource, Search, SearchIndexDefinition, Source, TableDefinition, TableHandle, TableWrite, Tables,
};
use tempfile::TempDir;

use super::folders;
use crate::note;
use crate::{holdings, rounds, seed};

const WORDS: [&str; 3] = ["tea", "rice", "咖啡"];
/// What indexes may have beside the id: fields of columns, and one of another name than its column's.
const FIELDS: [&str; 3] = ["word", "size", "label"];

/// A row, as the model knows it.
#[derive(Clone, Debug, PartialEq)]
struct Spot {
    id: String,
    word: &'static str,
    size: i64,
}

impl Spot {
    fn columns(&self) -> Columns {
        Columns::new()
            .string("word", self.word)
            .integer("size", self.size)
    }
}

/// The name of the table that code declares.
const DECLARED: &str = "spots";

impl Resource for Spot {
    type Record = Self;
    const TABLE: &'static str = DECLARED;
    const NAME: &'static str = "spot";
    const ID_FIELD: &'static str = "spot_id";

    fn definition() -> TableDefinition {
        definition(Self::TABLE)
    }

    fn id(record: &Self) -> &str {
        &record.id
    }

    fn to_columns(record: &Self) -> Columns {
        record.columns()
    }

    fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
        let word = columns.string("word")?;
        let word = WORDS.into_iter().find(|known| *known == word);
        Ok(Self {
            id: id.to_owned(),
            word: word.ok_or_else(|| CorruptRow::new("word", "is none of the words"))?,
            size: columns.integer("size")?,
        })
    }
}

fn definition(table: &str) -> TableDefinition {
    TableDefinition::hashed(table)
        .id_field(Field::keyword("spot_id").key())
        .field(Field::keyword("word"))
}

/// A field of an index, and where it comes from.
fn field(name: &str) -> (Field, Source) {
    match name {
        "size" => (Field::long(name), Source::column(name)),
        "label" => (Field::keyword(name), Source::column("word")),
        _ => (Field::keyword(name), Source::column(name)),
    }
}

/// What the model knows of an index.
#[derive(Clone, Debug)]
struct Known {
    fields: BTreeSet<&'static str>,
    weight: u8,
}

/// What happened, so that a history that does nothing is none.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    writes: usize,
    hits: usize,
    pages: usize,
    unnamed: usize,
    unknown_fields: usize,
    created: usize,
    changed: usize,
    rebuilt: usize,
    weighed: usize,
    dropped: usize,
    needed: usize,
    restarts: usize,
    most: usize,
}

struct History {
    random: Rng,
    directory: TempDir,
    table: &'static str,
    engine: Option<Engine>,
    rows: BTreeMap<String, Spot>,
    indexes: BTreeMap<String, Known>,
    last: i64,
    met: Met,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_index_of_a_table_agrees_with_the_rows_through_all_that_can_happen_to_them() {
    let mut random = Rng::with_seed(seed("several indexes"));
    for round in 0..rounds(2, 24) {
        let table = [DECLARED, "places"][round % 2];
        let mut history = History::begin(random.fork(), table).await;
        for _ in 0..rounds(60, 1_000) {
            history.step().await;
        }
        // Once each at least, whatever was drawn.
        for own in ["b", "c", "d"] {
            history.create(own).await;
        }
        while history.rows.len() < 10 {
            history.write().await;
        }
        history.change().await;
        while history.met.weighed == 0 {
            history.weigh().await;
        }
        history.search_unnamed().await;
        while history.met.hits == 0 || history.met.unknown_fields == 0 {
            history.search().await;
        }
        history.restart().await;
        while history.met.dropped == 0 {
            history.weigh().await;
            history.drop_one().await;
        }
        history.search().await;
        let met = history.end().await;
        println!("{table}: {met:?}");
        let counts = [
            met.writes,
            met.hits,
            met.pages,
            met.unnamed,
            met.unknown_fields,
            met.created,
            met.changed,
            met.rebuilt,
            met.weighed,
            met.dropped,
            met.restarts,
        ];
        assert!(counts.iter().all(|count| *count > 0) && met.most >= 3, "{met:?}");
    }
}

impl History {
    async fn begin(random: Rng, table: &'static str) -> Self {
        let first = Known {
            fields: BTreeSet::from(["word"]),
            weight: MAX_WEIGHT,
        };
        let mut history = Self {
            random,
            directory: tempfile::tempdir().expect("a directory"),
            table,
            engine: None,
            rows: BTreeMap::new(),
            indexes: BTreeMap::from([(table.to_owned(), first)]),
            last: 0,
            met: Met::default(),
        };
        history.open().await;
        if table != DECLARED {
            let created = history.engine().create_table(definition(table)).await;
            created.expect("created");
        }
        history
    }

    async fn open(&mut self) {
        let config = EngineConfig::new(self.directory.path());
        let engine = Engine::open(config, Tables::new().table::<Spot>()).await;
        self.engine = Some(engine.expect("the engine opens"));
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("open")
    }

    fn table(&self) -> TableHandle {
        self.engine().table(self.table).expect("the table")
    }

    fn any_index(&mut self) -> String {
        let names: Vec<String> = self.indexes.keys().cloned().collect();
        self.random.choice(names).expect("one at least")
    }

    async fn step(&mut self) {
        match self.random.u8(..24) {
            0..=7 => self.write().await,
            8..=13 => self.search().await,
            14..=15 => self.search_unnamed().await,
            16 | 17 => {
                let own = self.random.choice(["b", "c", "d"]).expect("one");
                self.create(own).await;
            }
            18 => self.change().await,
            19 => self.rebuild().await,
            20 | 21 => self.weigh().await,
            22 => self.drop_one().await,
            _ => self.restart().await,
        }
    }

    async fn write(&mut self) {
        let mut spots = BTreeMap::new();
        for _ in 0..self.random.usize(1..8) {
            let id = format!("s{}", self.random.u8(..40));
            let spot = Spot {
                id: id.clone(),
                word: self.random.choice(WORDS).expect("one"),
                size: self.random.i64(0..4),
            };
            spots.insert(id, (self.random.u8(..4) > 0).then_some(spot));
        }
        self.met.writes += spots.len();
        let sequence = match self.table == DECLARED {
            true => self.write_resources(&spots).await,
            false => self.write_rows(&spots).await,
        };
        self.last = self.last.max(sequence);
        for (id, spot) in spots {
            match spot {
                Some(spot) => self.rows.insert(id, spot),
                None => self.rows.remove(&id),
            };
        }
    }

    async fn write_resources(&self, spots: &BTreeMap<String, Option<Spot>>) -> i64 {
        let collection = self.engine().collection::<Spot>().expect("declared");
        let mut last = 0;
        for (id, spot) in spots {
            if self.rows.contains_key(id) {
                last = collection.delete(id, None).await.expect("deleted").sequence;
            }
            if let Some(spot) = spot {
                let created = collection.create(spot.clone(), None, false).await;
                last = created.expect("created").sequence;
            }
        }
        last
    }

    async fn write_rows(&self, spots: &BTreeMap<String, Option<Spot>>) -> i64 {
        let writes = spots.iter().map(|(id, spot)| {
            let key = hashed(id).expect("short");
            match spot {
                Some(spot) => TableWrite::put(key, spot.columns().into_cells()),
                None => TableWrite::delete(key),
            }
        });
        let written = self.table().write(writes.collect(), None).await;
        written.expect("written").sequence
    }

    /// Waits until an index answers by what it is.
    async fn settle(&self, name: &str) {
        let known = &self.indexes[name];
        loop {
            let index = self.engine().index(name).await.expect("an index");
            assert_ne!(index.phase, IndexPhase::Failed, "{index:?}");
            assert_eq!(index.weight, known.weight, "{index:?}");
            let has = index.fields.iter().map(|field| field.path.as_str());
            // Beside the id, and the times of resources.
            let has: BTreeSet<&str> = has.filter(|path| FIELDS.contains(path)).collect();
            if index.phase == IndexPhase::Serving && index.build.is_none() && has == known.fields {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn settle_all(&self) {
        for name in self.indexes.keys() {
            self.settle(name).await;
        }
    }

    /// The ids that a search finds, page by page, while weights change between the pages.
    async fn found(&mut self, index: Option<&str>, query: Query) -> Result<BTreeSet<String>, EngineError> {
        let mut found = BTreeSet::new();
        let mut token = None;
        loop {
            let mut request = SearchRequest::new(query.clone());
            request.page_size = 7;
            request.after.clone_from(&token);
            let mut search = Search::new(request);
            search.min_sequence = self.last.unsigned_abs();
            let table = self.table();
            let page = match self.random.bool() {
                // Only the first page has to say where it goes.
                true if token.is_some() => table.search(search).await?,
                _ => table.for_search(index, token.as_deref())?.search(search).await?,
            };
            for hit in page.hits {
                let key = TableHandle::key_of(&hit.key)?;
                let row = hit.row.expect("its row");
                assert_eq!(row.key, key);
                let id = key.values()[1].as_str().expect("a text").to_owned();
                assert!(found.insert(id), "a hit is on one page");
            }
            if page.next_page_token.is_empty() {
                return Ok(found);
            }
            self.met.pages += 1;
            token = Some(page.next_page_token);
            if self.random.u8(..4) == 0 {
                self.weigh().await;
            }
        }
    }

    /// A search of an index by its name finds what the rows say, or says that it hasn't the field.
    async fn search(&mut self) {
        let name = self.any_index();
        self.settle(&name).await;
        let by = self.random.choice(FIELDS).expect("one");
        let word = self.random.choice(WORDS).expect("one");
        let size = self.random.i64(0..4);
        let value: QueryValue = if by == "size" { size.into() } else { word.into() };
        let query = Query::Term {
            field: by.to_owned(),
            value,
            weight: 1.0,
        };
        let matches = |spot: &&Spot| {
            if by == "size" {
                spot.size == size
            } else {
                spot.word == word
            }
        };
        let expected: BTreeSet<String> = self
            .rows
            .values()
            .filter(matches)
            .map(|spot| spot.id.clone())
            .collect();
        match self.found(Some(&name), query).await {
            Ok(found) => {
                assert!(self.indexes[&name].fields.contains(by), "{name} has no {by}");
                assert_eq!(found, expected, "{by} of {name}");
                self.met.hits += found.len();
            }
            Err(EngineError::Index(_)) => {
                assert!(!self.indexes[&name].fields.contains(by), "{name} has {by}");
                self.met.unknown_fields += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    /// A search that names none finds everything by whichever index.
    async fn search_unnamed(&mut self) {
        // A page token ends with the design of its index.
        self.settle_all().await;
        let mut health = self.engine().health();
        health.wait_for(Health::is_serving).await.expect("it lives");
        let found = self.found(None, Query::MatchAll).await.expect("all");
        assert!(found.iter().eq(self.rows.keys()), "{found:?}");
        self.met.unnamed += 1;
    }

    async fn create(&mut self, own: &str) {
        let name = format!("{}.{own}", self.table);
        let mut index = SearchIndexDefinition::new(&name)
            .field_from(Field::keyword("spot_id").key(), Source::column("_id"));
        let mut fields = BTreeSet::new();
        for each in FIELDS {
            // One has all, one none.
            if own == "c" || (own == "b" && self.random.bool()) {
                let (field, source) = field(each);
                index = index.field_from(field, source);
                fields.insert(each);
            }
        }
        let weight = [0, 10, MAX_WEIGHT][self.random.usize(..3)];
        let created = self.engine().create_index(index.weight(weight)).await;
        if self.indexes.contains_key(&name) {
            let refused = created.expect_err("it is there");
            assert!(matches!(refused, EngineError::IndexExists { .. }), "{refused:?}");
            return;
        }
        let created = created.expect("created");
        assert_eq!((created.name.as_str(), created.weight), (name.as_str(), weight));
        self.indexes.insert(name, Known { fields, weight });
        self.met.most = self.met.most.max(self.indexes.len());
        self.met.created += 1;
    }

    async fn change(&mut self) {
        let name = self.any_index();
        self.settle(&name).await;
        // The declared one has it by another source then, and so finds by another value.
        let each = self.random.choice(["size", "label"]).expect("one");
        let known = self.indexes.get_mut(&name).expect("known");
        let change = match known.fields.remove(each) {
            true => IndexChange::DropField {
                field: each.to_owned(),
            },
            false => {
                known.fields.insert(each);
                let (added, source) = field(each);
                IndexChange::AddField {
                    field: each.to_owned(),
                    kind: added.kind().clone(),
                    source: source.to_string(),
                }
            }
        };
        let mut redesign = self.engine().redesign(&name).await.expect("an index");
        redesign.add(&change).expect("a change");
        redesign.make(false).await.expect("changed");
        self.met.changed += 1;
        if self.met.rebuilt == 0 {
            self.rebuild().await;
        }
    }

    async fn rebuild(&mut self) {
        let name = self.any_index();
        self.settle(&name).await;
        let mut redesign = self.engine().redesign(&name).await.expect("an index");
        redesign.rebuild();
        redesign.make(false).await.expect("built anew");
        self.met.rebuilt += 1;
    }

    async fn weigh(&mut self) {
        self.settle_all().await;
        let name = self.any_index();
        let mut redesign = self.engine().redesign(&name).await.expect("an index");
        let mut weights = Vec::new();
        for each in self.indexes.keys() {
            if self.random.bool() {
                let weight = [0, 1, 50, MAX_WEIGHT][self.random.usize(..4)];
                redesign.weigh(each, weight).expect("an index of the table");
                weights.push((each.clone(), weight));
            }
        }
        let given = |name: &String| {
            weights
                .iter()
                .find(|(each, _)| each == name)
                .map(|(_, weight)| *weight)
        };
        let after = self
            .indexes
            .iter()
            .map(|(name, known)| given(name).unwrap_or(known.weight));
        let sum: u32 = after.map(u32::from).sum();
        assert_eq!(redesign.check_weights().is_err(), sum == 0);
        if sum == 0 {
            return;
        }
        redesign.make(false).await.expect("weighed");
        for (name, weight) in weights {
            self.indexes.get_mut(&name).expect("known").weight = weight;
            self.met.weighed += 1;
        }
    }

    async fn drop_one(&mut self) {
        // Searches aren't left to those that don't answer.
        self.settle_all().await;
        let name = self.any_index();
        let others = self.indexes.iter().filter(|(each, _)| **each != name);
        let others: Vec<u8> = others.map(|(_, known)| known.weight).collect();
        let is_declared = name == DECLARED;
        let is_needed = is_declared || others.iter().all(|weight| *weight == 0);
        // The last one may go, but the histories go on.
        if others.is_empty() && !is_declared {
            return;
        }
        match self.engine().drop_index(&name).await {
            Ok(()) => {
                assert!(!is_needed, "{name} of {others:?}");
                self.indexes.remove(&name);
                self.met.dropped += 1;
                assert!(!self.directory.path().join("index").join(&name).exists());
                let gone = self.table().for_search(Some(&name), None).map(drop);
                assert!(matches!(gone, Err(EngineError::NotFound { .. })), "{gone:?}");
            }
            Err(EngineError::IndexNeeded { .. }) => {
                assert!(is_needed, "{name} of {others:?}");
                self.met.needed += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Whatever is being built then goes on.
    async fn restart(&mut self) {
        note::close(self.engine.take().expect("open")).await;
        self.open().await;
        let names: BTreeSet<String> = self.indexes_told().await;
        assert!(names.iter().eq(self.indexes.keys()), "{names:?}");
        self.met.restarts += 1;
    }

    async fn indexes_told(&self) -> BTreeSet<String> {
        let indexes = self.engine().indexes(&Principal::Service).await;
        let ours = indexes
            .expect("indexes")
            .into_iter()
            .filter(|index| index.table == self.table);
        ours.map(|index| index.name).collect()
    }

    /// Each index holds every row once, in the one folder that it has, and no other is left.
    async fn end(mut self) -> Met {
        let names: Vec<String> = self.indexes.keys().cloned().collect();
        for name in &names {
            self.settle(name).await;
            let view = self.table().for_search(Some(name), None).expect("an index");
            let mut search = Search::new(SearchRequest::new(Query::MatchAll));
            search.min_sequence = self.last.unsigned_abs();
            view.search(search).await.expect("it has all");
        }
        note::close(self.engine.take().expect("open")).await;
        let directory = self.directory.path();
        let folders = folders(directory);
        let ours = folders
            .iter()
            .filter(|folder| *folder != DECLARED || self.table == DECLARED);
        assert!(ours.eq(names.iter()), "{folders:?} of {names:?}");
        for name in &names {
            let folders = holdings::folders(directory, name);
            let [folder] = folders.as_slice() else {
                panic!("{name}: {folders:?}");
            };
            let held = holdings::of(folder).documents;
            let ids = held.keys().map(|key| String::from_utf8_lossy(key).into_owned());
            assert!(ids.eq(self.rows.keys().cloned()), "{name}: {held:?}");
        }
        self.met
    }
}
