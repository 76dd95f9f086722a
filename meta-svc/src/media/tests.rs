use fastrand::Rng;
use prost_types::{Duration, FieldMask};
use souk_api::Error;
use souk_api::testing::{assert_consistent, attributes, number, paths, random, received, text};
use souk_chassis::status::Violations;
use souk_engine::Stored;
use souk_engine::index::{FieldValue, GeoPoint, Object};
use souk_proto::media::v1 as pb;

use super::{Area, Face, Media, MediaKind, Tag, wire};

fn any_tag(random: &mut Rng) -> Tag {
    Tag {
        tag: text(random, 1, 8),
        score: random.bool().then(|| random.f64()),
    }
}

fn any_face(random: &mut Rng) -> Face {
    let area = Area {
        left: random.f64(),
        top: random.f64(),
        width: random.f64(),
        height: random.f64(),
    };
    Face {
        person: text(random, 1, 8),
        similarity: random.bool().then(|| random.f64()),
        area: random.bool().then_some(area),
    }
}

/// The longest that the contract lets a file play, in nanoseconds.
const DURATION_MAX: i64 = 9_223_372_036_000_000_000;

fn any_media(random: &mut Rng) -> Media {
    let pixels = |random: &mut Rng| i32::try_from(number(random, 0, i64::from(i32::MAX))).expect("fits");
    let md5: String = (0..32).map(|_| random.digit(16)).collect();
    let point = GeoPoint::new(random.f64() * 90.0, random.f64() * 180.0).expect("on the globe");
    Media {
        media_id: text(random, 1, 128),
        user_id: text(random, 0, 128),
        kind: random.choice(MediaKind::ALL).expect("a kind"),
        title: text(random, 0, 1_024),
        format: text(random, 0, 8),
        size_bytes: random.bool().then(|| number(random, 0, i64::MAX)),
        width: random.bool().then(|| pixels(random)),
        height: random.bool().then(|| pixels(random)),
        duration: random.bool().then(|| number(random, 0, DURATION_MAX)),
        created_at: random.bool().then(|| number(random, i64::MIN, i64::MAX)),
        position: random.bool().then_some(point),
        camera: text(random, 0, 8),
        uri: text(random, 0, 8),
        md5: if random.bool() { md5 } else { String::new() },
        tags: (0..random.usize(..4)).map(|_| any_tag(random)).collect(),
        faces: (0..random.usize(..4)).map(|_| any_face(random)).collect(),
        attributes: attributes(random),
    }
}

fn message(media: &Media) -> pb::Media {
    wire::stored(Stored {
        resource: media.clone(),
        revision: 7,
        history: 3,
        create_time: 1,
        update_time: 2,
    })
}

fn read(media: &pb::Media) -> Result<Media, Vec<String>> {
    received(media, "media", wire::from_wire)
}

fn update(given: pb::Media, mask: &[&str], append: bool, current: &Media) -> Result<Media, Vec<String>> {
    let request = pb::UpdateMediaRequest {
        media: Some(pb::Media {
            media_id: current.media_id.clone(),
            ..given
        }),
        update_mask: Some(FieldMask {
            paths: mask.iter().map(|path| (*path).to_owned()).collect(),
        }),
        etag: String::new(),
        append,
    };
    let changed = wire::change(request, Violations::new())
        .and_then(|change| wire::apply(&change, append, current.clone()));
    changed.map_err(|error| match error {
        Error::Invalid(violations) => paths(violations),
        other => panic!("{other:?}"),
    })
}

fn tag(tag: &str, score: f64) -> pb::Tag {
    pb::Tag {
        tag: tag.to_owned(),
        score: Some(score),
    }
}

#[test]
fn media_items_come_back_from_rows_and_from_the_wire() {
    let mut random = random();
    for _ in 0..200 {
        let media = any_media(&mut random);
        assert_consistent(&media);
        assert_eq!(read(&message(&media)), Ok(media));
    }
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
    let expected = fields.map(|field| format!("media.{field}")).to_vec();
    assert_eq!(read(&bad), Err(expected));
}

#[test]
fn a_type_is_required_and_an_md5_is_kept_in_lower_case() {
    let mut message = message(&any_media(&mut random()));
    message.md5 = "0123456789ABCDEF0123456789abcdef".to_owned();
    assert_eq!(
        read(&message).expect("good").md5,
        "0123456789abcdef0123456789abcdef"
    );
    message.r#type = 0;
    message.tags = vec![tag("x", 0.0); 257];
    assert_eq!(
        read(&message),
        Err(vec!["media.type".to_owned(), "media.tags".to_owned()])
    );
}

#[test]
fn a_document_speaks_in_words_and_seconds() {
    let media = Media {
        kind: MediaKind::Video,
        duration: Some(1_500_000_000),
        tags: vec![Tag {
            tag: "开心".to_owned(),
            score: Some(0.9),
        }],
        faces: Vec::new(),
        ..any_media(&mut random())
    };
    let document = souk_api::testing::document(&media);
    assert_eq!(document.values("type"), [FieldValue::from("video")]);
    assert_eq!(document.values("duration"), [FieldValue::Double(1.5)]);
    let object = Object::new().with("tag", "开心").with("score", 0.9);
    assert_eq!(document.values("tags"), [FieldValue::Objects(vec![object])]);
    assert_eq!(document.values("faces"), []);
}

#[test]
fn an_update_replaces_or_appends() {
    let current = Media {
        tags: vec![Tag {
            tag: "car".to_owned(),
            score: Some(0.5),
        }],
        ..any_media(&mut random())
    };
    let given = pb::Media {
        title: "new".to_owned(),
        tags: vec![tag("开心", 0.9)],
        ..pb::Media::default()
    };
    let words = |media: Media| media.tags.into_iter().map(|tag| tag.tag).collect::<Vec<_>>();

    let replaced = update(given.clone(), &["tags"], false, &current).expect("a change");
    assert_eq!(
        (replaced.title == current.title, words(replaced)),
        (true, vec!["开心".to_owned()])
    );
    let appended = update(given.clone(), &["tags", "title"], true, &current).expect("a change");
    assert_eq!(appended.title, "new");
    assert_eq!(
        (appended.faces == current.faces, words(appended)),
        (true, vec!["car".to_owned(), "开心".to_owned()])
    );
    // What the mask doesn't name isn't appended.
    let other = update(given.clone(), &["title"], true, &current).expect("a change");
    assert_eq!(other.tags, current.tags);
    // Without a mask: what is set.
    let set = update(given, &[], true, &current).expect("a change");
    assert_eq!((set.title.as_str(), set.tags.len()), ("new", 2));
}

#[test]
fn what_is_appended_is_named_by_its_place_in_the_request() {
    let current = Media {
        tags: vec![
            Tag {
                tag: "car".to_owned(),
                score: Some(0.5),
            };
            200
        ],
        ..any_media(&mut random())
    };
    let bad = pb::Media {
        tags: vec![tag("ok", 0.5), tag("bad", 2.0)],
        ..pb::Media::default()
    };
    let refused = update(bad, &["tags"], true, &current);
    assert_eq!(refused, Err(vec!["media.tags[1].score".to_owned()]));
    let many = pb::Media {
        tags: vec![tag("more", 0.5); 57],
        ..pb::Media::default()
    };
    let refused = update(many, &["tags"], true, &current);
    assert_eq!(refused, Err(vec!["media.tags".to_owned()]));
}
