//! Another declaration of a table: the old index answers until the new one is built, whatever happens between.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use souk_api::{Error, Resources, indexes};
use souk_engine::index::{Analyzer, Field, FieldKind};
use souk_engine::storage::ManualClock;
use souk_engine::{
    ColumnReader, Columns, CorruptRow, Engine, EngineConfig, EngineError, Health, Reading, Resource, Source,
    TableDefinition, Tables,
};
use souk_proto::search::v1 as pb;

use crate::note::{self, Note};

/// Notes as a later version declares them: their authors are found as names are compared, too, and texts by other words.
#[derive(Clone, Debug, PartialEq)]
struct Renewed(Note);

impl Resource for Renewed {
    type Record = Self;
    const TABLE: &'static str = Note::TABLE;
    const NAME: &'static str = Note::NAME;
    const ID_FIELD: &'static str = Note::ID_FIELD;

    fn definition() -> TableDefinition {
        let analyzer = Analyzer::Fuzzy {
            min_chars: 1,
            max_chars: 3,
            case_sensitive: false,
        };
        let shout = Source::column("author").read(Reading::Folded);
        let note = Note::definition();
        TableDefinition::new(note.schema)
            .id_field(Field::keyword("note_id"))
            .field(Field::keyword("author"))
            .field_from(Field::keyword("shout"), shout)
            .field(Field::long("rank"))
            .field(Field::text("text", analyzer).sub_field("keyword", FieldKind::Keyword))
    }

    fn id(record: &Self) -> &str {
        Note::id(&record.0)
    }

    fn to_columns(record: &Self) -> Columns {
        Note::to_columns(&record.0)
    }

    fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
        Note::from_columns(id, columns).map(Self)
    }
}

pub(crate) async fn start<R: Resource>(directory: &Path) -> (Engine, Resources<R>) {
    start_with(EngineConfig::new(directory)).await
}

/// [`start`] with settings.
pub(crate) async fn start_with<R: Resource>(config: EngineConfig) -> (Engine, Resources<R>) {
    let engine = Engine::open(config, Tables::new().table::<R>())
        .await
        .expect("the engine opens");
    let notes = Resources::new(&engine).expect("the table is declared");
    (engine, notes)
}

pub(crate) async fn serving(engine: &Engine) {
    let mut health = engine.health();
    let served = health.wait_for(Health::is_serving).await.map(|_| ());
    served.expect("the engine lives");
}

pub(crate) fn counting(query: Option<pb::Query>, min_sequence: i64) -> pb::Search {
    pb::Search {
        query,
        min_sequence,
        total: Some(pb::TotalRequest {
            kind: Some(pb::total_request::Kind::Exact(true)),
        }),
        page_size: 1,
        ..pb::Search::default()
    }
}

async fn count<R: Resource>(notes: &Resources<R>, query: Option<pb::Query>) -> Result<i64, Error> {
    let page = notes.search(Some(counting(query, 0)), "search").await?;
    Ok(page.total.expect("a total").value)
}

