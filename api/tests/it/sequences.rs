//! Sequences that callers name: those that were answered are taken by every call at once, others are refused at once.

use std::collections::BTreeMap;

use souk_api::{
    ClusterRequest, ClusterSize, Error, ExportRequest, ListRequest, NearbyRequest, Resources, SuggestFields,
    SuggestOrder, SuggestRequest,
};
use souk_chassis::status::Violations;
use souk_engine::EngineError;
use souk_engine::storage::{Direction, Value};
use souk_proto::search::v1 as pb;
use souk_proto::r#type::v1::{GeoPoint, GeoRectangle};

use crate::note::{self, Note};

/// How each call that takes a sequence ends, by its name.
async fn all_calls(notes: &Resources<Note>, sequence: i64) -> BTreeMap<&'static str, Result<(), Error>> {
    let ada = [Value::from("ada")];
    let list = ListRequest {
        index: "by_author",
        prefix: &ada,
        direction: Direction::Forward,
        page_size: 0,
        page_token: "",
        min_sequence: sequence,
    };
    let search = pb::Search {
        min_sequence: sequence,
        hits_mode: pb::HitsMode::Keys.into(),
        ..pb::Search::default()
    };
    let suggest = SuggestRequest {
        prefix: "note",
        min_sequence: sequence,
        ..SuggestRequest::default()
    };
    let fields = SuggestFields {
        folded: "text.keyword",
        written: "text.keyword",
        words: "text",
        order: SuggestOrder::Alphabetical,
    };
    let export = ExportRequest {
        min_sequence: sequence,
        ..ExportRequest::default()
    };
    BTreeMap::from([
        ("get", notes.get("n", sequence).await.map(drop)),
        (
            "get_batch",
            notes.get_batch(&["n".to_owned()], sequence).await.map(drop),
        ),
        ("list_by", notes.list_by(list).await.map(drop)),
        ("search", notes.search(Some(search), "search").await.map(drop)),
        (
            "suggest",
            notes
                .suggest(suggest, &fields, Violations::default())
                .await
                .map(drop),
        ),
        ("export", notes.export(export).await.map(drop)),
        ("watch", notes.watch(Some(sequence)).await.map(drop)),
    ])
}

/// The same of those for which notes have no places: what they are told of a sequence comes first.
async fn of_places(notes: &Resources<Note>, sequence: i64) -> [Result<(), Error>; 2] {
    let nearby = NearbyRequest {
        field: "place",
        center: Some(GeoPoint::default()),
        min_sequence: sequence,
        ..NearbyRequest::default()
    };
    let clusters = ClusterRequest {
        field: "place",
        viewport: Some(GeoRectangle {
            top_left: Some(GeoPoint {
                latitude: 1.0,
                longitude: 0.0,
            }),
            bottom_right: Some(GeoPoint {
                latitude: 0.0,
                longitude: 1.0,
            }),
        }),
        size: Some(ClusterSize::Zoom(3)),
        best_field: "rank",
        min_sequence: sequence,
        ..ClusterRequest::default()
    };
    [
        notes.nearby(nearby, Violations::default()).await.map(drop),
        notes.clusters(clusters, Violations::default()).await.map(drop),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequence_that_no_write_has_been_given_is_refused_at_once_by_every_call() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let created = notes.create(Note::new("n", "ada", 1), None, false).await;
    let last = created.expect("created").sequence;
    // None of them has a deadline: one that waited would wait for ever.
    for ahead in [last + 1, last + 1_000_000, i64::MAX] {
        let mut ends = all_calls(&notes, ahead).await;
        let [nearby, clusters] = of_places(&notes, ahead).await;
        ends.extend([("nearby", nearby), ("clusters", clusters)]);
        for (call, end) in ends {
            let field = if call == "watch" {
                "after_sequence"
            } else {
                "min_sequence"
            };
            let error = end.expect_err(call);
            assert!(
                matches!(&error, Error::Engine(EngineError::SequenceAhead { field: told, given, last: at })
                    if *told == field && *given == ahead.unsigned_abs() && *at == last.unsigned_abs()),
                "{call}: {error:?}"
            );
            let status = tonic::Status::from(error);
            assert_eq!(status.code(), tonic::Code::OutOfRange, "{call}");
            assert!(status.message().contains(&format!("the last sequence is {last}")));
        }
    }
    for (call, end) in all_calls(&notes, last).await {
        assert!(end.is_ok(), "{call}: {end:?}");
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sequence_that_was_answered_is_never_ahead_whoever_writes_meanwhile() {
    const ROUNDS: i64 = 60;
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..4 {
        let notes = notes.clone();
        clients.spawn(async move {
            for round in 0..ROUNDS {
                let id = format!("n{client}-{round}");
                let created = notes.create(Note::new(&id, "ada", round), None, false).await;
                let written = created.expect("created").sequence;
                // What a search answers may be younger than what anybody was told of a write.
                let search = pb::Search {
                    min_sequence: written,
                    hits_mode: pb::HitsMode::Keys.into(),
                    ..pb::Search::default()
                };
                let page = notes.search(Some(search), "search").await.expect("a page");
                for sequence in [written, page.sequence] {
                    let watch = notes.watch(Some(sequence)).await.map(drop);
                    let read = notes.get(&id, sequence).await.map(drop);
                    assert!(watch.is_ok() && read.is_ok(), "{sequence}: {watch:?} {read:?}");
                }
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.expect("no panic");
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_is_exported_again_isnt_taken_for_a_later_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let created = notes.create(Note::new("n", "ada", 1), None, false).await;
    created.expect("created");
    let snapshot_token = {
        use futures_util::StreamExt as _;
        let blocks = notes.export(ExportRequest::default()).await.expect("an export");
        let mut blocks = std::pin::pin!(blocks);
        let block = blocks.next().await.expect("a block").expect("no error");
        block.snapshot_token
    };
    let later = notes.create(Note::new("m", "ada", 1), None, false).await;
    let request = ExportRequest {
        snapshot_token,
        min_sequence: later.expect("created").sequence,
        ..ExportRequest::default()
    };
    let refused = notes.export(request).await.map(drop);
    let Err(Error::Invalid(violations)) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        format!("{violations:?}").contains("CONFLICTING_FIELDS"),
        "{violations:?}"
    );
    note::close(engine).await;
}
