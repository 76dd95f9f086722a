//! Several indexes of a table: created, changed, weighed and dropped while it is written, and over restarts, each answers as the rows
//! say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fastrand::Rng;
use souk_api::wire::broken;
use souk_api::{Error, Resources, indexes};
use souk_chassis::status::FieldPath;
use souk_engine::definition::{MAX_SEARCH_INDEXES, MAX_WEIGHT};
use souk_engine::index::{Field, FieldKind, Query, QueryValue, SearchRequest};
use souk_engine::index_admin::IndexPhase;
use souk_engine::key::hashed;
use souk_engine::{
    ColumnReader, Columns, CorruptRow, Engine, EngineConfig, EngineError, Health, IndexChange, Principal,
    Resource, Search, SearchIndexDefinition, Source, TableDefinition, TableHandle, TableWrite, Tables,
};
use souk_proto::index::v1::{CreateIndexRequest, UpdateIndexRequest};
use souk_proto::search::v1 as pb;
use tempfile::TempDir;
use tonic::{Code, Status};

use crate::note::{self, Note};
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

/// The folders of indexes, by name.
fn folders(directory: &Path) -> BTreeSet<String> {
    let folders = fs::read_dir(directory.join("index")).expect("the folder of indexes");
    let names = folders.map(|entry| {
        entry
            .expect("readable")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    names.collect()
}

/// Notes with an index beside the declared one that has a field more, by which it is told from that.
async fn with_trial(weight: i32, notes_in_all: i64) -> (TempDir, Engine, Resources<Note>) {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let batch = (0..notes_in_all).map(|rank| Note::new(&format!("n{rank:02}"), "ada", rank));
    notes
        .create_batch(batch.collect(), None, true)
        .await
        .expect("created");
    let request = CreateIndexRequest {
        index: "notes.trial".to_owned(),
        source_index: "notes".to_owned(),
        changes: vec![added("writer", "author")],
        weight: Some(weight),
        validate_only: false,
    };
    create(&engine, &request).await.expect("created");
    // Either may answer a search, which says nothing of what it is to see.
    answers(&engine, "notes").await;
    answers(&engine, "notes.trial").await;
    (directory, engine, notes)
}

fn added(field: &str, source: &str) -> pb::IndexChange {
    let kind = pb::index_change::Kind::AddField(pb::AddIndexField {
        field: field.to_owned(),
        r#type: pb::IndexFieldType::Keyword.into(),
        source: source.to_owned(),
        ..pb::AddIndexField::default()
    });
    pb::IndexChange { kind: Some(kind) }
}

async fn create(engine: &Engine, request: &CreateIndexRequest) -> souk_api::Result<pb::Index> {
    let violations = broken(request, &FieldPath::message());
    Ok(indexes::create(engine, request, violations).await?.0)
}

async fn weigh(engine: &Engine, index: &str, weights: &[(&str, i32)]) -> souk_api::Result<pb::Index> {
    let weights = weights.iter().map(|(index, weight)| pb::IndexWeight {
        index: (*index).to_owned(),
        weight: *weight,
    });
    let request = UpdateIndexRequest {
        index: index.to_owned(),
        weights: weights.collect(),
        ..UpdateIndexRequest::default()
    };
    let violations = broken(&request, &FieldPath::message());
    let updated = indexes::update(engine, index, &[], &request.weights, false, violations);
    Ok(updated.await?.0)
}

/// Waits until an index answers, with all that was written.
async fn answers(engine: &Engine, name: &str) {
    loop {
        let index = engine.index(name).await.expect("an index");
        assert_ne!(index.phase, IndexPhase::Failed, "{index:?}");
        let last = engine.database().last_sequence();
        if index.build.is_none() && index.serving.is_some_and(|serving| serving.sequence == last) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// A search by the field that the trial alone has, of a page.
fn by_trial(index: &str, page_token: String) -> pb::Search {
    pb::Search {
        query: note::term("writer", "ada"),
        page_size: 10,
        index: index.to_owned(),
        page_token,
        ..pb::Search::default()
    }
}

fn everything(page_token: String) -> pb::Search {
    pb::Search {
        page_size: 10,
        page_token,
        ..pb::Search::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_that_name_no_index_are_shared_by_the_weights() {
    let (_directory, engine, notes) = with_trial(0, 3).await;
    for (declared, trial, expected) in [(100, 0, 0), (90, 10, 20), (0, 1, 200), (30, 30, 100)] {
        let weighed = weigh(&engine, "notes", &[("notes", declared), ("notes.trial", trial)]).await;
        assert_eq!(weighed.expect("weighed").weight, declared);
        let mut by_it: u32 = 0;
        for _ in 0..200 {
            match notes.search(Some(by_trial("", String::new())), "search").await {
                Ok(page) => {
                    assert_eq!(page.hits.len(), 3);
                    by_it += 1;
                }
                Err(Error::InvalidQuery(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(by_it.abs_diff(expected) <= 3, "{declared} and {trial}: {by_it}");
        // Whatever its weight, who names it gets it.
        let named = notes
            .search(Some(by_trial("notes.trial", String::new())), "search")
            .await;
        assert_eq!(named.expect("a page").hits.len(), 3);
        let named = notes
            .search(Some(by_trial("notes", String::new())), "search")
            .await;
        assert!(matches!(named, Err(Error::InvalidQuery(_))), "{named:?}");
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_of_a_search_stay_with_the_index_that_gave_the_first() {
    let (_directory, engine, notes) = with_trial(0, 35).await;
    for keep_view in [
        None,
        Some(prost_types::Duration {
            seconds: 60,
            nanos: 0,
        }),
    ] {
        for (first, other) in [("notes", "notes.trial"), ("notes.trial", "notes")] {
            let mut weights = [(first, 100), (other, 0)];
            weigh(&engine, "notes", &weights).await.expect("weighed");
            let (mut ids, mut token) = (BTreeSet::new(), String::new());
            for _ in 0..4 {
                let mut search = everything(token.clone());
                search.keep_view = keep_view;
                if ids.len() == 10 {
                    // It may be named on any page.
                    search.index = first.to_owned();
                }
                let page = notes.search(Some(search), "search").await.expect("a page");
                ids.extend(page.hits.into_iter().map(|hit| hit.id));
                token = page.next_page_token;
                if ids.len() == 10 {
                    weights = [(first, 0), (other, 100)];
                    weigh(&engine, "notes", &weights).await.expect("weighed");
                    let mut search = everything(token.clone());
                    search.index = other.to_owned();
                    let refused = notes.search(Some(search), "search").await;
                    let Err(Error::PageTokenInvalid { path, .. }) = &refused else {
                        panic!("{refused:?}");
                    };
                    assert_eq!(path, "search.page_token");
                }
            }
            assert_eq!((ids.len(), token.as_str()), (35, ""));
        }
    }
    // Tokens of an index that is no more are refused.
    weigh(&engine, "notes", &[("notes", 0), ("notes.trial", 100)])
        .await
        .expect("weighed");
    let page = notes
        .search(Some(everything(String::new())), "search")
        .await
        .expect("a page");
    weigh(&engine, "notes", &[("notes", 100)]).await.expect("weighed");
    engine.drop_index("notes.trial").await.expect("dropped");
    let refused = notes
        .search(Some(everything(page.next_page_token)), "search")
        .await;
    assert!(
        matches!(refused, Err(Error::PageTokenInvalid { .. })),
        "{refused:?}"
    );
    note::close(engine).await;
}

/// A search of no hits for a page of the groups of ranks.
fn groups_of_ranks(index: &str, page_token: String) -> pb::Search {
    let by_rank = pb::aggregation::Kind::Terms(pb::TermsAggregation {
        field: "rank".to_owned(),
        ..pb::TermsAggregation::default()
    });
    let source = pb::CompositeSource {
        name: "rank".to_owned(),
        grouping: Some(pb::Aggregation { kind: Some(by_rank) }),
        ..pb::CompositeSource::default()
    };
    let composite = pb::aggregation::Kind::Composite(pb::CompositeAggregation {
        sources: vec![source],
        size: 4,
        page_token,
        ..pb::CompositeAggregation::default()
    });
    let ranks = pb::Aggregation {
        kind: Some(composite),
    };
    pb::Search {
        hits_mode: pb::HitsMode::None.into(),
        aggregations: [("ranks".to_owned(), ranks)].into(),
        index: index.to_owned(),
        ..pb::Search::default()
    }
}

/// The number of groups, and the token of the next page.
async fn page_of_groups(notes: &Resources<Note>, search: pb::Search) -> souk_api::Result<(usize, String)> {
    let mut page = notes.search(Some(search), "search").await?;
    let groups = page.aggregations.remove("ranks").and_then(|ranks| ranks.kind);
    let Some(pb::aggregation_result::Kind::Groups(groups)) = groups else {
        panic!("{groups:?}");
    };
    Ok((groups.groups.len(), groups.next_page_token))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_of_groups_stay_with_the_index_that_gave_the_first() {
    let (_directory, engine, notes) = with_trial(50, 35).await;
    weigh(&engine, "notes", &[("notes", 50)]).await.expect("weighed");
    for _ in 0..4 {
        let (mut groups, mut token) = (0, String::new());
        loop {
            let page = page_of_groups(&notes, groups_of_ranks("", token)).await;
            let (more, next) = page.expect("whichever gave the first page gives all");
            groups += more;
            token = next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(groups, 35);
    }
    let (_, of_trial) = page_of_groups(&notes, groups_of_ranks("notes.trial", String::new()))
        .await
        .expect("a page");
    let mut of_both = groups_of_ranks("", of_trial.clone());
    let mut of_notes = everything(String::new());
    of_notes.index = "notes".to_owned();
    let page_of_notes = notes.search(Some(of_notes), "search").await.expect("a page");
    of_both.page_token = page_of_notes.next_page_token;
    for search in [groups_of_ranks("notes", of_trial), of_both] {
        let refused = page_of_groups(&notes, search).await;
        assert!(
            matches!(refused, Err(Error::PageTokenInvalid { .. })),
            "{refused:?}"
        );
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_has_the_name_of_a_dropped_one_takes_none_of_its_pages() {
    let (_directory, engine, notes) = with_trial(0, 35).await;
    let kept = Some(prost_types::Duration {
        seconds: 60,
        nanos: 0,
    });
    let mut tokens = Vec::new();
    for keep_view in [None, kept] {
        let mut search = everything(String::new());
        search.index = "notes.trial".to_owned();
        search.keep_view = keep_view;
        let page = notes.search(Some(search), "search").await.expect("a page");
        tokens.push(page.next_page_token);
    }
    engine.drop_index("notes.trial").await.expect("dropped");
    let again = CreateIndexRequest {
        index: "notes.trial".to_owned(),
        source_index: "notes".to_owned(),
        changes: vec![added("writer", "author")],
        ..CreateIndexRequest::default()
    };
    create(&engine, &again).await.expect("created again");
    answers(&engine, "notes.trial").await;
    for token in tokens {
        for index in ["", "notes.trial"] {
            let mut search = everything(token.clone());
            search.index = index.to_owned();
            let refused = notes.search(Some(search), "search").await;
            assert!(
                matches!(refused, Err(Error::PageTokenInvalid { .. })),
                "{index}: {refused:?}"
            );
        }
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_names_no_index_goes_to_another_one_when_its_own_is_dropped() {
    let (_directory, engine, _notes) = with_trial(0, 3).await;
    weigh(&engine, "notes", &[("notes", 0), ("notes.trial", 100)])
        .await
        .expect("weighed");
    let table = engine.table("notes").expect("a table");
    let sent = table.for_search(None, None).expect("an index");
    let named = table.for_search(Some("notes.trial"), None).expect("an index");
    weigh(&engine, "notes", &[("notes", 100), ("notes.trial", 0)])
        .await
        .expect("weighed");
    engine.drop_index("notes.trial").await.expect("dropped");
    let everything = Search::new(SearchRequest::new(Query::MatchAll));
    let page = sent.search(everything.clone()).await.expect("a page");
    assert_eq!(page.hits.len(), 3);
    let found = sent.find(SearchRequest::new(Query::MatchAll), 0).await;
    assert_eq!(found.expect("a page").result.hits.len(), 3);
    let gone = named.search(everything).await.map(drop);
    assert!(matches!(gone, Err(EngineError::NotFound { .. })), "{gone:?}");
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_waits_for_a_write_in_the_index_that_it_goes_to() {
    let (_directory, engine, notes) = with_trial(0, 3).await;
    for rank in 10..40 {
        let note = Note::new(&format!("n{rank}"), "ada", rank);
        let written = notes.create(note, None, false).await.expect("created");
        let index = ["notes", "notes.trial"][rank as usize % 2];
        let mut search = everything(String::new());
        search.query = note::term("note_id", &format!("n{rank}"));
        search.index = index.to_owned();
        search.min_sequence = written.sequence;
        let page = notes.search(Some(search), "search").await.expect("a page");
        assert_eq!(page.hits.len(), 1, "{index}");
        assert!(page.sequence >= written.sequence);
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_created_index_goes_on_after_a_restart_and_a_dropped_one_leaves_nothing() {
    let (directory, engine, notes) = with_trial(20, 200).await;
    // Cut short wherever it is.
    let request = CreateIndexRequest {
        index: "notes.second".to_owned(),
        changes: vec![added("author", "author"), added("headline", "text")],
        ..CreateIndexRequest::default()
    };
    let created = create(&engine, &request).await.expect("created");
    assert_eq!(created.phase, pb::IndexPhase::Building as i32);
    let to_be: Vec<_> = created
        .fields_to_be
        .iter()
        .map(|field| field.field.as_str())
        .collect();
    assert_eq!(to_be, ["author", "headline"]);
    drop(notes);
    note::close(engine).await;
    let (engine, notes) = note::open(directory.path()).await;
    for name in ["notes", "notes.trial", "notes.second"] {
        answers(&engine, name).await;
        let mut search = redesign_count(note::term("author", "ada"));
        search.index = name.to_owned();
        let page = notes.search(Some(search), "search").await.expect("a page");
        assert_eq!(page.total.expect("a total").value, 200, "{name}");
    }
    let weights: Vec<(String, u8)> = engine
        .indexes(&Principal::Service)
        .await
        .expect("indexes")
        .into_iter()
        .map(|index| (index.name, index.weight))
        .collect();
    let expected = [("notes", 100), ("notes.trial", 20), ("notes.second", 0)];
    assert!(
        weights
            .iter()
            .map(|(name, weight)| (name.as_str(), *weight))
            .eq(expected)
    );
    engine.drop_index("notes.trial").await.expect("dropped");
    assert!(!folders(directory.path()).contains("notes.trial"));
    // As a crash leaves one between the moment that it is gone and the removal of what it had.
    let left = directory
        .path()
        .join("index")
        .join("notes.trial")
        .join("of the dropped one");
    fs::create_dir_all(&left).expect("a folder");
    drop(notes);
    note::close(engine).await;
    let (engine, notes) = note::open(directory.path()).await;
    let there: Vec<String> = folders(directory.path()).into_iter().collect();
    assert_eq!(there, ["notes", "notes.second"]);
    let held = |engine: &Engine| {
        let consumers = engine.database().consumers();
        consumers
            .into_iter()
            .map(|consumer| consumer.name().to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        held(&engine),
        BTreeSet::from(["index_notes".to_owned(), "index__second__notes".to_owned()])
    );
    assert!(engine.database().feeds().is_empty());
    let gone = notes
        .search(Some(by_trial("notes.trial", String::new())), "search")
        .await;
    let status = Status::from(gone.expect_err("it is no more"));
    assert_eq!(status.code(), Code::NotFound);
    // Its name is free.
    let request = CreateIndexRequest {
        index: "notes.trial".to_owned(),
        changes: vec![added("author", "author")],
        ..CreateIndexRequest::default()
    };
    create(&engine, &request).await.expect("created again");
    answers(&engine, "notes.trial").await;
    drop(notes);
    note::close(engine).await;
}

fn redesign_count(query: Option<pb::Query>) -> pb::Search {
    crate::redesign::counting(query, 0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_index_cant_be_and_what_is_needed_is_refused() {
    let (_directory, engine, _notes) = with_trial(0, 3).await;
    let of = |index: &str| CreateIndexRequest {
        index: index.to_owned(),
        source_index: "notes".to_owned(),
        ..CreateIndexRequest::default()
    };
    let bare = CreateIndexRequest {
        source_index: String::new(),
        ..of("notes.bare")
    };
    let unowned = CreateIndexRequest {
        changes: vec![added("headline", "text")],
        ..bare.clone()
    };
    let heavy = CreateIndexRequest {
        weight: Some(101),
        ..of("notes.heavy")
    };
    let missing = CreateIndexRequest {
        source_index: "notes.nothing".to_owned(),
        ..of("notes.copy")
    };
    let twice = CreateIndexRequest {
        changes: vec![added("author", "author"), added("rank", "rank")],
        ..of("notes.twice")
    };
    for (request, code, says) in [
        (
            of("notes.trial"),
            Code::AlreadyExists,
            "there is an index notes.trial",
        ),
        (of("nothing.trial"), Code::NotFound, "no table nothing"),
        (of("notes.Trial"), Code::InvalidArgument, "<table>.<name>"),
        (of("notes"), Code::AlreadyExists, "there is an index notes"),
        (bare, Code::InvalidArgument, "without a field"),
        (unowned, Code::InvalidArgument, "names owners by"),
        (heavy, Code::InvalidArgument, "weight"),
        (missing, Code::InvalidArgument, "source_index"),
        (twice, Code::InvalidArgument, "2 violations"),
    ] {
        let status = Status::from(create(&engine, &request).await.expect_err(says));
        assert_eq!(status.code(), code, "{status:?}");
        let told = format!("{status:?}");
        let counted = says == "2 violations" && told.matches("there is a field").count() >= 2;
        assert!(counted || told.contains(says), "{says}: {told}");
    }
    for (weights, says) in [
        (vec![("notes", 0)], "LAST_WEIGHT"),
        (vec![("shops", 1)], "UNKNOWN_INDEX"),
        (vec![("notes", 1), ("notes", 2)], "DUPLICATE"),
        (vec![("notes", 101)], "weights[0].weight"),
        (vec![], "FIELD_REQUIRED"),
    ] {
        let status = Status::from(weigh(&engine, "notes.trial", &weights).await.expect_err(says));
        assert!(format!("{status:?}").contains(says), "{status:?}");
    }
    let needed = engine.drop_index("notes").await;
    assert!(
        matches!(needed, Err(EngineError::IndexNeeded { .. })),
        "{needed:?}"
    );
    weigh(&engine, "notes", &[("notes", 0), ("notes.trial", 7)])
        .await
        .expect("weighed");
    let needed = engine.drop_index("notes.trial").await;
    assert!(
        matches!(needed, Err(EngineError::IndexNeeded { .. })),
        "{needed:?}"
    );
    for nth in 2..MAX_SEARCH_INDEXES {
        create(&engine, &of(&format!("notes.n{nth}")))
            .await
            .expect("created");
    }
    let full = Status::from(create(&engine, &of("notes.full")).await.expect_err("full"));
    assert!(full.message().contains("MAX_SEARCH_INDEXES"), "{full:?}");
    // Only asked for: nothing is there of it.
    engine.drop_index("notes.n2").await.expect("dropped");
    let asked = CreateIndexRequest {
        validate_only: true,
        ..of("notes.n2")
    };
    let described = create(&engine, &asked).await.expect("it could be");
    assert_eq!(
        (described.index.as_str(), described.table.as_str()),
        ("notes.n2", "notes")
    );
    assert!(matches!(
        engine.index("notes.n2").await,
        Err(EngineError::NotFound { .. })
    ));
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_created_without_an_index_gets_its_first_one_and_loses_it_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    let table = engine
        .create_table(TableDefinition::hashed("plain"))
        .await
        .expect("created");
    let put = |id: &str| {
        let columns = Columns::new().string("word", "tea").into_cells();
        TableWrite::put(hashed(id).expect("short"), columns)
    };
    table.write(vec![put("a")], None).await.expect("written");
    let unsearched = table
        .search(Search::new(SearchRequest::new(Query::MatchAll)))
        .await;
    assert!(
        matches!(unsearched, Err(EngineError::NotSearched { .. })),
        "{unsearched:?}"
    );
    let none = SearchIndexDefinition::new("plain.first").field(Field::keyword("word"));
    let refused = engine.create_index(none.clone()).await.map(drop);
    assert!(
        matches!(refused, Err(EngineError::InvalidDefinition { .. })),
        "{refused:?}"
    );
    let mut creation = engine.begin_index("plain.first").await.expect("a table");
    let change = IndexChange::AddField {
        field: "word".to_owned(),
        kind: FieldKind::Keyword,
        source: "word".to_owned(),
    };
    creation.add(&change).expect("a field");
    let (created, _) = creation.make(false).await.expect("created");
    assert_eq!(created.weight, MAX_WEIGHT, "it is the only one");
    answers(&engine, "plain.first").await;
    let written = table.write(vec![put("b")], None).await.expect("written");
    let mut search = Search::new(SearchRequest::new(Query::MatchAll));
    search.request.page_size = 1;
    search.min_sequence = written.sequence.unsigned_abs();
    let first = table.search(search.clone()).await.expect("a page");
    search.request.after = Some(first.next_page_token);
    let second = table.search(search).await.expect("a page");
    assert_eq!((first.hits.len(), second.hits.len()), (1, 1));
    assert_ne!(first.hits[0].key, second.hits[0].key);
    engine.drop_index("plain.first").await.expect("dropped");
    let unsearched = table
        .search(Search::new(SearchRequest::new(Query::MatchAll)))
        .await;
    assert!(
        matches!(unsearched, Err(EngineError::NotSearched { .. })),
        "{unsearched:?}"
    );
    drop(table);
    engine.drop_table("plain").await.expect("dropped");
    let left: Vec<String> = folders(directory.path()).into_iter().collect();
    assert_eq!(left, ["notes"]);
    note::close(engine).await;
}
