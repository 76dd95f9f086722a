//! Media items.

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::Suite;
use souk_proto::media::v1 as media;
use souk_proto::search::v1::{Query, query};

use super::{mask, search, term};

pub(super) async fn media_items(suite: &Suite) -> anyhow::Result<()> {
    let mut client = suite.media()?;
    let mut item = data::media(1, &mut SeededRandom::new(3));
    item.tags = vec![media::Tag {
        tag: "car".to_owned(),
        score: Some(0.5),
    }];
    let request = media::CreateMediaRequest {
        media: Some(item),
        ..Default::default()
    };
    let created = client
        .create_media(request)
        .await?
        .into_inner()
        .media
        .expect("a media item");
    let analysed = media::Media {
        media_id: created.media_id.clone(),
        tags: vec![media::Tag {
            tag: "开心".to_owned(),
            score: Some(0.9),
        }],
        ..Default::default()
    };
    let request = media::UpdateMediaRequest {
        media: Some(analysed),
        update_mask: mask(&["tags"]),
        append: true,
        ..Default::default()
    };
    let updated = client.update_media(request).await?.into_inner();
    let tags: Vec<_> = updated
        .media
        .expect("a media item")
        .tags
        .into_iter()
        .map(|tag| tag.tag)
        .collect();
    assert_eq!(tags, ["car", "开心"]);
    let both = |tag: &str| {
        let nested = souk_proto::search::v1::NestedQuery {
            path: "tags".to_owned(),
            query: term("tags.tag", tag).map(Box::new),
            ..Default::default()
        };
        Some(Query {
            kind: Some(query::Kind::Nested(Box::new(nested))),
        })
    };
    for (tag, hits) in [("开心", 1), ("car", 1), ("cat", 0)] {
        let request = media::SearchMediaRequest {
            search: search(both(tag), updated.sequence),
        };
        assert_eq!(
            client.search_media(request).await?.into_inner().hits.len(),
            hits,
            "{tag}"
        );
    }
    let mut changes = client
        .watch_media(media::WatchMediaRequest {
            after_sequence: Some(0),
        })
        .await?
        .into_inner();
    let event = changes.message().await?.expect("an event");
    assert!(event.sequence > 0);
    Ok(())
}
