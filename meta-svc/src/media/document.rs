//! Media items as documents. Field names are those of the message.

use souk_engine::index::{Analyzer, Field, FieldKind, FieldValue, Object};

use super::Media;

const NANOS_PER_SECOND: f64 = 1e9;

pub(super) fn fields() -> Vec<Field> {
    vec![
        Field::keyword("media_id"),
        Field::keyword("user_id"),
        Field::keyword("type"),
        Field::text("title", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword),
        Field::keyword("format"),
        Field::long("size_bytes"),
        Field::long("width"),
        Field::long("height"),
        // In seconds.
        Field::double("duration"),
        Field::date("created_at"),
        Field::geo_point("position"),
        Field::keyword("camera"),
        Field::keyword("uri"),
        Field::keyword("md5"),
        Field::nested("tags", vec![Field::keyword("tag"), Field::double("score")]),
        Field::nested(
            "faces",
            vec![Field::keyword("person"), Field::double("similarity")],
        ),
        Field::attributes("attributes"),
    ]
}

pub(super) fn write(media: &Media, document: &mut Object) {
    document.push_text("media_id", &media.media_id);
    document.push_text("user_id", &media.user_id);
    document.push_text("type", media.kind.word());
    document.push_text("title", &media.title);
    document.push_text("format", &media.format);
    for (field, number) in [
        ("size_bytes", media.size_bytes),
        ("width", media.width.map(i64::from)),
        ("height", media.height.map(i64::from)),
    ] {
        if let Some(number) = number {
            document.push(field, number);
        }
    }
    if let Some(nanos) = media.duration {
        document.push("duration", nanos as f64 / NANOS_PER_SECOND);
    }
    if let Some(nanos) = media.created_at {
        document.push("created_at", FieldValue::Date(nanos));
    }
    if let Some(position) = media.position {
        document.push("position", position);
    }
    document.push_text("camera", &media.camera);
    document.push_text("uri", &media.uri);
    document.push_text("md5", &media.md5);
    let tags = media
        .tags
        .iter()
        .map(|tag| sure(Object::new().with("tag", tag.tag.as_str()), "score", tag.score));
    write_objects("tags", tags.collect(), document);
    let faces = media.faces.iter().map(|face| {
        let object = Object::new().with("person", face.person.as_str());
        sure(object, "similarity", face.similarity)
    });
    write_objects("faces", faces.collect(), document);
    media.attributes.to_document(document, "attributes");
}

/// A finding with how sure the analysis is, if it says so.
fn sure(object: Object, field: &str, value: Option<f64>) -> Object {
    match value {
        Some(value) => object.with(field, value),
        None => object,
    }
}

fn write_objects(field: &str, objects: Vec<Object>, document: &mut Object) {
    if !objects.is_empty() {
        document.push(field, objects);
    }
}
