//! Random histories of a table that is created at run time, against a map: writes of all kinds, ranges, searches, lists, exports
//! and watches, while its index, options and secondary indexes change, the engine restarts, the log is trimmed, and the table
//! is dropped and created again. Now and then its index is compared, document by document, with one that is built anew.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::{StreamExt as _, TryStreamExt as _};
use souk_engine::definition::MAX_TABLE_NAME_BYTES;
use souk_engine::index::{
    Analyzer, Field, FieldKind, Query, QueryValue, ScoreMode, SearchRequest, TotalRequest,
};
use souk_engine::index_admin::IndexPhase;
use souk_engine::key::MAX_DOCUMENT_KEY_BYTES;
use souk_engine::slices::Slice;
use souk_engine::storage::{
    CellPut, ColumnChange, ColumnName, Condition, ConditionFailure, Direction, Error as StoreError, KeyKind,
    KeyValue, ManualClock, PrimaryKey, RangeRequest, ReturnRow, Row, RowOperation, SecondaryIndexSchema,
    TableSchema, Value,
};
use souk_engine::{
    Call, Engine, EngineConfig, EngineError, ExportStart, Health, IndexChange, ListQuery, Owner, Principal,
    Reading, Search, Source, TableDefinition, TableHandle, TableWrite, Tables, ValueType,
};
use tempfile::TempDir;

use crate::note::{self, Note};
use crate::{holdings, rounds, seed};

const TABLE: &str = "visits";
const HOUR: Duration = Duration::from_secs(3_600);
const CITIES: [&str; 3] = ["Oulu", "Åbo", "杭州"];
const WORDS: [&str; 5] = ["Tea", "tea", "7", "12", "手冲咖啡"];
/// Whether a row with this key is found.
type Matches = Box<dyn Fn(&PrimaryKey, &Visit) -> bool>;

/// Secondary index that comes and goes.
const BY_NUMBER: &str = "by_number";

/// What the model knows of a row.
#[derive(Clone, Debug, Default, PartialEq)]
struct Visit {
    word: Option<&'static str>,
    number: Option<Number>,
    city: Option<&'static str>,
    tags: Vec<&'static str>,
    /// Parts with a code and a size.
    parts: Vec<(&'static str, i64)>,
}

/// What column `number` holds, whose field takes numbers alone.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Fits(i64),
    Misfits,
}

impl Visit {
    fn random(random: &mut Rng) -> Self {
        let word = random.choice(WORDS).filter(|_| random.u8(..4) > 0);
        Self {
            word,
            number: match random.u8(..6) {
                0 => None,
                1 => Some(Number::Misfits),
                _ => Some(Number::Fits(random.i64(0..10))),
            },
            city: random.choice(CITIES).filter(|_| random.bool()),
            tags: (0..random.u8(..3)).filter_map(|_| random.choice(WORDS)).collect(),
            parts: (0..random.u8(..3))
                .filter_map(|_| Some((random.choice(["a", "b"])?, random.i64(0..3))))
                .collect(),
        }
    }

    fn columns(&self) -> Vec<(ColumnName, Value)> {
        let mut columns: Vec<(ColumnName, Value)> = Vec::new();
        if let Some(word) = self.word {
            columns.push(("word".into(), word.into()));
        }
        if let Some(number) = self.number {
            columns.push(("number".into(), number.value()));
        }
        columns.push(("data".into(), self.data().into()));
        columns
    }

    fn data(&self) -> String {
        let city = self
            .city
            .map(|city| format!("\"city\": {city:?}, "))
            .unwrap_or_default();
        let parts = self.parts.iter();
        let parts: Vec<String> = parts
            .map(|(code, size)| format!("{{\"code\": {code:?}, \"size\": {size}}}"))
            .collect();
        let tags = &self.tags;
        format!(
            "{{\"at\": {{{city}\"tags\": {tags:?}}}, \"parts\": [{}]}}",
            parts.join(", ")
        )
    }

    fn of(row: &Row) -> (Vec<(ColumnName, Value)>, PrimaryKey) {
        let columns = row.columns().newest();
        let mut columns: Vec<(ColumnName, Value)> = columns
            .map(|(name, value)| (name.into(), value.clone()))
            .collect();
        columns.sort_by(|one, other| one.0.cmp(&other.0));
        (columns, row.key.clone())
    }

    fn sorted(&self) -> Vec<(ColumnName, Value)> {
        let mut columns = self.columns();
        columns.sort_by(|one, other| one.0.cmp(&other.0));
        columns
    }
}

impl Number {
    fn value(self) -> Value {
        match self {
            Self::Fits(number) => number.into(),
            Self::Misfits => "many".into(),
        }
    }
}

/// What happened, so that a history that does nothing is none.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    writes: usize,
    refused: usize,
    batches: usize,
    searches: usize,
    hits: usize,
    ranges: usize,
    lists: usize,
    exports: usize,
    watched: usize,
    changed_indexes: usize,
    changed_options: usize,
    failed_changes: usize,
    versions: usize,
    long_keys: usize,
    restarts: usize,
    trimmed: usize,
    compared: usize,
    dropped: usize,
}

struct History {
    random: Rng,
    directory: TempDir,
    clock: Arc<ManualClock>,
    engine: Option<Engine>,
    definition: TableDefinition,
    model: BTreeMap<PrimaryKey, Visit>,
    last: i64,
    /// A sequence that the log continues, and the table as it was then.
    watched: Option<(u64, BTreeMap<PrimaryKey, Visit>)>,
    met: Met,
}

