//! What analyses found in a file: labels and faces.

use std::ops::RangeInclusive;

use souk_api::wire::{check_len, check_name, check_range};
use souk_chassis::status::{FieldPath, Violations};
use souk_proto::media::v1 as pb;

/// Most labels, and most faces, of one file.
pub(super) const FINDINGS_MAX: usize = 256;
/// Longest label or name of a person, in characters.
const WORD_CHARS_MAX: usize = 256;
/// Scores, similarities, and parts of a picture.
const PARTS: RangeInclusive<f64> = 0.0..=1.0;

/// A label.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    /// The label.
    pub tag: String,
    /// How sure the analysis is, 0 to 1, if it says so.
    pub score: Option<f64>,
}

/// A face that was recognised.
#[derive(Clone, Debug, PartialEq)]
pub struct Face {
    /// Whose it is.
    pub person: String,
    /// How similar it is, 0 to 1, if the analysis says so.
    pub similarity: Option<f64>,
    /// Where it is.
    pub area: Option<Area>,
}

/// Where in a picture something is, as parts of its width and height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// The left edge, 0 to 1.
    pub left: f64,
    /// The top edge, 0 to 1.
    pub top: f64,
    /// The width, 0 to 1.
    pub width: f64,
    /// The height, 0 to 1.
    pub height: f64,
}

/// Labels in a column.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TagsColumn {
    #[prost(message, repeated, tag = "1")]
    pub(super) tags: Vec<TagColumn>,
}

/// A label in a column.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TagColumn {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(double, optional, tag = "2")]
    score: Option<f64>,
}

/// Faces in a column.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FacesColumn {
    #[prost(message, repeated, tag = "1")]
    pub(super) faces: Vec<FaceColumn>,
}

/// A face in a column.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FaceColumn {
    #[prost(string, tag = "1")]
    person: String,
    #[prost(double, optional, tag = "2")]
    similarity: Option<f64>,
    #[prost(message, optional, tag = "3")]
    area: Option<pb::Box>,
}

/// Checks labels; the list isn't complete when there are violations.
pub(super) fn tags(tags: &[pb::Tag], path: &FieldPath, violations: &mut Violations) -> Vec<Tag> {
    check_len(tags.len(), FINDINGS_MAX, path, violations);
    let tags = tags.iter().take(FINDINGS_MAX).enumerate();
    tags.map(|(at, tag)| {
        let path = path.index(at);
        check_name(&tag.tag, WORD_CHARS_MAX, path.field("tag"), violations);
        check_range(tag.score, &PARTS, path.field("score"), violations);
        read_tag(tag)
    })
    .collect()
}

/// Checks faces; the list isn't complete when there are violations.
pub(super) fn faces(faces: &[pb::Face], path: &FieldPath, violations: &mut Violations) -> Vec<Face> {
    check_len(faces.len(), FINDINGS_MAX, path, violations);
    let faces = faces.iter().take(FINDINGS_MAX).enumerate();
    faces
        .map(|(at, face)| {
            let path = path.index(at);
            check_name(&face.person, WORD_CHARS_MAX, path.field("person"), violations);
            check_range(face.similarity, &PARTS, path.field("similarity"), violations);
            if let Some(area) = &face.r#box {
                let path = path.field("box");
                check_range(area.left, &PARTS, path.field("left"), violations);
                check_range(area.top, &PARTS, path.field("top"), violations);
                check_range(area.width, &PARTS, path.field("width"), violations);
                check_range(area.height, &PARTS, path.field("height"), violations);
            }
            read_face(face)
        })
        .collect()
}

fn read_tag(tag: &pb::Tag) -> Tag {
    Tag {
        tag: tag.tag.clone(),
        score: tag.score,
    }
}

fn read_face(face: &pb::Face) -> Face {
    Face {
        person: face.person.clone(),
        similarity: face.similarity,
        area: face.r#box.as_ref().map(read_area),
    }
}

pub(super) fn tag_to_wire(tag: Tag) -> pb::Tag {
    pb::Tag {
        tag: tag.tag,
        score: tag.score,
    }
}

pub(super) fn face_to_wire(face: Face) -> pb::Face {
    pb::Face {
        person: face.person,
        similarity: face.similarity,
        r#box: face.area.map(area_to_wire),
    }
}

fn read_area(area: &pb::Box) -> Area {
    Area {
        left: area.left,
        top: area.top,
        width: area.width,
        height: area.height,
    }
}

fn area_to_wire(area: Area) -> pb::Box {
    pb::Box {
        left: area.left,
        top: area.top,
        width: area.width,
        height: area.height,
    }
}

pub(super) fn tag_to_column(tag: &Tag) -> TagColumn {
    TagColumn {
        tag: tag.tag.clone(),
        score: tag.score,
    }
}

/// A label that was checked before it was stored.
pub(super) fn tag_of_column(tag: TagColumn) -> Tag {
    Tag {
        tag: tag.tag,
        score: tag.score,
    }
}

pub(super) fn face_to_column(face: &Face) -> FaceColumn {
    FaceColumn {
        person: face.person.clone(),
        similarity: face.similarity,
        area: face.area.map(area_to_wire),
    }
}

/// A face that was checked before it was stored.
pub(super) fn face_of_column(face: FaceColumn) -> Face {
    Face {
        person: face.person,
        similarity: face.similarity,
        area: face.area.as_ref().map(read_area),
    }
}
