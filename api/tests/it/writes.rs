//! Conditions, etags, repeated requests, lists.

use std::sync::Arc;

use souk_api::wire::{self, WRITE_BATCH_MAX};
use souk_api::{Error, ListRequest};
use souk_engine::storage::limits::{MAX_BATCH_BYTES, MIN_RETENTION};
use souk_engine::storage::{Direction, Error as StoreError, ManualClock, Value};
use souk_engine::{Creation, EngineConfig, EngineError, RequestId};
use souk_proto::search::v1 as pb;
use souk_proto::shop::v1::CreateShopRequest;

use crate::note::{self, Note};

fn request_id(uuid: &str, content: &str) -> Option<RequestId> {
    let request = CreateShopRequest {
        request_id: content.to_owned(),
        ..Default::default()
    };
    wire::request_id(uuid, &request)
}

const UUID: &str = "6f1c9a7e-0f0e-4c57-9d5c-3b8f6a2b1c4d";
const OTHER_UUID: &str = "0b1d5d5e-55ad-4f4c-8d0e-3f6c1b7a9e01";

#[tokio::test]
async fn a_resource_is_created_once_changed_under_its_etag_and_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let ada = Note::new("n1", "ada", 1);
    let rehearsed = notes
        .create(ada.clone(), None, true)
        .await
        .expect("it could be created");
    assert_eq!((rehearsed.value.revision, &rehearsed.value.resource), (0, &ada));
    assert!(matches!(
        notes.get("n1", 0).await,
        Err(Error::Engine(EngineError::NotFound { .. }))
    ));

    let created = notes.create(ada.clone(), None, false).await.expect("created");
    assert_eq!(created.value.revision, created.sequence);
    assert_eq!(
        notes.get("n1", created.sequence).await.expect("read").value,
        created.value
    );
    for rehearse in [false, true] {
        let again = notes.create(ada.clone(), None, rehearse).await;
        assert!(
            matches!(again, Err(Error::Engine(EngineError::AlreadyExists { .. }))),
            "{again:?}"
        );
    }

    let rise = |note: Note| {
        Ok::<_, Error>(Note {
            rank: note.rank + 1,
            ..note
        })
    };
    let etag = created.value.etag();
    let changed = notes.update("n1", Some(&etag), rise).await.expect("changed");
    assert_eq!(changed.value.resource.rank, 2);
    assert_eq!(changed.value.create_time, created.value.create_time);
    assert!(changed.value.update_time >= created.value.update_time);
    let stale = notes.update("n1", Some(&etag), rise).await;
    assert!(
        matches!(stale, Err(Error::Engine(EngineError::EtagMismatch { .. }))),
        "{stale:?}"
    );
    let stale = notes.delete("n1", Some(&etag)).await;
    assert!(
        matches!(stale, Err(Error::Engine(EngineError::EtagMismatch { .. }))),
        "{stale:?}"
    );
    let nonsense = notes.delete("n1", Some("nonsense")).await;
    assert!(
        matches!(nonsense, Err(Error::Engine(EngineError::EtagMismatch { .. }))),
        "{nonsense:?}"
    );

    notes
        .delete("n1", Some(&changed.value.etag()))
        .await
        .expect("deleted");
    for etag in [None, Some(etag.as_str())] {
        let gone = notes.delete("n1", etag).await;
        assert!(
            matches!(gone, Err(Error::Engine(EngineError::NotFound { .. }))),
            "{gone:?}"
        );
    }
    assert!(matches!(
        notes.update("n1", None, rise).await,
        Err(Error::Engine(EngineError::NotFound { .. }))
    ));
    note::close(engine).await;
}

