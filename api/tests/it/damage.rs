//! Bytes of an index change on the disk: searches answer as before, or they are refused until the index is built anew.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastrand::Rng;
use souk_api::{Error, Resources, indexes};
use souk_engine::{Engine, EngineConfig, Health, Tables, VerifyOptions};
use souk_proto::search::v1 as pb;
use tokio::time::Instant;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::note::{self, Note};
use crate::{holdings, rounds, seed};

const NOTES: i64 = 3_000;
const BATCH: usize = 200;
/// For what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

async fn open(directory: &Path, verify: VerifyOptions) -> (Engine, Resources<Note>) {
    let mut config = EngineConfig::new(directory);
    config.verify = verify;
    let engine = Engine::open(config, Tables::new().table::<Note>()).await;
    let engine = engine.expect("the engine opens");
    serving(&engine).await;
    let notes = Resources::new(&engine).expect("the table is declared");
    (engine, notes)
}

async fn serving(engine: &Engine) {
    let mut health = engine.health();
    let served = tokio::time::timeout(PATIENCE, health.wait_for(Health::is_serving)).await;
    served.expect("in time").expect("the engine lives");
}

/// Notes in an index that rests.
async fn fill(directory: &Path, random: &mut Rng) {
    let (engine, notes) = open(directory, VerifyOptions::default()).await;
    let all: Vec<Note> = (0..NOTES)
        .map(|number| {
            let author = ["ada", "bob", "cyd"][random.usize(..3)];
            Note::new(&format!("n{number}"), author, random.i64(..10_000))
        })
        .collect();
    for batch in all.chunks(BATCH) {
        notes
            .create_batch(batch.to_vec(), None, true)
            .await
            .expect("created");
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let index = indexes::get(&engine, "notes").await.expect("an index");
        if !index.merging && index.lag_changes == 0 {
            break;
        }
        assert!(Instant::now() < until, "{index:?}");
        tokio::task::yield_now().await;
    }
    note::close(engine).await;
}

/// Searches by all that an index has: words, keys, columns, aggregations over them, highlights.
fn searches() -> Vec<pb::Search> {
    let stats = pb::aggregation::Kind::Stats(pb::StatsAggregation {
        field: "rank".to_owned(),
        missing: None,
    });
    let stats = [("ranks".to_owned(), pb::Aggregation { kind: Some(stats) })];
    let authors = pb::aggregation::Kind::Terms(pb::TermsAggregation {
        field: "author".to_owned(),
        aggregations: stats.clone().into_iter().collect(),
        ..pb::TermsAggregation::default()
    });
    let aggregations = [("authors".to_owned(), pb::Aggregation { kind: Some(authors) })];
    let words = pb::query::Kind::Match(pb::MatchQuery {
        field: "text".to_owned(),
        text: "7 77 777 ada".to_owned(),
        ..pb::MatchQuery::default()
    });
    let by_rank = pb::sort::Kind::Field(pb::FieldSort {
        field: "rank".to_owned(),
        descending: true,
        ..pb::FieldSort::default()
    });
    let base = pb::Search {
        aggregations: stats.into_iter().chain(aggregations).collect(),
        page_size: 50,
        total: Some(pb::TotalRequest {
            kind: Some(pb::total_request::Kind::Exact(true)),
        }),
        ..pb::Search::default()
    };
    let highlight = pb::Highlight {
        fields: vec!["text".to_owned()],
        pre_tag: "[".to_owned(),
        post_tag: "]".to_owned(),
        ..pb::Highlight::default()
    };
    vec![
        pb::Search {
            query: Some(pb::Query { kind: Some(words) }),
            highlight: Some(highlight),
            ..base.clone()
        },
        pb::Search {
            query: note::term("author", "bob"),
            sort: vec![pb::Sort { kind: Some(by_rank) }],
            ..base.clone()
        },
        pb::Search {
            query: note::term("note_id", "n7"),
            ..base.clone()
        },
        base,
    ]
}

async fn answer(notes: &Resources<Note>, search: pb::Search) -> Result<String, Error> {
    let page = notes.search(Some(search), "search").await?;
    Ok(format!("{:?}", (page.hits, page.total, page.aggregations)))
}

async fn answers(notes: &Resources<Note>) -> Vec<String> {
    let mut answers = Vec::new();
    for search in searches() {
        answers.push(answer(notes, search).await.expect("an answer"));
    }
    answers
}

fn folder(directory: &Path) -> PathBuf {
    let folders = holdings::folders(directory, "notes");
    let [folder] = folders.as_slice() else {
        panic!("one index: {folders:?}");
    };
    folder.clone()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    files
}

/// The largest file of columns.
fn columns(folder: &Path) -> PathBuf {
    let files = files(folder).into_iter();
    let columns = files.filter(|path| path.extension().is_some_and(|extension| extension == "fast"));
    let largest = columns.max_by_key(|path| fs::metadata(path).expect("readable").len());
    largest.expect("columns")
}

