//! A database that is restored gives sequences a second time: what was given by them before is of no other write.

use std::path::Path;
use std::process::Command;

use souk_api::{Error, Resources};
use souk_engine::storage::{
    Condition, Database, DatabaseOptions, KeyKind, PrimaryKey, RowOperation, TableSchema, WriteBatch, restore,
};
use souk_engine::{Engine, EngineError};
use souk_proto::search::v1 as pb;

use crate::note::{self, Note};

async fn backed_up(engine: &Engine, to: &Path) {
    let backup = engine.database().backup(to.join("backup"), None).await;
    let restored = to.join("restored").join("store");
    std::fs::create_dir_all(to.join("restored")).expect("a folder");
    restore(&[backup.expect("a backup")], restored)
        .await
        .expect("a restore");
}

/// Raises the rank of a note; gives its new etag.
async fn rise(notes: &Resources<Note>, id: &str, etag: Option<&str>) -> Result<String, Error> {
    let rise = |note: Note| {
        Ok::<_, Error>(Note {
            rank: note.rank + 1,
            ..note
        })
    };
    let written = notes.update(id, etag, rise).await?;
    Ok(written.value.etag())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etag_from_before_a_restore_is_of_no_other_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(&directory.path().join("lost")).await;
    let first = notes.create(Note::new("n1", "ada", 1), None, false).await;
    let first = first.expect("created").value.etag();
    backed_up(&engine, directory.path()).await;
    let lost = rise(&notes, "n1", Some(&first)).await.expect("changed");
    let sequence = notes.get("n1", 0).await.expect("read").value.revision;
    note::close(engine).await;

    let (engine, notes) = note::open(&directory.path().join("restored")).await;
    let kept = notes.get("n1", 0).await.expect("read").value;
    assert_eq!(kept.etag(), first, "the write is in the backup");
    let other = rise(&notes, "n1", Some(&first)).await.expect("changed");
    let now = notes.get("n1", 0).await.expect("read").value;
    assert_eq!((now.revision, now.etag()), (sequence, other.clone()));
    assert_ne!(other, lost);
    let stale = rise(&notes, "n1", Some(&lost)).await;
    assert!(
        matches!(stale, Err(Error::Engine(EngineError::EtagMismatch { .. }))),
        "{stale:?}"
    );
    let stale = notes.delete("n1", Some(&lost)).await;
    assert!(
        matches!(stale, Err(Error::Engine(EngineError::EtagMismatch { .. }))),
        "{stale:?}"
    );
    notes.delete("n1", Some(&other)).await.expect("deleted");
    note::close(engine).await;
}

/// Index and store are of the same name and as long, but of two histories.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_from_before_a_restore_is_built_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let [lost, restored] = ["lost", "restored"].map(|name| directory.path().join(name));
    let (engine, notes) = note::open(&lost).await;
    let batch = (0..5)
        .map(|rank| Note::new(&format!("n{rank}"), "ada", rank))
        .collect();
    notes.create_batch(batch, None, true).await.expect("created");
    backed_up(&engine, directory.path()).await;
    for id in ["n0", "n3"] {
        notes.delete(id, None).await.expect("deleted");
    }
    let last = notes.create(Note::new("n9", "ada", 9), None, false).await;
    let last = last.expect("created").sequence.cast_unsigned();
    note::close(engine).await;

    // Something else goes on before the index is there.
    let database = Database::open(restored.join("store"), DatabaseOptions::default()).await;
    let database = database.expect("a database");
    let table = TableSchema::new("other").key("id", KeyKind::Integer);
    let table = database.ensure_table(table).await.expect("a table");
    while database.last_sequence() <= last {
        let key = PrimaryKey::integer(1);
        let put = RowOperation::Put { key, columns: vec![] };
        let batch = WriteBatch::of(&table, put, Condition::none());
        database.write(batch).await.expect("a write");
    }
    database.close().await.expect("a close");
    drop((database, table));
    let copied = Command::new("cp")
        .arg("-r")
        .args([lost.join("index"), restored.join("index")])
        .status();
    assert!(copied.expect("cp").success());

    let (engine, notes) = note::open(&restored).await;
    let search = pb::Search {
        page_size: 100,
        min_sequence: i64::try_from(last).expect("a sequence") + 1,
        ..pb::Search::default()
    };
    let mut found = note::found(&notes, search).await;
    found.sort();
    assert_eq!(found, ["n0", "n1", "n2", "n3", "n4"]);
    note::close(engine).await;
}