fn visits() -> TableDefinition {
    let data = || Source::column("data");
    let parts = vec![Field::keyword("code"), Field::long("size")];
    let schema = TableSchema::new(TABLE)
        .key("shop", KeyKind::String)
        .key("nth", KeyKind::Integer);
    TableDefinition::new(schema)
        .item("visit")
        .secondary(SecondaryIndexSchema::new(BY_NUMBER, ["number"]))
        .column("data", ValueType::Json)
        .field(Field::keyword("shop"))
        .field(Field::long("nth"))
        .field(Field::keyword("word").sub_field("text", FieldKind::Text(Analyzer::single_word())))
        .field_from(
            Field::keyword("folded"),
            Source::column("word").read(Reading::Folded),
        )
        .field(Field::long("number"))
        .field_from(Field::keyword("city"), data().at(["at", "city"]))
        .field_from(Field::keyword("tags").array(), data().at(["at", "tags"]))
        .field_from(Field::nested("parts", parts), data().at(["parts"]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_created_table_agrees_with_a_map_through_all_that_can_happen_to_it() {
    let mut random = Rng::with_seed(seed("created tables"));
    for _ in 0..rounds(2, 24) {
        let mut history = History::begin(random.fork()).await;
        for _ in 0..rounds(250, 1_000) {
            history.step().await;
        }
        // Once each at least, whatever was drawn.
        history.compare().await;
        history.replay().await;
        history.export().await;
        history.trim().await;
        history.restart().await;
        history.drop_and_create().await;
        history.list().await;
        history.change_options().await;
        history.fail_to_change().await;
        history.write_too_long_a_key().await;
        history.close().await;
        let met = history.met;
        println!("{met:?}");
        let counts = [
            met.writes,
            met.refused,
            met.batches,
            met.hits,
            met.ranges,
            met.lists,
            met.exports,
            met.watched,
            met.changed_indexes,
            met.changed_options,
            met.failed_changes,
            met.versions,
            met.long_keys,
            met.restarts,
            met.trimmed,
            met.compared,
            met.dropped,
        ];
        assert!(counts.iter().all(|count| *count > 0), "{met:?}");
    }
}

impl History {
    async fn begin(random: Rng) -> Self {
        let mut history = Self {
            random,
            directory: tempfile::tempdir().expect("a directory"),
            clock: Arc::new(ManualClock::new(1_700_000_000_000_000_000)),
            engine: None,
            definition: visits(),
            model: BTreeMap::new(),
            last: 0,
            watched: None,
            met: Met::default(),
        };
        history.open().await;
        let created = history.engine().create_table(visits()).await;
        created.expect("created");
        history.remember();
        history
    }

    /// Has [`Self::replay`] begin here.
    fn remember(&mut self) {
        self.watched = Some((self.engine().database().last_sequence(), self.model.clone()));
    }

    async fn open(&mut self) {
        let mut config = EngineConfig::new(self.directory.path());
        config.storage.clock = Arc::clone(&self.clock) as _;
        config.storage.retention = HOUR;
        config.storage.maintenance_interval = 1_000 * HOUR;
        // Beside a table of code.
        let engine = Engine::open(config, Tables::new().table::<Note>()).await;
        self.engine = Some(engine.expect("the engine opens"));
    }

    async fn close(&mut self) {
        note::close(self.engine.take().expect("open")).await;
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("open")
    }

    fn table(&self) -> TableHandle {
        self.engine().table(TABLE).expect("the table")
    }

    fn indexes(&self) -> PathBuf {
        self.directory.path().join("index").join(TABLE)
    }

    fn key(&mut self) -> PrimaryKey {
        let shop = self.random.choice(["a", "b", "c"]).expect("one");
        let nth = self.random.i64(-4..8);
        PrimaryKey::new([KeyValue::from(shop), nth.into()]).expect("short")
    }

    /// Waits until the index answers by what the table is.
    async fn settle(&self) {
        let mut health = self.engine().health();
        health
            .wait_for(Health::is_serving)
            .await
            .expect("the engine lives");
        let wanted = self.definition.search().expect("it is searched");
        let wanted: Vec<&str> = wanted.fields.iter().map(Field::name).collect();
        loop {
            let index = self.engine().index(TABLE).await.expect("an index");
            let has = |name: &&str| index.fields.iter().any(|field| field.path == **name);
            let kept = |path: &str| path.contains('.') || wanted.contains(&path);
            let is_it = wanted.iter().all(has) && index.fields.iter().all(|field| kept(&field.path));
            if index.phase == IndexPhase::Serving && index.build.is_none() && is_it {
                return;
            }
            assert_ne!(index.phase, IndexPhase::Failed, "{index:?}");
            tokio::task::yield_now().await;
        }
    }

    async fn step(&mut self) {
        match self.random.u8(..42) {
            0..=11 => self.write().await,
            12..=15 => self.batch().await,
            16..=22 => self.search().await,
            23..=26 => self.range().await,
            27 | 28 => self.list().await,
            29 => self.export().await,
            30..=32 => self.change_index().await,
            33 => self.change_options().await,
            34 => self.replay().await,
            35 | 36 => self.restart().await,
            37 => self.trim().await,
            38 => self.compare().await,
            39 => self.fail_to_change().await,
            40 => self.write_too_long_a_key().await,
            _ if self.random.u8(..4) == 0 => self.drop_and_create().await,
            _ => {}
        }
    }

    /// One write, the row that it leaves, and whether it is to be refused.
    fn random_write(&mut self) -> (TableWrite, PrimaryKey, Option<Visit>, bool) {
        let key = self.key();
        let present = self.model.get(&key).cloned();
        let (condition, mut refused) = match self.random.u8(..4) {
            0 => (Condition::must_exist(), present.is_none()),
            1 => (Condition::must_not_exist(), present.is_some()),
            _ => (Condition::none(), false),
        };
        let (write, after) = match self.random.u8(..5) {
            0 => (TableWrite::delete(key.clone()), None),
            1 => {
                let visit = Visit::random(&mut self.random);
                (TableWrite::put(key.clone(), visit.columns()), Some(visit))
            }
            2 => {
                let visit = Visit::random(&mut self.random);
                let mut cells = Vec::new();
                for (column, value) in visit.columns() {
                    cells.extend(
                        self.versions(&column, &value)
                            .into_iter()
                            .map(|(value, version)| CellPut {
                                column: column.to_string(),
                                value,
                                version: Some(version),
                            }),
                    );
                }
                let key = key.clone();
                (
                    TableWrite::new(RowOperation::PutCells { key, cells }),
                    Some(visit),
                )
            }
            _ => {
                let mut visit = present.unwrap_or_default();
                let column = "number".to_owned();
                let number = match (self.random.bool(), visit.number) {
                    (true, Some(Number::Misfits)) => {
                        refused = true;
                        ColumnChange::Increment { column, by: 2 }
                    }
                    (true, number) => {
                        let before = match number {
                            Some(Number::Fits(number)) => number,
                            _ => 0,
                        };
                        visit.number = Some(Number::Fits(before + 2));
                        ColumnChange::Increment { column, by: 2 }
                    }
                    (false, _) => {
                        let number = Number::Fits(self.random.i64(0..10));
                        visit.number = Some(number);
                        let (value, version) = (number.value(), None);
                        ColumnChange::Put {
                            column,
                            value,
                            version,
                        }
                    }
                };
                let mut changes = vec![number];
                let column = || "word".to_owned();
                match self.random.u8(..3) {
                    0 => {
                        visit.word = None;
                        changes.push(ColumnChange::DeleteAll { column: column() });
                    }
                    1 => {
                        let word = self.random.choice(WORDS).expect("one");
                        visit.word = Some(word);
                        let versions = self.versions("word", &word.into()).into_iter();
                        changes.extend(versions.map(|(value, version)| ColumnChange::Put {
                            column: column(),
                            value,
                            version: Some(version),
                        }));
                    }
                    _ => {}
                }
                // An update doesn't touch what it doesn't name.
                refused |= !self.definition.schema.allow_update;
                (TableWrite::update(key.clone(), changes), Some(visit))
            }
        };
        (write.when(condition), key, after, refused)
    }

    /// A value of a column as its newest version, which may be listed first or last, and another one.
    fn versions(&mut self, column: &str, value: &Value) -> Vec<(Value, i64)> {
        self.met.versions += 1;
        let now = self.engine().now() / 1_000_000;
        let other = match column {
            "number" => Value::Integer(self.random.i64(0..10)),
            "data" => Visit::random(&mut self.random).data().into(),
            _ => self.random.choice(WORDS).expect("one").into(),
        };
        // One is newer than what was written without a version.
        let mut versions = vec![(value.clone(), now + 1), (other, now)];
        self.random.shuffle(&mut versions);
        versions
    }

    fn note(&mut self, key: PrimaryKey, after: Option<Visit>) {
        match after {
            Some(visit) => self.model.insert(key, visit),
            None => self.model.remove(&key),
        };
    }

    async fn write(&mut self) {
        let (write, key, after, refused) = self.random_write();
        let write = write.returning(ReturnRow::All);
        let written = self.table().write(vec![write], None).await;
        if refused {
            assert!(written.is_err(), "{written:?}");
            self.met.refused += 1;
        } else {
            let written = written.expect("written");
            let [row] = written.value.as_slice() else {
                panic!("one row: {written:?}");
            };
            self.last = written.sequence;
            assert_eq!(row.key.as_ref(), Some(&key));
            self.check_row(row.row.as_ref(), after.as_ref());
            self.note(key.clone(), after);
            self.met.writes += 1;
        }
        let read = self
            .table()
            .get(&key, self.last.unsigned_abs())
            .await
            .expect("read");
        self.check_row(read.value.as_ref(), self.model.get(&key));
    }

    /// An updated row that had no data has none.
    fn check_row(&self, row: Option<&Row>, visit: Option<&Visit>) {
        let (Some(row), Some(visit)) = (row, visit) else {
            assert_eq!((row.is_some(), visit.is_some()), (visit.is_some(), row.is_some()));
            return;
        };
        let (columns, _) = Visit::of(row);
        let mut expected = visit.sorted();
        if row.get("data").is_none() {
            assert_eq!((visit.city, visit.tags.len(), visit.parts.len()), (None, 0, 0));
            expected.retain(|(name, _)| name != "data");
        }
        assert_eq!(columns, expected);
    }

    /// Several writes: all or none.
    async fn batch(&mut self) {
        let mut writes: Vec<(TableWrite, PrimaryKey, Option<Visit>, bool)> = Vec::new();
        for _ in 0..self.random.usize(2..5) {
            let write = self.random_write();
            if writes.iter().all(|other| other.1 != write.1) {
                writes.push(write);
            }
        }
        let refused = writes.iter().any(|write| write.3);
        let asked = writes.iter().map(|write| write.0.clone()).collect();
        let written = self.table().write(asked, None).await;
        assert_eq!(written.is_err(), refused, "{written:?}");
        if let Ok(written) = written {
            self.last = written.sequence;
            self.met.batches += 1;
            for (_, key, after, _) in writes {
                self.note(key, after);
            }
        }
        let keys: Vec<PrimaryKey> = self.model.keys().cloned().collect();
        let read = self.table().get_batch(&keys, 0).await.expect("read").value;
        for (row, visit) in read.iter().zip(self.model.values()) {
            self.check_row(row.as_ref(), Some(visit));
        }
    }

    /// A query, and which rows it finds.
    fn query(&mut self) -> (Query, Matches) {
        let term = |field: &str, value: QueryValue| Query::Term {
            field: field.to_owned(),
            value,
            weight: 1.0,
        };
        let word = self.random.choice(WORDS).expect("one");
        let number = self.random.i64(0..10);
        let search = self.definition.search().expect("it is searched");
        let has_spelled = search.fields.iter().any(|field| field.name() == "spelled");
        match self.random.u8(..8) {
            0 => (
                term("word", word.into()),
                Box::new(move |_, visit| visit.word == Some(word)),
            ),
            1 => {
                let folded = word.to_lowercase();
                let query = term("folded", folded.as_str().into());
                let finds = move |visit: &Visit| visit.word.is_some_and(|word| word.to_lowercase() == folded);
                (query, Box::new(move |_, visit| finds(visit)))
            }
            2 => {
                let city = self.random.choice(CITIES).expect("one");
                (
                    term("city", city.into()),
                    Box::new(move |_, visit| visit.city == Some(city)),
                )
            }
            3 => (
                term("tags", word.into()),
                Box::new(move |_, visit| visit.tags.contains(&word)),
            ),
            4 => {
                let query = Query::Range {
                    field: "number".to_owned(),
                    lower: Bound::Included(QueryValue::Integer(number)),
                    upper: Bound::Unbounded,
                };
                let finds =
                    move |visit: &Visit| matches!(visit.number, Some(Number::Fits(own)) if own >= number);
                (query, Box::new(move |_, visit| finds(visit)))
            }
            5 => {
                let size = number % 3;
                let part = Query::Bool {
                    must: vec![
                        term("parts.code", "a".into()),
                        term("parts.size", QueryValue::Integer(size)),
                    ],
                    filter: Vec::new(),
                    should: Vec::new(),
                    must_not: Vec::new(),
                    minimum_should_match: None,
                };
                let query = Query::Nested {
                    path: "parts".to_owned(),
                    query: Box::new(part),
                    score_mode: ScoreMode::None,
                    weight: 1.0,
                    inner_hits: None,
                };
                (
                    query,
                    Box::new(move |_, visit| visit.parts.contains(&("a", size))),
                )
            }
            6 if has_spelled => {
                let finds = |visit: &Visit| visit.word.and_then(|word| word.parse::<i64>().ok()) == Some(7);
                let query = term("spelled", QueryValue::Integer(7));
                (query, Box::new(move |_, visit| finds(visit)))
            }
            _ => {
                let query = term("shop", "b".into());
                let finds = |key: &PrimaryKey| key.values().first() == Some(&KeyValue::from("b"));
                (query, Box::new(move |key, _| finds(key)))
            }
        }
    }

    /// A search sees what was written before it.
    async fn search(&mut self) {
        self.settle().await;
        let (query, finds) = self.query();
        let mut search = Search::new(SearchRequest::new(query.clone()).page_size(100));
        search.min_sequence = self.last.unsigned_abs();
        let page = self.table().search(search).await.expect("a page");
        assert!(page.sequence >= self.last);
        let mut found: Vec<PrimaryKey> = Vec::new();
        for hit in &page.hits {
            let key = TableHandle::key_of(&hit.key).expect("a key");
            let row = hit.row.as_ref().expect("a row");
            assert_eq!(row.key, key);
            self.check_row(Some(row), self.model.get(&key));
            found.push(key);
        }
        found.sort();
        let expected = self.model.iter().filter(|(key, visit)| finds(key, visit));
        let expected: Vec<PrimaryKey> = expected.map(|(key, _)| key.clone()).collect();
        assert_eq!(found, expected, "{query:?}");
        self.met.searches += 1;
        self.met.hits += found.len();
    }

    async fn range(&mut self) {
        let direction = match self.random.bool() {
            true => Direction::Forward,
            false => Direction::Backward,
        };
        let shop = self.random.choice(["a", "b", "c"]).filter(|_| self.random.bool());
        let mut request = match shop {
            Some(shop) => {
                let prefix = PrimaryKey::new([KeyValue::from(shop)]).expect("short");
                RangeRequest::prefix(prefix, direction)
            }
            None => RangeRequest::all(direction),
        };
        request = request.limit(self.random.usize(1..10));
        let mut rows = Vec::new();
        loop {
            let page = self.table().range(&request, 0).await.expect("a page").value;
            rows.extend(page.rows);
            match page.next {
                Some(next) => request = request.resume(next),
                None => break,
            }
        }
        let is_in =
            |key: &PrimaryKey| shop.is_none_or(|shop| key.values().first() == Some(&KeyValue::from(shop)));
        let mut expected: Vec<&PrimaryKey> = self.model.keys().filter(|key| is_in(key)).collect();
        if direction == Direction::Backward {
            expected.reverse();
        }
        assert!(rows.iter().map(|row| &row.key).eq(expected), "{request:?}");
        for row in &rows {
            self.check_row(Some(row), self.model.get(&row.key));
        }
        self.met.ranges += 1;
    }

    /// What the secondary index lists, where there is one.
    async fn list(&mut self) {
        let indexes = &self.definition.schema.indexes;
        if !indexes.iter().any(|index| index.name == BY_NUMBER) {
            return;
        }
        let storage = self.engine().database();
        let table = storage.table(TABLE).expect("the table");
        storage.index_ready(&table, BY_NUMBER).await.expect("filled");
        let number = self.random.i64(0..10);
        let list = ListQuery {
            index: BY_NUMBER,
            prefix: &[Value::Integer(number)],
            direction: Direction::Forward,
            page_size: 100,
            page_token: "",
            min_sequence: self.last.unsigned_abs(),
        };
        let page = self.table().list_by(list).await.expect("a page");
        let expected = self
            .model
            .iter()
            .filter(|(_, visit)| visit.number == Some(Number::Fits(number)));
        assert!(
            page.items
                .iter()
                .map(|row| &row.key)
                .eq(expected.map(|(key, _)| key))
        );
        self.met.lists += 1;
    }

    async fn export(&mut self) {
        let start = ExportStart::Slice {
            slice: Slice::new(1, 0).expect("one"),
            snapshot_token: None,
            min_sequence: self.last.unsigned_abs(),
        };
        let blocks = self.table().export(start).await.expect("an export");
        let blocks: Vec<_> = blocks.try_collect().await.expect("blocks");
        let rows = blocks.iter().flat_map(|block| &block.items);
        assert!(rows.map(|row| &row.key).eq(self.model.keys()));
        self.met.exports += 1;
    }

    /// What happened since the table was as it is remembered leads to what it is.
    async fn replay(&mut self) {
        if let Some((after, mut replayed)) = self.watched.take() {
            let table = self.table();
            let watch = table.watch(Some(after)).await.expect("a watch");
            let mut watch = pin!(watch);
            let mut reached = after;
            while reached < self.last.unsigned_abs() {
                let event = watch.next().await.expect("an event").expect("no error");
                reached = event.sequence.unsigned_abs();
                for change in event.changes {
                    self.met.watched += 1;
                    match change.row {
                        // Which row it is; what is in it is compared below.
                        Some(row) => replayed.insert(row.key.clone(), Visit::default()),
                        None => replayed.remove(&change.key),
                    };
                }
            }
            assert!(replayed.keys().eq(self.model.keys()));
        }
        self.remember();
    }

    /// Changes of what is searched, by the definition or one by one.
    async fn change_index(&mut self) {
        self.settle().await;
        let field = "spelled";
        let search = self.definition.search_mut();
        let has = search.fields.iter().any(|own| own.name() == field);
        let source = Source::column("word").read(Reading::Converted);
        if self.random.bool() {
            match has {
                true => {
                    search.fields.retain(|own| own.name() != field);
                    search.sources.remove(field);
                }
                false => *search = search.clone().field_from(Field::long(field), source),
            }
            search.version += u32::from(self.random.u8(..4) == 0);
            let definition = self.definition.clone();
            self.engine().alter_table(definition).await.expect("altered");
        } else {
            let analyzer = match self.random.bool() {
                true => Analyzer::MaxWord,
                false => Analyzer::single_word(),
            };
            let change = match has {
                true => IndexChange::DropField {
                    field: field.to_owned(),
                },
                false => IndexChange::SetAnalyzer {
                    field: "word.text".to_owned(),
                    analyzer,
                },
            };
            let mut redesign = self.engine().redesign(TABLE).await.expect("a table");
            redesign.add(&change).expect("a change");
            if self.met.changed_indexes.is_multiple_of(2) {
                redesign.rebuild();
            }
            redesign.make(false).await.expect("changed");
            self.definition = (*self.table().definition()).clone();
        }
        assert_eq!(*self.table().definition(), self.definition);
        self.met.changed_indexes += 1;
    }

    /// Changes of options and secondary indexes.
    async fn change_options(&mut self) {
        let schema = &mut self.definition.schema;
        match self.random.u8(..3) {
            0 => schema.allow_update = !schema.allow_update,
            1 => schema.max_versions = self.random.u32(1..4),
            _ if schema.indexes.is_empty() => {
                schema
                    .indexes
                    .push(SecondaryIndexSchema::new(BY_NUMBER, ["number"]));
            }
            _ => schema.indexes.clear(),
        }
        let definition = self.definition.clone();
        match self.engine().alter_table(definition).await {
            Ok(()) => {}
            Err(error) => panic!("{error:?}"),
        }
        self.met.changed_options += 1;
    }

    /// What can't be is refused, and nothing of what was asked for beside it is done.
    async fn fail_to_change(&mut self) {
        let mut asked = self.definition.clone();
        asked.schema.max_versions = 5;
        asked.schema.time_to_live = Some(HOUR);
        asked.schema.allow_update = !asked.schema.allow_update;
        match self.random.u8(..5) {
            0 => asked.schema.indexes = vec![SecondaryIndexSchema::new("by_nothing", [""; 0])],
            1 => {
                asked.schema.indexes = vec![SecondaryIndexSchema::new("of_key", ["number"]).include(["nth"])]
            }
            2 => asked.schema.max_versions = 0,
            3 => {
                for nth in 0..1_000 {
                    asked = asked.column(format!("{nth}{}", "x".repeat(250)), ValueType::Json);
                }
            }
            _ => asked = asked.owner("user", "nth"),
        }
        let refused = self.engine().alter_table(asked).await;
        assert!(refused.is_err());
        assert_eq!(*self.table().definition(), self.definition, "{refused:?}");
        let stored = self.engine().database().table(TABLE).expect("the table");
        assert_eq!(*stored.schema(), self.definition.schema, "{refused:?}");
        let long = "v".repeat(MAX_TABLE_NAME_BYTES + self.random.usize(1..60));
        let refused = self.engine().create_table(TableDefinition::hashed(&long)).await;
        assert!(
            matches!(refused, Err(EngineError::LimitExceeded { .. })),
            "{refused:?}"
        );
        self.met.failed_changes += 1;
    }

    /// A row that its index can't have isn't written, and nothing of its batch.
    async fn write_too_long_a_key(&mut self) {
        // The values of a key take 3 and 9 bytes besides text.
        let shop = "x".repeat(MAX_DOCUMENT_KEY_BYTES - 11 + self.random.usize(..30));
        let key = PrimaryKey::new([KeyValue::from(shop), 1.into()]).expect("short enough for the store");
        let long = TableWrite::put(key.clone(), Vec::new());
        let beside = TableWrite::put(self.key(), Visit::random(&mut self.random).columns());
        let refused = self.table().write(vec![beside, long], None).await;
        assert!(
            matches!(
                refused,
                Err(EngineError::LimitExceeded {
                    limit: "MAX_DOCUMENT_KEY_BYTES",
                    ..
                })
            ),
            "{refused:?}"
        );
        self.table()
            .write(vec![TableWrite::delete(key)], None)
            .await
            .expect("it isn't there");
        self.met.long_keys += 1;
    }

    async fn restart(&mut self) {
        self.close().await;
        self.open().await;
        assert_eq!(*self.table().definition(), self.definition, "it is as it was");
        self.met.restarts += 1;
    }

    async fn trim(&mut self) {
        self.clock.advance(2 * HOUR);
        self.engine().database().maintain().await.expect("maintenance");
        // The log may begin here.
        self.remember();
        self.met.trimmed += 1;
    }

    /// Compares the index with one that is built from the table, and goes on with the followed one.
    async fn compare(&mut self) {
        self.settle().await;
        // An engine that closes leaves to the next opening what its index hasn't taken yet.
        self.search().await;
        self.close().await;
        let aside = self.directory.path().join("followed");
        fs::rename(self.indexes(), &aside).expect("set aside");
        self.open().await;
        self.settle().await;
        self.close().await;
        let folders = holdings::folders(self.directory.path(), TABLE);
        let [folder] = folders.as_slice() else {
            panic!("one index: {folders:?}");
        };
        let built = holdings::of(folder);
        let followed = holdings::of(&aside.join(folder.file_name().expect("a name")));
        holdings::assert_same(&followed, &built);
        assert_eq!(followed.documents.len(), self.model.len());
        fs::remove_dir_all(self.indexes()).expect("removed");
        fs::rename(aside, self.indexes()).expect("put back");
        self.open().await;
        self.met.compared += 1;
    }

    /// The table goes with all it has, and one of its name comes that has nothing of it.
    async fn drop_and_create(&mut self) {
        let old = self.table();
        self.engine().drop_table(TABLE).await.expect("dropped");
        for gone in [
            old.get(&self.key(), 0).await.map(drop),
            old.search(Search::new(SearchRequest::new(Query::MatchAll)))
                .await
                .map(drop),
            self.engine().table(TABLE).map(drop),
            self.engine().drop_table(TABLE).await,
        ] {
            assert!(matches!(gone, Err(EngineError::TableNotFound { .. })), "{gone:?}");
        }
        assert!(!self.indexes().exists(), "its index is removed");
        let database = self.engine().database();
        let consumers = database.consumers();
        let of_table = consumers
            .iter()
            .filter(|consumer| consumer.name().ends_with(TABLE));
        assert_eq!(of_table.count(), 0, "the log isn't kept for it");
        assert!(database.table(TABLE).is_none());
        // Who has a handle of them keeps the engine's database open.
        drop((old, consumers));
        if self.random.bool() {
            self.close().await;
            self.open().await;
            assert!(self.engine().table(TABLE).is_err(), "it doesn't come back");
        }
        self.model.clear();
        self.definition = visits();
        let created = self.engine().create_table(visits()).await.expect("created again");
        let all = created.range(&RangeRequest::default(), 0).await.expect("a page");
        assert!(all.value.rows.is_empty());
        self.remember();
        self.settle().await;
        let found = created
            .search(Search::new(SearchRequest::new(Query::MatchAll)))
            .await;
        assert!(found.expect("a page").hits.is_empty());
        self.met.dropped += 1;
    }
}

/// An engine with a table of code alone.
async fn engine() -> (TempDir, Engine) {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    (directory, engine)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_isnt_a_table_and_what_isnt_ones_own_is_refused() {
    let (_directory, engine) = engine().await;
    engine.create_table(visits()).await.expect("created");
    for taken in [TABLE, "Visits", "notes", "NOTES"] {
        let again = engine.create_table(TableDefinition::hashed(taken)).await;
        assert!(
            matches!(again, Err(EngineError::TableExists { .. })),
            "{taken}: {again:?}"
        );
    }
    let mut other_key = visits();
    other_key.schema.key.pop();
    let mut unsearched = visits();
    unsearched.indexes.clear();
    for wrong in [other_key, unsearched] {
        let refused = engine.alter_table(wrong).await;
        assert!(
            matches!(refused, Err(EngineError::InvalidDefinition { .. })),
            "{refused:?}"
        );
    }
    for of_code in [
        engine.alter_table(TableDefinition::hashed("notes")).await,
        engine.drop_table("notes").await,
    ] {
        assert!(
            matches!(of_code, Err(EngineError::TableOfCode { .. })),
            "{of_code:?}"
        );
    }
    let mut large = TableDefinition::hashed("large");
    for nth in 0..1_000 {
        large = large.column(format!("{nth}{}", "x".repeat(300)), ValueType::Json);
    }
    let refused = engine.create_table(large).await.map(drop).expect_err("too large");
    assert!(refused.to_string().contains("MAX_DEFINITION_BYTES"), "{refused}");
    assert!(engine.database().table("large").is_none());
    let wrong_key = TableDefinition::new(TableSchema::new("wrong"));
    let refused = engine.create_table(wrong_key).await.map(drop);
    assert!(
        matches!(refused, Err(EngineError::Storage(StoreError::Invalid { .. }))),
        "{refused:?}"
    );
    // Nothing is left of it.
    assert!(
        engine
            .create_table(TableDefinition::hashed("wrong"))
            .await
            .is_ok()
    );
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_knows_nothing_of_a_rebuilt_index_leaves_it() {
    let (_directory, engine) = engine().await;
    let definition = TableDefinition::hashed("visits").id_field(Field::keyword("visit_id").key());
    engine.create_table(definition.clone()).await.expect("created");
    let mut redesign = engine.redesign("visits").await.expect("a table");
    redesign.rebuild();
    redesign.make(false).await.expect("built anew");
    let builds = || {
        let definitions = engine.definitions();
        let ours = definitions.iter().find(|each| each.name() == "visits");
        ours.and_then(|ours| Some(ours.search()?.builds))
    };
    assert_eq!(builds(), Some(1));
    engine.alter_table(definition).await.expect("altered");
    assert_eq!(builds(), Some(1), "it would be built once more");
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_without_search_index_is_read_and_written_and_says_that_it_isnt_searched() {
    let (directory, engine) = engine().await;
    let schema = TableSchema::new("log")
        .key("of", KeyKind::String)
        .auto_increment_key("nth");
    let log = engine
        .create_table(TableDefinition::new(schema))
        .await
        .expect("created");
    let append = |text: &str| {
        let (key, columns) = (vec!["a".into()], vec![("text".into(), text.into())]);
        TableWrite::new(RowOperation::Append { key, columns }).returning(ReturnRow::Key)
    };
    let mut keys = Vec::new();
    for text in ["one", "two"] {
        let written = log.write(vec![append(text)], None).await.expect("appended");
        keys.push(written.value[0].key.clone().expect("its key"));
    }
    assert!(keys.is_sorted() && keys[0] != keys[1]);
    let searched = log.search(Search::new(SearchRequest::new(Query::MatchAll))).await;
    assert!(
        matches!(searched, Err(EngineError::NotSearched { .. })),
        "{searched:?}"
    );
    let names: Vec<String> = engine
        .indexes(&Principal::Service)
        .await
        .expect("indexes")
        .into_iter()
        .map(|index| index.table)
        .collect();
    assert_eq!(names, ["notes"]);
    engine
        .refreshed(engine.database().last_sequence(), None)
        .await
        .expect("seen");
    drop(log);
    note::close(engine).await;
    let (engine, _) = note::open(directory.path()).await;
    let log = engine.table("log").expect("it is there again");
    let rows = log
        .range(&RangeRequest::default(), 0)
        .await
        .expect("a page")
        .value
        .rows;
    assert!(rows.iter().map(|row| &row.key).eq(&keys));
    engine.drop_table("log").await.expect("dropped");
    note::close(engine).await;
}

/// Keys of a hashed table are made of ids, or its documents would be others'.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hashed_table_takes_no_other_keys_and_a_table_of_code_no_rows() {
    let (_directory, engine) = engine().await;
    let things = TableDefinition::hashed("things").id_field(Field::keyword("id").key());
    let things = engine.create_table(things).await.expect("created");
    let wrong = PrimaryKey::new([KeyValue::from("00"), "t1".into()]).expect("short");
    let refused = things.write(vec![TableWrite::put(wrong, Vec::new())], None).await;
    assert!(
        matches!(refused, Err(EngineError::InvalidRow { .. })),
        "{refused:?}"
    );
    let right = souk_engine::key::hashed("t1").expect("short");
    let written = things
        .write(
            vec![TableWrite::put(right.clone(), vec![("n".into(), 1.into())])],
            None,
        )
        .await;
    let sequence = written.expect("written").sequence.unsigned_abs();
    let id = Query::Term {
        field: "id".to_owned(),
        value: "t1".into(),
        weight: 1.0,
    };
    let mut search = Search::new(SearchRequest::new(id));
    search.min_sequence = sequence;
    assert_eq!(things.search(search).await.expect("a page").hits.len(), 1);
    let notes = engine.table("notes").expect("a table of code");
    let refused = notes.write(vec![TableWrite::delete(right)], None).await;
    assert!(
        matches!(refused, Err(EngineError::TableOfCode { .. })),
        "{refused:?}"
    );
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_of_a_created_tables_rows_meet_and_write_theirs_alone() {
    let (_directory, engine) = engine().await;
    let schema = TableSchema::new("letters").key("id", KeyKind::String);
    let letters = TableDefinition::new(schema)
        .item("letter")
        .field(Field::keyword("author"))
        .owner("user", "author");
    let letters = engine.create_table(letters).await.expect("created");
    let owner = Owner {
        kind: "user",
        id: "ada".into(),
    };
    let ada = letters.for_call(Call {
        principal: Principal::Caller {
            name: "ada".into(),
            owner: Some(owner),
            tables: None,
        },
        deadline: None,
    });
    let key = |id: &str| PrimaryKey::string(id).expect("short");
    let put = |id: &str, author: &str| TableWrite::put(key(id), vec![("author".into(), author.into())]);
    let set = |id: &str, column: &str, value: &str| {
        let (column, value) = (column.to_owned(), value.into());
        let version = None;
        TableWrite::update(
            key(id),
            vec![ColumnChange::Put {
                column,
                value,
                version,
            }],
        )
    };
    let unset = |id: &str| {
        let column = "author".to_owned();
        TableWrite::update(key(id), vec![ColumnChange::DeleteAll { column }])
    };
    letters
        .write(vec![put("l2", "bob")], None)
        .await
        .expect("written");
    ada.write(vec![put("l1", "ada")], None).await.expect("her own");
    ada.write(vec![set("l1", "text", "hello")], None)
        .await
        .expect("her own");
    for not_own in [
        put("l3", "bob"),
        put("l1", "bob"),
        put("l1", "bob").when(Condition::must_not_exist()),
        set("l2", "text", "hello"),
        set("l1", "author", "bob"),
        set("l3", "text", "of nobody"),
        unset("l1"),
    ] {
        let refused = ada.write(vec![put("l4", "ada"), not_own.clone()], None).await;
        assert!(
            matches!(refused, Err(EngineError::NotOwn { .. })),
            "{not_own:?}: {refused:?}"
        );
    }
    // To her there is no such row, though its key is taken.
    let taken = ada.write(vec![put("l4", "ada"), put("l2", "ada")], None).await;
    assert!(
        matches!(
            taken,
            Err(EngineError::Storage(StoreError::ConditionFailed {
                write: 1,
                reason: ConditionFailure::AlreadyExists
            }))
        ),
        "{taken:?}"
    );
    let nothing = ada.write(vec![TableWrite::delete(key("l2"))], None).await;
    assert!(nothing.is_ok(), "{nothing:?}");
    let ids = |rows: &[Row]| -> Vec<PrimaryKey> { rows.iter().map(|row| row.key.clone()).collect() };
    let hers = ada
        .range(&RangeRequest::default(), 0)
        .await
        .expect("a page")
        .value;
    assert_eq!(ids(&hers.rows), [key("l1")]);
    assert_eq!(ada.get(&key("l2"), 0).await.expect("read").value, None);
    let found = async |table: &TableHandle, min_sequence: u64| {
        let mut request = SearchRequest::new(Query::MatchAll);
        request.total = TotalRequest::Exact;
        let mut search = Search::new(request);
        search.min_sequence = min_sequence;
        let page = table.search(search).await.expect("a page");
        (page.hits.len(), page.total.map(|total| total.value))
    };
    let last = engine.database().last_sequence();
    assert_eq!(found(&ada, last).await, (1, Some(1)));
    assert_eq!(found(&letters, last).await, (2, Some(2)));
    // What somebody else takes from her is no longer counted, though she asks for no sequence.
    let watch = ada.watch(Some(last)).await.expect("a watch");
    letters
        .write(vec![set("l1", "author", "bob")], None)
        .await
        .expect("written");
    assert_eq!(found(&ada, 0).await, (0, Some(0)));
    letters
        .write(vec![put("l1", "ada")], None)
        .await
        .expect("given back");
    let deleted = ada.write(vec![TableWrite::delete(key("l1"))], None).await;
    let deleted = deleted.expect("her own").sequence;
    let mut watch = pin!(watch);
    let mut told = Vec::new();
    loop {
        let event = watch.next().await.expect("an event").expect("no error");
        told.extend(event.changes.into_iter().map(|change| change.row.is_some()));
        if event.sequence == deleted {
            break;
        }
    }
    assert_eq!(told, [true, false], "that it was hers again, and that it is gone");
    let kept = letters
        .range(&RangeRequest::default(), 0)
        .await
        .expect("a page")
        .value;
    assert_eq!(ids(&kept.rows), [key("l2")]);
    note::close(engine).await;
}