#[tokio::test]
async fn a_repeated_request_gets_its_first_answer_also_after_changes() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let batch = vec![Note::new("n1", "ada", 1), Note::new("n2", "bob", 2)];
    let id = request_id(UUID, "first");
    let first = notes
        .create_batch(batch.clone(), id, false)
        .await
        .expect("created");
    assert_eq!(first.value.len(), 2);
    notes.delete("n1", None).await.expect("deleted");
    let again = notes
        .create_batch(batch.clone(), id, false)
        .await
        .expect("replayed");
    assert_eq!(again, first);
    assert!(matches!(
        notes.get("n1", 0).await,
        Err(Error::Engine(EngineError::NotFound { .. }))
    ));
    let short = notes
        .create_batch(batch.clone(), id, true)
        .await
        .expect("replayed");
    assert_eq!((short.sequence, short.value.len()), (first.sequence, 0));
    let other = notes
        .create_batch(batch.clone(), request_id(UUID, "other"), false)
        .await;
    let other = tonic::Status::from(other.expect_err("the id was used"));
    assert_eq!(
        souk_chassis::status::reason(&other).as_deref(),
        Some("REQUEST_ID_REUSED")
    );
    let other = notes.create(batch[0].clone(), id, false).await;
    assert!(other.is_err(), "another call with the same id is another request");
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_gets_its_first_answer_when_the_log_is_trimmed() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000_000));
    let mut config = EngineConfig::new(directory.path());
    config.storage.clock = clock.clone();
    config.storage.retention = MIN_RETENTION;
    let (engine, notes) = note::open_with(config.clone()).await;
    let rename = |note: Note| {
        Ok::<_, Error>(Note {
            author: "eve".to_owned(),
            ..note
        })
    };
    let one = Note::new("n0", "ada", 0);
    let batch: Vec<_> = (1..WRITE_BATCH_MAX)
        .map(|rank| Note::new(&format!("n{rank}"), "ada", rank as i64))
        .collect();
    let (of_one, of_batch) = (request_id(UUID, "one"), request_id(OTHER_UUID, "batch"));
    let first = notes.create(one.clone(), of_one, false).await.expect("created");
    let firsts = notes
        .create_batch(batch.clone(), of_batch, false)
        .await
        .expect("created");
    notes.update("n0", None, rename).await.expect("changed");
    notes.update("n1", None, rename).await.expect("changed");
    let last = notes.delete("n2", None).await.expect("deleted").sequence;
    // What the index doesn't have yet is kept for it.
    let search = pb::Search {
        min_sequence: last,
        ..pb::Search::default()
    };
    note::found(&notes, search).await;
    note::close(engine).await;
    drop(notes);

    clock.advance(2 * MIN_RETENTION);
    let (engine, notes) = note::open_with(config).await;
    engine.database().maintain().await.expect("maintenance");
    let trimmed = engine.database().changes(last.cast_unsigned() - 1, 1).await;
    assert!(
        matches!(trimmed, Err(StoreError::ChangesTrimmed { .. })),
        "{trimmed:?}"
    );
    let again = notes.create(one, of_one, false).await;
    assert_eq!(again.expect("replayed"), first);
    let again = notes.create_batch(batch, of_batch, false).await;
    assert_eq!(again.expect("replayed"), firsts);
    let before = notes.created_before(of_batch, Creation::Batch, false).await;
    assert_eq!(before.expect("known"), Some(firsts));
    assert_eq!(
        notes.get("n0", 0).await.expect("read").value.resource.author,
        "eve"
    );
    note::close(engine).await;
}

/// As older versions recorded all requests: nothing is kept of the rows.
#[tokio::test]
async fn a_repeated_request_without_kept_rows_gets_them_as_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let batch = vec![Note::new("n1", "ada", 1), Note::new("n2", "bob", 2)];
    let id = request_id(UUID, "first");
    let first = notes
        .create_batch(batch.clone(), id, true)
        .await
        .expect("created");
    let rename = |note: Note| {
        Ok::<_, Error>(Note {
            author: "eve".to_owned(),
            ..note
        })
    };
    notes.update("n1", None, rename).await.expect("changed");
    let before = notes.created_before(id, Creation::Batch, true).await;
    assert_eq!(before.expect("known").as_ref(), Some(&first));
    let before = notes.created_before(id, Creation::Batch, false).await;
    assert_eq!(before.expect("no error"), None);
    let again = notes.create_batch(batch, id, false).await.expect("replayed");
    let authors = again.value.iter().map(|stored| stored.resource.author.as_str());
    assert_eq!(authors.collect::<Vec<_>>(), ["eve", "bob"]);
    assert_eq!(again.sequence, first.sequence);
    note::close(engine).await;
}

