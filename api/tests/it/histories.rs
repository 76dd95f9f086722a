//! Random histories of a table whose index follows it: writes, redesigns that end or are given up, builds that are cut short
//! and go on, restarts, indexes that come back as they were earlier or not at all, logs that are trimmed. Now and then the
//! index is compared, document by document, with one that is built from the table then.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use souk_api::{Error, Resources, indexes};
use souk_engine::index::{Analyzer, Field, FieldKind, MisfitReason, QueryValue};
use souk_engine::storage::ManualClock;
use souk_engine::{
    Attributes, ColumnReader, Columns, CorruptRow, Engine, EngineConfig, Health, Resource, Source,
    TableDefinition, Tables, ValueType,
};
use souk_proto::search::v1 as pb;
use tempfile::TempDir;

use crate::{holdings, note, rounds, seed};

const TABLE: &str = "things";
/// More than a build reads at a time, so that it can be cut short.
const ROWS: u32 = 4_500;
/// Rows of one request.
const BATCH: usize = 200;
const HOUR: Duration = Duration::from_secs(3_600);
const WORDS: &[&str] = &[
    "coffee",
    "Coffee",
    "手冲咖啡",
    "tea",
    "running",
    "runs",
    "x1",
    "-",
    "",
    "yes",
];

/// A row from whose number a document with a field of every type is made, with values that don't fit among them.
#[derive(Clone, Debug, PartialEq)]
struct Thing {
    id: String,
    number: i64,
    word: String,
}

impl Resource for Thing {
    type Record = Self;
    const TABLE: &'static str = TABLE;
    const NAME: &'static str = "thing";
    const ID_FIELD: &'static str = "thing_id";

    fn definition() -> TableDefinition {
        let parts = vec![
            Field::keyword("code"),
            Field::long("size"),
            Field::text("label", Analyzer::MaxWord),
        ];
        let data = |field: Field| {
            let source = Source::column("data").at([field.name()]);
            (field, source)
        };
        let of_data = [
            data(Field::keyword("tags").array()),
            data(Field::text("text", Analyzer::single_word()).sub_field("raw", FieldKind::Keyword)),
            data(Field::boolean("flag")),
            data(Field::date("at")),
            data(Field::geo_point("spot").array()),
            data(Field::nested("parts", parts)),
        ];
        let table = TableDefinition::hashed(Self::TABLE)
            .column("data", ValueType::Json)
            .column("extra", ValueType::Attributes)
            .id_field(Field::keyword("thing_id"))
            .field(Field::keyword("word"))
            .field(Field::long("number"))
            .field_from(Field::double("price"), Source::column("extra").at(["price"]));
        let add = |table: TableDefinition, (field, source)| table.field_from(field, source);
        of_data.into_iter().fold(table, add)
    }

    fn id(record: &Self) -> &str {
        &record.id
    }

    fn to_columns(record: &Self) -> Columns {
        let mut random = Rng::with_seed(record.number.unsigned_abs());
        let price = [1.5, -0.0, f64::NAN, 1e300][random.usize(..4)];
        let extra = Attributes::from_iter([("price".to_owned(), QueryValue::Double(price))]);
        let columns = Columns::new()
            .integer("number", record.number)
            .string("word", &record.word)
            .string("data", &data(&mut random));
        extra.to_column(columns, "extra")
    }

    fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
        Ok(Self {
            id: id.to_owned(),
            number: columns.integer("number")?,
            word: columns.string("word")?,
        })
    }
}

/// JSON with a value for a field of every type.
fn data(random: &mut Rng) -> String {
    // As Rust spells these words, JSON does.
    let word = |random: &mut Rng| format!("{:?}", WORDS[random.usize(..WORDS.len())]);
    let mut members = Vec::new();
    let mut add = |name: &str, value: String| members.push(format!("{name:?}: {value}"));
    let list = |random: &mut Rng, most: u8, element: &dyn Fn(&mut Rng) -> String| {
        let elements: Vec<String> = (0..random.u8(..most)).map(|_| element(random)).collect();
        format!("[{}]", elements.join(", "))
    };
    add("tags", list(random, 4, &word));
    let text: Vec<&str> = (0..random.u8(..8))
        .map(|_| WORDS[random.usize(..WORDS.len())])
        .collect();
    add("text", format!("{:?}", text.join(" ")));
    match random.u8(..3) {
        0 => add("flag", random.bool().to_string()),
        1 => add("flag", "\"perhaps\"".to_owned()),
        _ => {}
    }
    add("at", random.i64(..).to_string());
    let spot = |random: &mut Rng| {
        let (north, east) = (random.f64() * 180.0 - 90.0, random.f64() * 360.0 - 180.0);
        format!("\"{north},{east}\"")
    };
    add("spot", list(random, 3, &spot));
    let part = |random: &mut Rng| {
        let size = match random.bool() {
            true => random.i64(-3..3).to_string(),
            false => "\"big\"".to_owned(),
        };
        let (code, label) = (word(random), word(random));
        format!("{{\"code\": {code}, \"label\": {label}, \"size\": {size}}}")
    };
    add("parts", list(random, 4, &part));
    format!("{{{}}}", members.join(", "))
}

