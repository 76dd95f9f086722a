//! The media service on a real engine, behind all layers of a server, called by a generated client.

use std::error::Error;

use prost::Message as _;
use prost_types::FieldMask;
use souk_api::testing::{reopen_trimmed, serve};
use souk_meta_svc::MediaServices;
use souk_proto::media::v1 as pb;
use souk_proto::media::v1::media_service_client::MediaServiceClient;
use souk_proto::search::v1::{NestedQuery, Query, Search, TermQuery, query};
use souk_proto::r#type::v1::{Value, value};

type TestResult = Result<(), Box<dyn Error>>;

fn tag(tag: &str, score: f64) -> pb::Tag {
    pb::Tag {
        tag: tag.to_owned(),
        score: Some(score),
    }
}

fn term(field: &str, text: &str) -> Query {
    let value = Some(Value {
        kind: Some(value::Kind::StringValue(text.to_owned())),
    });
    Query {
        kind: Some(query::Kind::Term(TermQuery {
            field: field.to_owned(),
            value,
            weight: None,
        })),
    }
}

fn nested(path: &str, query: Query) -> Query {
    Query {
        kind: Some(query::Kind::Nested(Box::new(NestedQuery {
            path: path.to_owned(),
            query: Some(Box::new(query)),
            ..NestedQuery::default()
        }))),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_is_answered_alike_when_the_log_has_forgotten_it() -> TestResult {
    let running = serve::<MediaServices>().await?;
    let mut media = MediaServiceClient::new(running.stack.clone());
    let item = |media_id: &str| pb::Media {
        media_id: media_id.to_owned(),
        r#type: pb::MediaType::Video.into(),
        title: "沈家面馆".to_owned(),
        tags: vec![tag("car", 0.1 + 0.2), tag("开心", 1.0 / 3.0)],
        ..pb::Media::default()
    };
    let request = pb::BatchCreateMediaRequest {
        request_id: "0b1d5d5e-55ad-4f4c-8d0e-3f6c1b7a9e02".to_owned(),
        media: vec![item("m1"), item("m2")],
        ..Default::default()
    };
    let first = media.batch_create_media(request.clone()).await?.into_inner();
    let delete = pb::DeleteMediaRequest {
        media_id: "m1".to_owned(),
        ..Default::default()
    };
    media.delete_media(delete).await?;
    drop(media);
    let running = reopen_trimmed(running).await?;
    let mut media = MediaServiceClient::new(running.stack.clone());
    let again = media.batch_create_media(request).await?.into_inner();
    assert_eq!(again.encode_to_vec(), first.encode_to_vec());
    Ok(())
}

#[tokio::test]
async fn findings_are_appended_and_found() -> TestResult {
    let running = serve::<MediaServices>().await?;
    let mut media = MediaServiceClient::new(running.stack.clone());
    let item = pb::Media {
        media_id: "m1".to_owned(),
        r#type: pb::MediaType::Image.into(),
        title: "沈家面馆".to_owned(),
        tags: vec![tag("car", 0.5)],
        ..pb::Media::default()
    };
    let request = pb::CreateMediaRequest {
        media: Some(item.clone()),
        ..Default::default()
    };
    media.create_media(request).await?;
    let face = pb::Face {
        person: "影1".to_owned(),
        similarity: Some(0.75),
        r#box: None,
    };
    let analysed = pb::Media {
        media_id: "m1".to_owned(),
        tags: vec![tag("开心", 0.9)],
        faces: vec![face.clone()],
        ..pb::Media::default()
    };
    let request = pb::UpdateMediaRequest {
        media: Some(analysed),
        update_mask: Some(FieldMask {
            paths: vec!["tags".to_owned(), "faces".to_owned()],
        }),
        append: true,
        ..Default::default()
    };
    let updated = media.update_media(request).await?.into_inner();
    let after = updated.media.ok_or("a media item")?;
    assert_eq!(after.tags, [tag("car", 0.5), tag("开心", 0.9)]);
    assert_eq!(after.faces, [face]);
    assert_eq!(after.title, item.title);

    for (query, hits) in [
        (term("type", "image"), 1),
        (term("type", "video"), 0),
        (nested("tags", term("tags.tag", "开心")), 1),
        (nested("tags", term("tags.tag", "car")), 1),
        (nested("tags", term("tags.tag", "cat")), 0),
        (nested("faces", term("faces.person", "影1")), 1),
    ] {
        let request = pb::SearchMediaRequest {
            search: Some(Search {
                query: Some(query.clone()),
                min_sequence: updated.sequence,
                ..Search::default()
            }),
        };
        let found = media.search_media(request).await?.into_inner();
        assert_eq!(found.hits.len(), hits, "{query:?}");
    }
    Ok(())
}