/// A batch as large as the store takes leaves room for what is kept with its request.
#[tokio::test]
async fn the_largest_batch_can_be_repeated() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let batch = |round: usize, bytes: usize| {
        let each = bytes / WRITE_BATCH_MAX;
        let notes = (0..WRITE_BATCH_MAX).map(|rank| Note {
            text: "x".repeat(each),
            ..Note::new(&format!("n{round:02}{rank:03}"), "ada", 7)
        });
        notes.collect::<Vec<_>>()
    };
    let (mut round, mut fits, mut refused) = (0, 0, MAX_BATCH_BYTES);
    while refused - fits > WRITE_BATCH_MAX {
        round += 1;
        let bytes = (fits + refused) / 2;
        match notes.create_batch(batch(round, bytes), None, true).await {
            Ok(_) => fits = bytes,
            Err(Error::Engine(EngineError::Storage(StoreError::LimitExceeded { limit, .. }))) => {
                assert_eq!(limit, "MAX_BATCH_BYTES");
                refused = bytes;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    let id = request_id(UUID, "largest");
    let first = notes
        .create_batch(batch(0, fits), id, false)
        .await
        .expect("created");
    let again = notes
        .create_batch(batch(0, fits), id, false)
        .await
        .expect("replayed");
    assert_eq!((again.value.len(), again == first), (WRITE_BATCH_MAX, true));
    note::close(engine).await;
}

#[tokio::test]
async fn a_batch_is_all_or_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    notes
        .create(Note::new("n2", "ada", 1), None, false)
        .await
        .expect("created");
    let batch = vec![Note::new("n1", "ada", 1), Note::new("n2", "bob", 2)];
    let taken = notes.create_batch(batch, None, false).await;
    assert!(matches!(taken, Err(Error::Engine(EngineError::AlreadyExists { id, .. })) if id == "n2"));
    let ids = ["n1".to_owned(), "n2".to_owned()];
    let read = notes.get_batch(&ids, 0).await.expect("read").value;
    assert_eq!((read.found.len(), read.missing), (1, vec!["n1".to_owned()]));
    let twice = vec![Note::new("n3", "ada", 1), Note::new("n3", "bob", 2)];
    let refused = notes
        .create_batch(twice, None, false)
        .await
        .expect_err("the id is there twice");
    assert!(format!("{refused:?}").contains("notes[1].note_id"), "{refused:?}");
    note::close(engine).await;
}

#[tokio::test]
async fn lists_follow_the_secondary_index_both_ways_page_by_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let batch = (0..25).map(|rank| Note::new(&format!("n{rank}"), ["ada", "bob"][rank % 2], rank as i64));
    let written = notes
        .create_batch(batch.collect(), None, true)
        .await
        .expect("created");
    let ada = [Value::from("ada")];
    for direction in [Direction::Forward, Direction::Backward] {
        let mut ranks = Vec::new();
        let mut page_token = String::new();
        loop {
            let page = notes.list_by(ListRequest {
                index: "by_author",
                prefix: &ada,
                direction,
                page_size: 4,
                page_token: &page_token,
                min_sequence: written.sequence,
            });
            let page = page.await.expect("a page");
            assert!(page.items.len() <= 4);
            ranks.extend(page.items.into_iter().map(|item| item.resource.rank));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        let mut expected: Vec<i64> = (0..25).step_by(2).collect();
        if direction == Direction::Backward {
            expected.reverse();
        }
        assert_eq!(ranks, expected);
    }
    let foreign = notes.list_by(ListRequest {
        index: "by_author",
        prefix: &ada,
        direction: Direction::Forward,
        page_size: 0,
        page_token: "nonsense",
        min_sequence: 0,
    });
    assert!(matches!(foreign.await, Err(Error::PageTokenInvalid { .. })));
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn updates_without_etag_never_lose_each_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    notes
        .create(Note::new("n1", "ada", 0), None, false)
        .await
        .expect("created");
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let notes = notes.clone();
        writers.spawn(async move {
            for _ in 0..25 {
                let rise = |note: Note| {
                    Ok::<_, Error>(Note {
                        rank: note.rank + 1,
                        ..note
                    })
                };
                notes.update("n1", None, rise).await.expect("changed in the end");
            }
        });
    }
    while let Some(result) = writers.join_next().await {
        result.expect("no writer panics");
    }
    assert_eq!(notes.get("n1", 0).await.expect("read").value.resource.rank, 100);
    note::close(engine).await;
}
