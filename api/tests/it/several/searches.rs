//! Which index of a table a search goes to: the one that it names, or one by the weights, and for its pages the one of the first.

use std::collections::BTreeSet;

use souk_api::{Error, Resources};
use souk_engine::index::{Query, SearchRequest};
use souk_engine::{EngineError, Search};
use souk_proto::index::v1::CreateIndexRequest;
use souk_proto::search::v1 as pb;

use super::{added, answers, by_trial, create, weigh, with_trial};
use crate::note::{self, Note};

fn everything(page_token: String) -> pb::Search {
    pb::Search {
        page_size: 10,
        page_token,
        ..pb::Search::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_that_name_no_index_are_shared_by_the_weights() {
    let (_directory, engine, notes) = with_trial(0, 3).await;
    for (declared, trial, expected) in [(100, 0, 0), (90, 10, 20), (0, 1, 200), (30, 30, 100)] {
        let weighed = weigh(&engine, "notes", &[("notes", declared), ("notes.trial", trial)]).await;
        assert_eq!(weighed.expect("weighed").weight, declared);
        let mut by_it: u32 = 0;
        for _ in 0..200 {
            match notes.search(Some(by_trial("", String::new())), "search").await {
                Ok(page) => {
                    assert_eq!(page.hits.len(), 3);
                    by_it += 1;
                }
                Err(Error::InvalidQuery(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(by_it.abs_diff(expected) <= 3, "{declared} and {trial}: {by_it}");
        // Whatever its weight, who names it gets it.
        let named = notes
            .search(Some(by_trial("notes.trial", String::new())), "search")
            .await;
        assert_eq!(named.expect("a page").hits.len(), 3);
        let named = notes
            .search(Some(by_trial("notes", String::new())), "search")
            .await;
        assert!(matches!(named, Err(Error::InvalidQuery(_))), "{named:?}");
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_of_a_search_stay_with_the_index_that_gave_the_first() {
    let (_directory, engine, notes) = with_trial(0, 35).await;
    for keep_view in [
        None,
        Some(prost_types::Duration {
            seconds: 60,
            nanos: 0,
        }),
    ] {
        for (first, other) in [("notes", "notes.trial"), ("notes.trial", "notes")] {
            let mut weights = [(first, 100), (other, 0)];
            weigh(&engine, "notes", &weights).await.expect("weighed");
            let (mut ids, mut token) = (BTreeSet::new(), String::new());
            for _ in 0..4 {
                let mut search = everything(token.clone());
                search.keep_view = keep_view;
                if ids.len() == 10 {
                    // It may be named on any page.
                    search.index = first.to_owned();
                }
                let page = notes.search(Some(search), "search").await.expect("a page");
                ids.extend(page.hits.into_iter().map(|hit| hit.id));
                token = page.next_page_token;
                if ids.len() == 10 {
                    weights = [(first, 0), (other, 100)];
                    weigh(&engine, "notes", &weights).await.expect("weighed");
                    let mut search = everything(token.clone());
                    search.index = other.to_owned();
                    let refused = notes.search(Some(search), "search").await;
                    let Err(Error::PageTokenInvalid { path, .. }) = &refused else {
                        panic!("{refused:?}");
                    };
                    assert_eq!(path, "search.page_token");
                }
            }
            assert_eq!((ids.len(), token.as_str()), (35, ""));
        }
    }
    // Tokens of an index that is no more are refused.
    weigh(&engine, "notes", &[("notes", 0), ("notes.trial", 100)])
        .await
        .expect("weighed");
    let page = notes
        .search(Some(everything(String::new())), "search")
        .await
        .expect("a page");
    weigh(&engine, "notes", &[("notes", 100)]).await.expect("weighed");
    engine.drop_index("notes.trial").await.expect("dropped");
    let refused = notes
        .search(Some(everything(page.next_page_token)), "search")
        .await;
    assert!(
        matches!(refused, Err(Error::PageTokenInvalid { .. })),
        "{refused:?}"
    );
    note::close(engine).await;
}

/// A search of no hits for a page of the groups of ranks.
fn groups_of_ranks(index: &str, page_token: String) -> pb::Search {
    let by_rank = pb::aggregation::Kind::Terms(pb::TermsAggregation {
        field: "rank".to_owned(),
        ..pb::TermsAggregation::default()
    });
    let source = pb::CompositeSource {
        name: "rank".to_owned(),
        grouping: Some(pb::Aggregation { kind: Some(by_rank) }),
        ..pb::CompositeSource::default()
    };
    let composite = pb::aggregation::Kind::Composite(pb::CompositeAggregation {
        sources: vec![source],
        size: 4,
        page_token,
        ..pb::CompositeAggregation::default()
    });
    let ranks = pb::Aggregation {
        kind: Some(composite),
    };
    pb::Search {
        hits_mode: pb::HitsMode::None.into(),
        aggregations: [("ranks".to_owned(), ranks)].into(),
        index: index.to_owned(),
        ..pb::Search::default()
    }
}

/// The number of groups, and the token of the next page.
async fn page_of_groups(notes: &Resources<Note>, search: pb::Search) -> souk_api::Result<(usize, String)> {
    let mut page = notes.search(Some(search), "search").await?;
    let groups = page.aggregations.remove("ranks").and_then(|ranks| ranks.kind);
    let Some(pb::aggregation_result::Kind::Groups(groups)) = groups else {
        panic!("{groups:?}");
    };
    Ok((groups.groups.len(), groups.next_page_token))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_of_groups_stay_with_the_index_that_gave_the_first() {
    let (_directory, engine, notes) = with_trial(50, 35).await;
    weigh(&engine, "notes", &[("notes", 50)]).await.expect("weighed");
    for _ in 0..4 {
        let (mut groups, mut token) = (0, String::new());
        loop {
            let page = page_of_groups(&notes, groups_of_ranks("", token)).await;
            let (more, next) = page.expect("whichever gave the first page gives all");
            groups += more;
            token = next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(groups, 35);
    }
    let (_, of_trial) = page_of_groups(&notes, groups_of_ranks("notes.trial", String::new()))
        .await
        .expect("a page");
    let mut of_both = groups_of_ranks("", of_trial.clone());
    let mut of_notes = everything(String::new());
    of_notes.index = "notes".to_owned();
    let page_of_notes = notes.search(Some(of_notes), "search").await.expect("a page");
    of_both.page_token = page_of_notes.next_page_token;
    for search in [groups_of_ranks("notes", of_trial), of_both] {
        let refused = page_of_groups(&notes, search).await;
        assert!(
            matches!(refused, Err(Error::PageTokenInvalid { .. })),
            "{refused:?}"
        );
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_has_the_name_of_a_dropped_one_takes_none_of_its_pages() {
    let (_directory, engine, notes) = with_trial(0, 35).await;
    let kept = Some(prost_types::Duration {
        seconds: 60,
        nanos: 0,
    });
    let mut tokens = Vec::new();
    for keep_view in [None, kept] {
        let mut search = everything(String::new());
        search.index = "notes.trial".to_owned();
        search.keep_view = keep_view;
        let page = notes.search(Some(search), "search").await.expect("a page");
        tokens.push(page.next_page_token);
    }
    engine.drop_index("notes.trial").await.expect("dropped");
    let again = CreateIndexRequest {
        index: "notes.trial".to_owned(),
        source_index: "notes".to_owned(),
        changes: vec![added("writer", "author")],
        ..CreateIndexRequest::default()
    };
    create(&engine, &again).await.expect("created again");
    answers(&engine, "notes.trial").await;
    for token in tokens {
        for index in ["", "notes.trial"] {
            let mut search = everything(token.clone());
            search.index = index.to_owned();
            let refused = notes.search(Some(search), "search").await;
            assert!(
                matches!(refused, Err(Error::PageTokenInvalid { .. })),
                "{index}: {refused:?}"
            );
        }
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_names_no_index_goes_to_another_one_when_its_own_is_dropped() {
    let (_directory, engine, _notes) = with_trial(0, 3).await;
    weigh(&engine, "notes", &[("notes", 0), ("notes.trial", 100)])
        .await
        .expect("weighed");
    let table = engine.table("notes").expect("a table");
    let sent = table.for_search(None, None).expect("an index");
    let named = table.for_search(Some("notes.trial"), None).expect("an index");
    weigh(&engine, "notes", &[("notes", 100), ("notes.trial", 0)])
        .await
        .expect("weighed");
    engine.drop_index("notes.trial").await.expect("dropped");
    let everything = Search::new(SearchRequest::new(Query::MatchAll));
    let page = sent.search(everything.clone()).await.expect("a page");
    assert_eq!(page.hits.len(), 3);
    let found = sent.find(SearchRequest::new(Query::MatchAll), 0).await;
    assert_eq!(found.expect("a page").result.hits.len(), 3);
    let gone = named.search(everything).await.map(drop);
    assert!(matches!(gone, Err(EngineError::NotFound { .. })), "{gone:?}");
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_waits_for_a_write_in_the_index_that_it_goes_to() {
    let (_directory, engine, notes) = with_trial(0, 3).await;
    for rank in 10..40 {
        let note = Note::new(&format!("n{rank}"), "ada", rank);
        let written = notes.create(note, None, false).await.expect("created");
        let index = ["notes", "notes.trial"][rank as usize % 2];
        let mut search = everything(String::new());
        search.query = note::term("note_id", &format!("n{rank}"));
        search.index = index.to_owned();
        search.min_sequence = written.sequence;
        let page = notes.search(Some(search), "search").await.expect("a page");
        assert_eq!(page.hits.len(), 1, "{index}");
        assert!(page.sequence >= written.sequence);
    }
    note::close(engine).await;
}
