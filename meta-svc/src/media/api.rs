//! The RPCs of media items.

use souk_api::wire::{
    Answers, answers, batch, checked, endless_answers, etag, one, received, request_id, valid,
};
use souk_api::{ExportRequest, Resources};
use souk_proto::media::v1 as pb;
use souk_proto::media::v1::media_service_server::MediaService;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{Media, wire};

/// Media items over gRPC.
#[derive(Debug)]
pub struct MediaApi {
    media: Resources<Media>,
    draining: CancellationToken,
}

impl MediaApi {
    /// The RPCs on a table; watches end with `draining`.
    pub fn new(media: Resources<Media>, draining: CancellationToken) -> Self {
        Self { media, draining }
    }
}

#[tonic::async_trait]
impl MediaService for MediaApi {
    type ExportMediaStream = Answers<pb::ExportMediaResponse>;
    type WatchMediaStream = Answers<pb::WatchMediaResponse>;

    async fn create_media(
        &self,
        request: Request<pb::CreateMediaRequest>,
    ) -> Result<Response<pb::CreateMediaResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let media = one(request.media.as_ref(), "media", &mut violations, wire::from_wire);
        let media = checked(media, violations)?;
        let written = self.media.create(media, id, request.validate_only).await?;
        Ok(Response::new(pb::CreateMediaResponse {
            media: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn batch_create_media(
        &self,
        request: Request<pb::BatchCreateMediaRequest>,
    ) -> Result<Response<pb::BatchCreateMediaResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let items = batch(&request.media, "media", &mut violations, wire::from_wire);
        let items = checked(items, violations)?;
        let written = self.media.create_batch(items, id, request.omit_resources).await?;
        Ok(Response::new(pb::BatchCreateMediaResponse {
            media: wire::all(written.value),
            sequence: written.sequence,
        }))
    }

    async fn get_media(
        &self,
        request: Request<pb::GetMediaRequest>,
    ) -> Result<Response<pb::GetMediaResponse>, Status> {
        let request = valid(request)?;
        let read = self.media.get(&request.media_id, request.min_sequence).await?;
        Ok(Response::new(pb::GetMediaResponse {
            media: Some(wire::stored(read.value)),
            sequence: read.sequence,
        }))
    }

    async fn batch_get_media(
        &self,
        request: Request<pb::BatchGetMediaRequest>,
    ) -> Result<Response<pb::BatchGetMediaResponse>, Status> {
        let request = valid(request)?;
        let read = self
            .media
            .get_batch(&request.media_ids, request.min_sequence)
            .await?;
        Ok(Response::new(pb::BatchGetMediaResponse {
            media: wire::all(read.value.found),
            missing_ids: read.value.missing,
            sequence: read.sequence,
        }))
    }

    async fn update_media(
        &self,
        request: Request<pb::UpdateMediaRequest>,
    ) -> Result<Response<pb::UpdateMediaResponse>, Status> {
        let (request, violations) = received(request);
        let append = request.append;
        let change = wire::change(request, violations)?;
        let written = self
            .media
            .update(change.id(), change.etag(), |media| {
                wire::apply(&change, append, media)
            })
            .await?;
        Ok(Response::new(pb::UpdateMediaResponse {
            media: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn delete_media(
        &self,
        request: Request<pb::DeleteMediaRequest>,
    ) -> Result<Response<pb::DeleteMediaResponse>, Status> {
        let request = valid(request)?;
        let etag = etag(&request.etag, "");
        let written = self.media.delete(&request.media_id, etag).await?;
        Ok(Response::new(pb::DeleteMediaResponse {
            sequence: written.sequence,
        }))
    }

    async fn search_media(
        &self,
        request: Request<pb::SearchMediaRequest>,
    ) -> Result<Response<pb::SearchMediaResponse>, Status> {
        let found = self.media.search(request.into_inner().search, "search").await?;
        Ok(Response::new(wire::page(found)))
    }

    async fn export_media(
        &self,
        request: Request<pb::ExportMediaRequest>,
    ) -> Result<Response<Self::ExportMediaStream>, Status> {
        let request = valid(request)?;
        let blocks = self
            .media
            .export(ExportRequest {
                slice_count: request.slice_count,
                slice: request.slice,
                snapshot_token: request.snapshot_token,
                resume_token: request.resume_token,
                min_sequence: request.min_sequence,
            })
            .await?;
        Ok(Response::new(answers(blocks, wire::block)))
    }

    async fn watch_media(
        &self,
        request: Request<pb::WatchMediaRequest>,
    ) -> Result<Response<Self::WatchMediaStream>, Status> {
        let events = self.media.watch(valid(request)?.after_sequence).await?;
        let draining = self.draining.clone();
        Ok(Response::new(endless_answers(events, draining, wire::event)))
    }
}
