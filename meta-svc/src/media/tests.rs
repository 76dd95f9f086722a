use prost_types::Duration;
use souk_api::MessageResource as _;
use souk_api::testing::{assert_round_trips, broken_rules, document, updated};
use souk_engine::index::{FieldValue, Object};
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::media::v1 as pb;

use super::{MediaDomain, append_findings};
use crate::Media;

fn tag(tag: &str, score: f64) -> pb::Tag {
    pb::Tag {
        tag: tag.to_owned(),
        score: Some(score),
    }
}

#[test]
fn media_items_come_back_from_rows() {
    assert_round_trips::<Media>("souk.media.v1.Media", FILE_DESCRIPTOR_SET);
}

#[test]
fn every_violation_is_named() {
    let bad = pb::Media {
        user_id: "x".repeat(129),
        r#type: 99,
        size_bytes: Some(-1),
        width: Some(-1),
        height: Some(-1),
        duration: Some(Duration {
            seconds: -1,
            nanos: 0,
        }),
        md5: "0123".to_owned(),
        tags: vec![tag("", 0.5), tag("car", 1.1)],
        faces: vec![pb::Face {
            person: "Ann".to_owned(),
            similarity: Some(f64::NAN),
            r#box: Some(pb::Box {
                left: 0.0,
                top: -0.1,
                width: 1.0,
                height: 1.0,
            }),
        }],
        ..pb::Media::default()
    };
    let fields = [
        "media_id",
        "user_id",
        "type",
        "size_bytes",
        "width",
        "height",
        "duration",
        "md5",
        "tags[0].tag",
        "tags[1].score",
        "faces[0].similarity",
        "faces[0].box.top",
    ];
    assert_eq!(
        broken_rules(&bad, "media"),
        fields.map(|field| format!("media.{field}"))
    );
    let bad = pb::Media {
        media_id: "m1".to_owned(),
        tags: vec![tag("x", 0.0); 257],
        ..pb::Media::default()
    };
    assert_eq!(broken_rules(&bad, "media"), ["media.type", "media.tags"]);
}

#[test]
fn an_md5_is_kept_in_lower_case() {
    let media = pb::Media {
        media_id: "m1".to_owned(),
        r#type: 1,
        ..pb::Media::default()
    };
    let given = pb::Media {
        md5: "0123456789ABCDEF0123456789abcdef".to_owned(),
        ..media.clone()
    };
    let changed = updated::<Media>(media, given, &["md5"], &MediaDomain, Media::put);
    assert_eq!(
        changed.map(|media| media.md5),
        Ok("0123456789abcdef0123456789abcdef".to_owned())
    );
}

#[test]
fn a_document_speaks_in_words_and_seconds() {
    let media = pb::Media {
        media_id: "m1".to_owned(),
        r#type: pb::MediaType::Video.into(),
        duration: Some(Duration {
            seconds: 1,
            nanos: 500_000_000,
        }),
        tags: vec![tag("开心", 0.9)],
        ..pb::Media::default()
    };
    let document = document::<Media>(&media);
    assert_eq!(document.values("type"), [FieldValue::from("video")]);
    assert_eq!(document.values("duration"), [FieldValue::Double(1.5)]);
    let object = Object::new().with("tag", "开心").with("score", 0.9);
    assert_eq!(document.values("tags"), [FieldValue::Objects(vec![object])]);
    assert_eq!(document.values("faces"), []);
}

#[test]
fn an_update_replaces_or_appends() {
    let current = pb::Media {
        media_id: "m1".to_owned(),
        r#type: 1,
        title: "old".to_owned(),
        tags: vec![tag("car", 0.5)],
        ..pb::Media::default()
    };
    let given = pb::Media {
        media_id: "m1".to_owned(),
        title: "new".to_owned(),
        tags: vec![tag("开心", 0.9)],
        ..pb::Media::default()
    };
    let update = |append: bool, mask: &[&str]| {
        let put = if append { append_findings } else { Media::put };
        let changed = updated::<Media>(current.clone(), given.clone(), mask, &MediaDomain, put);
        let media = changed.expect("a change");
        let tags = media.tags.into_iter().map(|tag| tag.tag);
        (media.title, tags.collect::<Vec<_>>())
    };
    let both = vec!["car".to_owned(), "开心".to_owned()];
    assert_eq!(
        update(false, &["tags"]),
        ("old".to_owned(), vec!["开心".to_owned()])
    );
    assert_eq!(update(true, &["tags", "title"]), ("new".to_owned(), both.clone()));
    // What the mask doesn't name isn't appended.
    assert_eq!(
        update(true, &["title"]),
        ("new".to_owned(), vec!["car".to_owned()])
    );
    // Without a mask: what is set.
    assert_eq!(update(true, &[]), ("new".to_owned(), both));
}

#[test]
fn what_is_appended_is_named_by_its_place_in_the_request() {
    let current = pb::Media {
        media_id: "m1".to_owned(),
        r#type: 1,
        tags: vec![tag("car", 0.5); 200],
        ..pb::Media::default()
    };
    let append = |tags: Vec<pb::Tag>| {
        let given = pb::Media {
            media_id: "m1".to_owned(),
            tags,
            ..pb::Media::default()
        };
        updated::<Media>(current.clone(), given, &["tags"], &MediaDomain, append_findings)
            .expect_err("too much")
    };
    assert_eq!(
        append(vec![tag("ok", 0.5), tag("bad", 2.0)]),
        ["media.tags[1].score"]
    );
    assert_eq!(append(vec![tag("more", 0.5); 57]), ["media.tags"]);
}
