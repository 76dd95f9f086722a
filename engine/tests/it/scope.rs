//! Which rows a call meets: its caller's own, and nothing by accident.

use futures_util::StreamExt as _;
use souk_access::{Caller, Identity, Reach, Role, by_the_service};
use souk_engine::storage::{Direction, Value};
use souk_engine::{Collection, EngineConfig, EngineError, ExportRequest, ListRequest};
use souk_proto::search::v1 as pb;
use souk_proto::r#type::v1::ChangeKind;

use crate::note::{self, Note};

fn caller(role: Role, subject: &str, reach: Reach) -> Caller {
    Identity::new(role, subject).expect("an identity").reaching(reach)
}

fn ada() -> Caller {
    caller(Role::User, "ada", Reach::Own)
}

fn everything() -> pb::Search {
    pb::Search {
        page_size: 1_000,
        total: Some(pb::TotalRequest {
            kind: Some(pb::total_request::Kind::Exact(true)),
        }),
        ..pb::Search::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_callers_are_known_a_call_without_one_meets_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = EngineConfig::new(directory.path());
    config.guarded = true;
    let (engine, notes) = note::open_with(config).await;
    let lost = |result: Result<(), EngineError>| {
        assert!(matches!(result, Err(EngineError::Defect(_))), "{result:?}");
    };
    lost(
        notes
            .create(Note::new("n1", "ada", 1), None, false)
            .await
            .map(drop),
    );
    lost(
        notes
            .create(Note::new("n1", "ada", 1), None, true)
            .await
            .map(drop),
    );
    lost(notes.get("n1", 0).await.map(drop));
    lost(notes.get_batch(&["n1".to_owned()], 0).await.map(drop));
    lost(notes.update("n1", None, Ok::<_, EngineError>).await.map(drop));
    lost(notes.delete("n1", None).await.map(drop));
    lost(notes.search(None, "search").await.map(drop));
    lost(notes.export(ExportRequest::default()).await.map(drop));
    lost(notes.watch(None).await.map(drop));
    lost(notes.list_by(by_author("ada")).await.map(drop));
    // A task that a call spawns has lost its caller, too.
    let spawned = notes.clone();
    let task = ada().scope(async { tokio::spawn(async move { spawned.get("n1", 0).await }).await });
    lost(task.await.expect("runs").map(drop));
    let made = by_the_service(notes.create(Note::new("n1", "ada", 1), None, false)).await;
    assert!(made.is_ok(), "{made:?}");
    assert!(ada().scope(notes.get("n1", 0)).await.is_ok());
    // A role without rows of its own here is refused, not shown nothing: its rule is wrong.
    let consumer = caller(Role::Consumer, "ada", Reach::Own);
    let refused = consumer.scope(notes.get("n1", 0)).await;
    assert!(
        matches!(refused, Err(EngineError::NoOwnRows { .. })),
        "{refused:?}"
    );
    note::close(engine).await;
}

fn by_author(author: &str) -> ListRequest<'static> {
    ListRequest {
        index: "by_author",
        prefix: Box::leak(Box::new([Value::from(author.to_owned())])),
        direction: Direction::Forward,
        page_size: 0,
        page_token: "",
        min_sequence: 0,
    }
}

