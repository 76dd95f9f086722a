//! What hits show, through the gateway: one a user, which of their tags matched, how the search ran, and pages that stay
//! while others write. The index's own tests compare all of it with brute force.

use std::collections::BTreeMap;

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{Layout, Suite};
use souk_proto::media::v1 as media;
use souk_proto::search::v1::{
    Collapse, FieldSort, InnerHits, NestedQuery, Query, RangeQuery, Search, Sort, TotalRequest, query,
    range_query, sort, total_request,
};
use souk_proto::r#type::v1::{Value, value};

use crate::SOUK;

const BEST: f64 = 0.5;

fn by(field: &str) -> Sort {
    let sort = FieldSort {
        field: field.to_owned(),
        descending: true,
        ..FieldSort::default()
    };
    Sort {
        kind: Some(sort::Kind::Field(sort)),
    }
}

/// Media with a good tag, each user's newest, with the best of these tags.
fn search() -> Search {
    let good = RangeQuery {
        field: "tags.score".to_owned(),
        lower: Some(range_query::Lower::Gte(Value {
            kind: Some(value::Kind::DoubleValue(BEST)),
        })),
        upper: None,
    };
    let tagged = NestedQuery {
        path: "tags".to_owned(),
        query: Some(Box::new(Query {
            kind: Some(query::Kind::Range(good)),
        })),
        inner_hits: Some(InnerHits {
            sort: vec![by("tags.score")],
            size: 100,
            ..InnerHits::default()
        }),
        ..NestedQuery::default()
    };
    Search {
        query: Some(Query {
            kind: Some(query::Kind::Nested(Box::new(tagged))),
        }),
        sort: vec![by("size_bytes")],
        page_size: 5,
        collapse: Some(Collapse {
            field: "user_id".to_owned(),
        }),
        total: Some(TotalRequest {
            kind: Some(total_request::Kind::Exact(true)),
        }),
        profile: true,
        ..Search::default()
    }
}

async fn hits_of_media(layout: Layout) -> anyhow::Result<()> {
    let suite = Suite::start(SOUK, layout).await?;
    let mut client = suite.media()?;
    let mut random = SeededRandom::new(3);
    let made: Vec<_> = (0..150).map(|number| data::media(number, &mut random)).collect();
    let good = |item: &&media::Media| {
        item.tags
            .iter()
            .any(|tag| tag.score.is_some_and(|score| score >= BEST))
    };
    let matching = made.iter().filter(good).count() as i64;
    let mut expected: BTreeMap<&str, &media::Media> = BTreeMap::new();
    for item in made.iter().filter(good) {
        let newest = expected.entry(&item.user_id).or_insert(item);
        if (item.size_bytes, &newest.media_id) > (newest.size_bytes, &item.media_id) {
            *newest = item;
        }
    }
    let batch = media::BatchCreateMediaRequest {
        media: made.clone(),
        ..Default::default()
    };
    let min_sequence = client.batch_create_media(batch).await?.into_inner().sequence;
    let mut search = Search {
        min_sequence,
        keep_view: Some(prost_types::Duration {
            seconds: 60,
            nanos: 0,
        }),
        ..search()
    };
    let mut found = BTreeMap::new();
    loop {
        let request = media::SearchMediaRequest {
            search: Some(search.clone()),
        };
        let page = client.search_media(request).await?.into_inner();
        assert_eq!(
            page.total.map(|total| total.value),
            Some(matching),
            "before collapsing"
        );
        let profile = page.profile.expect("a profile");
        let query = profile.query.expect("a plan");
        assert_eq!((query.kind.as_str(), query.children.len()), ("nested", 1));
        assert!(!profile.segments.is_empty() && profile.search_micros > 0);
        for hit in page.hits {
            let item = hit.resource.expect("a resource");
            let tags = &hit.inner_hits["tags"];
            let shown: Vec<f64> = tags
                .hits
                .iter()
                .filter_map(|hit| item.tags[hit.offset as usize].score)
                .collect();
            let mut good: Vec<f64> = item.tags.iter().filter_map(|tag| tag.score).collect();
            good.retain(|score| *score >= BEST);
            good.sort_by(|one, other| other.total_cmp(one));
            assert_eq!((shown, tags.total), (good.clone(), good.len() as i64));
            let before = found.insert(item.user_id.clone(), item.media_id);
            assert_eq!(before, None, "a user comes once");
        }
        // The pages that follow don't see that everything is gone.
        for item in made.iter().filter(|_| search.page_token.is_empty()) {
            let request = media::DeleteMediaRequest {
                media_id: item.media_id.clone(),
                ..Default::default()
            };
            client.delete_media(request).await?;
        }
        search.page_token = page.next_page_token;
        if search.page_token.is_empty() {
            break;
        }
    }
    let expected: BTreeMap<String, String> = expected
        .into_iter()
        .map(|(user, item)| (user.to_owned(), item.media_id.clone()))
        .collect();
    assert_eq!(found, expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_show_the_best_of_each_user_and_its_tags_in_one_process() -> anyhow::Result<()> {
    hits_of_media(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_show_the_best_of_each_user_and_its_tags_in_several_processes() -> anyhow::Result<()> {
    hits_of_media(Layout::SeveralProcesses).await
}