/// What happened, so that a history that does nothing is none.
#[derive(Debug, Default)]
struct Met {
    writes: usize,
    redesigns: usize,
    given_up: usize,
    cut_short: usize,
    restarts: usize,
    earlier: usize,
    lost: usize,
    trimmed: usize,
    compared: usize,
    documents: usize,
}

struct History {
    random: Rng,
    directory: TempDir,
    clock: Arc<ManualClock>,
    engine: Option<(Engine, Resources<Thing>)>,
    /// What the table holds.
    model: BTreeMap<String, Thing>,
    last: i64,
    /// What the index is to have.
    wanted: Vec<pb::IndexField>,
    /// Fields that were added.
    added: BTreeSet<&'static str>,
    /// The indexes as they were at an earlier restart.
    earlier: Option<TempDir>,
    met: Met,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_followed_index_holds_what_a_built_one_holds() {
    let mut random = Rng::with_seed(seed("histories of an index"));
    let mut met = Vec::new();
    for _ in 0..rounds(1, 12) {
        let mut history = History::begin(random.fork()).await;
        for _ in 0..rounds(30, 120) {
            history.step().await;
        }
        history.compare().await;
        println!("{:?}", history.met);
        assert!(
            history.met.cut_short > 0 && history.met.given_up > 0,
            "{:?}",
            history.met
        );
        met.push(history.met);
    }
    let sum = |of: fn(&Met) -> usize| met.iter().map(of).sum::<usize>();
    println!(
        "{} histories: {} writes, {} redesigns ({} given up, {} builds cut short), {} restarts ({} with an earlier index, \
         {} without one), {} trimmed logs; {} comparisons of {} documents",
        met.len(),
        sum(|met| met.writes),
        sum(|met| met.redesigns),
        sum(|met| met.given_up),
        sum(|met| met.cut_short),
        sum(|met| met.restarts),
        sum(|met| met.earlier),
        sum(|met| met.lost),
        sum(|met| met.trimmed),
        sum(|met| met.compared),
        sum(|met| met.documents),
    );
}

impl History {
    /// A table with rows, a build that was cut short, and one that was given up.
    async fn begin(random: Rng) -> Self {
        let mut history = Self {
            random,
            directory: tempfile::tempdir().expect("a directory"),
            clock: Arc::new(ManualClock::new(1_700_000_000_000_000_000)),
            engine: None,
            model: BTreeMap::new(),
            last: 0,
            wanted: Vec::new(),
            added: BTreeSet::new(),
            earlier: None,
            met: Met::default(),
        };
        history.open().await;
        for from in (0..ROWS).step_by(BATCH) {
            let ids = from..ROWS.min(from + BATCH as u32);
            let things = ids.map(|id| history.thing(format!("t{id}"))).collect();
            history.create(things).await;
        }
        history.settle().await;
        history.redesign().await;
        history.restart().await;
        history.writes().await;
        history.redesign().await;
        history.writes().await;
        history
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn indexes(&self) -> PathBuf {
        self.path().join("index").join(TABLE)
    }

    fn engine(&self) -> &Engine {
        &self.engine.as_ref().expect("open").0
    }

    fn things(&self) -> &Resources<Thing> {
        &self.engine.as_ref().expect("open").1
    }

    fn thing(&mut self, id: String) -> Thing {
        Thing {
            id,
            number: self.random.i64(0..1 << 40),
            word: WORDS[self.random.usize(..WORDS.len())].to_owned(),
        }
    }

    async fn open(&mut self) {
        let mut config = EngineConfig::new(self.path());
        config.storage.clock = Arc::clone(&self.clock) as _;
        config.storage.retention = HOUR;
        config.storage.maintenance_interval = 1_000 * HOUR;
        let engine = Engine::open(config, Tables::new().table::<Thing>()).await;
        let engine = engine.expect("the engine opens");
        let things = Resources::new(&engine).expect("declared");
        self.met.cut_short += usize::from(!engine.database().feeds().is_empty());
        self.engine = Some((engine, things));
    }

    async fn close(&mut self) {
        let (engine, _) = self.engine.take().expect("open");
        note::close(engine).await;
    }

    /// Waits until the index answers, and is as wanted.
    async fn settle(&self) {
        let mut health = self.engine().health();
        health
            .wait_for(Health::is_serving)
            .await
            .expect("the engine lives");
        loop {
            let index = indexes::get(self.engine(), TABLE).await.expect("an index");
            match index.phase() {
                // At the start the old index may answer before the new one is announced.
                pb::IndexPhase::Serving if self.wanted.is_empty() || index.fields == self.wanted => break,
                pb::IndexPhase::Serving | pb::IndexPhase::Rebuilding => tokio::task::yield_now().await,
                phase => panic!("{phase:?}: {index:?}"),
            }
        }
    }

    async fn step(&mut self) {
        match self.random.u8(..20) {
            0..=9 => self.writes().await,
            10 | 11 => self.search().await,
            12..=14 => self.redesign().await,
            15..=17 => self.restart().await,
            18 => self.trim().await,
            _ => self.compare().await,
        }
    }

    async fn create(&mut self, things: Vec<Thing>) {
        self.met.writes += things.len();
        for thing in &things {
            self.model.insert(thing.id.clone(), thing.clone());
        }
        let created = self.things().create_batch(things, None, true).await;
        self.last = created.expect("created").sequence;
    }

    /// Some writes of all kinds, here and there in the table.
    async fn writes(&mut self) {
        for _ in 0..self.random.u32(1..40) {
            let id = format!("t{}", self.random.u32(..ROWS + 500));
            let new = self.thing(id.clone());
            if !self.model.contains_key(&id) {
                self.create(vec![new]).await;
                continue;
            }
            self.met.writes += 1;
            self.last = if self.random.u8(..3) == 0 {
                self.model.remove(&id);
                self.things().delete(&id, None).await.expect("deleted").sequence
            } else {
                let change = |_| Ok::<_, Error>(new.clone());
                let changed = self.things().update(&id, None, change).await;
                self.model.insert(id, new.clone());
                changed.expect("changed").sequence
            };
        }
    }

    /// A search sees what was written before it.
    async fn search(&mut self) {
        let word = WORDS[self.random.usize(..WORDS.len())];
        let search = pb::Search {
            query: note::term("word", word),
            min_sequence: self.last,
            hits_mode: pb::HitsMode::None.into(),
            total: Some(pb::TotalRequest {
                kind: Some(pb::total_request::Kind::Exact(true)),
            }),
            ..pb::Search::default()
        };
        let mut health = self.engine().health();
        health
            .wait_for(Health::is_serving)
            .await
            .expect("the engine lives");
        let page = self
            .things()
            .search(Some(search), "search")
            .await
            .expect("a page");
        let expected = self
            .model
            .values()
            .filter(|thing| thing.word == word && !word.is_empty());
        let total = page.total.expect("a total").value;
        assert_eq!(
            usize::try_from(total).expect("small"),
            expected.count(),
            "{word:?}"
        );
    }

    /// Makes the index to another one, sometimes before the one before is built.
    async fn redesign(&mut self) {
        let mut health = self.engine().health();
        health
            .wait_for(Health::is_serving)
            .await
            .expect("the engine lives");
        let is_building = !self.engine().database().feeds().is_empty();
        if self.met.redesigns % 4 == 3 {
            let rebuilt = indexes::rebuild(self.engine(), TABLE, false).await;
            rebuilt.expect("an index");
            self.met.redesigns += 1;
            return;
        }
        let (field, kind, source) = [
            ("of_number", pb::IndexFieldType::Long, "number"),
            ("of_word", pb::IndexFieldType::Keyword, "word"),
            ("unfit", pb::IndexFieldType::Boolean, "word"),
            ("double", pb::IndexFieldType::Double, "number"),
            ("words", pb::IndexFieldType::Text, "word"),
        ][self.random.usize(..5)];
        let change = match self.random.u8(..4) {
            0 => analyzer(&mut self.random),
            _ if self.added.remove(field) => pb::index_change::Kind::DropField(pb::DropIndexField {
                field: field.to_owned(),
            }),
            _ => {
                self.added.insert(field);
                pb::index_change::Kind::AddField(pb::AddIndexField {
                    field: field.to_owned(),
                    r#type: kind.into(),
                    source: source.to_owned(),
                    ..pb::AddIndexField::default()
                })
            }
        };
        let change = pb::IndexChange { kind: Some(change) };
        let changed = note::update_index(self.engine(), TABLE, &[change], false).await;
        let (index, _) = changed.expect("a change of the index");
        self.wanted = match index.fields_to_be.is_empty() {
            true => index.fields,
            false => index.fields_to_be,
        };
        self.met.redesigns += 1;
        self.met.given_up += usize::from(is_building);
    }

    /// The next life of the engine, sometimes with an index of an earlier one, or none.
    async fn restart(&mut self) {
        self.close().await;
        // An engine that is closed at once may not have made it.
        fs::create_dir_all(self.indexes()).expect("a folder");
        self.met.restarts += 1;
        match self.random.u8(..8) {
            0 | 1 => {
                let copy = tempfile::tempdir().expect("a directory");
                copy_folder(&self.indexes(), copy.path());
                self.earlier = Some(copy);
            }
            2 | 3 => {
                if let Some(earlier) = self.earlier.take() {
                    fs::remove_dir_all(self.indexes()).expect("removed");
                    copy_folder(earlier.path(), &self.indexes());
                    self.met.earlier += 1;
                }
            }
            4 => {
                fs::remove_dir_all(self.indexes()).expect("removed");
                self.met.lost += 1;
            }
            _ => {}
        }
        self.open().await;
    }

    /// Time passes, and the log goes as far as it may.
    async fn trim(&mut self) {
        self.clock.advance(2 * HOUR);
        self.engine().database().maintain().await.expect("maintenance");
        self.met.trimmed += 1;
    }

    /// Compares the index with one that is built from the table, and goes on with the followed one.
    async fn compare(&mut self) {
        self.settle().await;
        // An engine that closes leaves to the next opening what its index hasn't taken yet.
        self.search().await;
        self.close().await;
        let aside = self.path().join("followed");
        fs::rename(self.indexes(), &aside).expect("set aside");
        self.open().await;
        self.settle().await;
        self.close().await;
        let folders = holdings::folders(self.path(), TABLE);
        let [folder] = folders.as_slice() else {
            panic!("one index: {folders:?}");
        };
        let built = holdings::of(folder);
        let followed = holdings::of(&aside.join(folder.file_name().expect("a name")));
        holdings::assert_same(&followed, &built);
        assert_eq!(followed.sequence, built.sequence);
        self.check(&followed, &built);
        fs::remove_dir_all(self.indexes()).expect("removed");
        fs::rename(&aside, self.indexes()).expect("put back");
        self.met.compared += 1;
        self.met.documents += followed.documents.len();
        self.open().await;
    }

    /// The documents are those of the rows; what doesn't fit is listed by both.
    fn check(&self, followed: &holdings::Holdings, built: &holdings::Holdings) {
        let value = |held: &[String], column: &str| {
            let of_column = held.iter().find_map(|held| held.strip_prefix(column));
            of_column.map(str::to_owned)
        };
        let mut found = BTreeSet::new();
        for held in followed.documents.values() {
            let root = held.last().expect("a document");
            found.insert((value(root, "thing_id column "), value(root, "number column ")));
        }
        let rows = self.model.values().map(|thing| {
            let (id, number) = (vec![thing.id.clone()], vec![thing.number.to_string()]);
            (Some(format!("{id:?}")), Some(format!("{number:?}")))
        });
        assert!(
            found.into_iter().eq(rows.collect::<BTreeSet<_>>()),
            "the rows are others"
        );
        // Each document counts its misfits again when it is applied again.
        for counted in &built.misfits.counts {
            let of = |other: &&souk_engine::index::MisfitCount| {
                other.field == counted.field && other.reason == counted.reason
            };
            let other = followed.misfits.counts.iter().find(of);
            assert!(
                other.is_some_and(|other| other.count >= counted.count),
                "{counted:?} {other:?}"
            );
        }
        let reasons: Vec<MisfitReason> = built
            .misfits
            .counts
            .iter()
            .map(|counted| counted.reason)
            .collect();
        assert!(reasons.contains(&MisfitReason::WrongType) && reasons.contains(&MisfitReason::NotFinite));
        assert!(!followed.misfits.recent.is_empty());
    }
}

fn analyzer(random: &mut Rng) -> pb::index_change::Kind {
    let kind = match random.u8(..3) {
        0 => pb::text_analyzer::Kind::SingleWord(pb::SingleWordAnalyzer {
            case_sensitive: random.bool(),
            delimit_word: random.bool(),
        }),
        1 => pb::text_analyzer::Kind::MaxWord(pb::MaxWordAnalyzer {}),
        _ => pb::text_analyzer::Kind::Fuzzy(pb::FuzzyAnalyzer {
            min_chars: 1,
            max_chars: random.i32(2..5),
            case_sensitive: false,
        }),
    };
    pb::index_change::Kind::SetAnalyzer(pb::SetIndexAnalyzer {
        field: "text".to_owned(),
        analyzer: Some(pb::TextAnalyzer {
            kind: Some(kind),
            stemmed: false,
        }),
    })
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("readable");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("copied");
        }
    }
}
