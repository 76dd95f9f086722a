//! Media items on the wire.

use souk_api::wire::{
    self, Change, Updatable, broken, duration, duration_to_wire, point, point_to_wire, time, time_to_wire,
};
use souk_api::{FoundHit, Result, SearchPage};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{ExportBlock, ResourceChange, Stored, WatchEvent};
use souk_proto::media::v1 as pb;

use super::{Media, MediaKind, findings};

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

/// Reads a media item that keeps its rules.
pub(super) fn from_wire(media: &pb::Media, path: &FieldPath, violations: &mut Violations) -> Option<Media> {
    let attributes = wire::attributes(&media.attributes, path, violations);
    Some(Media {
        media_id: media.media_id.clone(),
        user_id: media.user_id.clone(),
        kind: MediaKind::from_wire(media.r#type)?,
        title: media.title.clone(),
        format: media.format.clone(),
        size_bytes: media.size_bytes,
        width: media.width,
        height: media.height,
        duration: media.duration.as_ref().and_then(duration),
        created_at: media.created_at.as_ref().and_then(time),
        position: media.position.as_ref().and_then(point),
        camera: media.camera.clone(),
        uri: media.uri.clone(),
        md5: media.md5.to_ascii_lowercase(),
        tags: media.tags.iter().map(findings::read_tag).collect(),
        faces: media.faces.iter().map(findings::read_face).collect(),
        attributes,
    })
}

/// Checks an update request.
pub(super) fn change(request: pb::UpdateMediaRequest, violations: Violations) -> Result<Change<pb::Media>> {
    let (media, mask) = (request.media, request.update_mask.as_ref());
    Change::from_wire(&UPDATABLE, media, mask, &request.etag, violations, |media| {
        (&media.media_id, &media.etag)
    })
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
    let path = FieldPath::root("media");
    let mut violations = broken(&changed, &path);
    let media = from_wire(&changed, &path, &mut violations);
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
