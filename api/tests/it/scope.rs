//! Which rows a call meets: its caller's own, and nothing by accident.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use souk_access::{Caller, Identity, Role, RowAccess, as_service};
use souk_api::{
    Error, ExportRequest, ListRequest, Resources, SuggestFields, SuggestOrder, SuggestRequest, indexes, rows,
};
use souk_chassis::status::Violations;
use souk_engine::ChangeKind;
use souk_engine::storage::{Direction, Value};
use souk_engine::watch::WATCHES_MAX;
use souk_engine::{EngineConfig, EngineError, LimitOf};
use souk_proto::index::v1::CreateIndexRequest;
use souk_proto::search::v1 as pb;

use crate::note::{self, Note};

fn caller(role: Role, subject: &str, row_access: RowAccess) -> Caller {
    Identity::new(role, subject)
        .expect("an identity")
        .with_row_access(row_access)
}

fn ada() -> Caller {
    caller(Role::User, "ada", RowAccess::Own)
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
    let lost = |result: Result<(), Error>| {
        assert!(
            matches!(result, Err(Error::Engine(EngineError::Defect(_)))),
            "{result:?}"
        );
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
    lost(notes.update("n1", None, Ok::<_, Error>).await.map(drop));
    lost(notes.delete("n1", None).await.map(drop));
    lost(notes.search(None, "search").await.map(drop));
    lost(notes.export(ExportRequest::default()).await.map(drop));
    lost(notes.watch(None).await.map(drop));
    lost(notes.list_by(by_author("ada")).await.map(drop));
    // Nor does it a table or an index, whether there is one or not.
    lost(rows::tables_page(&engine, 10, "").map(drop));
    lost(indexes::list(&engine).await.map(drop));
    for name in ["notes", "nones"] {
        lost(rows::check_creatable(&engine, name));
        lost(rows::drop_table(&engine, name).await);
        lost(indexes::get(&engine, name).await.map(drop));
        lost(indexes::rebuild(&engine, name, true).await.map(drop));
        lost(indexes::delete(&engine, name).await);
        let created = CreateIndexRequest {
            index: format!("{name}.second"),
            ..CreateIndexRequest::default()
        };
        let violations = Violations::default();
        lost(indexes::create(&engine, &created, violations).await.map(drop));
        let violations = Violations::default();
        let updated = indexes::update(&engine, name, &[], &[], true, violations);
        lost(updated.await.map(drop));
    }
    let listed = as_service(indexes::list(&engine)).await;
    assert!(!listed.expect("listed").is_empty());
    // A task that a call spawns has lost its caller, too.
    let spawned = notes.clone();
    let task = ada().scope(async { tokio::spawn(async move { spawned.get("n1", 0).await }).await });
    lost(task.await.expect("runs").map(drop));
    let made = as_service(notes.create(Note::new("n1", "ada", 1), None, false)).await;
    assert!(made.is_ok(), "{made:?}");
    assert!(ada().scope(notes.get("n1", 0)).await.is_ok());
    // A role without rows of its own here is refused, not shown nothing: its rule is wrong.
    let consumer = caller(Role::Consumer, "ada", RowAccess::Own);
    let refused = consumer.scope(notes.get("n1", 0)).await;
    assert!(
        matches!(refused, Err(Error::Engine(EngineError::NoOwnRows { .. }))),
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

async fn filled(notes: &Resources<Note>, count: i64) {
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
            let missing = |result: Result<(), Error>| {
                assert!(
                    matches!(result, Err(Error::Engine(EngineError::NotFound { .. }))),
                    "{result:?}"
                );
            };
            let not_own = |result: Result<(), Error>| {
                assert!(
                    matches!(result, Err(Error::Engine(EngineError::NotOwn { .. }))),
                    "{result:?}"
                );
            };
            assert!(notes.get("ada-97", 0).await.is_ok());
            missing(notes.get("bob-1", 0).await.map(drop));
            missing(notes.update("bob-1", None, Ok::<_, Error>).await.map(drop));
            missing(
                notes
                    .update("bob-1", Some("stale"), Ok::<_, Error>)
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
                Ok::<_, Error>(Note {
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
    let ids = |blocks: &[souk_engine::ExportBlock<souk_engine::Stored<Note>>]| -> Vec<String> {
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
        matches!(
            refused,
            Err(Error::Engine(EngineError::ExportTokenInvalid { .. }))
        ),
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
        Ok::<_, Error>(Note {
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
    let bob = caller(Role::User, "bob", RowAccess::Own);
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
    let refused = note::update_index(&engine, "notes", &changes, false).await;
    let Err(Error::Invalid(violations)) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        format!("{violations:?}").contains("FIELD_NEEDED"),
        "{violations:?}"
    );
    note::close(engine).await;
}

/// What a search by a field that isn't there is told.
async fn told_of_a_missing_field(notes: &Resources<Note>) -> String {
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
    note::update_index(&engine, "notes", &[change], false)
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
        Ok::<_, Error>(Note {
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
    let bob = caller(Role::User, "bob", RowAccess::Own);
    let eve = caller(Role::User, "eve", RowAccess::Own);
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

/// A search that shows no row: its caller's ids, and figures over his rows.
fn without_rows() -> pb::Search {
    let aggregation = |kind| pb::Aggregation { kind: Some(kind) };
    pb::Search {
        hits_mode: pb::HitsMode::Keys.into(),
        aggregations: BTreeMap::from([
            (
                "best".to_owned(),
                aggregation(pb::aggregation::Kind::TopHits(pb::TopHitsAggregation {
                    size: 100,
                    sort: Vec::new(),
                })),
            ),
            (
                "texts".to_owned(),
                aggregation(pb::aggregation::Kind::Terms(pb::TermsAggregation {
                    field: "text.keyword".to_owned(),
                    ..pb::TermsAggregation::default()
                })),
            ),
        ]),
        ..everything()
    }
}

/// Every search that shows something of a caller's rows, as text.
async fn shown(notes: &Resources<Note>) -> String {
    let page = notes
        .search(Some(without_rows()), "search")
        .await
        .expect("a page");
    let fields = SuggestFields {
        folded: "text.keyword",
        written: "text.keyword",
        words: "text",
        order: SuggestOrder::Alphabetical,
    };
    let suggest = SuggestRequest {
        prefix: "note",
        size: 100,
        ..SuggestRequest::default()
    };
    let suggested = notes
        .suggest(suggest, &fields, Violations::default())
        .await
        .expect("suggestions");
    let ids: Vec<_> = page.hits.iter().map(|hit| &hit.id).collect();
    format!(
        "{ids:?} {:?} {:?} {:?}",
        page.total, page.aggregations, suggested.suggestions
    )
}

fn to_bob(note: Note) -> Result<Note, Error> {
    Ok(Note {
        author: "bob".to_owned(),
        ..note
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_row_that_was_given_away_nothing_is_left_in_any_search_of_its_owner() {
    const NOTES: i64 = 40;
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = EngineConfig::new(directory.path());
    // Searches that wait for nothing see what the index has.
    config.commit_interval = Duration::from_secs(3_600);
    let (engine, notes) = note::open_with(config).await;
    for rank in 0..NOTES {
        let note = Note::new(&format!("<{rank}>"), "ada", rank);
        let note = Note {
            text: format!("note <{rank}>"),
            ..note
        };
        notes.create(note, None, false).await.expect("created");
    }
    for rank in 0..NOTES {
        let id = format!("<{rank}>");
        if rank % 2 == 0 {
            notes.update(&id, None, to_bob).await.expect("given");
        } else {
            // Through the eyes of all who may change it.
            let operator = caller(Role::Operator, "olga", RowAccess::All);
            let given = operator.scope(notes.update(&id, None, to_bob)).await;
            given.expect("given");
        }
        let shown = ada().scope(shown(&notes)).await;
        assert!(!shown.contains(&id), "{id} in {shown}");
        let (kept, left) = (format!("<{}>", rank + 1), NOTES - rank - 1);
        assert_eq!(shown.contains(&kept), left > 0, "{kept} in {shown}");
        assert!(shown.contains(&format!("value: {left},")), "{left} in {shown}");
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_from_before_a_row_was_given_away_ends_for_its_owner_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let mut sequence = 0;
    for (rank, author) in [(0, "ada"), (1, "ada"), (2, "eve"), (3, "eve")] {
        let note = Note::new(&format!("n{rank}"), author, rank);
        sequence = notes.create(note, None, false).await.expect("created").sequence;
    }
    let mut search = pb::Search {
        page_size: 1,
        min_sequence: sequence,
        keep_view: Some(prost_types::Duration {
            seconds: 60,
            nanos: 0,
        }),
        ..everything()
    };
    let eve = caller(Role::User, "eve", RowAccess::Own);
    let mut pages = Vec::new();
    for who in [ada(), eve.clone()] {
        let page = who.scope(notes.search(Some(search.clone()), "search")).await;
        pages.push(page.expect("a page").next_page_token);
    }
    notes.update("n1", None, to_bob).await.expect("given");
    search.page_token = pages[0].clone();
    let old = ada().scope(notes.search(Some(search.clone()), "search")).await;
    assert!(
        matches!(old, Err(Error::Engine(EngineError::ViewExpired))),
        "{old:?}"
    );
    search.page_token = pages[1].clone();
    let others = eve.scope(notes.search(Some(search), "search")).await;
    assert_eq!(others.expect("a page").hits.len(), 1);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_away_before_a_restart_stays_so() {
    let directory = tempfile::tempdir().expect("a directory");
    for round in 0..5 {
        let (engine, notes) = note::open(directory.path()).await;
        let id = format!("<{round}>");
        if round > 0 {
            let before = format!("<{}>", round - 1);
            let shown = ada().scope(shown(&notes)).await;
            assert!(!shown.contains(&before), "{before} in {shown}");
        }
        let note = Note {
            text: format!("note {id}"),
            ..Note::new(&id, "ada", round)
        };
        notes.create(note, None, false).await.expect("created");
        assert!(ada().scope(notes.get(&id, 0)).await.is_ok());
        notes.update(&id, None, to_bob).await.expect("given");
        note::close(engine).await;
    }
}

/// A caller that keeps what it can: views whose next page it doesn't ask for, and exports of which it reads no slice but one.
async fn hoard(notes: &Resources<Note>) -> (usize, usize) {
    let search = || pb::Search {
        page_size: 1,
        keep_view: Some(prost_types::Duration {
            seconds: 60,
            nanos: 0,
        }),
        ..pb::Search::default()
    };
    let export = || ExportRequest {
        slice_count: 2,
        ..ExportRequest::default()
    };
    let (mut views, mut exports) = (0, 0);
    while notes.search(Some(search()), "search").await.is_ok() {
        views += 1;
    }
    while notes.export(export()).await.map(drop).is_ok() {
        exports += 1;
    }
    (views, exports)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_caller_leaves_views_and_exports_to_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    filled(&notes, 4).await;
    let last = notes
        .create(Note::new("last", "bob", 9), None, false)
        .await
        .expect("created");
    let all = pb::Search {
        min_sequence: last.sequence,
        ..everything()
    };
    assert_eq!(note::found(&notes, all).await.len(), 5);
    for subject in ["ada", "bob"] {
        let hoarder = caller(Role::Reader, subject, RowAccess::All);
        assert_eq!(hoarder.scope(hoard(&notes)).await, (4, 2), "{subject}");
    }
    // The role is part of the name, the subject alone isn't it.
    let other = caller(Role::Admin, "ada", RowAccess::All);
    assert_eq!(other.clone().scope(hoard(&notes)).await, (4, 2));
    let refused = other
        .scope(notes.export(ExportRequest::default()))
        .await
        .map(drop);
    assert!(
        matches!(
            refused,
            Err(Error::Engine(EngineError::TooManyExports {
                max: 2,
                of: LimitOf::Caller
            }))
        ),
        "{refused:?}"
    );
    // Where callers aren't known, there is the bound of all alone.
    assert_eq!(hoard(&notes).await, (64 - 3 * 4, 16 - 3 * 2));
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_caller_leaves_watches_to_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let hoarder = caller(Role::Reader, "ada", RowAccess::All);
    let mut open = Vec::new();
    let refused = loop {
        match hoarder.clone().scope(notes.watch(None)).await {
            Ok(watch) => open.push(watch),
            Err(refused) => break refused,
        }
    };
    assert_eq!(open.len(), WATCHES_MAX / 2);
    let share = Error::Engine(EngineError::TooManyWatches {
        max: WATCHES_MAX,
        of: LimitOf::Caller,
    });
    assert_eq!(refused.to_string(), share.to_string());
    let other = caller(Role::Reader, "bob", RowAccess::All);
    assert!(other.scope(notes.watch(None)).await.is_ok());
    drop(open);
    note::close(engine).await;
}
