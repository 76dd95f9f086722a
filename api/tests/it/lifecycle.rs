//! Opening, closing, rebuilding: an index is derived, whatever happens to its folder.

use std::fs;
use std::path::{Path, PathBuf};

use souk_api::Error;
use souk_engine::{Engine, EngineConfig, EngineError, Tables};
use souk_proto::search::v1 as pb;

use crate::note::{self, Note};

fn all() -> pb::Search {
    pb::Search {
        page_size: 1_000,
        ..pb::Search::default()
    }
}

fn index_folder(directory: &Path) -> PathBuf {
    let indexes = directory.join("index").join("notes");
    let mut folders = fs::read_dir(indexes).expect("a folder of indexes");
    folders.next().expect("an index").expect("readable").path()
}

async fn fill(directory: &Path) -> Vec<String> {
    let (engine, notes) = note::open(directory).await;
    let batch = (0..50)
        .map(|rank| Note::new(&format!("n{rank}"), "ada", rank))
        .collect();
    notes.create_batch(batch, None, true).await.expect("created");
    notes.delete("n7", None).await.expect("deleted");
    let rename = |note: Note| {
        Ok::<_, Error>(Note {
            author: "bob".to_owned(),
            ..note
        })
    };
    let last = notes.update("n8", None, rename).await.expect("changed").sequence;
    let ids = note::found(
        &notes,
        pb::Search {
            min_sequence: last,
            ..all()
        },
    )
    .await;
    assert_eq!(ids.len(), 49);
    note::close(engine).await;
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_the_same_after_a_restart_and_after_losing_or_damaging_the_index() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let before = fill(path).await;
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("nothing", |_| {}),
        ("index deleted", |path| {
            fs::remove_dir_all(path.join("index")).expect("deleted")
        }),
        ("list of segments destroyed", |path| {
            fs::write(index_folder(path).join("meta.json"), "{").expect("written");
        }),
        ("building cut short", |path| {
            let folder = index_folder(path);
            let draft = folder.with_extension("building");
            fs::rename(folder, draft).expect("renamed");
        }),
    ];
    for (what, harm) in harms {
        harm(path);
        let (engine, notes) = note::open(path).await;
        assert_eq!(note::found(&notes, all()).await, before, "{what}");
        let bobs = pb::Search {
            query: note::term("author", "bob"),
            ..all()
        };
        assert_eq!(note::found(&notes, bobs).await, ["n8"], "{what}");
        note::close(engine).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_is_dropped_without_closing_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    notes
        .create(Note::new("n1", "ada", 1), None, false)
        .await
        .expect("created");
    let mut health = engine.health();
    drop((engine, notes));
    // Its tasks end when they see that; the directory is free when the last of them is gone.
    let _ = health.wait_for(|health| !health.is_serving()).await;
    let reopened = loop {
        let tables = Tables::new().table::<Note>();
        match Engine::open(EngineConfig::new(directory.path()), tables).await {
            Ok(engine) => break engine,
            Err(EngineError::Storage(souk_engine::storage::Error::Locked { .. })) => {
                tokio::task::yield_now().await
            }
            Err(error) => panic!("{error:?}"),
        }
    };
    let notes = reopened.collection::<Note>().expect("declared");
    assert_eq!(notes.get("n1", 0).await.expect("read").value.resource.rank, 1);
    note::close(reopened).await;
}

#[tokio::test]
async fn a_directory_is_opened_once_and_a_table_declared_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _notes) = note::open(directory.path()).await;
    let second = Engine::open(EngineConfig::new(directory.path()), Tables::new().table::<Note>()).await;
    let second = second.expect_err("it is taken").to_string();
    assert!(second.contains("in use"), "{second}");
    note::close(engine).await;
    let elsewhere = tempfile::tempdir().expect("a directory");
    let twice = Tables::new().table::<Note>().table::<Note>();
    let twice = Engine::open(EngineConfig::new(elsewhere.path()), twice).await;
    assert!(matches!(twice, Err(EngineError::TableDeclaredTwice { .. })));
}

#[tokio::test]
async fn after_closing_every_call_is_told_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    note::close(engine).await;
    let created = notes.create(Note::new("n1", "ada", 1), None, false).await;
    let status = tonic::Status::from(created.expect_err("it is closed"));
    assert_eq!(status.code(), tonic::Code::Unavailable);
}