/// Changes 300 bytes of a file, which stays the same file.
fn strew(path: &Path, random: &mut Rng) {
    let mut bytes = fs::read(path).expect("readable");
    let length = bytes.len();
    for _ in 0..300.min(length) {
        bytes[random.usize(..length)] ^= random.u8(1..);
    }
    let file = File::options().write(true).open(path).expect("the file");
    file.write_all_at(&bytes, 0).expect("written");
}

/// Searches until a damaged file is gone, which it is when the index is built anew. What was refused meanwhile.
async fn rebuilt(engine: &Engine, notes: &Resources<Note>, damaged: &Path) -> usize {
    let until = Instant::now() + PATIENCE;
    let mut refused = 0;
    while damaged.exists() {
        assert!(Instant::now() < until, "nothing was found");
        if let Err(error) = answer(notes, searches().remove(2)).await {
            let status = tonic::Status::from(error);
            refused += usize::from(status.code() == Code::Unavailable);
        }
    }
    serving(engine).await;
    refused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_was_damaged_while_closed_is_built_anew_before_it_answers() {
    let mut random = Rng::with_seed(seed("damaged indexes"));
    let directory = tempfile::tempdir().expect("a directory");
    fill(directory.path(), &mut random).await;
    let (engine, notes) = open(directory.path(), VerifyOptions::default()).await;
    let expected = answers(&notes).await;
    note::close(engine).await;
    drop(notes);
    let rounds = rounds(24, 600);
    let mut rebuilt = 0;
    for round in 0..rounds {
        let files = files(&folder(directory.path()));
        let path = match round {
            0 => columns(&folder(directory.path())),
            _ => files[random.usize(..files.len())].clone(),
        };
        println!("round {round}: {}", path.display());
        strew(&path, &mut random);
        let (engine, notes) = open(directory.path(), VerifyOptions::default()).await;
        assert_eq!(answers(&notes).await, expected, "{}", path.display());
        note::close(engine).await;
        drop(notes);
        let now = crate::damage::files(&folder(directory.path()));
        rebuilt += usize::from(files.iter().any(|file| !now.contains(file)));
    }
    println!("{rebuilt} of {rounds} were built anew");
    assert!(rebuilt > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_of_what_is_too_large_for_the_opening_is_found_in_the_background() {
    let mut random = Rng::with_seed(seed("damage in the background"));
    let directory = tempfile::tempdir().expect("a directory");
    fill(directory.path(), &mut random).await;
    let (engine, notes) = open(directory.path(), VerifyOptions::default()).await;
    let expected = answers(&notes).await;
    note::close(engine).await;
    drop(notes);
    let damaged = columns(&folder(directory.path()));
    // In a directory and in what is read of it at the beginning, columns aren't readable at all: that is noticed anyway.
    let file = File::options()
        .read(true)
        .write(true)
        .open(&damaged)
        .expect("the file");
    let mut bytes = [0; 16];
    file.read_exact_at(&mut bytes, 64).expect("readable");
    file.write_all_at(&bytes.map(|byte| !byte), 64).expect("written");
    let verify = VerifyOptions {
        at_open: 0,
        ..VerifyOptions::default()
    };
    let (engine, notes) = open(directory.path(), verify).await;
    rebuilt(&engine, &notes, &damaged).await;
    assert_eq!(answers(&notes).await, expected);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_is_damaged_while_it_answers_is_refused_and_built_anew() {
    let mut random = Rng::with_seed(seed("damage of an open index"));
    let directory = tempfile::tempdir().expect("a directory");
    fill(directory.path(), &mut random).await;
    let verify = VerifyOptions {
        interval: Duration::from_millis(200),
        ..VerifyOptions::default()
    };
    let (engine, notes) = open(directory.path(), verify).await;
    let expected = answers(&notes).await;
    let keeping = pb::Search {
        keep_view: Some(prost_types::Duration {
            seconds: 60,
            nanos: 0,
        }),
        page_size: 10,
        ..pb::Search::default()
    };
    let page = notes
        .search(Some(keeping.clone()), "search")
        .await
        .expect("a page");
    let damaged = columns(&folder(directory.path()));
    strew(&damaged, &mut random);
    rebuilt(&engine, &notes, &damaged).await;
    assert_eq!(answers(&notes).await, expected);
    // A view that was kept of the damaged index is no way around.
    let next = pb::Search {
        page_token: page.next_page_token,
        ..keeping
    };
    let next = notes.search(Some(next), "search").await;
    let refused = tonic::Status::from(next.expect_err("the view is of damaged files"));
    let reason = refused.get_details_error_info().map(|told| told.reason);
    assert_eq!(reason.as_deref(), Some("VIEW_EXPIRED"), "{refused:?}");
    // What is written now is followed.
    let note = Note::new("new", "bob", 1);
    let sequence = notes.create(note, None, false).await.expect("created").sequence;
    let found = pb::Search {
        query: note::term("note_id", "new"),
        min_sequence: sequence,
        ..pb::Search::default()
    };
    assert_eq!(note::found(&notes, found).await, ["new"]);
    note::close(engine).await;
}
