//! Several indexes of a table: how they come and go, what one may be, which of them a search goes to, and random histories of them.

mod history;
mod searches;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use souk_api::wire::broken;
use souk_api::{Resources, indexes};
use souk_chassis::status::FieldPath;
use souk_engine::definition::{MAX_SEARCH_INDEXES, MAX_WEIGHT};
use souk_engine::index::{Field, FieldKind, Query, SearchRequest};
use souk_engine::index_admin::IndexPhase;
use souk_engine::key::hashed;
use souk_engine::{
    Columns, Engine, EngineError, IndexChange, Principal, Search, SearchIndexDefinition, TableDefinition,
    TableWrite,
};
use souk_proto::index::v1::{CreateIndexRequest, UpdateIndexRequest};
use souk_proto::search::v1 as pb;
use tempfile::TempDir;
use tonic::{Code, Status};

use crate::note::{self, Note};

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