async fn filled(notes: &Collection<Note>, count: i64) {
    for first in (0..count).step_by(100) {
        let note = |rank: i64| {
            let author = if rank % 97 == 0 { "ada" } else { "bob" };
            Note::new(&format!("{author}-{rank}"), author, rank)
        };
        let batch = (first..(first + 100).min(count)).map(note).collect();
        notes.create_batch(batch, None, true).await.expect("created");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_rows_are_met_in_every_call_and_others_in_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    filled(&notes, 200).await;
    let last = notes.get("ada-97", 0).await.expect("a note").sequence;
    ada()
        .scope(async {
            let missing = |result: Result<(), EngineError>| {
                assert!(matches!(result, Err(EngineError::NotFound { .. })), "{result:?}");
            };
            let not_own = |result: Result<(), EngineError>| {
                assert!(matches!(result, Err(EngineError::NotOwn { .. })), "{result:?}");
            };
            assert!(notes.get("ada-97", 0).await.is_ok());
            missing(notes.get("bob-1", 0).await.map(drop));
            missing(notes.update("bob-1", None, Ok::<_, EngineError>).await.map(drop));
            missing(
                notes
                    .update("bob-1", Some("stale"), Ok::<_, EngineError>)
                    .await
                    .map(drop),
            );
            missing(notes.delete("bob-1", None).await.map(drop));
            missing(notes.delete("bob-1", Some("stale")).await.map(drop));
            let ids = ["ada-97".to_owned(), "bob-1".to_owned(), "none".to_owned()];
            let found = notes.get_batch(&ids, 0).await.expect("found").value;
            assert_eq!((found.found.len(), found.missing), (1, ids[1..].to_vec()));
            for (author, count) in [("ada", 3), ("bob", 0), ("eve", 0)] {
                let page = notes.list_by(by_author(author)).await.expect("a list");
                assert_eq!(
                    (page.items.len(), page.next_page_token.as_str()),
                    (count, ""),
                    "{author}"
                );
            }
            not_own(
                notes
                    .create(Note::new("x", "bob", 1), None, false)
                    .await
                    .map(drop),
            );
            not_own(notes.create(Note::new("x", "bob", 1), None, true).await.map(drop));
            let mixed = vec![Note::new("x", "ada", 1), Note::new("y", "bob", 1)];
            not_own(notes.create_batch(mixed, None, false).await.map(drop));
            let give = |note: Note| {
                Ok::<_, EngineError>(Note {
                    author: "bob".to_owned(),
                    ..note
                })
            };
            not_own(notes.update("ada-97", None, give).await.map(drop));
            let mut search = everything();
            search.min_sequence = last;
            search.profile = true;
            let page = notes.search(Some(search), "search").await.expect("a page");
            assert_eq!(page.hits.len(), 3);
            assert_eq!(page.total.map(|total| total.value), Some(3));
            assert!(page.profile.is_none());
            notes.delete("ada-97", None).await.expect("deleted");
            missing(notes.delete("ada-97", None).await.map(drop));
        })
        .await;
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_of_own_rows_goes_on_after_rows_that_were_seen() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    filled(&notes, 2_500).await;
    let export = async |resume_token: String| {
        let request = ExportRequest {
            resume_token,
            ..ExportRequest::default()
        };
        let blocks = ada().scope(notes.export(request)).await.expect("an export");
        blocks
            .map(|block| block.expect("a block"))
            .collect::<Vec<_>>()
            .await
    };
    let whole = export(String::new()).await;
    let ids = |blocks: &[souk_engine::ExportBlock<Note>]| -> Vec<String> {
        let items = blocks.iter().flat_map(|block| &block.items);
        items.map(|stored| stored.resource.id.clone()).collect()
    };
    let all = ids(&whole);
    assert_eq!(all.len(), 26);
    assert!(
        whole.len() > 1 && all.iter().all(|id| id.starts_with("ada-")),
        "{all:?}"
    );
    for (at, block) in whole.iter().enumerate() {
        let rest = export(block.resume_token.clone()).await;
        let before = ids(&whole[..=at]);
        assert_eq!([before, ids(&rest)].concat(), all, "after block {at}");
        // A token is no secret: it names no row of others.
        let token = base64_bytes(&block.resume_token);
        assert!(!String::from_utf8_lossy(&token).contains("bob"), "block {at}");
    }
    // Nobody else goes on with it, not even those who meet all rows.
    let stolen = ExportRequest {
        resume_token: whole[0].resume_token.clone(),
        ..ExportRequest::default()
    };
    let refused = notes.export(stolen).await.map(drop);
    assert!(
        matches!(refused, Err(EngineError::ExportTokenInvalid { .. })),
        "{refused:?}"
    );
    note::close(engine).await;
}

fn base64_bytes(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text);
    decoded.expect("base64")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_changed_hands_is_its_new_owners_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let written = notes
        .create(Note::new("n1", "ada", 1), None, false)
        .await
        .expect("created");
    let mut search = everything();
    search.min_sequence = written.sequence;
    search.keep_view = Some(prost_types::Duration {
        seconds: 60,
        nanos: 0,
    });
    let give = |note: Note| {
        Ok::<_, EngineError>(Note {
            author: "bob".to_owned(),
            ..note
        })
    };
    let given = notes.update("n1", None, give).await.expect("given");
    // Whether or not the index has seen it yet.
    let page = ada()
        .scope(notes.search(Some(search), "search"))
        .await
        .expect("a page");
    assert!(page.hits.is_empty(), "{:?}", page.hits);
    let bob = caller(Role::User, "bob", Reach::Own);
    let mut search = everything();
    search.min_sequence = given.sequence;
    let page = bob
        .scope(notes.search(Some(search), "search"))
        .await
        .expect("a page");
    assert_eq!(page.hits.len(), 1);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_field_that_says_whose_a_row_is_stays_in_the_index() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    let drop_field = pb::index_change::Kind::DropField(pb::DropIndexField {
        field: "author".to_owned(),
    });
    let changes = [pb::IndexChange {
        kind: Some(drop_field),
    }];
    let refused = engine.update_index("notes", &changes, false).await;
    let Err(EngineError::Invalid(violations)) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        format!("{violations:?}").contains("FIELD_NEEDED"),
        "{violations:?}"
    );
    note::close(engine).await;
}

