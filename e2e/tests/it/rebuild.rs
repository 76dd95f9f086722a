//! An index is derived: without its directory, the same answers after a restart.

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{Layout, Suite};
use souk_proto::media::v1::{
    BatchCreateMediaRequest, DeleteMediaRequest, SearchMediaRequest, UpdateMediaRequest,
};
use souk_proto::search::v1::{
    ExistsQuery, FieldSort, MatchQuery, NestedQuery, Query, Search, Sort, TermQuery, TotalRequest, query,
    sort, total_request,
};
use souk_proto::r#type::v1::{Value, value};

use crate::{SOUK, seed};

fn query(kind: query::Kind) -> Option<Query> {
    Some(Query { kind: Some(kind) })
}

/// Searches of different kinds, ordered by title and then by key.
fn searches() -> Vec<SearchMediaRequest> {
    let text = |text: &str| {
        Some(Value {
            kind: Some(value::Kind::StringValue(text.to_owned())),
        })
    };
    let term = |field: &str, value: &str| TermQuery {
        field: field.to_owned(),
        value: text(value),
        weight: None,
    };
    let happy = query(query::Kind::Term(term("tags.tag", "开心"))).map(Box::new);
    let nested = NestedQuery {
        path: "tags".to_owned(),
        query: happy,
        ..NestedQuery::default()
    };
    let words = MatchQuery {
        field: "title".to_owned(),
        text: "手机 coffee".to_owned(),
        ..MatchQuery::default()
    };
    let queries = [
        None,
        query(query::Kind::Term(term("user_id", "u0001"))),
        query(query::Kind::Nested(Box::new(nested))),
        query(query::Kind::Match(words)),
        query(query::Kind::Exists(ExistsQuery {
            field: "position".to_owned(),
        })),
    ];
    let by_title = FieldSort {
        field: "title.keyword".to_owned(),
        descending: true,
        ..FieldSort::default()
    };
    let search = |query| Search {
        query,
        sort: vec![Sort {
            kind: Some(sort::Kind::Field(by_title.clone())),
        }],
        page_size: 1_000,
        total: Some(TotalRequest {
            kind: Some(total_request::Kind::Exact(true)),
        }),
        ..Search::default()
    };
    queries
        .into_iter()
        .map(|query| SearchMediaRequest {
            search: Some(search(query)),
        })
        .collect()
}

/// The answers without the sequence, which a restart may move.
async fn answers(suite: &Suite, min_sequence: i64) -> anyhow::Result<Vec<String>> {
    let mut media = suite.media()?;
    let mut all = Vec::new();
    for mut request in searches() {
        if let Some(search) = &mut request.search {
            search.min_sequence = min_sequence;
        }
        let mut answer = media.search_media(request).await?.into_inner();
        answer.sequence = 0;
        all.push(format!("{answer:?}"));
    }
    Ok(all)
}

async fn deleting_an_index_directory_and_restarting_gives_the_same_answers(
    layout: Layout,
) -> anyhow::Result<()> {
    let mut random = SeededRandom::new(seed("rebuild"));
    let mut suite = Suite::start(SOUK, layout).await?;
    let mut client = suite.media()?;
    for batch in 0..5_u64 {
        let media = (0..200)
            .map(|number| data::media(batch * 200 + number, &mut random))
            .collect();
        client
            .batch_create_media(BatchCreateMediaRequest {
                media,
                ..Default::default()
            })
            .await?;
    }
    let mut sequence = 0;
    for number in (0..1_000_u64).step_by(7) {
        let request = DeleteMediaRequest {
            media_id: format!("m{number:010}"),
            etag: String::new(),
        };
        client.delete_media(request).await?;
    }
    for number in (1..1_000_u64).step_by(7) {
        let changed = data::media(number, &mut random);
        let request = UpdateMediaRequest {
            media: Some(changed),
            update_mask: Some(prost_types::FieldMask {
                paths: vec!["tags".to_owned(), "title".to_owned()],
            }),
            ..Default::default()
        };
        sequence = client.update_media(request).await?.into_inner().sequence;
    }
    let before = answers(&suite, sequence).await?;
    assert!(
        before.iter().all(|answer| answer.contains("MediaHit")),
        "{before:?}"
    );

    suite.stop().await?;
    let indexes = suite.service_directory("media").join("index");
    assert!(indexes.is_dir(), "{} isn't there", indexes.display());
    std::fs::remove_dir_all(&indexes)?;
    suite.restart().await?;
    let after = answers(&suite, sequence).await?;
    for (after, before) in after.iter().zip(&before) {
        assert_eq!(after, before);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_derived_in_one_process() -> anyhow::Result<()> {
    deleting_an_index_directory_and_restarting_gives_the_same_answers(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_derived_in_several_processes() -> anyhow::Result<()> {
    deleting_an_index_directory_and_restarting_gives_the_same_answers(Layout::SeveralProcesses).await
}