/// Waits until the new fields are found; nothing before is a failure but that the field isn't there yet.
async fn renewed(notes: &Resources<Renewed>) -> i64 {
    loop {
        match count(notes, note::term("shout", "ada")).await {
            Ok(found) => return found,
            Err(Error::InvalidQuery(_) | Error::Engine(EngineError::IndexBuilding { .. })) => {
                tokio::task::yield_now().await
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

async fn fill(directory: &Path, notes_in_all: i64) {
    let (engine, notes) = note::open(directory).await;
    for from in (0..notes_in_all).step_by(200) {
        let batch = (from..notes_in_all.min(from + 200))
            .map(|rank| Note::new(&format!("n{rank}"), "ada", rank))
            .collect();
        notes.create_batch(batch, None, true).await.expect("created");
    }
    note::close(engine).await;
}

fn indexes(directory: &Path) -> Vec<String> {
    let folders = fs::read_dir(directory.join("index").join("notes")).expect("a folder of indexes");
    let names = folders.map(|entry| entry.expect("readable").file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

fn feeds(engine: &Engine) -> usize {
    engine.database().feeds().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_index_answers_and_follows_until_the_new_one_is_built() {
    const NOTES: i64 = 12_000;
    let directory = tempfile::tempdir().expect("a directory");
    fill(directory.path(), NOTES).await;
    let before = indexes(directory.path());
    let (engine, notes) = start::<Renewed>(directory.path()).await;
    serving(&engine).await;
    let mut written = NOTES;
    let mut seen_by_the_old_one = 0;
    // Every write is found by the index that answers, before, during and after the change.
    loop {
        let note = Note::new(&format!("n{written}"), "ada", written);
        let sequence = notes
            .create(Renewed(note), None, false)
            .await
            .expect("created")
            .sequence;
        written += 1;
        let search = counting(note::term("author", "ada"), sequence);
        let page = notes
            .search(Some(search), "search")
            .await
            .expect("always answered");
        assert_eq!(page.total.expect("a total").value, written);
        match count(&notes, note::term("shout", "ada")).await {
            Ok(found) => {
                assert_eq!(found, written);
                break;
            }
            Err(Error::InvalidQuery(violations)) => {
                assert!(format!("{violations:?}").contains("shout"), "{violations:?}");
                seen_by_the_old_one += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(seen_by_the_old_one > 0, "the build was over before it began");
    note::close(engine).await;
    drop(notes);
    let after = indexes(directory.path());
    assert_eq!((before.len(), after.len()), (1, 1));
    assert_ne!(before, after);

    let (engine, notes) = start::<Renewed>(directory.path()).await;
    assert_eq!(renewed(&notes).await, written);
    assert_eq!(feeds(&engine), 0);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_that_is_cut_short_goes_on_and_misses_nothing() {
    // Building them takes many times as long as the writes of a round.
    const NOTES: i64 = 100_000;
    let directory = tempfile::tempdir().expect("a directory");
    fill(directory.path(), NOTES).await;
    let mut written = NOTES;
    let mut cut = 0;
    for _ in 0..4 {
        let (engine, notes) = start::<Renewed>(directory.path()).await;
        serving(&engine).await;
        // A write behind and, most likely, one before what the build has read.
        for author in ["ada", "ada", "bob"] {
            let note = Note::new(&format!("n{written}"), author, written);
            notes.create(Renewed(note), None, false).await.expect("created");
            written += 1;
        }
        let old = format!("n{}", written % NOTES);
        notes.delete(&old, None).await.expect("deleted");
        notes
            .create(Renewed(Note::new(&old, "ada", 1)), None, false)
            .await
            .expect("created");
        cut += usize::from(feeds(&engine) > 0);
        note::close(engine).await;
    }
    assert!(cut > 0, "no build was cut short");
    let (engine, notes) = start::<Renewed>(directory.path()).await;
    assert_eq!(renewed(&notes).await, written - 4);
    assert_eq!(count(&notes, None).await.expect("an answer"), written);
    note::close(engine).await;
    drop(notes);
    assert_eq!(indexes(directory.path()).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_draft_is_begun_anew_and_a_damaged_old_index_is_none() {
    let directory = tempfile::tempdir().expect("a directory");
    fill(directory.path(), 100).await;
    // An old index whose description is damaged doesn't answer; the new one is built all the same.
    let marker = directory
        .path()
        .join("index/notes")
        .join(&indexes(directory.path())[0])
        .join("souk-index.json");
    let mut text = fs::read_to_string(&marker).expect("a description");
    text = text.replacen("author", "auteur", 1);
    fs::write(&marker, text).expect("written");
    let (engine, notes) = start::<Renewed>(directory.path()).await;
    assert_eq!(renewed(&notes).await, 100);
    note::close(engine).await;
    drop(notes);
    // And of what an older version calls a draft nothing is left.
    fs::create_dir(directory.path().join("index/notes/0123456789abcdef.building")).expect("a folder");
    let (engine, notes) = start::<Renewed>(directory.path()).await;
    assert_eq!(renewed(&notes).await, 100);
    note::close(engine).await;
    drop(notes);
    assert_eq!(indexes(directory.path()).len(), 1);
}

fn change(kind: pb::index_change::Kind) -> pb::IndexChange {
    pb::IndexChange { kind: Some(kind) }
}

pub(crate) fn add(field: &str, kind: pb::IndexFieldType, source: &str) -> pb::IndexChange {
    change(pb::index_change::Kind::AddField(pb::AddIndexField {
        field: field.to_owned(),
        r#type: kind.into(),
        source: source.to_owned(),
        ..pb::AddIndexField::default()
    }))
}

fn drop_field(field: &str) -> pb::IndexChange {
    let field = field.to_owned();
    change(pb::index_change::Kind::DropField(pb::DropIndexField { field }))
}

fn by_fuzzy(field: &str) -> pb::IndexChange {
    let fuzzy = pb::FuzzyAnalyzer {
        min_chars: 2,
        max_chars: 3,
        case_sensitive: false,
    };
    change(pb::index_change::Kind::SetAnalyzer(pb::SetIndexAnalyzer {
        field: field.to_owned(),
        analyzer: Some(pb::TextAnalyzer {
            kind: Some(pb::text_analyzer::Kind::Fuzzy(fuzzy)),
            stemmed: false,
        }),
    }))
}

/// Waits until the index is as wanted.
async fn settled(engine: &Engine) -> pb::Index {
    loop {
        let index = indexes::get(engine, "notes").await.expect("an index");
        match index.phase() {
            pb::IndexPhase::Serving => return index,
            pb::IndexPhase::Rebuilding => tokio::task::yield_now().await,
            phase => panic!("{phase:?}: {index:?}"),
        }
    }
}

fn matching(text: &str) -> Option<pb::Query> {
    Some(pb::Query {
        kind: Some(pb::query::Kind::Match(pb::MatchQuery {
            field: "text".to_owned(),
            text: text.to_owned(),
            ..pb::MatchQuery::default()
        })),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_changed_while_it_answers_and_stays_so() {
    const NOTES: i64 = 3_000;
    let directory = tempfile::tempdir().expect("a directory");
    fill(directory.path(), NOTES).await;
    let (engine, notes) = note::open(directory.path()).await;
    let before = settled(&engine).await;
    assert_eq!(
        (before.documents, before.lag_changes, before.misfits),
        (NOTES, 0, 0)
    );
    assert!(before.bytes > 0 && before.segments > 0, "{before:?}");

    let changes = [
        add("place", pb::IndexFieldType::Long, "rank"),
        add("words", pb::IndexFieldType::Boolean, "author"),
        by_fuzzy("text"),
        drop_field("text.keyword"),
    ];
    let (same, effect) = note::update_index(&engine, "notes", &changes, true)
        .await
        .expect("an effect");
    assert_eq!((same.fields.len(), same.build), (before.fields.len(), None));
    assert_eq!((effect.instant, effect.rows_about), (false, NOTES));
    assert!(effect.bytes_about > 0);
    let found = count(&notes, matching("ot")).await;
    assert_eq!(found.expect("an answer"), 0, "no word is like that");

    let (changed, _) = note::update_index(&engine, "notes", &changes, false)
        .await
        .expect("a change");
    let paths = |fields: &[pb::IndexField]| -> Vec<String> {
        fields.iter().map(|field| field.field.clone()).collect()
    };
    if changed.phase() == pb::IndexPhase::Rebuilding {
        assert!(paths(&changed.fields_to_be).contains(&"place".to_owned()));
        assert!(!paths(&changed.fields).contains(&"place".to_owned()));
    }
    let after = settled(&engine).await;
    let has = paths(&after.fields);
    assert!(
        has.contains(&"place".to_owned()) && !has.contains(&"text.keyword".to_owned()),
        "{has:?}"
    );
    assert_eq!(after.misfits, NOTES, "a name is neither true nor false");
    let counted: Vec<_> = after
        .misfit_counts
        .iter()
        .map(|each| (each.field.as_str(), each.reason.as_str()))
        .collect();
    assert_eq!(counted, [("words", "WRONG_TYPE")]);
    assert!(
        after
            .recent_misfits
            .iter()
            .all(|misfit| misfit.id.starts_with('n'))
    );
    assert_eq!(count(&notes, matching("ot")).await.expect("an answer"), NOTES);

    // The same again can't be; to drop what is there and add it otherwise can.
    let again = note::update_index(&engine, "notes", &changes[..1], false).await;
    assert!(matches!(again, Err(Error::Invalid(_))), "{again:?}");
    let other = [
        drop_field("place"),
        add("place", pb::IndexFieldType::Double, "rank"),
    ];
    note::update_index(&engine, "notes", &other, false)
        .await
        .expect("a change");
    // A change during a build replaces it; one that undoes it is instant.
    let back = [
        drop_field("place"),
        add("place", pb::IndexFieldType::Long, "rank"),
    ];
    let (_, effect) = note::update_index(&engine, "notes", &back, false)
        .await
        .expect("a change");
    let is_back = settled(&engine).await;
    let place = is_back
        .fields
        .iter()
        .find(|field| field.field == "place")
        .expect("the field");
    assert_eq!(
        (place.r#type(), place.source.as_str()),
        (pb::IndexFieldType::Long, "rank")
    );
    println!("undone at once: {}", effect.instant);

    note::close(engine).await;
    drop(notes);
    let (engine, notes) = note::open(directory.path()).await;
    assert_eq!(settled(&engine).await.fields, is_back.fields);
    assert_eq!(count(&notes, matching("ot")).await.expect("an answer"), NOTES);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_built_anew_as_it_is_while_it_answers() {
    const NOTES: i64 = 3_000;
    let directory = tempfile::tempdir().expect("a directory");
    fill(directory.path(), NOTES).await;
    let (engine, notes) = note::open(directory.path()).await;
    let changes = [add("words", pb::IndexFieldType::Boolean, "author")];
    let changed = note::update_index(&engine, "notes", &changes, false).await;
    changed.expect("a change");
    let before = settled(&engine).await;
    assert_eq!((before.documents, before.misfits), (NOTES, NOTES));

    let (same, effect) = indexes::rebuild(&engine, "notes", true).await.expect("an effect");
    assert_eq!((effect.instant, effect.rows_about), (false, NOTES));
    assert!(effect.bytes_about > 0);
    assert_eq!(
        (same.phase(), same.build),
        (pb::IndexPhase::Serving, None),
        "only asked"
    );

    let rebuilt = indexes::rebuild(&engine, "notes", false).await;
    rebuilt.expect("it is built anew");
    // Every write is found meanwhile.
    let mut written = NOTES;
    let after = loop {
        let note = Note::new(&format!("n{written}"), "ada", written);
        let sequence = notes.create(note, None, false).await.expect("created").sequence;
        written += 1;
        let search = counting(note::term("author", "ada"), sequence);
        let page = notes
            .search(Some(search), "search")
            .await
            .expect("always answered");
        assert_eq!(page.total.expect("a total").value, written);
        let index = indexes::get(&engine, "notes").await.expect("an index");
        if index.phase() == pb::IndexPhase::Serving && index.documents == written {
            break index;
        }
    };
    assert_eq!(after.fields, before.fields);
    assert_eq!(after.misfits, written, "counted anew");
    let missing = indexes::rebuild(&engine, "nothing", true)
        .await
        .expect_err("no index");
    assert_eq!(tonic::Status::from(missing).code(), tonic::Code::NotFound);
    note::close(engine).await;
    drop(notes);

    // It stays the one that is wanted.
    let folders = indexes(directory.path());
    assert_eq!(folders.len(), 1);
    let (engine, notes) = note::open(directory.path()).await;
    let index = indexes::get(&engine, "notes").await.expect("an index");
    assert_eq!((index.phase(), index.build), (pb::IndexPhase::Serving, None));
    assert_eq!(count(&notes, None).await.expect("an answer"), written);
    assert_eq!(indexes(directory.path()), folders);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_index_cant_be_is_refused_with_every_violation() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _notes) = note::open(directory.path()).await;
    let missing = indexes::get(&engine, "nothing").await.expect_err("no index");
    assert_eq!(tonic::Status::from(missing).code(), tonic::Code::NotFound);
    let wrong = [
        add("author", pb::IndexFieldType::Keyword, ""),
        add("9", pb::IndexFieldType::Keyword, ""),
        add("objects", pb::IndexFieldType::Nested, ""),
        add("inner", pb::IndexFieldType::Long, "_edition"),
        drop_field("nothing"),
        by_fuzzy("rank"),
        change(pb::index_change::Kind::SetAnalyzer(pb::SetIndexAnalyzer {
            field: "text".to_owned(),
            analyzer: None,
        })),
        pb::IndexChange { kind: None },
    ];
    let refused = note::update_index(&engine, "notes", &wrong, false)
        .await
        .expect_err("it is wrong");
    let Error::Invalid(violations) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(violations.len(), wrong.len(), "{violations:?}");
    let none = note::update_index(&engine, "notes", &[], false).await;
    assert!(matches!(none, Err(Error::Invalid(_))));
    note::close(engine).await;
}

/// Notes that live for an hour.
#[derive(Clone, Debug, PartialEq)]
struct Fleeting(Note);

impl Resource for Fleeting {
    type Record = Self;
    const TABLE: &'static str = "fleeting";
    const NAME: &'static str = "note";
    const ID_FIELD: &'static str = "note_id";

    fn definition() -> TableDefinition {
        let mut definition = note::definition(Self::TABLE);
        definition.schema.time_to_live = Some(Duration::from_secs(3_600));
        definition
    }

    fn id(record: &Self) -> &str {
        Note::id(&record.0)
    }

    fn to_columns(record: &Self) -> Columns {
        Note::to_columns(&record.0)
    }

    fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
        Note::from_columns(id, columns).map(Self)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_row_vanishes_from_the_index_and_can_come_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000_000));
    let mut config = EngineConfig::new(directory.path());
    config.storage.clock = Arc::clone(&clock) as _;
    let tables = Tables::new().table::<Fleeting>();
    let engine = Engine::open(config, tables).await.expect("the engine opens");
    serving(&engine).await;
    let notes: Resources<Fleeting> = Resources::new(&engine).expect("declared");
    for (id, minutes) in [("n1", 40), ("n2", 0)] {
        notes
            .create(Fleeting(Note::new(id, "ada", 1)), None, false)
            .await
            .expect("created");
        clock.advance(Duration::from_secs(minutes * 60));
    }
    let found = async |min_sequence: i64| {
        let search = pb::Search {
            min_sequence,
            ..pb::Search::default()
        };
        let page = notes.search(Some(search), "search").await.expect("a page");
        let ids: Vec<String> = page.hits.into_iter().map(|hit| hit.id).collect();
        ids
    };
    let last = || i64::try_from(engine.database().last_sequence()).expect("small");
    let both = found(last()).await;
    assert_eq!(both.len(), 2);
    clock.advance(Duration::from_secs(25 * 60));
    // It comes again before the store has taken its old cells away: found once, not twice.
    engine.database().maintain().await.expect("maintenance");
    assert_eq!(found(last()).await, ["n2"]);
    clock.advance(Duration::from_secs(60 * 60));
    notes
        .create(Fleeting(Note::new("n2", "bob", 2)), None, false)
        .await
        .expect("created again");
    assert_eq!(found(last()).await, ["n2"]);
    engine.database().maintain().await.expect("maintenance");
    assert_eq!(found(last()).await, ["n2"]);
    let bobs = notes
        .search(Some(counting(note::term("author", "bob"), last())), "search")
        .await;
    assert_eq!(bobs.expect("a page").total.expect("a total").value, 1);
    note::close(engine).await;
}

/// What the field `place` may be: its type, and where its values come from.
const PLACES: [(pb::IndexFieldType, &str); 4] = [
    (pb::IndexFieldType::Long, "rank"),
    (pb::IndexFieldType::Double, "rank"),
    (pb::IndexFieldType::Keyword, "text"),
    (pb::IndexFieldType::Keyword, "author"),
];

/// Notes in which each of [`PLACES`] has another order.
async fn fill_in_disorder(directory: &Path, random: &mut fastrand::Rng) {
    let (engine, notes) = note::open(directory).await;
    let mut ranks: Vec<i64> = (-100..100).collect();
    random.shuffle(&mut ranks);
    let note = |(number, rank): (usize, &i64)| Note {
        text: format!("{:03}", random.u8(..)),
        ..Note::new(
            &format!("n{number}"),
            ["ada", "bob", "eve"][random.usize(..3)],
            *rank,
        )
    };
    let batch = ranks.iter().enumerate().map(note).collect();
    notes.create_batch(batch, None, true).await.expect("created");
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_token_goes_on_exactly_or_is_refused_over_redesigns_and_restarts() {
    const SEARCHES: usize = 16;
    let mut random = fastrand::Rng::with_seed(crate::seed("redesign"));
    let directory = tempfile::tempdir().expect("a directory");
    fill_in_disorder(directory.path(), &mut random).await;
    let (mut engine, mut notes) = note::open(directory.path()).await;
    let (kind, source) = PLACES[0];
    let added = note::update_index(&engine, "notes", &[add("place", kind, source)], false).await;
    added.expect("a change");
    settled(&engine).await;
    let mut design = 0;
    let (mut went_on, mut refused, mut restarts) = (0, 0, 0);
    for nth in 0..SEARCHES {
        let by = pb::sort::Kind::Field(pb::FieldSort {
            field: ["place", "rank"][random.usize(..2)].to_owned(),
            descending: random.bool(),
            ..pb::FieldSort::default()
        });
        // Without an order it is by score.
        let sort = if random.u8(..5) > 0 {
            vec![pb::Sort { kind: Some(by) }]
        } else {
            Vec::new()
        };
        let search = pb::Search {
            sort,
            page_size: random.i32(20..80),
            ..pb::Search::default()
        };
        let whole = pb::Search {
            page_size: 1_000,
            ..search.clone()
        };
        let expected = note::found(&notes, whole).await;
        assert_eq!(expected.len(), 200);
        let (began, mut found) = (design, Vec::new());
        let mut page_token = String::new();
        loop {
            let next = pb::Search {
                page_token: page_token.clone(),
                ..search.clone()
            };
            match notes.search(Some(next), "search").await {
                Ok(page) => {
                    went_on += usize::from(!found.is_empty());
                    found.extend(page.hits.into_iter().map(|hit| hit.id));
                    assert_eq!(found, expected[..found.len()], "search {nth}: {search:?}");
                    page_token = page.next_page_token;
                }
                Err(Error::PageTokenInvalid { detail, .. }) => {
                    assert_ne!(design, began, "search {nth}: {detail}");
                    assert!(detail.contains("redesigned"), "{detail}");
                    refused += 1;
                    break;
                }
                Err(error) => panic!("{error:?}"),
            }
            if page_token.is_empty() {
                assert_eq!(found.len(), expected.len());
                break;
            }
            match random.u8(..4) {
                0 => {
                    note::close(engine).await;
                    drop(notes);
                    (engine, notes) = note::open(directory.path()).await;
                    restarts += 1;
                }
                1 => {
                    design = random.usize(..PLACES.len());
                    let (kind, source) = PLACES[design];
                    let changes = [drop_field("place"), add("place", kind, source)];
                    let changed = note::update_index(&engine, "notes", &changes, false).await;
                    changed.expect("a change");
                    settled(&engine).await;
                }
                _ => {}
            }
        }
    }
    println!("{went_on} went on, {refused} were refused, {restarts} restarts");
    assert!(went_on > 0 && refused > 0 && restarts > 0);
    note::close(engine).await;
}