/// What a search by a field that isn't there is told.
async fn told_of_a_missing_field(notes: &Collection<Note>) -> String {
    let search = pb::Search {
        query: note::term("place", "1"),
        ..pb::Search::default()
    };
    match notes.search(Some(search), "search").await {
        Ok(_) => String::new(),
        Err(error) => format!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_many_rows_there_are_isnt_told_while_a_field_is_added() {
    const NOTES: i64 = 6_000;
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    filled(&notes, NOTES).await;
    let never = ada().scope(told_of_a_missing_field(&notes)).await;
    assert!(never.contains("place"), "{never}");
    let field = pb::AddIndexField {
        field: "place".to_owned(),
        r#type: pb::IndexFieldType::Keyword.into(),
        source: "author".to_owned(),
        ..pb::AddIndexField::default()
    };
    let change = pb::IndexChange {
        kind: Some(pb::index_change::Kind::AddField(field)),
    };
    engine
        .update_index("notes", &[change], false)
        .await
        .expect("a build begins");
    let (mut before, mut compared) = (told_of_a_missing_field(&notes).await, 0);
    while !before.is_empty() {
        let own = ada().scope(told_of_a_missing_field(&notes)).await;
        let after = told_of_a_missing_field(&notes).await;
        if [&before, &after].iter().all(|told| told.contains("being added")) {
            // It is being added, and told in the words for a field that never was.
            assert_eq!(own, never);
            compared += 1;
        }
        before = after;
    }
    assert!(compared > 0, "the build was over before it began");
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_tells_deletions_of_own_rows_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    for (id, author) in [
        ("a1", "ada"),
        ("b1", "bob"),
        ("given", "ada"),
        ("a2", "ada"),
        ("b2", "bob"),
    ] {
        let created = notes.create(Note::new(id, author, 1), None, false).await;
        created.expect("created");
    }
    let give = |note: Note| {
        Ok::<_, EngineError>(Note {
            author: "bob".to_owned(),
            ..note
        })
    };
    let start = notes.update("given", None, give).await.expect("given").sequence;
    // By those who may delete everything, and by the owner.
    for id in ["b1", "a1", "given"] {
        notes.delete(id, None).await.expect("deleted");
    }
    ada()
        .scope(async { notes.delete("a2", None).await.expect("deleted") })
        .await;
    let last = notes.delete("b2", None).await.expect("deleted").sequence;
    let bob = caller(Role::User, "bob", Reach::Own);
    let eve = caller(Role::User, "eve", Reach::Own);
    for (who, ids) in [
        (ada(), &["a1", "a2"][..]),
        (bob, &["b1", "given", "b2"]),
        (eve, &[]),
    ] {
        let watch = who.scope(notes.watch(Some(start))).await.expect("a watch");
        let mut watch = std::pin::pin!(watch);
        let mut told = Vec::new();
        loop {
            let event = watch.next().await.expect("an event").expect("no error");
            for change in event.changes {
                assert_eq!((change.kind, &change.stored), (ChangeKind::Deleted, &None));
                told.push(change.id);
            }
            if event.sequence >= last {
                break;
            }
        }
        assert_eq!(told, ids);
    }
    note::close(engine).await;
}
