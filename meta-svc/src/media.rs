//! Media items: what is known of a file, and the tags and faces that analyses found in it, which updates may append.

use std::mem::take;

use souk_api::message::{self, CheckedUpdate};
use souk_api::wire::{UpdateMask, received};
use souk_api::{Domain, MessageResource as _, Resources};
use souk_chassis::status::{FieldPath, Violations};
use souk_proto::media::v1 as pb;
use tonic::{Request, Response, Status};

use crate::{Media, MediaMethods};

/// The domain logic of media items: checksums are kept in lower case, and updates may append.
#[derive(Clone, Copy, Debug)]
pub struct MediaDomain;

impl Domain<Media> for MediaDomain {
    fn complete(&self, media: &mut pb::Media, _: &FieldPath, _: &mut Violations) {
        media.md5.make_ascii_lowercase();
    }
}

/// Applies an update like `Media::put`, but appends its tags and faces to the current ones.
fn append_findings(mask: &UpdateMask, given: &pb::Media, current: &mut pb::Media) {
    let (mut tags, mut faces) = (take(&mut current.tags), take(&mut current.faces));
    mask.append("tags", &mut tags, &given.tags);
    mask.append("faces", &mut faces, &given.faces);
    Media::put(mask, given, current);
    (current.tags, current.faces) = (tags, faces);
}

#[tonic::async_trait]
impl MediaMethods for MediaDomain {
    async fn update_media(
        &self,
        media: &Resources<Media>,
        request: Request<pb::UpdateMediaRequest>,
    ) -> Result<Response<pb::UpdateMediaResponse>, Status> {
        let (request, violations) = received(request);
        let (append, mask) = (request.append, request.update_mask.as_ref());
        let change = CheckedUpdate::<Media>::read(request.media, mask, &request.etag, violations)?;
        let written = media
            .update(change.id(), change.etag(), |current| {
                change.apply_with(current, self, if append { append_findings } else { Media::put })
            })
            .await?;
        Ok(Response::new(pb::UpdateMediaResponse {
            media: Some(message::to_wire::<Media>(written.value)),
            sequence: written.sequence,
        }))
    }
}

#[cfg(test)]
mod tests;
