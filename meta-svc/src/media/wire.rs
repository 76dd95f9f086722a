//! Media items on the wire.

use souk_api::wire::{
    self, Change, Updatable, check_id, check_not_negative, check_text, duration, duration_to_wire, point,
    point_to_wire, time, time_to_wire,
};
use souk_api::{FoundHit, Result, SearchPage};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{ExportBlock, ResourceChange, Stored, WatchEvent};
use souk_proto::media::v1 as pb;

use super::{Media, MediaKind, findings};

/// Longest title, place of the file or camera's name, in characters: 4 bytes each still are a KEYWORD.
const TEXT_CHARS_MAX: usize = 1_024;
/// Longest format or user's id, in characters.
const WORD_CHARS_MAX: usize = 128;
/// Hexadecimal digits of an md5.
const MD5_DIGITS: usize = 32;

/// What an update request may change.
const UPDATABLE: Updatable<'_> = Updatable {
    resource: "media",
    id: "media_id",
    fields: &[
        "user_id",
        "type",
        "title",
        "format",
        "size_bytes",
        "width",
        "height",
        "duration",
        "created_at",
        "position",
        "camera",
        "uri",
        "md5",
        "tags",
        "faces",
        "attributes",
    ],
};

/// Checks a media item.
pub(super) fn from_wire(media: &pb::Media, path: &FieldPath, violations: &mut Violations) -> Option<Media> {
    let before = violations.len();
    check_id(&media.media_id, path.field("media_id"), violations);
    for (field, text, chars_max) in [
        ("user_id", &media.user_id, WORD_CHARS_MAX),
        ("title", &media.title, TEXT_CHARS_MAX),
        ("format", &media.format, WORD_CHARS_MAX),
        ("camera", &media.camera, TEXT_CHARS_MAX),
        ("uri", &media.uri, TEXT_CHARS_MAX),
    ] {
        check_text(text, chars_max, path.field(field), violations);
    }
    let kind = kind(media.r#type, &path.field("type"), violations);
    check_not_negative(media.size_bytes, path.field("size_bytes"), violations);
    check_not_negative(media.width, path.field("width"), violations);
    check_not_negative(media.height, path.field("height"), violations);
    let plays = media.duration.as_ref();
    let plays = plays.and_then(|given| duration(given, path.field("duration"), violations));
    let created_at = media.created_at.as_ref();
    let created_at = created_at.and_then(|given| time(given, path.field("created_at"), violations));
    let position = media.position.as_ref();
    let position = position.and_then(|given| point(given, path.field("position"), violations));
    check_md5(&media.md5, &path.field("md5"), violations);
    let tags = findings::tags(&media.tags, &path.field("tags"), violations);
    let faces = findings::faces(&media.faces, &path.field("faces"), violations);
    let attributes = wire::attributes(&media.attributes, path.field("attributes"), violations);
    if violations.len() > before {
        return None;
    }
    Some(Media {
        media_id: media.media_id.clone(),
        user_id: media.user_id.clone(),
        kind: kind?,
        title: media.title.clone(),
        format: media.format.clone(),
        size_bytes: media.size_bytes,
        width: media.width,
        height: media.height,
        duration: plays,
        created_at,
        position,
        camera: media.camera.clone(),
        uri: media.uri.clone(),
        md5: media.md5.to_ascii_lowercase(),
        tags,
        faces,
        attributes,
    })
}

fn kind(kind: i32, path: &FieldPath, violations: &mut Violations) -> Option<MediaKind> {
    let known = MediaKind::from_wire(kind);
    if known.is_none() && kind == i32::from(pb::MediaType::Unspecified) {
        violations.required(path);
    } else if known.is_none() {
        let message = format!("is {kind}, which is no MediaType; use for example MEDIA_TYPE_IMAGE");
        violations.push(path, "UNKNOWN_VALUE", message);
    }
    known
}

fn check_md5(md5: &str, path: &FieldPath, violations: &mut Violations) {
    let hexadecimal = md5.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !md5.is_empty() && (md5.len() != MD5_DIGITS || !hexadecimal) {
        let message = format!("must be {MD5_DIGITS} hexadecimal digits");
        violations.push(path, "INVALID_MD5", message);
    }
}

/// Checks an update request. What is to be appended is checked here, where its places are those of the request.
pub(super) fn change(request: pb::UpdateMediaRequest) -> Result<Change<pb::Media>> {
    let (media, mask) = (request.media, request.update_mask.as_ref());
    let change = Change::from_wire(&UPDATABLE, media, mask, &request.etag, |media| {
        (&media.media_id, &media.etag)
    })?;
    let mut violations = Violations::new();
    let path = FieldPath::root("media");
    if request.append {
        findings::tags(&change.given().tags, &path.field("tags"), &mut violations);
        findings::faces(&change.given().faces, &path.field("faces"), &mut violations);
    }
    wire::checked(Some(change), violations)
}

/// The media item after a change; with `append`, labels and faces are added to those that are there.
pub(super) fn apply(change: &Change<pb::Media>, append: bool, current: Media) -> Result<Media> {
    let (mask, given) = (change.mask(), change.given());
    let mut changed = to_wire(current);
    mask.put("user_id", &mut changed.user_id, &given.user_id);
    mask.put("type", &mut changed.r#type, &given.r#type);
    mask.put("title", &mut changed.title, &given.title);
    mask.put("format", &mut changed.format, &given.format);
    mask.put("size_bytes", &mut changed.size_bytes, &given.size_bytes);
    mask.put("width", &mut changed.width, &given.width);
    mask.put("height", &mut changed.height, &given.height);
    mask.put("duration", &mut changed.duration, &given.duration);
    mask.put("created_at", &mut changed.created_at, &given.created_at);
    mask.put("position", &mut changed.position, &given.position);
    mask.put("camera", &mut changed.camera, &given.camera);
    mask.put("uri", &mut changed.uri, &given.uri);
    mask.put("md5", &mut changed.md5, &given.md5);
    if append {
        mask.append("tags", &mut changed.tags, &given.tags);
        mask.append("faces", &mut changed.faces, &given.faces);
    } else {
        mask.put("tags", &mut changed.tags, &given.tags);
        mask.put("faces", &mut changed.faces, &given.faces);
    }
    mask.put("attributes", &mut changed.attributes, &given.attributes);
    let mut violations = Violations::new();
    let media = from_wire(&changed, &FieldPath::root("media"), &mut violations);
    wire::checked(media, violations)
}

fn to_wire(media: Media) -> pb::Media {
    pb::Media {
        media_id: media.media_id,
        user_id: media.user_id,
        r#type: media.kind.to_wire().into(),
        title: media.title,
        format: media.format,
        size_bytes: media.size_bytes,
        width: media.width,
        height: media.height,
        duration: media.duration.map(duration_to_wire),
        created_at: media.created_at.map(time_to_wire),
        position: media.position.map(point_to_wire),
        camera: media.camera,
        uri: media.uri,
        md5: media.md5,
        tags: media.tags.into_iter().map(findings::tag_to_wire).collect(),
        faces: media.faces.into_iter().map(findings::face_to_wire).collect(),
        attributes: wire::attributes_to_wire(media.attributes),
        ..pb::Media::default()
    }
}

pub(super) fn stored(stored: Stored<Media>) -> pb::Media {
    pb::Media {
        create_time: Some(time_to_wire(stored.create_time)),
        update_time: Some(time_to_wire(stored.update_time)),
        revision: stored.revision,
        etag: stored.etag(),
        ..to_wire(stored.resource)
    }
}

pub(super) fn all(media: Vec<Stored<Media>>) -> Vec<pb::Media> {
    media.into_iter().map(stored).collect()
}

fn only_id(media_id: String) -> pb::Media {
    pb::Media {
        media_id,
        ..pb::Media::default()
    }
}

fn hit(hit: FoundHit<Media>) -> pb::MediaHit {
    pb::MediaHit {
        resource: Some(hit.resource.map_or_else(|| only_id(hit.id), stored)),
        score: hit.score,
        sort_values: hit.sort_values,
        highlights: hit.highlights,
        inner_hits: hit.inner_hits,
    }
}

pub(super) fn page(page: SearchPage<Media>) -> pb::SearchMediaResponse {
    pb::SearchMediaResponse {
        hits: page.hits.into_iter().map(hit).collect(),
        next_page_token: page.next_page_token,
        total: page.total,
        aggregations: page.aggregations,
        sequence: page.sequence,
        profile: page.profile,
    }
}

pub(super) fn block(block: ExportBlock<Stored<Media>>) -> pb::ExportMediaResponse {
    pb::ExportMediaResponse {
        media: all(block.items),
        resume_token: block.resume_token,
        snapshot_token: block.snapshot_token,
        sequence: block.sequence,
    }
}

fn watched(change: ResourceChange<Media>) -> pb::MediaChange {
    pb::MediaChange {
        kind: wire::change_kind(change.kind),
        media: Some(change.stored.map_or_else(|| only_id(change.id), stored)),
    }
}

pub(super) fn event(event: WatchEvent<ResourceChange<Media>>) -> pb::WatchMediaResponse {
    pb::WatchMediaResponse {
        sequence: event.sequence,
        commit_time: Some(time_to_wire(event.commit_time)),
        changes: event.changes.into_iter().map(watched).collect(),
    }
}
